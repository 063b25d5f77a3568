"""Rows as they stand in a file: each a mapping, or the cause why it is none. Memory is bounded by one row or batch."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import orjson

from guerdon.core.errors import DataError
from guerdon.data._bytes import Watch, lines, show_all

Row = tuple[int, Mapping[str, Any] | str]
"""The line (Parquet, Arrow: the row), counted from 1, and the columns or the cause why they can't be read."""
Reader = Callable[..., Iterator[Row]]
"""``reader(path, watch=None)``: the rows of a file."""

MAX_LINE_BYTES = 64 << 20
_BATCH_ROWS = 1024
_EXACT = float(2**63)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?\Z", re.ASCII)
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})


def json_lines(path: Path, max_line: int = MAX_LINE_BYTES, *, watch: Watch | None = None) -> Iterator[Row]:
    """JSON lines. Empty lines are skipped; of a key that stands twice in a row the last value counts."""
    for number, line in lines(path, max_line, watch):
        if isinstance(line, str):
            yield number, line
        elif line and not line.isspace():
            yield number, _parse(line)


def _parse(line: bytes) -> Mapping[str, Any] | str:
    try:
        row = orjson.loads(line)
        if type(row) is dict and _vast(
            row
        ):  # integers beyond 64 bits come as rounded floats: read this line again, exactly
            row = json.loads(line, parse_constant=_refuse)
            if problem := not_finite(row):
                return problem
    except (ValueError, RecursionError) as error:
        cause = str(error).removesuffix(": line 1 column 1 (char 0)")
        return f"not valid JSON: {cause}{_WHOLE_LINES if 'end of data' in cause else ''}"
    if isinstance(row, dict):
        return row
    return f"expected a JSON object, not {type(row).__name__}{_NO_LIST if isinstance(row, list) else ''}"


_WHOLE_LINES = "; each line must be one whole object"
_NO_LIST = "; each line is one row (jq -c '.[]' makes lines of a list)"


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a finite number")


def _vast(value: Any) -> bool:
    """Whether a float that may stand for a larger integer, or an infinity, is anywhere in a container."""
    if type(value) is list and value and type(value[0]) in _NUMBERS:
        try:
            return not -_EXACT < min(value) <= max(value) < _EXACT
        except TypeError:  # not all of them are numbers
            pass
    for item in value.values() if type(value) is dict else value:
        kind = type(item)
        if kind is float:
            if not -_EXACT < item < _EXACT:
                return True
        elif (kind is dict or kind is list) and _vast(item):
            return True
    return False


_NUMBERS = frozenset({int, float})


def not_finite(row: Mapping[str, Any]) -> str:
    """The cause to report when a number in ``row`` is NaN or infinite, else ``""``."""
    for column, value in row.items():
        if (found := _find_not_finite(value)) is not None:
            return f"column {column!r} holds {found}, which is not a finite number"
    return ""


def _find_not_finite(value: object) -> float | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return next((found for v in items if (found := _find_not_finite(v)) is not None), None)


def csv_rows(path: Path, max_line: int = MAX_LINE_BYTES, *, watch: Watch | None = None) -> Iterator[Row]:
    """CSV with a header. A quoted cell may span lines; every cell is text (see `typed_cell`)."""
    csv.field_size_limit(max(csv.field_size_limit(), max_line))
    problems: list[str] = []
    reader = csv.reader(_csv_lines(path, max_line, problems, watch))
    header = next(reader, None)
    if header is None:
        return
    if problems or len(set(header)) < len(header):
        raise DataError(path.name, 1, problems[0] if problems else f"a column name stands twice: {', '.join(header)}")
    while True:
        first = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield first, f"not valid CSV: {error}"
            continue
        if cells is None:
            return
        if problems:
            yield first, problems.pop()
            problems.clear()
        elif cells:
            yield first, _csv_row(header, cells)


def _csv_lines(path: Path, max_line: int, problems: list[str], watch: Watch | None) -> Iterator[str]:
    for _, line in lines(path, max_line, watch):
        if isinstance(line, str):
            problems.append(line)
            yield "\n"
            continue
        try:
            yield line.decode("utf-8") + "\n"
        except UnicodeDecodeError as error:
            problems.append(f"not valid UTF-8: {error.reason} at byte {error.start} of the line")
            yield "\n"


def _csv_row(header: list[str], cells: list[str]) -> Mapping[str, Any] | str:
    if len(cells) != len(header):
        return f"{len(cells)} cells in a table of {len(header)} columns"
    row = dict(zip(header, cells, strict=True))
    for column, cell in row.items():
        if len(cell) < 10 and cell.strip(" +-").lower() in _NOT_FINITE:
            return f"column {column!r} holds {cell.strip()}, which is not a finite number"
    return row


def typed_cell(cell: Any) -> Any:
    """What the text of a CSV cell means in a column of no declared type: nothing, a number or the text."""
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    if not text:
        return None
    if len(text) > 400 or not _NUMBER.match(text):
        return cell
    number = float(text)
    if text.lstrip("+-").isdigit():
        return int(text)
    return number if math.isfinite(number) else cell


def parquet_rows(path: Path, *, watch: Watch | None = None) -> Iterator[Row]:
    """Parquet, a thousand rows at a time."""
    show_all(path, watch)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            yield from _batches(file.iter_batches(batch_size=_BATCH_ROWS))
    except (pa.ArrowException, OSError) as error:
        raise DataError(path.name, 0, f"not a readable Parquet file: {error}") from error


def arrow_rows(path: Path, *, watch: Watch | None = None) -> Iterator[Row]:
    """Arrow IPC, stream (as ``datasets`` writes it) or file."""
    show_all(path, watch)
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as source:
            try:
                reader: Any = pa.ipc.open_stream(source)
                batches: Iterator[Any] = iter(reader)
            except pa.ArrowInvalid:
                reader = pa.ipc.open_file(source)
                batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
            slices = (b.slice(i, _BATCH_ROWS) for b in batches for i in range(0, b.num_rows, _BATCH_ROWS))
            yield from _batches(slices)
    except (pa.ArrowException, OSError) as error:
        raise DataError(path.name, 0, f"not a readable Arrow file: {error}") from error


def _batches(batches: Iterator[Any]) -> Iterator[Row]:
    number = 0
    for batch in batches:
        finite = all(_column_is_finite(column) for column in batch.columns)
        for row in batch.to_pylist():
            number += 1
            yield number, (row if finite else not_finite(row) or row)


def _column_is_finite(column: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_floating(kind):
        return pc.all(pc.is_finite(column), min_count=0).as_py() is not False
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _column_is_finite(column.flatten())
    if pa.types.is_struct(kind):
        return all(_column_is_finite(child) for child in column.flatten())
    if pa.types.is_dictionary(kind):
        return _column_is_finite(column.dictionary)
    return not pa.types.is_nested(kind)  # a map or union: let each row be looked at


READERS: Mapping[str, Reader] = {
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".json": json_lines,
    ".csv": csv_rows,
    ".parquet": parquet_rows,
    ".arrow": arrow_rows,
}
"""By the suffix of the file name, after ``.gz`` and ``.zst`` (text formats only)."""
