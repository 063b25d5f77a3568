"""Asking a signal: dispatch to its resource, cache, failure policy, and from raw replies to scores.

This is the one boundary where any exception of a signal is caught: it becomes a *failure* of that item, with its
reason. Only what is wrong with the signal itself, and so with every item alike, ends the run: a part that is not
installed, a parameter that can't be.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guerdon.core.axis import BoolArray, FloatArray
from guerdon.core.errors import MissingExtraError, SignalError
from guerdon.core.fingerprint import digest
from guerdon.core.interval import Interval
from guerdon.core.runtime import together
from guerdon.core.scores import FailedScore, ObjectArray, Record, Score
from guerdon.core.session import Entry, Session
from guerdon.core.signal import Portable, Signal

PROCESS_TIMEOUT = 30.0
"""Seconds an item may run in a worker process where the signal declares no timeout."""
REASON_LENGTH = 300

_NUMBERS = frozenset({float, int, bool, np.float64, np.bool_, np.int64})
_CHUNK = 256

Keep = Callable[[Sequence[int], Sequence[Any]], None]

_NOT_THE_ITEM = (MissingExtraError, SignalError)
"""Errors that say nothing about the item: asking the next one would end the same way."""


class Failed:
    """A reply that is no score, and why."""

    __slots__ = ("reason",)

    def __init__(self, reason: str | BaseException) -> None:
        text = reason if isinstance(reason, str) else f"{type(reason).__name__}: {reason}"
        self.reason = text if len(text) <= REASON_LENGTH else text[: REASON_LENGTH - 3] + "..."


@dataclass
class Replies:
    """Settled replies: one entry per asked item."""

    values: FloatArray
    known: BoolArray
    reasons: ObjectArray | None
    evidence: list[Record | None] | None
    failed: BoolArray | None = None


def settle(raw: Sequence[Any], bounds: Interval) -> Replies:
    """Scores from what a signal returned: numbers, bools, `Score`, ``None``; whatever is no score has failed."""
    if set(map(type, raw)) <= _NUMBERS:
        try:
            values = np.array(raw, dtype=np.float64)
        except OverflowError:  # an integer beyond float64: looked at one by one below
            values = np.array([np.nan])
        if len(values) == 0 or (
            math.isfinite(values.sum()) and bounds.low <= values.min() and values.max() <= bounds.high
        ):
            return Replies(values, np.ones(len(values), dtype=np.bool_), None, None)
    entries = [_settled(item, bounds) for item in raw]
    known = np.array([value is not None for value, _, _, _ in entries], dtype=np.bool_)
    values = np.array([0.0 if value is None else value for value, _, _, _ in entries], dtype=np.float64)
    reasons = np.full(len(raw), None, dtype=object)
    reasons[:] = [reason for _, reason, _, _ in entries]
    failed = np.array([bad for _, _, _, bad in entries], dtype=np.bool_)
    evidence = [proof for _, _, proof, _ in entries]
    return Replies(values, known, reasons, evidence if any(evidence) else None, failed if failed.any() else None)


def _settled(item: Any, bounds: Interval) -> tuple[float | None, str | None, Record | None, bool]:
    """(value, reason, evidence, whether it failed) of one reply."""
    if isinstance(item, Failed):
        return None, item.reason, None, True
    if item is None:
        return None, "the signal gave no score", None, False
    value, evidence = (item.value, item.evidence) if isinstance(item, Score) else (item, None)
    if value is None:
        return None, item.reason, evidence, isinstance(item, FailedScore)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, (int, float, np.number, np.bool_)):
        return None, f"returned {type(value).__name__} {value!r:.60}, which is not a score", evidence, True
    try:
        number = float(value)
    except OverflowError:
        return None, "returned a number that is too large", evidence, True
    if not math.isfinite(number):
        return None, f"returned {number}, which is not a finite number", evidence, True
    if not bounds.low <= number <= bounds.high:
        return None, f"returned {number:g}, outside the declared range {bounds}", evidence, True
    return number, None, evidence, False


class Asker:
    """Asks one signal about items within one run."""

    def __init__(self, leaf: Signal, session: Session, in_loop: bool) -> None:
        self.leaf, self.session, self.in_loop = leaf, session, in_loop
        self.asked = self.failures = 0

    async def ask(self, items: Sequence[Any], expected: Sequence[int] | None) -> list[Replies]:
        """Settled replies for each item. ``expected`` holds how many scores each must return, where that is known;
        ``None`` for signals that return one score per item, whose replies then come as a single block.
        """
        if not items:
            return []
        if self.leaf.cached:
            raw = await self._with_cache(items)
        else:
            raw = await self._fresh(items, lambda indices, replies: None)
        if self.leaf.per == self.leaf.axis:
            return [self._under_policy(settle(raw, self.leaf.range))]
        return [
            self._under_policy(self._several(r, None if expected is None else expected[i])) for i, r in enumerate(raw)
        ]

    def _several(self, raw: Any, count: int | None) -> Replies:
        """The replies of a signal that gives several scores for one item."""
        if isinstance(raw, Failed) or raw is None or (isinstance(raw, Score) and raw.value is None):
            return settle([raw] * (1 if count is None else count), self.leaf.range)
        if isinstance(raw, (str, bytes, Mapping)) or not hasattr(raw, "__len__"):
            return settle(
                [Failed(f"returned {type(raw).__name__}, not a list of scores")] * (count or 1),
                self.leaf.range,
            )
        if count is not None and len(raw) != count:
            return settle(
                [Failed(f"returned {len(raw)} scores for {count} {self.leaf.axis}s")] * count, self.leaf.range
            )
        return settle(list(raw), self.leaf.range)

    def _under_policy(self, replies: Replies) -> Replies:
        if replies.failed is None:
            return replies
        then = self.leaf.manner.failure.then
        failed = int(replies.failed.sum())
        self.failures += failed
        self.session.count(self.leaf.label, failed=failed)
        if then == "unknown":
            return replies
        first = int(np.flatnonzero(replies.failed)[0])
        reason = replies.reasons[first] if replies.reasons is not None else ""
        if then == "abort":
            raise SignalError(f"{self.leaf.label} failed: {reason}")
        proof = replies.evidence or [None] * len(replies.values)
        why = replies.reasons if replies.reasons is not None else [None] * len(proof)
        replies.evidence = [
            {**(e or {}), "failure": r} if bad else e for e, r, bad in zip(proof, why, replies.failed, strict=True)
        ]
        replies.values[replies.failed] = float(then)
        replies.known |= replies.failed
        return replies

    # The cache: the same question is asked once, in a run and (with a session's cache) ever.

    async def _with_cache(self, items: Sequence[Any]) -> list[Any]:
        keys = [digest(self.leaf.fingerprint, item.content(self.leaf.manner.reads)) for item in items]
        found: dict[str, Any] = {}
        if self.session.cache is not None:
            stored = self.session.cache.get_many(list(dict.fromkeys(keys)))
            found = {key: _from_entry(entry) for key, entry in stored.items()}
        fresh: dict[str, Any] = {k: item for k, item in zip(keys, items, strict=True) if k not in found}
        self.session.count(self.leaf.label, cached=len(items) - len(fresh))
        names = list(fresh)

        def keep(indices: Sequence[int], replies: Sequence[Any]) -> None:
            if self.session.cache is not None:
                kept = [(names[i], _to_entry(r, self.leaf.range)) for i, r in zip(indices, replies, strict=True)]
                self.session.cache.put_many([(key, entry) for key, entry in kept if entry is not None])

        replies = await self._fresh(list(fresh.values()), keep)
        found.update(zip(names, replies, strict=True))
        return [found[key] for key in keys]

    # Dispatch: each resource has its own bounded way, and a deadline counts from when work starts.

    async def _fresh(self, items: Sequence[Any], keep: Keep) -> list[Any]:
        manner, started = self.leaf.manner, time.perf_counter()
        raw: list[Any] = [None] * len(items)
        todo = list(range(len(items)))
        self.asked += len(items)
        self.session.progress(asked=len(items))
        for attempt in range(manner.failure.retries + 1):
            if attempt:
                todo = [i for i in todo if self._has_failed(raw[i])]
                if not todo:
                    break
            await self._dispatch(items, todo, raw, keep)
        seconds = time.perf_counter() - started
        self.session.count(self.leaf.label, asked=len(items), seconds=seconds)
        return raw

    def _has_failed(self, raw: Any) -> bool:
        if self.leaf.per != self.leaf.axis:
            return isinstance(raw, Failed)
        return _settled(raw, self.leaf.range)[3]

    async def _dispatch(self, items: Sequence[Any], todo: list[int], raw: list[Any], keep: Keep) -> None:
        call, manner = self.leaf.ready(), self.leaf.manner
        units = list(_chunks(todo, manner.batch_size)) if manner.batch else None

        def done(indices: Sequence[int], replies: Sequence[Any]) -> None:
            if len(indices) == len(raw):
                raw[:] = replies
            else:
                for i, reply in zip(indices, replies, strict=True):
                    raw[i] = reply
            keep(indices, replies)
            self.session.progress(done=len(indices))

        if self.leaf.is_async:
            await self._in_event_loop(call, items, units or [[i] for i in todo], done)
        elif manner.needs == "process":
            await self._in_processes(items, todo, units, done)
        elif manner.needs != "cpu":
            await self._in_threads(call, items, units or [[i] for i in todo], done)
        else:
            for part in _chunks(todo, manner.batch_size if manner.batch else 4096):
                subject = [items[i] for i in part]
                work = _one_call if manner.batch else _one_each
                done(
                    part,
                    await asyncio.to_thread(work, call, subject) if self.in_loop else work(call, subject),
                )

    async def _in_event_loop(
        self,
        call: Callable[..., Any],
        items: Sequence[Any],
        units: list[list[int]],
        done: Callable[..., None],
    ) -> None:
        """As many at once as the resource allows; the deadline starts when an item's turn has come."""
        gate, queue = self.session.resources.gate(self.leaf.manner.needs), iter(units)

        async def serve() -> None:
            for unit in queue:
                subject = [items[i] for i in unit]
                async with gate:
                    try:
                        async with asyncio.timeout(self.leaf.manner.timeout):
                            reply = await call(subject if self.leaf.manner.batch else subject[0])
                    except TimeoutError as error:
                        limit = self.leaf.manner.timeout
                        text = f"timed out after {limit:g} s" if limit is not None else f"TimeoutError: {error}"
                        reply = Failed(text)
                    except _NOT_THE_ITEM:
                        raise
                    except Exception as error:  # noqa: BLE001  # the boundary named above
                        reply = Failed(error)
                done(unit, _spread(reply, len(unit)) if self.leaf.manner.batch else [reply])

        width = min(len(units), self.session.resources.limits[self.leaf.manner.needs])
        await together(serve() for _ in range(width))

    async def _in_threads(
        self,
        call: Callable[..., Any],
        items: Sequence[Any],
        units: list[list[int]],
        done: Callable[..., None],
    ) -> None:
        loop, threads = asyncio.get_running_loop(), self.session.resources.threads(self.leaf.manner.needs)
        queue, work = iter(units), _one_call if self.leaf.manner.batch else _one_each

        async def serve() -> None:
            for unit in queue:
                done(unit, await loop.run_in_executor(threads, work, call, [items[i] for i in unit]))

        await together(serve() for _ in range(min(len(units), self.session.resources.limits[self.leaf.manner.needs])))

    async def _in_processes(
        self, items: Sequence[Any], todo: list[int], units: list[list[int]] | None, done: Callable[..., None]
    ) -> None:
        call = Portable(self.leaf.function, self.leaf.params)
        limit = self.leaf.manner.timeout or PROCESS_TIMEOUT
        for part in _chunks(units or [[i] for i in todo], _CHUNK):
            subjects = [[items[i] for i in unit] if units else items[unit[0]] for unit in part]
            outcomes = await self.session.resources.pool.amap(call, subjects, timeout=limit)
            replies = [o.value if o.kind == "ok" else Failed(_first_line(o.error) or o.kind) for o in outcomes]
            if units:
                for unit, reply in zip(part, replies, strict=True):
                    done(unit, _spread(reply, len(unit)))
            else:
                done([unit[0] for unit in part], replies)


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


