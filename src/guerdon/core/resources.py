"""Resources: worker processes, threads and semaphores that serve signals, each bounded."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from guerdon.core.workers import WorkerPool, default_pool

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


class Resources:
    """Bounded pools, one for each resource. Calls without limits of their own share one set in the process."""

    def __init__(self, limits: Mapping[str, int] | None = None, pool: WorkerPool | None = None) -> None:
        unknown = set(limits or {}) - set(DEFAULT_LIMITS)
        if unknown:
            raise ValueError(f"no resource {', '.join(sorted(unknown))}; there are {', '.join(DEFAULT_LIMITS)}")
        if any(n < 1 for n in (limits or {}).values()):
            raise ValueError("a limit is at least 1")
        self.limits = {**DEFAULT_LIMITS, **(limits or {})}
        self._pool = pool
        self._lock = threading.Lock()
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._gates: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Semaphore]] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def pool(self) -> WorkerPool:
        """The worker processes that serve ``needs="process"``; by default the one pool of this Python process."""
        size = self.limits["process"]
        if self._pool is None and not size:
            return default_pool()
        with self._lock:
            if self._pool is None:
                self._pool = WorkerPool(size)
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


@cache
def shared_resources() -> Resources:
    """The resources of calls that set no limits of their own."""
    return Resources()


os.register_at_fork(after_in_child=shared_resources.cache_clear)  # threads and workers stay with the parent
