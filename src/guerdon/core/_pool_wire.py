"""What the two ends of a worker pool share: the frames on the socket and the slate in shared memory.

A worker tells the parent which item it runs, and since when, by writing to a page that both have mapped.
That costs no system call per item, and it still holds when the worker is stuck in C code or was killed.
Results wait on the same page until they are sent, so one that was ready when the worker died is not lost.
"""

from __future__ import annotations

import mmap
import os
import pickle
import struct
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

OK, RAISED, DONE, UNLOADABLE = 0, 1, 2, 3
"""Kinds of frame: a value, an exception's text, the end of a chunk, a function that could not be loaded."""

LOADING, IDLE = -1, -2
"""Slate positions that are not an item: reading the function; between chunks."""

MAX_RESULT_BYTES = 1 << 30

LENGTH = struct.Struct("<Q")
"""Before each message to a worker: its number of bytes."""

COMMAND = struct.Struct("<cxxxxxxxq")
"""Parent to nursery: ``F`` (fork; two descriptors travel along) or ``K`` (kill), and the worker's number."""

REPORT = struct.Struct("<cxxxxxxxqq")
"""Nursery to parent: ``S`` (started, process id) or ``X`` (ended, wait status; -1: could not be forked)."""

_HEAD = struct.Struct("<QqBdQ")


class Frame(NamedTuple):
    """One message from a worker: what happened to item ``item`` of chunk ``chunk``."""

    chunk: int
    item: int
    kind: int
    seconds: float
    body: bytes


class Garbage(ValueError):
    """The bytes on a worker's socket are not frames: its function wrote to a descriptor not its own."""


def pack_frame(chunk: int, index: int, kind: int, seconds: float, body: bytes) -> bytes:
    """The bytes of one frame."""
    return _HEAD.pack(chunk, index, kind, seconds, len(body)) + body


def take_frames(buffer: bytearray) -> Iterator[Frame]:
    """Remove the complete frames from the front of ``buffer`` and yield them; raises `Garbage`."""
    position, view = 0, bytes(buffer)
    try:
        while len(view) - position >= _HEAD.size:
            chunk, index, kind, seconds, length = _HEAD.unpack_from(view, position)
            if kind > UNLOADABLE or length > MAX_RESULT_BYTES:
                raise Garbage("not a frame")
            end = position + _HEAD.size + length
            if end > len(view):
                break
            yield Frame(chunk, index, kind, seconds, view[position + _HEAD.size : end])
            position = end
    finally:
        del buffer[:position]


def missing_bytes(buffer: bytearray) -> int:
    """How many more bytes the frame at the front of ``buffer`` needs (0 when that can't be told yet)."""
    if len(buffer) < _HEAD.size:
        return 0
    length = int(_HEAD.unpack_from(buffer)[4])
    return max(0, _HEAD.size + length - len(buffer)) if length <= MAX_RESULT_BYTES else 0


def pack(value: object) -> bytes:
    """Pickle by reference where the other side can import it, else by value (what `__main__` defines)."""
    try:
        body = pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        body = b"__main__"
    if b"__main__" not in body:
        return body
    import cloudpickle

    return bytes(cloudpickle.dumps(value, protocol=5))


def shared_file() -> int:
    """A new descriptor of `Slate.SIZE` zero bytes that exist in memory only."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("guerdon-slate", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, Slate.SIZE)
    return descriptor


class Slate:
    """The page that a worker and the supervisor have mapped.

    Words: chunk number, position in the chunk, start of the item (``time.monotonic``), limit (items at or
    after it are not for this worker any more), bytes of results that wait. Each is one aligned 8-byte store.
    The worker writes its position, then reads the limit; the supervisor writes the limit, then reads the
    position: so both never believe that an item is theirs.
    """

    SIZE = 64 * 1024
    ROOM = SIZE - 64

    def __init__(self, descriptor: int) -> None:
        self._map = mmap.mmap(descriptor, self.SIZE)
        self._words = memoryview(self._map).cast("q")
        self._times = memoryview(self._map).cast("d")

    @property
    def position(self) -> int:
        """The item that runs, counted within the chunk, or `LOADING` or `IDLE`."""
        return self._words[1]

    @property
    def since(self) -> float:
        """When the item (or the loading) began, on the clock of ``time.monotonic``."""
        return self._times[2]

    @property
    def chunk(self) -> int:
        """Number of the chunk that the worker took up last (0: none)."""
        return self._words[0]

    @property
    def limit(self) -> int:
        """Items at or after this position are not for this worker."""
        return self._words[3]

    @limit.setter
    def limit(self, value: int) -> None:
        self._words[3] = value

    def begin(self, chunk: int, now: float) -> None:
        """The worker takes up a chunk and looks for its function."""
        self.enter(LOADING, now)
        self._words[0] = chunk

    def enter(self, position: int, now: float) -> None:
        """The worker starts an item: time is written first, so a fresh position never shows an old time."""
        self._times[2] = now
        self._words[1] = position

    def keep(self, frame: bytes) -> bool:
        """Let a result wait; false when it does not fit."""
        used = self._words[4]
        if used + len(frame) > self.ROOM:
            return False
        self._map[64 + used : 64 + used + len(frame)] = frame
        self._words[4] = used + len(frame)
        return True

    def waiting(self) -> bytes:
        """The results that wait."""
        return self._map[64 : 64 + min(max(self._words[4], 0), self.ROOM)]

    def sent(self) -> None:
        """Forget the results that wait: they are on the socket."""
        self._words[4] = 0

    def close(self) -> None:
        """Unmap the page."""
        self._words.release()
        self._times.release()
        self._map.close()
