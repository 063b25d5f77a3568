"""The child side of `guerdon.core.workers`: the nursery that forks warm workers, and the worker's loop.

The nursery has one thread, imports the preloaded modules once and then only forks, kills and reaps. The
parent asks it to kill, so a process id is never signalled after it was reaped. A worker is trusted code on
hostile data: it may hang, crash or close its descriptors, and then only its own item suffers.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import pickle
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from guerdon.core._pool_wire import (
    COMMAND,
    DONE,
    IDLE,
    LENGTH,
    MAX_RESULT_BYTES,
    OK,
    RAISED,
    REPORT,
    UNLOADABLE,
    Slate,
    pack,
    pack_frame,
)

_FLUSH_SECONDS = 0.005
_ERROR_CHARS = 2000
_TRACE_FRAMES = 3


def nursery(control_fd: int, parent: int, preload: Sequence[str], memory_bytes: int | None) -> NoReturn:
    """Fork, kill and reap workers as told on the control socket, until it closes or the parent dies."""
    with contextlib.suppress(BrokenPipeError, ConnectionError):
        _Nursery(socket.socket(fileno=control_fd), memory_bytes).run(parent, preload)
    os._exit(0)


class _Nursery:
    def __init__(self, control: socket.socket, memory_bytes: int | None) -> None:
        self.control = control
        self.memory_bytes = memory_bytes
        self.pids: dict[int, int] = {}  # worker number -> process id, not reaped yet
        self.stopping = False

    def run(self, parent: int, preload: Sequence[str]) -> None:
        wake, wake_write = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(wake_write, False)
        self.wake_fds = (wake, wake_write)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)
        _die_with_parent(signal.SIGTERM, parent)
        for name in ("cloudpickle", *preload):
            # A preload only saves time: if it fails, the function that needs it says so with its own error.
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        gc.collect()
        gc.freeze()
        try:
            self._serve(wake)
        finally:
            for pid in self.pids.values():
                _kill_group(pid)

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def _serve(self, wake: int) -> None:
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(wake, select.POLLIN)
        while not self.stopping:
            for descriptor, _ in poll.poll():
                if descriptor == wake:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake, 4096)
                    self._reap()
                elif not self._command():
                    return

    def _command(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self.control, COMMAND.size, 2)
        if not data:
            return False
        while len(data) < COMMAND.size:
            data += self.control.recv(COMMAND.size - len(data))
        kind, number = COMMAND.unpack(data)
        if kind == b"F":
            self._fork(number, descriptors)
        elif number in self.pids:
            _kill_group(self.pids[number])
        return True

    def _fork(self, number: int, descriptors: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError:
            pid = -1
        if pid == 0:
            self._become_worker(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        if pid < 0:
            self.control.sendall(REPORT.pack(b"X", number, -1))
            return
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        self.pids[number] = pid
        self.control.sendall(REPORT.pack(b"S", number, pid))

    def _become_worker(self, channel: int, page: int) -> NoReturn:
        status = 1
        try:
            nursery_pid = os.getppid()
            signal.set_wakeup_fd(-1)
            for name in (signal.SIGTERM, signal.SIGCHLD):
                signal.signal(name, signal.SIG_DFL)
            with contextlib.suppress(OSError):
                os.setpgid(0, 0)
            _die_with_parent(signal.SIGKILL, nursery_pid)
            self.control.close()
            for descriptor in self.wake_fds:
                os.close(descriptor)
            slate = Slate(page)
            os.close(page)
            if self.memory_bytes is not None:
                _limit_memory(self.memory_bytes)
            _Worker(socket.socket(fileno=channel), slate).run()
            status = 0
        except MemoryError:
            status = 12
        finally:
            os._exit(status)

    def _reap(self) -> None:
        while self.pids:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            number = next((n for n, p in self.pids.items() if p == pid), None)
            if number is not None:
                _kill_group(pid)  # what the worker itself had started
                del self.pids[number]
                self.control.sendall(REPORT.pack(b"X", number, status))


class _Worker:
    """Runs chunks: reads one, streams a frame per item, says that the chunk is done."""

    def __init__(self, channel: socket.socket, slate: Slate) -> None:
        self.channel = channel
        self.slate = slate
        self.functions: dict[bytes, Callable[[Any], Any]] = {}
        self.flushed = 0.0
        self.forked = False
        os.register_at_fork(after_in_child=self._note_fork)

    def run(self) -> None:
        while (message := self._receive()) is not None:
            chunk, key, function, path, blobs, forget = pickle.loads(message)
            self.slate.begin(chunk, time.monotonic())
            if forget:
                self.functions.clear()
            if function is None or self._load(chunk, key, function, path):
                self._run_chunk(chunk, self.functions[key], blobs)
            self.slate.enter(IDLE, time.monotonic())
            self._flush(pack_frame(chunk, 0, DONE, 0.0, b""))

    def _note_fork(self) -> None:
        self.forked = True

    def _receive(self) -> bytearray | None:
        head = self._read(LENGTH.size)
        return None if head is None else self._read(LENGTH.unpack(head)[0])

    def _read(self, size: int) -> bytearray | None:
        data = bytearray(size)
        view, got = memoryview(data), 0
        while got < size:
            count = self.channel.recv_into(view[got:])
            if count == 0:
                return None
            got += count
        return data

    def _load(self, chunk: int, key: bytes, function: bytes, path: list[str]) -> bool:
        sys.path[:] = path
        try:
            self.functions[key] = pickle.loads(function)
        except BaseException as error:  # noqa: BLE001 - the boundary to users' modules: the text goes to the caller
            text = f"the function could not be loaded in a worker process: {describe(error)}"
            self._flush(pack_frame(chunk, 0, UNLOADABLE, 0.0, text.encode("utf-8", "replace")))
            return False
        return True

    def _run_chunk(self, chunk: int, function: Callable[[Any], Any], blobs: list[bytes]) -> None:
        slate, now = self.slate, time.monotonic()
        self.flushed = now
        for index, blob in enumerate(blobs):
            slate.enter(index, now)
            if slate.limit <= index:
                return
            kind, body = _run_item(function, blob)
            if self.forked:  # the function forked and its child came back here: the parent has the channel
                os._exit(0)
            start, now = now, time.monotonic()
            frame = pack_frame(chunk, index, kind, now - start, body)
            if not slate.keep(frame):
                self._flush(frame)
            elif now - self.flushed > _FLUSH_SECONDS:
                self._flush()
            else:
                continue
            now = time.monotonic()

    def _flush(self, frame: bytes = b"") -> None:
        # Sent, then forgotten: a kill in between gives the parent the same frame twice, which it ignores.
        self.channel.sendall(self.slate.waiting() + frame)
        self.slate.sent()
        self.flushed = time.monotonic()


def _run_item(function: Callable[[Any], Any], blob: bytes) -> tuple[int, bytes]:
    try:
        value = function(pickle.loads(blob))
        try:
            body = pack(value)
        except Exception as error:  # noqa: BLE001 - pickling runs the value's own code; the text goes to the caller
            return RAISED, _unpicklable(value, error).encode("utf-8", "replace")
        if len(body) > MAX_RESULT_BYTES:
            return RAISED, f"OverflowError: the result takes {len(body)} bytes; the limit is 1 GiB".encode()
        return OK, body
    except BaseException as error:  # noqa: BLE001 - the boundary to users' functions: even SystemExit is an outcome
        return RAISED, describe(error).encode("utf-8", "replace")


def _unpicklable(value: object, error: Exception) -> str:
    return (
        f"TypeError: the result, a {type(value).__qualname__}, cannot be sent back from the worker process"
        f" ({describe(error, frames=0)}); return numbers, strings, lists, dicts or other values that pickle"
    )


def describe(error: BaseException, frames: int = _TRACE_FRAMES) -> str:
    """``Type: message`` and where it was raised (the innermost frames), at most 2,000 characters."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the exception itself
        message = "(its message could not be read)"
    name = type(error).__qualname__
    head = f"{name}: {message}" if message else name
    tail = [f"  at {f.filename}:{f.lineno} in {f.name}" for f in traceback.extract_tb(error.__traceback__)[1:]]
    return "\n".join([head[:_ERROR_CHARS], *(tail[-frames:] if frames else ())])


def _kill_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _die_with_parent(sig: signal.Signals, parent: int) -> None:
    """Linux: get ``sig`` when the parent dies. Elsewhere the closed socket does it."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(sig))
    if os.getppid() != parent:
        os._exit(0)


def _limit_memory(extra: int) -> None:
    """Cap the address space at what the bare worker has plus ``extra`` bytes."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            base = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        base = 0
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = base + extra if hard == resource.RLIM_INFINITY else min(base + extra, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
