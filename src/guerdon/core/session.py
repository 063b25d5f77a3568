"""A session: what outlives one call to ``score`` - limits, the cache, state of rewards with memory, counts."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from guerdon.core.workers import WorkerPool, default_pool

Entry = tuple[float | None, str, Mapping[str, Any] | None]
"""A cached score: value (``None``: unknown), reason, evidence."""

DEFAULT_LIMITS: Mapping[str, int] = {
    "cpu": 1,
    "process": 0,
    "sandbox": 2,
    "lm": 32,
    "judge": 32,
    "embedder": 1,
    "gpu": 1,
}
"""How many items of a resource are served at once; 0 for ``process`` means one per core."""


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
        unknown = set(limits or {}) - set(DEFAULT_LIMITS)
        if unknown:
            raise ValueError(f"no resource {', '.join(sorted(unknown))}; there are {', '.join(DEFAULT_LIMITS)}")
        if any(n < 1 for n in (limits or {}).values()):
            raise ValueError("a limit is at least 1")
        self.cache = cache
        self.limits = {**DEFAULT_LIMITS, **(limits or {})}
        self.state: Mapping[str, Mapping[str, Any]] = dict(state or {})
        self.tallies: dict[str, Tally] = {}
        self.on_progress = on_progress
        self._pool = pool
        self._lock = threading.Lock()
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._gates: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Semaphore]] = (
            weakref.WeakKeyDictionary()
        )
        self._asked = self._done = 0

    @property
    def pool(self) -> WorkerPool:
        """The worker processes that serve ``needs="process"``."""
        with self._lock:
            if self._pool is None:
                size = self.limits["process"]
                self._pool = WorkerPool(size) if size else default_pool()
            return self._pool

    def threads(self, resource: str) -> ThreadPoolExecutor:
        """Threads for sync signals that wait on ``resource``, as many as its limit."""
        with self._lock:
            if resource not in self._threads:
                name = f"guerdon-{resource}"
                self._threads[resource] = ThreadPoolExecutor(self.limits[resource], thread_name_prefix=name)
            return self._threads[resource]

    def gate(self, resource: str) -> asyncio.Semaphore:
        """The running loop's semaphore for ``resource``."""
        gates = self._gates.setdefault(asyncio.get_running_loop(), {})
        return gates.setdefault(resource, asyncio.Semaphore(self.limits[resource]))

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
