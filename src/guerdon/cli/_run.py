"""The score run: data through a reward to a scored file, continued where it was interrupted."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from guerdon.backends._scored_file import check_output
from guerdon.backends.cache import ScoreCache
from guerdon.backends.journal import Journal
from guerdon.cli._summary import Summary
from guerdon.cli._table import Layout, layout_of, table_of
from guerdon.core.errors import FailureRateWarning, SpecError, StoreError
from guerdon.core.fingerprint import digest
from guerdon.core.reward import Reward
from guerdon.core.scores import UnknownPolicy
from guerdon.core.session import Cache, Session
from guerdon.core.signal import Signal
from guerdon.report.scored_file import record_path
from guerdon.spec import Spec, axis_problem

if TYPE_CHECKING:
    from guerdon.data import Batch, Source

FORMAT = 2
"""Version of the scored file's columns."""
BATCH = 2048
DEAR_BATCH = 256


@dataclass(frozen=True)
class Options:
    """How to score: what unknown rewards become in the output, which input columns are kept (``None``: all), at most
    how many rollouts (rounded up to whole groups), and how many at once.
    """

    unknown: UnknownPolicy = "keep"
    keep: Sequence[str] | None = None
    limit: int | None = None
    batch: int | None = None


@dataclass(frozen=True)
class Progress:
    """Is told how many rows were read and checked (how many there are is not known yet), then how many of all are
    scored.
    """

    read: Callable[[int], object] = lambda rows: None
    scored: Callable[[int, int], object] = lambda done, count: None


@dataclass(frozen=True)
class Outcome:
    """What a run gave: its summary as plain data, and how many rollouts earlier runs of it had already scored."""

    summary: Mapping[str, Any]
    resumed: int
    state: Mapping[str, Any]


def score_file(
    source: Source,
    spec: Spec,
    out: Path | None,
    *,
    options: Options = Options(),  # frozen
    cache: Cache | None = None,
    fresh: bool = False,
    progress: Progress = Progress(),  # frozen
) -> Outcome:
    """Score ``source`` with ``spec`` into ``out`` (``.parquet``, ``.jsonl`` or ``.jsonl.gz``; ``None``: count only).

    Until it is complete the output is ``OUT.partial``, where whole groups are committed together with the state of
    rewards with memory. Killed at any moment and called again with the same spec, data and options, it continues: no
    row is lost, doubled or scored twice. Beside the output ``OUT.run.json`` keeps spec, fingerprints, state, summary.
    """
    if problem := axis_problem(spec.reward):
        raise SpecError(f"{spec.source}: {problem}")
    if out is not None:
        check_output(out)  # before the work, not behind it
    source.survey(progress.read)
    if out is None:
        run = _Run(spec, options, Session(cache=cache), Summary())
        for batch in _limited(source.groups(run.batch), options.limit):
            run.score(batch)
            progress.scored(run.summary.rows, source.count)
        return Outcome(run.report(), 0, run.session.state)
    partial = out.with_name(out.name + ".partial")
    if fresh:
        for tail in ("", "-wal", "-shm"):
            partial.with_name(partial.name + tail).unlink(missing_ok=True)
    with ExitStack() as stack:
        journal = stack.enter_context(_journal(partial, _fingerprint(source, spec, options)))
        return _journaled(journal, source, spec, out, options, cache, progress)


def _journaled(
    journal: Journal, source: Source, spec: Spec, out: Path, options: Options, cache: Cache | None,
    progress: Progress,
) -> Outcome:  # fmt: skip
    saved = orjson.loads(journal.state) if journal.state else None
    resumed, done = journal.committed_rows, set(journal.rows().tolist())
    run = _Run(spec, options, Session(cache=cache), Summary())
    if saved is None:
        layout = layout_of(spec.reward, source, options.keep)
    else:
        layout = Layout(**saved["layout"])
        run.restore(saved)
    for batch in _limited(source.groups(run.batch), options.limit):
        if batch.rows[0] not in done:
            table = run.score(batch, layout)
            state = {"layout": layout.to_dict(), **run.plain()}
            journal.append(journal.committed_rows, table, orjson.dumps(state, option=orjson.OPT_SERIALIZE_NUMPY))
        progress.scored(run.summary.rows, source.count)
    if not journal.committed_rows:  # nothing to score: the file still has its columns
        journal.append(0, layout.schema.empty_table(), b"")
    report = run.report()
    _write_record(out, source, spec, options, layout, report, run.session.state)
    journal.finish(out)
    return Outcome(report, resumed, run.session.state)


