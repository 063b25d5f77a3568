"""The one place where sync meets async: a background event loop, and a driver for work that never waits."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
_pid = 0


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines at the same time; the first error cancels the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(w) for w in work]
    except BaseExceptionGroup as errors:
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    return [t.result() for t in tasks]


async def in_turn(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines one after another; after an error the others are closed unrun."""
    done: list[T] = []
    try:
        for task in work:
            done.append(await task)
    finally:
        for task in work[len(done) + 1 :]:
            task.close()
    return done


def drive(task: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, in this thread and without an event loop."""
    try:
        task.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    task.close()
    raise RuntimeError("work that waits was started without an event loop")


def run_sync(task: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the background event loop and wait for it, from any thread, inside a running loop or not."""
    loop = _background()
    if threading.current_thread() is _thread:
        return _in_new_thread(task)
    future = asyncio.run_coroutine_threadsafe(task, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _in_new_thread(task: Coroutine[Any, Any, T]) -> T:
    """For a sync call made by a callback of the background loop itself, which must not wait for itself."""
    box: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            box.append(asyncio.run(task))
        except BaseException as error:  # noqa: BLE001  # raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=work, name="guerdon-nested")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return box[0]


def _background() -> asyncio.AbstractEventLoop:
    global _loop, _thread, _pid
    with _lock:
        if _loop is None or _pid != os.getpid() or _thread is None or not _thread.is_alive():
            _loop, _pid = asyncio.new_event_loop(), os.getpid()
            _thread = threading.Thread(target=_serve, args=(_loop,), name="guerdon-loop", daemon=True)
            _thread.start()
        return _loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock(), _loop=None, _thread=None))
