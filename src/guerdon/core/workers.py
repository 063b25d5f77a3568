"""A pool of worker processes that can be killed: deadlines hold even for work that is stuck in C code.

```python
from guerdon.core.workers import WorkerPool

with WorkerPool(2) as pool:
    outcomes = pool.map(len, ["a", "bc"], timeout=1.0)
[o.value for o in outcomes]  # [1, 2]
```
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import hashlib
import os
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from guerdon.core._pool_jobs import Job
from guerdon.core._pool_wire import pack
from guerdon.core._supervisor import Supervisor

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one item: a value, or why there is none.

    ``kind`` is ``ok``; ``raised`` (``error`` holds ``"ValueError: ..."`` and the innermost frames);
    ``timeout`` (killed at its deadline); or ``died`` (the worker crashed twice on it: a signal, ``os._exit``,
    memory). ``seconds`` is the time the item itself ran; time in the queue is not counted.
    """

    kind: Literal["ok", "raised", "timeout", "died"]
    value: Any = None
    error: str = ""
    seconds: float = 0.0


class WorkerPool:
    """Runs ``fn(item)`` for many items in killable processes, from any thread or event loop.

    ``size`` processes (default: the cores this process may use) start when there is work for them.
    ``preload`` names modules that are imported once and shared by all workers. ``memory_bytes`` is how much
    address space an item may take on top of the bare worker; beyond it the item raises ``MemoryError``.

    An item whose worker died is tried once more, alone; others of its chunk are queued again. What functions
    print goes to stderr. ``fn`` and the items travel by reference when their module can be imported, otherwise
    (``__main__``, notebooks, closures) by value, so no ``if __name__ == "__main__"`` guard is needed.
    """

    def __init__(
        self,
        size: int | None = None,
        *,
        preload: Sequence[str] = (),
        memory_bytes: int | None = None,
        name: str = "process",
    ) -> None:
        if size is not None and size < 1:
            raise ValueError(f"a worker pool needs at least one worker, got size={size}")
        if memory_bytes is not None and memory_bytes < 1:
            raise ValueError(f"memory_bytes must be positive, got {memory_bytes}")
        self.size = size or _cores()
        self._preload, self._memory_bytes, self._name = tuple(preload), memory_bytes, name
        self._supervisor: Supervisor | None = None
        self._closed = False
        self._lock = threading.Lock()
        _pools.add(self)

    def submit(
        self, fn: Callable[[T], Any], items: Sequence[T], *, timeout: float
    ) -> concurrent.futures.Future[list[Outcome]]:
        """Queue ``fn(item)`` for each item; the future's result has one `Outcome` per item, in order.

        ``timeout``: seconds an item may run, counted from when it starts. Cancelling the future drops what has
        not started. Raises ``TypeError`` when ``fn`` cannot be sent to a process, ``RuntimeError`` after `close`.
        """
        if not timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds, got {timeout!r}")
        future: concurrent.futures.Future[list[Outcome]] = concurrent.futures.Future()
        job = _job(fn, items, timeout, future)
        with self._lock:
            if self._closed:
                raise RuntimeError("the worker pool is closed")
            if job.missing == 0:
                job.finish()
                return future
            if self._supervisor is None or not self._supervisor.alive():
                self._supervisor = Supervisor(self.size, self._preload, self._memory_bytes, self._name)
            self._supervisor.enqueue(job)
        return future

    def map(self, fn: Callable[[T], Any], items: Sequence[T], *, timeout: float) -> list[Outcome]:
        """`submit` and wait."""
        future = self.submit(fn, items, timeout=timeout)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def amap(self, fn: Callable[[T], Any], items: Sequence[T], *, timeout: float) -> list[Outcome]:
        """`submit` and await; cancelling the task drops what has not started."""
        return await asyncio.wrap_future(self.submit(fn, items, timeout=timeout))

    def close(self) -> None:
        """Kill the workers and fail what is still queued with ``RuntimeError``; may be called twice."""
        with self._lock:
            self._closed = True
            supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.abandon()


def default_pool() -> WorkerPool:
    """The pool of this process: as many workers as cores, started at the first use, closed at exit."""
    global _default
    with _default_lock:
        if _default is None or _default._closed:
            _default = WorkerPool(preload=["guerdon.core.rollout"])
        return _default


def _job(
    fn: Callable[[T], Any],
    items: Sequence[T],
    timeout: float,
    future: concurrent.futures.Future[list[Outcome]],
) -> Job[Outcome]:
    function = _pickle_function(fn)
    job = Job(hashlib.blake2b(function, digest_size=16).digest(), function, [], [], timeout, future, _outcome)
    for index, item in enumerate(items):
        try:
            job.items.append(pack(item))
            job.results.append(None)
            job.waiting.append(index)
        except Exception as error:  # noqa: BLE001 - pickling runs the item's own code; its text becomes the outcome
            text = f"TypeError: item {index} cannot be sent to a worker process: {type(error).__name__}: {error}"
            job.items.append(b"")
            job.results.append(Outcome("raised", error=text))
    job.missing = len(job.waiting)
    return job


def _pickle_function(fn: Callable[..., Any]) -> bytes:
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(fn, protocol=5))
    except Exception as error:
        raise TypeError(
            f"{fn!r} cannot be sent to a worker process: {error}; give it plain data instead of open files, locks"
            " or clients that it has closed over"
        ) from error


def _outcome(kind: str, body: bytes, seconds: float) -> Outcome:
    if kind == "ok":
        try:
            return Outcome("ok", value=pickle.loads(body), seconds=seconds)
        except Exception as error:  # noqa: BLE001 - unpickling runs the value's own code; its text becomes the outcome
            return Outcome("raised", error=f"TypeError: the result cannot be read back: {error!r}", seconds=seconds)
    text = body.decode("utf-8", "replace")
    if kind == "raised":
        return Outcome("raised", error=text, seconds=seconds)
    return Outcome("timeout" if kind == "timeout" else "died", error=text, seconds=seconds)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


def _after_fork_in_child() -> None:
    global _default, _default_lock
    _default, _default_lock = None, threading.Lock()
    for pool in list(_pools):
        pool._after_fork()


_pools: weakref.WeakSet[WorkerPool] = weakref.WeakSet()
_default: WorkerPool | None = None
_default_lock = threading.Lock()
atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
