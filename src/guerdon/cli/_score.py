"""``guerdon score``: rollouts in, rewards with reasons and evidence out."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guerdon.cli._show import AllowCode, Json, note, prepare_code, say, say_json

if TYPE_CHECKING:
    from guerdon.cli._run import Outcome, Progress
    from guerdon.core.scores import UnknownPolicy
    from guerdon.data import Source
    from guerdon.spec import Spec

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="JSONL(.gz), CSV, Parquet, a dataset folder, or - for stdin.")
]
SpecOption = Annotated[Path, typer.Option("--spec", "-s", metavar="SPEC", help="The reward, a YAML file.")]
_OUT = "Scored file: .parquet, .jsonl or .jsonl.gz; without it, only the summary."
Out = Annotated[Path | None, typer.Option("--out", "-o", help=_OUT)]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave bad rows out and count them instead of stopping.")]
_CACHE = "File that keeps the scores of dear signals (default: the user's)."
Cache = Annotated[Path | None, typer.Option(help=_CACHE)]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor keep scores of dear signals.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over instead of continuing an interrupted run.")]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many rollouts, rounded up to whole groups.")]
_UNKNOWN = "What unknown rewards become: keep, raise, group-mean, or a number."
Unknown = Annotated[str, typer.Option(help=_UNKNOWN)]
Keep = Annotated[str, typer.Option(help="Input columns to keep, by comma; all or none.")]
_COLUMN = "Column (or template such as '{id}/{model}'); the spec's data: gives it else, or its usual name."
Column = Annotated[str | None, typer.Option(metavar="COLUMN", help=_COLUMN)]
Part = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column; see --id.")]
BatchSize = Annotated[int | None, typer.Option(min=1, help="Rollouts per batch (whole groups).", hidden=True)]


def score(
    data: Data,
    spec: SpecOption,
    out: Out = None,
    skip_bad: SkipBad = False,
    cache: Cache = None,
    no_cache: NoCache = False,
    fresh: Fresh = False,
    limit: Limit = None,
    unknown: Unknown = "keep",
    keep: Keep = "all",
    id: Column = None,
    prompt: Part = None,
    completion: Part = None,
    answer: Part = None,
    group: Part = None,
    batch: BatchSize = None,
    allow_code: AllowCode = None,
    json: Json = False,
) -> None:
    """Score rollouts with a spec. Interrupted (even killed), the same command continues where it stopped.

    Example: guerdon score rollouts.jsonl --spec reward.yaml -o scored.parquet
    """
    from guerdon.cli._run import Options, open_cache, score_file

    loaded = _loaded(
        spec, allow_code, id=id, prompt=prompt, completion=completion, answer=answer, group=group,
    )  # fmt: skip
    if out is not None and out.exists() and Path(data).exists() and out.samefile(data):
        raise typer.BadParameter(f"--out {out} would replace the input")
    source = open_source(data, loaded, skip_bad)
    options = Options(policy_of(unknown), kept_of(keep), limit, batch)
    with ExitStack() as stack:
        store = None if no_cache else open_cache(cache, loaded.reward)
        if store is not None:
            stack.callback(store.close)
        bar = stack.enter_context(progress_bar(not json))
        outcome = score_file(source, loaded, out, options=options, cache=store, fresh=fresh, progress=bar)
    if json:
        extra = {"output": str(out) if out else None, "resumed": outcome.resumed, "bad_rows": source.bad_count}
        say_json({**outcome.summary, **extra})
    else:
        _tell(outcome, source, out)


def _loaded(path: Path, allow_code: list[str] | None, **columns: str | None) -> Spec:
    """The spec with the columns of the command line; its errors are said, but do not stop the run."""
    from guerdon.cli._run import with_columns
    from guerdon.spec import check, load_spec

    given = {part: column for part, column in columns.items() if column is not None}
    loaded = with_columns(load_spec(path, allow_code=prepare_code(allow_code)), given)
    for finding in check(loaded):
        if finding.level == "error":
            note(f"warning: {path}:{finding.line}: {finding.message}")
    return loaded


def _tell(outcome: Outcome, source: Source, out: Path | None) -> None:
    """The summary for people."""
    from guerdon.cli._summary import lines_of

    if outcome.resumed:
        say(f"continued after {outcome.resumed:,} rollouts of an earlier run")
    for line in lines_of(outcome.summary):
        say(line)
    if not source.count and not source.bad_count:
        note("warning: the input holds no rows")
    _report_bad(source)
    if out is not None:
        say(f"written: {out}")


def open_source(data: str, spec: Spec, skip_bad: bool) -> Source:
    """The data, with the spec's columns; those that were guessed and are called otherwise are said."""
    from guerdon.data import Columns, read

    source = read(data, Columns(**spec.data), skip_bad=skip_bad)
    guessed = [f"{part} = {name!r}" for part, name in source.guessed.items() if name != part]
    if guessed:
        note(f"columns by their names: {', '.join(guessed)}")
    return source


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
def progress_bar(wanted: bool) -> Iterator[Progress]:
    """A progress bar on standard error, on a terminal only."""
    from guerdon.cli._run import Progress

    if not (wanted and sys.stderr.isatty()):
        yield Progress()
        return
    from rich import progress
    from rich.console import Console

    texts = (progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn())
    with progress.Progress(
        *texts, progress.TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as shown:
        task = shown.add_task("reading", total=None)
        yield Progress(
            read=lambda rows: shown.update(task, completed=rows),
            scored=lambda done, count: shown.update(task, description="scoring", completed=done, total=count),
        )


__all__ = ["open_source", "score"]
