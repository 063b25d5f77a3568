"""``guerdon score``: rollouts in, rewards with reasons and evidence out."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guerdon.cli._show import AllowCode, Json, note, prepare_code, say, say_json

if TYPE_CHECKING:
    from guerdon.core.scores import UnknownPolicy
    from guerdon.data import Source
    from guerdon.spec import Spec

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="JSONL(.gz), CSV, Parquet, a dataset folder, or - for stdin.")
]
SpecOption = Annotated[Path, typer.Option("--spec", "-s", metavar="SPEC", help="The reward, a YAML file.")]
_COLUMN = "Column (or template such as '{id}/{model}'); the spec's data: gives it else, or its usual name."
Column = Annotated[str | None, typer.Option(metavar="COLUMN", help=_COLUMN)]
Part = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column; see --id.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave bad rows out and count them instead of stopping.")]


def score(
    data: Data,
    spec: SpecOption,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Scored file: .parquet, .jsonl or .jsonl.gz; without it, only the summary."),
    ] = None,
    skip_bad: SkipBad = False,
    cache: Annotated[
        Path | None, typer.Option(help="File that keeps the scores of dear signals (default: the user's).")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Neither read nor keep scores of dear signals.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over instead of continuing an interrupted run.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many rollouts, rounded up to whole groups.")
    ] = None,
    unknown: Annotated[
        str, typer.Option(help="What unknown rewards become: keep, raise, group-mean, or a number.")
    ] = "keep",
    keep: Annotated[str, typer.Option(help="Input columns to keep, by comma; all or none.")] = "all",
    id: Column = None,
    prompt: Part = None,
    completion: Part = None,
    answer: Part = None,
    group: Part = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Rollouts per batch (whole groups).", hidden=True)] = None,
    allow_code: AllowCode = None,
    json: Json = False,
) -> None:
    """Score rollouts with a spec. Interrupted (even killed), the same command continues where it stopped.

    Example: guerdon score rollouts.jsonl --spec reward.yaml -o scored.parquet
    """
    from guerdon.cli._run import Options, open_cache, score_file, with_columns
    from guerdon.cli._summary import lines_of
    from guerdon.spec import check, load_spec

    given = {"id": id, "prompt": prompt, "completion": completion, "answer": answer, "group": group}
    loaded = with_columns(
        load_spec(spec, allow_code=prepare_code(allow_code)), {k: v for k, v in given.items() if v is not None}
    )
    for finding in check(loaded):
        if finding.level == "error":
            note(f"warning: {spec}:{finding.line}: {finding.message}")
    source = open_source(data, loaded, skip_bad)
    options = Options(policy_of(unknown), kept_of(keep), limit, batch)
    store = None if no_cache else open_cache(cache, loaded.reward)
    try:
        with progress(not json) as advance:
            outcome = score_file(source, loaded, out, options=options, cache=store, fresh=fresh, on_progress=advance)
    finally:
        if store is not None:
            store.close()
    extra = {"output": str(out) if out else None, "resumed": outcome.resumed, "bad_rows": source.bad_count}
    if json:
        say_json({**outcome.summary, **extra})
        return
    if outcome.resumed:
        say(f"continued after {outcome.resumed:,} rollouts of an earlier run")
    for line in lines_of(outcome.summary):
        say(line)
    _report_bad(source)
    if out is not None:
        say(f"written: {out}")


def open_source(data: str, spec: Spec, skip_bad: bool) -> Source:
    """The data, with the spec's columns."""
    from guerdon.data import Columns, read

    return read(data, Columns(**spec.data), skip_bad=skip_bad)


def _report_bad(source: Source) -> None:
    if source.bad_count:
        say(f"{source.bad_count:,} bad row{'s' * (source.bad_count != 1)} left out:")
        for bad in source.bad[:5]:
            say(f"  {bad.file}:{bad.line}: {bad.cause}")


def policy_of(text: str) -> UnknownPolicy:
    """The policy for unknown rewards that an option names."""
    if text in ("keep", "raise", "group-mean"):
        return text  # type: ignore[return-value]  # one of the literals
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise typer.BadParameter(f"--unknown {text}: choose keep, raise, group-mean or a number")
    return value


def kept_of(text: str) -> list[str] | None:
    """The input columns that an option names; ``None`` for all."""
    if text == "all":
        return None
    return [] if text == "none" else [c.strip() for c in text.split(",") if c.strip()]


@contextmanager
def progress(wanted: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, on a terminal only."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda done, count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns: Any = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("score", total=None)
        yield lambda done, count: bar.update(task, completed=done, total=count)


__all__ = ["note", "open_source", "progress", "score"]
