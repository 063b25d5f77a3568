"""``guerdon explain``: why one rollout got its reward."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guerdon.cli._show import AllowCode, Json, prepare_code, say, say_json, short

if TYPE_CHECKING:
    from guerdon.core.rollout import Rollout
    from guerdon.spec import Spec


def explain(
    data: Annotated[str, typer.Argument(metavar="FILE", help="A scored file; or, with --spec, the data.")],
    row: Annotated[int | None, typer.Option(help="The rollout's row in the input, from 0.")] = None,
    id: Annotated[str | None, typer.Option(help="The rollout's id.")] = None,
    spec: Annotated[
        Path | None, typer.Option("--spec", "-s", help="Score it now, and show the whole expression.")
    ] = None,
    text: Annotated[bool, typer.Option("--text/--no-text", help="Show prompt and completion too.")] = True,
    allow_code: AllowCode = None,
    json: Json = False,
) -> None:
    """Show one rollout's reward: every node's value, reason and evidence.

    Examples: guerdon explain scored.parquet --id a/b; guerdon explain data.jsonl -s reward.yaml --row 7
    """
    if (row is None) == (id is None):
        raise typer.BadParameter("give --row or --id")
    if spec is None:
        _from_scored(Path(data), row, id, text, json)
    else:
        from guerdon.spec import load_spec

        _from_data(data, load_spec(spec, allow_code=prepare_code(allow_code)), row, id, text, json)


def _from_scored(path: Path, row: int | None, id: str | None, text: bool, json: bool) -> None:
    from guerdon.report.scored_file import ScoredFile

    scored = ScoredFile(path)
    [found] = scored.rows([scored.find(row, id)])
    if json:
        say_json(found)
        return
    say(f"{found['id']}  (group {found['group']}, row {found.get('row', '?')})")
    _say_node("reward", found["reward"], found["reason"], found.get("reward_evidence"), 0)
    for name in scored.nodes:
        _say_node(name, found[name], found[f"{name}_reason"], found[f"{name}_evidence"], 1)
    _say_texts({n: found[n] for n in scored.inputs}, text)


def _say_node(name: str, value: Any, reason: str | None, evidence: Any, depth: int) -> None:
    from guerdon.core.scored import Explanation

    for line in Explanation(name, "", value, reason, evidence).lines(depth):
        say(short(line.rstrip(), 400) if not line.startswith(" ") else _indented(line))


def _indented(line: str) -> str:
    body = line.lstrip(" ")
    return " " * (len(line) - len(body)) + short(body, 400)


def _from_data(data: str, spec: Spec, row: int | None, id: str | None, text: bool, json: bool) -> None:
    from guerdon.cli._score import open_source
    from guerdon.cli._table import group_names
    from guerdon.core.errors import DataError

    source = open_source(data, spec, skip_bad=True)
    for batch in source.groups(512):
        place = next((i for i, r in enumerate(batch) if (r.id == id if id is not None else batch.rows[i] == row)), None)
        if place is None:
            continue
        names = group_names(batch)
        members = [i for i, n in enumerate(names) if n == names[place]]
        scored = spec.reward.score([batch[i] for i in members])
        explanation = scored.explain(members.index(place))
        rollout = batch[place]
        if json:
            say_json({"id": rollout.id, "group": names[place], "row": batch.rows[place], **explanation.to_dict()})
            return
        say(f"{rollout.id}  (group {names[place]} of {len(members)}, row {batch.rows[place]})")
        for line in explanation.lines():
            say(_indented(line))
        _say_texts(_texts(rollout), text)
        return
    if id is not None:
        raise DataError(data, 0, f"there is no rollout with id {id!r}")
    raise DataError(data, 0, f"there is no rollout in row {row}; the data has {source.count:,}, the first in row 0")


def _texts(rollout: Rollout) -> dict[str, Any]:
    return {"prompt": rollout.prompt_text, "completion": rollout.text, "answer": rollout.answer, **rollout.extra}


def _say_texts(cells: dict[str, Any], text: bool) -> None:
    long = {k: v for k, v in cells.items() if k in ("prompt", "completion")}
    for name, value in cells.items():
        if name not in long and value is not None:
            say(f"{name}: {short(value, 200)}")
    if text:
        for name, value in long.items():
            if value is not None:
                say(f"--- {name}")
                say(_printable(str(value)[:4000]))


def _printable(text: str) -> str:
    """Text without control characters, which could steer the terminal."""
    return "".join(c if c in "\n\t" or c.isprintable() else "�" for c in text)