def _chunks(items: list[Any], size: int) -> Iterator[list[Any]]:
    return (items[i : i + size] for i in range(0, len(items), size))


def _one_each(call: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    replies = []
    for item in items:
        try:
            replies.append(call(item))
        except _NOT_THE_ITEM:
            raise
        except Exception as error:  # noqa: BLE001  # the boundary named above
            replies.append(Failed(error))
    return replies


def _one_call(call: Callable[[Sequence[Any]], Any], items: Sequence[Any]) -> list[Any]:
    try:
        reply = call(items)
    except _NOT_THE_ITEM:
        raise
    except Exception as error:  # noqa: BLE001  # the boundary named above
        reply = Failed(error)
    return _spread(reply, len(items))


def _spread(reply: Any, count: int) -> list[Any]:
    """The replies of a batch function, item by item."""
    if isinstance(reply, Failed):
        return [reply] * count
    if isinstance(reply, (str, bytes, Mapping)) or not hasattr(reply, "__len__"):
        return [Failed(f"returned {type(reply).__name__}, not a list of {count} scores")] * count
    if len(reply) != count:
        return [Failed(f"returned {len(reply)} scores for {count} items")] * count
    return reply.tolist() if isinstance(reply, np.ndarray) else list(reply)


def _to_entry(raw: Any, bounds: Interval) -> Entry | None:
    """The cache entry of a reply; ``None`` for failures, which are asked again next time."""
    if isinstance(raw, (list, tuple, np.ndarray)):
        several = [_settled(r, bounds) for r in raw]
        if any(bad for _, _, _, bad in several):
            return None
        return None, "several", {"items": [[v, reason, proof] for v, reason, proof, _ in several]}
    value, reason, evidence, bad = _settled(raw, bounds)
    return None if bad else (value, reason or "", evidence)


def _from_entry(entry: Entry) -> Any:
    value, reason, evidence = entry
    if value is None and reason == "several" and evidence is not None and "items" in evidence:
        return [_score(v, r, e) for v, r, e in evidence["items"]]
    return _score(value, reason, evidence)


def _score(value: float | None, reason: str | None, evidence: Record | None) -> Score:
    made = Score(value, reason=reason or "")
    made.evidence = evidence
    return made
