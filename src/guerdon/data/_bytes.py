"""The bytes of a file: decompressed, cut into lines, and shown as they are stored to whoever hashes them meanwhile."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from guerdon.core.errors import DataError

Watch = Callable[[bytes], object]
"""Is shown all bytes of a file in order, as they are stored."""

_BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"


def lines(path: Path, limit: int, watch: Watch | None) -> Iterator[tuple[int, bytes | str]]:
    """The lines of a file, counted from 1, without their ends; a text instead where a line is over the limit."""
    number, rest, skipping = 0, bytearray(), False
    for block in _blocks(path, watch):
        cut = block.rfind(b"\n")
        if cut >= 0:
            for line in (bytes(rest) + block[:cut]).split(b"\n"):
                number += 1
                yield number, _checked(line, number, limit, skipping)
                skipping = False
            rest = bytearray(block[cut + 1 :])
        elif not skipping:
            rest += block
        if len(rest) > limit:
            skipping, rest = True, bytearray()
    if rest or skipping:
        yield number + 1, _checked(bytes(rest), number + 1, limit, skipping)


def _checked(line: bytes, number: int, limit: int, skipped: bool) -> bytes | str:
    if skipped or len(line) > limit:
        return f"the line is longer than {limit} bytes"
    return line.removeprefix(_BOM) if number == 1 else line


def _blocks(path: Path, watch: Watch | None) -> Iterator[bytes]:
    """The decompressed bytes in blocks; raises `DataError` when the compressed data is damaged or ends early."""
    try:
        with _Stored(path, watch) as stored:
            with _unpacked(path, stored) as stream:
                while block := stream.read(_BLOCK):
                    yield block
            stored.show_rest()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(path.name, 0, f"the compressed data is damaged: {error}") from error
    except OSError as error:
        raise DataError(path.name, 0, f"can't be read: {error.strerror or error}") from error


def _unpacked(path: Path, stored: _Stored) -> Any:
    """A context with the decompressed stream."""
    if path.suffix == ".gz":
        return gzip.GzipFile(fileobj=io.BufferedReader(stored, _BLOCK))
    if path.suffix in (".zst", ".zstd"):
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), "zstd")
    return nullcontext(stored)


class _Stored(io.FileIO):
    """A file whose bytes are shown to ``watch`` as they are read."""

    def __init__(self, path: Path, watch: Watch | None) -> None:
        super().__init__(path)
        self._watch = watch

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size)
        if self._watch is not None and data:
            self._watch(data)
        return data or b""

    def readinto(self, buffer: Any, /) -> int:
        count = super().readinto(buffer) or 0
        if self._watch is not None and count:
            self._watch(bytes(memoryview(buffer)[:count]))
        return count

    def show_rest(self) -> None:
        """Read on to the end of the file, past the end of what it holds."""
        while not self.closed and self.read(_BLOCK):
            pass


def show_all(path: Path, watch: Watch | None) -> None:
    """Formats that are not read from front to back are shown in a reading of its own."""
    if watch is not None:
        with _Stored(path, watch) as stored:
            stored.show_rest()
