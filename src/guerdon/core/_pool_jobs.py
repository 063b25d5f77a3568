"""What the supervisor of a worker pool keeps for each submitted call and for each worker process."""

from __future__ import annotations

import contextlib
import pickle
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from guerdon.core._pool_wire import LENGTH, LOADING, OK, UNLOADABLE, Frame, Slate, missing_bytes

R = TypeVar("R")

START_SECONDS = 60.0
"""How long a worker may take to start or to load a function."""

_CHUNK_SECONDS = 0.01
_CHUNK_ITEMS = 512
_CHUNK_BYTES = 4 << 20
_KNOWN_FUNCTIONS = 128
_TRIES = 2  # an item whose worker died is tried once more, alone


@dataclass(slots=True, eq=False)
class Job(Generic[R]):
    """One submitted call: the pickled items and what is known of each so far."""

    key: bytes
    function: bytes
    items: list[bytes]
    results: list[R | None]
    timeout: float
    future: Future[list[R]]
    make: Callable[[str, bytes, float], R]  # kind; pickled value or error text; seconds
    waiting: deque[int] = field(default_factory=deque)
    alone: deque[int] = field(default_factory=deque)  # their worker died: tried once more, in a chunk of one
    deaths: dict[int, int] = field(default_factory=dict)
    missing: int = 0
    mean_seconds: float = -1.0
    failed_loads: int = 0
    kills: int = 0  # workers that it has cost

    @property
    def over(self) -> bool:
        """Nothing is left to run."""
        return self.missing == 0 or self.future.done()

    @property
    def hungry(self) -> bool:
        """Something waits for a worker."""
        return not self.over and bool(self.waiting or self.alone)

    def settle(self, index: int, kind: str, body: bytes | str, seconds: float) -> None:
        """Write an item's outcome, once."""
        if self.results[index] is not None:
            return
        self.results[index] = self.make(kind, body if isinstance(body, bytes) else body.encode(), seconds)
        self.items[index] = b""
        self.missing -= 1
        if self.missing == 0:
            self.finish()

    def expire(self, index: int, seconds: float) -> None:
        """The item ran longer than it may."""
        self.settle(index, "timeout", f"timed out after {self.timeout:g} s", seconds)

    def settle_rest(self, kind: str, text: str | bytes) -> None:
        """Give one outcome to everything that has none."""
        for index, result in enumerate(self.results):
            if result is None:
                self.settle(index, kind, text, 0.0)

    def finish(self) -> None:
        """Resolve the future, unless the caller has cancelled it."""
        with contextlib.suppress(InvalidStateError):
            self.future.set_result([r for r in self.results if r is not None])

    def take(self, workers: int) -> list[int]:
        """The next chunk: about ten milliseconds of work, small enough to keep all workers busy at the end."""
        if not self.waiting:
            return [self.alone.popleft()]
        if self.mean_seconds < 0:
            size = min(8, -(-len(self.waiting) // (4 * workers)))
        else:
            size = int(_CHUNK_SECONDS / max(self.mean_seconds, 1e-6))
            size = min(size, _CHUNK_ITEMS, max(16, len(self.waiting) // (2 * workers)))
        chunk: list[int] = []
        total = 0
        while self.waiting and len(chunk) < max(1, size):
            total += len(self.items[self.waiting[0]])
            if chunk and total > _CHUNK_BYTES:
                break
            chunk.append(self.waiting.popleft())
        return chunk

    def put_back(self, chunk: list[int]) -> None:
        """Queue the items of a chunk that have no outcome and are not queued to be tried alone."""
        lone = set(self.alone)
        self.waiting.extendleft(i for i in reversed(chunk) if self.results[i] is None and i not in lone)

    def charge(self, chunk: list[int], position: int | None, text: str) -> None:
        """A worker died: charge the item it ran, or all of the chunk when it can't be told which one that was."""
        if position == LOADING:
            self.failed_loads += 1
            if self.failed_loads >= _TRIES:
                self.settle_rest("died", f"{text} while it loaded the function")
            return
        known = position is not None and 0 <= position < len(chunk)
        for index in [chunk[position or 0]] if known else chunk:
            if self.results[index] is not None:
                continue
            self.deaths[index] = self.deaths.get(index, 0) + 1
            if self.deaths[index] >= _TRIES:
                self.settle(index, "died", text, 0.0)
            else:
                self.alone.append(index)

    def learn(self, seconds: float) -> None:
        """Follow how long an item takes, to size the chunks."""
        if self.mean_seconds < 0:
            self.mean_seconds = seconds
        self.mean_seconds += 0.05 * (seconds - self.mean_seconds)


@dataclass(slots=True, eq=False)
class Worker:
    """A worker process as the supervisor sees it."""

    number: int
    channel: socket.socket
    slate: Slate
    known: set[bytes] = field(default_factory=set)
    inbox: bytearray = field(default_factory=bytearray)
    outbox: memoryview = field(default_factory=lambda: memoryview(b""))
    job: Job[Any] | None = None
    chunk: list[int] = field(default_factory=list)
    chunk_number: int = 0
    since: float = 0.0  # when the chunk was sent
    doomed: str = ""  # why it is being killed
    ended: bool = False  # the other side closed the channel
    watched: bool = True  # the supervisor waits for events on the channel

    @property
    def position(self) -> int | None:
        """Which item of its chunk it runs (None: it has not taken the chunk up)."""
        return self.slate.position if self.slate.chunk == self.chunk_number else None

    @property
    def busy(self) -> bool:
        """It runs items, as against waiting or loading a function in advance."""
        return self.job is not None and bool(self.chunk)

    @property
    def item(self) -> int | None:
        """The index, within the job, of the item that it runs."""
        position = self.position
        known = position is not None and 0 <= position < len(self.chunk)
        return self.chunk[position or 0] if known else None

    def assign(self, job: Job[Any], chunk: list[int], number: int) -> None:
        """Give it a chunk; the message waits in the outbox."""
        forget = len(self.known) > _KNOWN_FUNCTIONS
        if forget:
            self.known.clear()
        new = job.key not in self.known
        self.known.add(job.key)
        self.job, self.chunk, self.chunk_number = job, chunk, number
        self.slate.limit, self.since = len(chunk), time.monotonic()
        path = [p for p in sys.path if isinstance(p, str)] if new else None
        blobs = [job.items[i] for i in chunk]
        body = pickle.dumps((number, job.key, job.function if new else None, path, blobs, forget), protocol=5)
        self.outbox = memoryview(LENGTH.pack(len(body)) + body)

    def push(self) -> None:
        """Send what the socket takes; raises ``OSError`` when the other side is gone."""
        with contextlib.suppress(BlockingIOError):
            while self.outbox:
                self.outbox = self.outbox[self.channel.send(self.outbox) :]

    def pull(self) -> bool:
        """Read once what has come; false when there was nothing or the channel ended."""
        try:
            data = self.channel.recv(max(1 << 18, min(missing_bytes(self.inbox), 1 << 26)))
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        self.inbox += data
        self.ended = self.ended or not data
        return bool(data)

    def overdue(self, now: float) -> float:
        """Seconds since the deadline of what it does (negative: until then)."""
        begun, allowed = self.since, START_SECONDS
        position = self.position
        if position is not None:
            since = self.slate.since  # on the shared page: believed only where it makes sense
            begun = since if self.since <= since <= time.monotonic() else self.since
            if position >= 0 and self.job is not None:
                allowed = self.job.timeout
        return now - begun - allowed

    def may_split(self, now: float, after: float) -> bool:
        """It runs one item for longer than ``after`` seconds while others of its chunk wait behind."""
        position = self.position
        return position is not None and position >= 0 and len(self.chunk) > 1 and now - self.slate.since > after

    def split(self) -> list[int]:
        """Take back the items behind the one that runs."""
        position = self.slate.position
        self.slate.limit = position + 1
        first = max(position, self.slate.position) + 1
        behind = self.chunk[first:] if position >= 0 <= self.slate.position else []
        del self.chunk[len(self.chunk) - len(behind) :]
        return behind

    def note(self, frame: Frame) -> None:
        """Write what a frame says about an item to its job."""
        job = self.job
        if job is None or frame.chunk != self.chunk_number:
            return
        if frame.kind == UNLOADABLE:
            self.known.discard(job.key)
            job.settle_rest("raised", frame.body)
        elif 0 <= frame.item < len(self.chunk):
            job.learn(frame.seconds)
            index = self.chunk[frame.item]
            if frame.seconds > job.timeout:
                job.expire(index, frame.seconds)
            else:
                job.settle(index, "ok" if frame.kind == OK else "raised", frame.body, frame.seconds)

    def close(self) -> None:
        """Release the descriptors."""
        self.channel.close()
        self.slate.close()
