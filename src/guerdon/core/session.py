"""A session: what outlives one call to ``score`` - limits, the cache, state of rewards with memory, counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from guerdon.core.resources import Resources, shared_resources
from guerdon.core.workers import WorkerPool

Entry = tuple[float | None, str, Mapping[str, Any] | None]
"""A cached score: value (``None``: unknown), reason, evidence."""


class Cache(Protocol):
    """Where scores of dear signals are kept, by content. See `guerdon.backends.cache.ScoreCache`."""

    def get_many(self, keys: Sequence[str]) -> Mapping[str, Entry]:
        """The entries that are there."""

    def put_many(self, entries: Iterable[tuple[str, Entry]]) -> None:
        """Keep these entries."""


@dataclass
class Tally:
    """What was asked of one signal over the session: items asked, taken from the cache, failed, and seconds spent."""

    asked: int = 0
    cached: int = 0
    failed: int = 0
    seconds: float = 0.0


class Session:
    """Holds what several calls share. Without one, each call to ``score`` has its own.

    ``limits`` bounds how many items each resource serves at once. ``cache`` keeps scores of dear signals. ``state``
    maps the fingerprints of rewards with memory to their state, and is replaced as a whole when a call succeeds.
    ``on_progress(done, asked)`` is called while items are asked. ``tallies`` counts, by signal.
    """

    def __init__(
        self,
        *,
        cache: Cache | None = None,
        limits: Mapping[str, int] | None = None,
        state: Mapping[str, Mapping[str, Any]] | None = None,
        pool: WorkerPool | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.cache = cache
        self.resources = Resources(limits, pool) if limits or pool else shared_resources()
        self.state: Mapping[str, Mapping[str, Any]] = dict(state or {})
        self.tallies: dict[str, Tally] = {}
        self.on_progress = on_progress
        self._lock = threading.Lock()
        self._asked = self._done = 0

    def count(self, name: str, *, asked: int = 0, cached: int = 0, failed: int = 0, seconds: float = 0.0) -> None:
        """Add to the tally of one signal."""
        with self._lock:
            tally = self.tallies.setdefault(name, Tally())
            tally.asked += asked
            tally.cached += cached
            tally.failed += failed
            tally.seconds += seconds

    def progress(self, *, asked: int = 0, done: int = 0) -> None:
        """Note items that were asked and items that are done."""
        with self._lock:
            self._asked += asked
            self._done += done
        if self.on_progress is not None:
            self.on_progress(self._done, self._asked)
