"""Writing scored output: chunks in row order, streamed to Parquet or JSON lines, whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from guerdon.core.errors import StoreError

_GROUP_ROWS = 65_536
_GROUP_BYTES = 32 << 20
_JSON_ROWS = 1024

Rows = npt.NDArray[np.int64]


def write_scored(
    out: Path, schema: pa.Schema, rows: Sequence[Rows], sizes: Sequence[int], chunk: Callable[[int], pa.Table]
) -> None:
    """Write chunks to ``out``, sorted by row number; ``rows`` and ``sizes`` (bytes) describe, ``chunk`` loads one.

    Memory holds one row group (64k rows or 32 MB). It is written beside ``out``, flushed to disk and then renamed.
    """
    temporary = out.with_name(out.name + ".tmp")
    out.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(_writer(out, temporary, schema)) as writer:
        for table in _in_order(rows, sizes, chunk):
            writer.write(table)
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, out)
    _sync_folder(out.parent)


def _in_order(rows: Sequence[Rows], sizes: Sequence[int], chunk: Callable[[int], pa.Table]) -> Iterator[pa.Table]:
    count = sum(len(r) for r in rows)
    share = sum(sizes) / max(1, count)
    window = int(max(1, min(_GROUP_ROWS, _GROUP_BYTES / max(1.0, share))))
    everything = np.concatenate(rows) if rows else np.empty(0, np.int64)
    if bool(np.all(everything[1:] > everything[:-1])):
        yield from _gathered(map(chunk, range(len(rows))), window)
    else:
        yield from _windows(np.sort(everything), rows, chunk, window)


def _gathered(chunks: Iterator[pa.Table], window: int) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    for table in chunks:
        held.append(table)
        if sum(t.num_rows for t in held) >= window:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _windows(
    everything: Rows, rows: Sequence[Rows], chunk: Callable[[int], pa.Table], window: int
) -> Iterator[pa.Table]:
    """For each range of row numbers, take what the chunks that reach into it hold of it."""
    reach = [(r.min(), r.max()) for r in rows]
    for start in range(0, len(everything), window):
        low, high = everything[start], everything[min(start + window, len(everything)) - 1]
        numbers, tables = [], []
        for place, (least, most) in enumerate(reach):
            if least > high or most < low:
                continue
            inside = np.flatnonzero((rows[place] >= low) & (rows[place] <= high))
            if len(inside):
                numbers.append(rows[place][inside])
                tables.append(chunk(place).take(inside))
        yield pa.concat_tables(tables).take(np.argsort(np.concatenate(numbers)))


class _Writer(Protocol):
    def write(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


def check_output(out: Path) -> None:
    """Refuse a path whose suffix says no format that scored rollouts are written in."""
    if not out.name.lower().endswith((".parquet", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")):
        raise StoreError(f"{out}: output is written as .parquet, .jsonl or .jsonl.gz")


def _writer(out: Path, temporary: Path, schema: pa.Schema) -> _Writer:
    check_output(out)
    name = out.name.lower()
    if name.endswith(".parquet"):
        return _ParquetWriter(temporary, schema)
    return _JsonWriter(temporary, packed=name.endswith(".gz"))


class _ParquetWriter:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._writer: Any = pq.ParquetWriter(path, schema, compression="zstd")

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=_GROUP_ROWS)

    def close(self) -> None:
        self._writer.close()


class _JsonWriter:
    def __init__(self, path: Path, packed: bool) -> None:
        self._raw = open(path, "wb")  # noqa: SIM115 - closed with the writer
        self._file: Any = gzip.GzipFile("", "wb", 6, self._raw, mtime=0) if packed else self._raw

    def write(self, table: pa.Table) -> None:
        for start in range(0, table.num_rows, _JSON_ROWS):
            rows = table.slice(start, _JSON_ROWS).to_pylist()
            self._file.write(b"".join(orjson.dumps(row, default=str, option=orjson.OPT_APPEND_NEWLINE) for row in rows))

    def close(self) -> None:
        self._file.close()
        self._raw.close()


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