class _Run:
    """One process's part of a run: scores batches, and counts on top of what earlier parts counted."""

    def __init__(self, spec: Spec, options: Options, session: Session, summary: Summary) -> None:
        self.spec, self.options, self.session, self.summary = spec, options, session, summary
        self.batch = options.batch or (DEAR_BATCH if cached_signals(spec.reward) else BATCH)
        self.before: Mapping[str, Mapping[str, float]] = {}

    def restore(self, saved: Mapping[str, Any]) -> None:
        self.summary = Summary.of(saved["summary"])
        self.before = self.summary.tallies
        self.session.state = saved["state"]

    def plain(self) -> dict[str, Any]:
        return {"summary": self.summary.plain(), "state": dict(self.session.state)}

    def score(self, batch: Batch, layout: Layout | None = None) -> Any:
        """Score a batch; its table where there is a layout."""
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FailureRateWarning)  # counted over the whole run instead
            scored = self.spec.reward.score(batch, session=self.session, unknown=self.options.unknown)
        table = table_of(scored, batch, batch.rows, layout) if layout is not None else None
        self.summary.add(scored, self.spec.range)
        self.summary.add_tallies(self.session.tallies, self.before)
        self.summary.seconds += time.perf_counter() - started
        return table

    def report(self) -> dict[str, Any]:
        return {**self.summary.to_dict(), "alarms": self.summary.alarms(self.spec.reward)}


def cached_signals(reward: Reward) -> list[Signal]:
    """The signals of an expression whose scores are kept in a cache."""
    return [n for n in reward.walk() if isinstance(n, Signal) and n.cached]


def default_cache() -> Path:
    """Where scores of dear signals are kept: ``$GUERDON_CACHE``, or the user's cache folder."""
    given = os.environ.get("GUERDON_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(home) / "guerdon" / "scores.sqlite"


def open_cache(path: Path | None, reward: Reward) -> ScoreCache | None:
    """The cache at ``path`` (or the default one), where any signal of ``reward`` uses it."""
    return ScoreCache(path or default_cache()) if cached_signals(reward) else None


def _journal(partial: Path, fingerprint: Mapping[str, str]) -> Journal:
    try:
        return Journal(partial, run_fingerprint=fingerprint)
    except StoreError as error:
        if "another run" in str(error):
            raise StoreError(f"{error}; --fresh starts over") from error
        raise


def _fingerprint(source: Source, spec: Spec, options: Options) -> dict[str, str]:
    """What makes two runs the same run."""
    nodes = sorted((n.name, n.fingerprint) for n in spec.reward.walk() if n.name)
    unstable = [n.label for n in spec.reward.walk() if not n.stable]
    if unstable:
        nodes.append(("without a stable fingerprint", unstable[0]))
    return {
        "format": str(FORMAT),
        "spec": digest(_stable(spec.reward), nodes),
        "data": source.fingerprint,
        "options": digest(str(options.unknown), options.keep, options.limit, options.batch),
    }


def _stable(reward: Reward) -> str:
    """The reward's fingerprint, or the keys of its nodes where one of them has no stable one."""
    if all(n.stable for n in reward.walk()):
        return reward.fingerprint
    return digest([repr(n) for n in reward.walk()])


def _limited(batches: Iterator[Batch], limit: int | None) -> Iterator[Batch]:
    """At most ``limit`` rollouts, rounded up to a whole group."""
    from guerdon.cli._table import group_names
    from guerdon.data import Batch

    left = limit
    for batch in batches:
        if left is None or left >= len(batch):
            yield batch
            left = None if left is None else left - len(batch)
        else:
            names = group_names(batch)
            end = next((i for i in range(left, len(batch)) if i == 0 or names[i] != names[i - 1]), len(batch))
            if left > 0:
                yield Batch(batch[:end], batch.rows[:end])
            return
        if left == 0:
            return


def _write_record(
    out: Path, source: Source, spec: Spec, options: Options, layout: Layout, report: Mapping[str, Any],
    state: Mapping[str, Any],
) -> None:  # fmt: skip
    """``OUT.run.json``, whole or not at all."""
    record = {
        "guerdon": FORMAT, "spec": spec.text,
        "fingerprint": spec.reward.fingerprint, "data": source.fingerprint, "columns": source.columns.given(),
        "options": {"unknown": options.unknown, "limit": options.limit}, **layout.to_dict(),
        "bad_rows": source.bad_count, "summary": report, "state": state,
    }  # fmt: skip
    path = record_path(out)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY, default=str))
    os.replace(temporary, path)


def with_columns(spec: Spec, given: Mapping[str, str]) -> Spec:
    """The spec with the column mapping of the command line on top of its own."""
    return replace(spec, data={**spec.data, **given})
