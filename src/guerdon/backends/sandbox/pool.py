"""Slots: a fork server each, borrowed by whichever thread has a job, replaced when broken."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .result import Infrastructure, Refused
from .server import ForkServer, ServerConfig

T = TypeVar("T")
_numbers = itertools.count()
_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def slots_by_default() -> int:
    """As many as this process has processors."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _user_number() -> int:
    """Different for the slots of one process, and mostly for those of other processes: process counts go by user id."""
    return (os.getpid() * 16 + next(_numbers)) % 4000


@dataclass
class _Slot:
    server: ForkServer | None = None
    number: int = field(default_factory=_user_number)


class Pool:
    """Up to `slots` fork servers, started when first needed; safe from any thread and inside a running event loop."""

    def __init__(self, config: ServerConfig | None = None, slots: int | None = None) -> None:
        self.config = config or ServerConfig()
        self.slots = slots or slots_by_default()
        self.closed = False
        self._refill()
        _pools.add(self)

    def _refill(self) -> None:
        self._slots = [_Slot() for _ in range(self.slots)]
        self._free: queue.LifoQueue[_Slot] = queue.LifoQueue()
        for slot in reversed(self._slots):
            self._free.put(slot)

    @contextlib.contextmanager
    def borrow(self) -> Iterator[ForkServer]:
        """A running server for one job; raises `Refused`. A server that broke meanwhile is ended and replaced later."""
        if self.closed:
            raise Refused("the sandbox pool is closed")
        slot = self._free.get()
        try:
            if slot.server is None:
                slot.server = ForkServer(self.config, slot.number)
            yield slot.server
        except Infrastructure:
            self._end(slot)
            raise
        except BaseException as error:
            if not isinstance(error, Refused):
                self._end(slot)  # interrupted with a job in flight: the only safe server is a new one
            raise
        finally:
            self._free.put(slot)

    def _end(self, slot: _Slot) -> None:
        if slot.server is not None:
            slot.server.close()
            slot.server = None

    def report(self) -> dict[str, Any]:
        """What the first server could enable; starts one when none runs. Raises `Refused`."""
        with self.borrow() as server:
            return server.report

    def close(self) -> None:
        """End every server that is not in the middle of a job; later calls are refused."""
        self.closed = True
        for slot in self._slots:
            self._end(slot)

    def _after_fork(self) -> None:
        for slot in self._slots:
            if slot.server is not None:
                slot.server.abandon()
        self._refill()


def with_retry(action: Callable[[], T]) -> T:
    """`action()`, once more after an `Infrastructure` error; the second one is the caller's."""
    try:
        return action()
    except Infrastructure:
        return action()


_default: dict[ServerConfig, Pool] = {}
_default_lock = threading.Lock()


def shared_pool(config: ServerConfig) -> Pool:
    """The process-wide pool for this configuration."""
    with _default_lock:
        pool = _default.get(config)
        if pool is None or pool.closed:
            pool = _default[config] = Pool(config)
        return pool


def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


def _forget_after_fork() -> None:
    global _default_lock
    _default_lock = threading.Lock()
    for pool in list(_pools):
        pool._after_fork()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_after_fork)
