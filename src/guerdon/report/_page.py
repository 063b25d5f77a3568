"""The page: facts and a sample of rollouts into one HTML file without any reference outside it."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from guerdon.report._charts import columns_chart
from guerdon.report._facts import Facts, facts_of
from guerdon.report.scored_file import ScoredFile

MAX_TEXT = 3000
"""Characters of a text that are put into the page; longer ones are cut, and say so."""
MAX_BYTES = 12_000_000
"""Size of the embedded rollouts at which no more are added."""


def write_report(
    scored: str | Path | ScoredFile,
    out: str | Path,
    *,
    label: str | None = None,
    by: Sequence[str] = (),
    threshold: float | None = None,
    rows: int = 2000,
    title: str | None = None,
) -> Path:
    """Write the page about a scored file to ``out`` and give its path.

    ``label`` is a column of true/false or 0/1 to compare passes with (a reward from ``threshold`` on, default 0.5),
    ``by`` columns to split by. At most ``rows`` rollouts are embedded: disagreements first, then unknown ones, then
    evenly spread over the rest. Everything in the page is embedded, and nothing in a completion can run or load.
    """
    file = scored if isinstance(scored, ScoredFile) else ScoredFile(scored)
    facts = facts_of(file, label, by, threshold)
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(render(file, facts, label, by, rows, title), "utf-8")
    os.replace(temporary, path)
    return path


def render(
    scored: ScoredFile, facts: Facts, label: str | None, by: Sequence[str], rows: int, title: str | None = None
) -> str:
    """The page as text."""
    import jinja2

    script = _asset("page.js")
    sample, left_out = sample_of(scored, facts, rows, label, by)
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"percent": _percent, "number": _number}
    template = environment.from_string(_asset("page.html.jinja"))
    verdicts = facts.verdicts
    return template.render(
        title=title or f"Rewards of {scored.path.name}", scored=scored, facts=facts, label=label,
        style=_trusted(_asset("page.css")), script=_trusted(script), script_hash=_hash(script),
        data=_trusted(embedded(sample)), shown=len(sample["rows"]), left_out=left_out,
        known=int(verdicts.known.sum()), passed=int(verdicts.passed.sum()), disagree=int(verdicts.disagree.sum()),
        mean=float(verdicts.reward[verdicts.known].mean()) if verdicts.known.any() else None,
        chart=lambda d: _trusted(columns_chart(d)), record=scored.record, max_text=MAX_TEXT, version=_version(),
        accuracy=_accuracy(facts), example_texts=_example_texts,
    )  # fmt: skip


def sample_of(
    scored: ScoredFile, facts: Facts, rows: int, label: str | None, by: Sequence[str]
) -> tuple[dict[str, Any], int]:
    """The embedded rollouts, in file order, and how many are left out."""
    order = _preferred(facts, rows)
    chosen: dict[int, dict[str, Any]] = {}
    size = 0
    for start in range(0, len(order), 256):
        part = sorted(order[start : start + 256])
        for i, row in zip(part, scored.rows(part), strict=True):
            slim = _slim(row, scored, facts, i, label, by)
            size += len(orjson.dumps(slim, default=str, option=_JSON))
            if size > MAX_BYTES:
                break
            chosen[i] = slim
        if size > MAX_BYTES:
            break
    names = {"nodes": scored.nodes, "label": label, "by": list(by), "threshold": facts.verdicts.threshold}
    return {**names, "rows": [chosen[i] for i in sorted(chosen)]}, scored.count - len(chosen)


def _preferred(facts: Facts, rows: int) -> list[int]:
    """Which rollouts to embed: examples of kinds, disagreements, unknown ones, then evenly spread over the rest."""
    verdicts = facts.verdicts
    examples = [k.example for kinds in facts.kinds.values() for k in kinds]
    first = dict.fromkeys([*np.flatnonzero(verdicts.disagree).tolist(), *examples])
    first |= dict.fromkeys(np.flatnonzero(~verdicts.known).tolist())
    picked = list(first)[:rows]
    rest = np.setdiff1d(np.arange(len(verdicts.reward)), picked)
    more = min(rows - len(picked), len(rest))
    return [*picked, *rest[np.linspace(0, len(rest) - 1, more).round().astype(int)].tolist()] if more > 0 else picked


def _slim(
    row: Mapping[str, Any], scored: ScoredFile, facts: Facts, place: int, label: str | None, by: Sequence[str]
) -> dict[str, Any]:
    """A row as the page holds it: long texts cut."""
    known, passed = bool(facts.verdicts.known[place]), bool(facts.verdicts.passed[place])
    nodes = {
        n: [row[n], row[f"{n}_reason"], _cut(row[f"{n}_evidence"])]
        for n in scored.nodes
    }  # fmt: skip
    inputs = {n: _cut(row[n]) for n in scored.inputs if row[n] is not None}
    return {
        "id": row["id"], "group": row["group"], "row": row.get("row", place), "place": place, "reward": row["reward"],
        "reason": row["reason"], "evidence": _cut(row.get("reward_evidence")), "nodes": nodes, "inputs": inputs,
        "verdict": "unknown" if not known else "pass" if passed else "fail",
        "disagrees": bool(facts.verdicts.disagree[place]),
        "label": row[label] if label is not None else None, "by": {n: str(row[n]) for n in by},
    }  # fmt: skip


def _cut(value: Any, depth: int = 0) -> Any:
    """Plain data with long texts and long lists cut; what is cut says how much is missing."""
    if isinstance(value, str):
        more = len(value) - MAX_TEXT
        return value if more <= 0 else f"{value[:MAX_TEXT]} [... {more:,} more characters are not in this page]"
    if depth > 8:
        return "[nested too deep for this page]"
    if isinstance(value, Mapping):
        return {str(k)[:200]: _cut(v, depth + 1) for k, v in list(value.items())[:200]}
    if isinstance(value, (list, tuple)):
        cut = [_cut(v, depth + 1) for v in value[:200]]
        return cut if len(value) <= 200 else [*cut, f"[... {len(value) - 200:,} more]"]
    return value


_JSON = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def embedded(data: Mapping[str, Any]) -> str:
    """JSON that can stand inside a script element: no character in it can end the element or start a comment."""
    text = orjson.dumps(data, default=str, option=_JSON).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _trusted(text: str) -> Any:
    """Text of ours that goes into the page as it is."""
    from markupsafe import Markup

    return Markup(text)  # our own assets, charts whose texts are escaped, and JSON made by `embedded`


def _asset(name: str) -> str:
    return (resources.files("guerdon.report") / "assets" / name).read_text("utf-8")


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _number(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _accuracy(facts: Facts) -> dict[str, float | None]:
    """Agreement, precision and recall of passes against the label."""
    c = facts.confusion
    if not c:
        return {}

    def share(part: int, whole: int) -> float | None:
        return part / whole if whole else None

    right, wrong = c["pass right"] + c["fail wrong"], c["pass wrong"] + c["fail right"]
    return {
        "agreement": share(right, right + wrong),
        "precision": share(c["pass right"], c["pass right"] + c["pass wrong"]),
        "recall": share(c["pass right"], c["pass right"] + c["fail right"]),
    }


def _example_texts(evidence: Any) -> list[tuple[str, str]]:
    """Evidence as name and short text."""
    pairs = evidence.items() if isinstance(evidence, Mapping) else enumerate(evidence or [])
    return [(str(k)[:60], "nothing" if v is None else str(v)[:160]) for k, v in pairs][:12]


def _version() -> str:
    from guerdon import __version__

    return __version__
