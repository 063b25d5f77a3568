"""Compare two query results: multisets of rows, order only where it was asked for, typed cells, float
tolerance."""

from __future__ import annotations

import datetime
import decimal
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

Row = tuple[Any, ...]
Cell = tuple[str, Any]

RELATIVE, ABSOLUTE = 1e-6, 1e-9
MAX_PERMUTATIONS = 5040
_EXACT_BELOW = 2**53
_MATCHING_CAP = 50


@dataclass(frozen=True)
class Tolerance:
    """How far two numbers of which one is not an integer may lie apart: ``|a - b| <= max(relative * larger,
    absolute)``."""

    relative: float = RELATIVE
    absolute: float = ABSOLUTE

    def close(self, left: float, right: float) -> bool:
        """Whether two numbers count as equal; NaN equals NaN."""
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(left, right, rel_tol=self.relative, abs_tol=self.absolute)


@dataclass(frozen=True)
class Expected:
    """A gold result as a sequence of blocks.

    Each block is ``(take, pool)``: the result has ``take`` rows here, in any order, out of the rows of
    ``pool``. A pool larger than its take is a tie that the gold's LIMIT cuts. The blocks come in this order
    if ``ordered``.

    """

    blocks: tuple[tuple[int, tuple[Row, ...]], ...]
    columns: int
    ordered: bool = False

    @property
    def rows(self) -> int:
        """Number of rows of the result."""
        return sum(take for take, _ in self.blocks)

    @property
    def pool(self) -> list[Row]:
        """All the rows that the result is chosen from."""
        return [row for _, pool in self.blocks for row in pool]

    @property
    def ambiguous(self) -> bool:
        """Whether a LIMIT cuts a tie, so that more than one result is right."""
        return len(self.pool) > self.rows

    @property
    def trivial(self) -> bool:
        """Whether there is nothing to compare: no rows, or NULL in every cell."""
        return all(cell is None for row in self.pool for cell in row)


@dataclass(frozen=True)
class Difference:
    """The first difference found: what kind, in words, with a row each of what is extra and what is
    missing."""

    kind: str
    detail: str
    extra: Row | None = None
    missing: Row | None = None


def canonical(value: Any) -> Cell:
    """A cell as (kind, value): kinds never equal each other.

    NULL is ``null``; booleans, integers, integral floats and Decimals below 2**53 are the same integer;
    other numbers are floats; dates and times are ISO text; bytes are not text; lists and records are
    compared within.

    >>> canonical(3.0) == canonical(3), canonical("3") == canonical(3), canonical(None) == canonical("")
    (True, False, False)

    """
    if value is None:
        return ("null", None)
    if isinstance(value, str):
        return ("text", value)
    if isinstance(value, int):
        return ("int", int(value))
    if isinstance(value, (float, decimal.Decimal)):
        return _canonical_number(value)
    if isinstance(value, datetime.datetime):
        return ("text", value.isoformat(sep=" "))
    if isinstance(value, (datetime.date, datetime.time)):
        return ("text", value.isoformat())
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ("bytes", bytes(value))
    if isinstance(value, dict):
        return ("record", tuple(sorted((str(key), canonical(item)) for key, item in value.items())))
    if isinstance(value, (list, tuple)):
        return ("list", tuple(canonical(item) for item in value))
    return ("text", str(value))


def _canonical_number(value: float | decimal.Decimal) -> Cell:
    number = float(value)
    if math.isnan(number):
        return ("float", "nan")
    if math.isfinite(number) and value == int(value) and abs(number) < _EXACT_BELOW:
        return ("int", int(value))
    return ("float", number)


def compare_rows(
    rows: Sequence[Row],
    expected: Expected,
    *,
    columns: int | None = None,
    permute_columns: bool = False,
    tolerance: Tolerance | None = None,
) -> Difference | None:
    """None if ``rows`` is a result that ``expected`` allows, otherwise the first difference.

    Rows are compared as multisets within each block and the blocks in order. ``columns``: how many columns
    the result has (needed when it has no rows). ``permute_columns`` also tries the other column orders, up
    to 5,040.

    >>> gold = Expected(((2, ((1,), (1,))),), 1)
    >>> compare_rows([(1,)], gold).kind
    'rows'
    >>> compare_rows([(1,), (1.0,)], gold) is None
    True

    """
    width = len(rows[0]) if rows else columns
    if width is not None and width != expected.columns:
        return Difference("columns", f"{width} columns, expected {expected.columns}")
    if len(rows) != expected.rows:
        return Difference("rows", f"{len(rows)} rows, expected {expected.rows}", *_samples(rows, expected))
    close = tolerance or Tolerance()
    first = _compare_blocks(rows, expected, close)
    if first is None or not permute_columns:
        return first
    for order in _column_orders(rows, expected):
        moved = [tuple(row[column] for column in order) for row in rows]
        if _compare_blocks(moved, expected, close) is None:
            return None
    return first


def _compare_blocks(rows: Sequence[Row], expected: Expected, tolerance: Tolerance) -> Difference | None:
    if not expected.ordered:
        return _compare_unordered(rows, expected, tolerance)
    start = 0
    for take, pool in expected.blocks:
        extra, missing = match_rows(rows[start : start + take], pool, tolerance)
        if extra:
            anywhere = _compare_unordered(rows, expected, tolerance) is None
            kind = "order" if anywhere else "values"
            return Difference(kind, f"{kind} differs from row {start} on", extra[0], _first(missing))
        start += take
    return None


def _compare_unordered(rows: Sequence[Row], expected: Expected, tolerance: Tolerance) -> Difference | None:
    """Whole blocks must be used up; the other rows must come from the ties that are cut."""
    whole = [row for take, pool in expected.blocks if take == len(pool) for row in pool]
    cut = [row for take, pool in expected.blocks if take != len(pool) for row in pool]
    extra, missing = match_rows(rows, whole, tolerance, whole=True)
    if missing:
        return Difference("values", f"at least {len(missing)} rows differ", _first(extra), missing[0])
    extra, missing = match_rows(extra, cut, tolerance)
    return Difference("values", f"{len(extra)} rows differ", extra[0], _first(missing)) if extra else None


def _first(rows: list[Row]) -> Row | None:
    return rows[0] if rows else None


def match_rows(
    rows: Sequence[Row], pool: Sequence[Row], tolerance: Tolerance, *, whole: bool = False
) -> tuple[list[Row], list[Row]]:
    """Pair rows with equal rows of ``pool`` one to one: (rows left over, pool rows left over).

    Rows that are exactly equal pair first; the rest pair within the float tolerance by a maximum matching (by sorted
    order beyond 50 rows that agree in all other cells). With ``whole``, all of ``pool`` has to be paired: the
    search ends at the first rows of it that can't be.
    """
    extra, missing = _unequal(rows, pool)
    if not extra or not missing:
        return extra, missing
    return _match_close(extra, missing, tolerance, whole)


def _unequal(rows: Sequence[Row], pool: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """What is left after pairing rows that Python calls equal, which are equal here too (1 == 1.0 == True)."""
    try:
        have, want = Counter(rows), Counter(pool)
    except TypeError:  # lists and records have no hash
        return list(rows), list(pool)
    return list((have - want).elements()), list((want - have).elements())


@dataclass(frozen=True)
class _Numbered:
    """A row with its numbers: integers to be met exactly, and all of them as floats."""

    row: Row
    cells: tuple[Cell, ...]
    floats: tuple[float, ...]


def _match_close(rows: list[Row], pool: list[Row], tolerance: Tolerance, whole: bool) -> tuple[list[Row], list[Row]]:
    """Pair within rows that agree in all but numbers: in sorted order, and by matching where that leaves some over."""
    left, right = _buckets(rows), _buckets(pool)
    extra: list[Row] = []
    missing = [item.row for key, bucket in right.items() if key not in left for item in bucket]
    for key, bucket in left.items():
        if whole and missing:
            return extra or [bucket[0].row], missing
        others = right.get(key, [])
        unmatched, unused = _match_sorted(bucket, others, tolerance)
        if unmatched and unused and max(len(bucket), len(others)) <= _MATCHING_CAP:
            unmatched, unused = _match_maximum(bucket, others, tolerance)
        extra += [item.row for item in unmatched]
        missing += [item.row for item in unused]
    return extra, missing


def _buckets(rows: Iterable[Row]) -> dict[tuple[Cell | None, ...], list[_Numbered]]:
    """Rows by everything in them that is not a number."""
    found: dict[tuple[Cell | None, ...], list[_Numbered]] = defaultdict(list)
    for row in rows:
        cells = [canonical(cell) for cell in row]
        numbers = tuple(cell for cell in cells if cell[0] in ("int", "float"))
        key = tuple(None if cell[0] in ("int", "float") else cell for cell in cells)
        found[key].append(_Numbered(row, numbers, tuple(_as_float(cell[1]) for cell in numbers)))
    return found


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer beyond every float
        return math.inf if number > 0 else -math.inf


def _close(left: _Numbered, right: _Numbered, tolerance: Tolerance) -> bool:
    for a, b, x, y in zip(left.cells, right.cells, left.floats, right.floats, strict=True):
        if a != b and (a[0] == b[0] == "int" or not tolerance.close(x, y)):
            return False
    return True


_Left = tuple[list[_Numbered], list[_Numbered]]


def _match_sorted(rows: list[_Numbered], pool: list[_Numbered], tolerance: Tolerance) -> _Left:
    rows = sorted(rows, key=lambda item: item.floats)
    pool = sorted(pool, key=lambda item: item.floats)
    extra: list[_Numbered] = []
    missing: list[_Numbered] = []
    at = 0
    for item in rows:
        while at < len(pool) and not _close(item, pool[at], tolerance) and pool[at].floats < item.floats:
            missing.append(pool[at])
            at += 1
        if at < len(pool) and _close(item, pool[at], tolerance):
            at += 1
        else:
            extra.append(item)
    return extra, missing + pool[at:]


def _match_maximum(rows: list[_Numbered], pool: list[_Numbered], tolerance: Tolerance) -> _Left:
    """Maximum bipartite matching by augmenting paths, for the rows that the tolerance allows to pair."""
    near = [[j for j, other in enumerate(pool) if _close(item, other, tolerance)] for item in rows]
    owner: dict[int, int] = {}

    def place(row: int, seen: set[int]) -> bool:
        for j in near[row]:
            if j not in seen:
                seen.add(j)
                if j not in owner or place(owner[j], seen):
                    owner[j] = row
                    return True
        return False

    extra = [rows[i] for i in range(len(rows)) if not place(i, set())]
    return extra, [other for j, other in enumerate(pool) if j not in owner]


def _column_orders(rows: Sequence[Row], expected: Expected) -> Iterable[tuple[int, ...]]:
    """Column orders worth trying: kinds of cells per column must agree; at most 5,040."""
    width, pool = expected.columns, expected.pool
    if math.factorial(width) > MAX_PERMUTATIONS:
        return
    have = [_kinds(rows, column) for column in range(width)]
    want = [_kinds(pool, column) for column in range(width)]
    for order in permutations(range(width)):
        if all(have[source] <= want[target] for target, source in enumerate(order)):
            yield order


def _kinds(rows: Sequence[Row], column: int) -> frozenset[str]:
    kinds = (canonical(row[column])[0] for row in rows)
    return frozenset("number" if kind in ("int", "float") else kind for kind in kinds)


def _samples(rows: Sequence[Row], expected: Expected) -> tuple[Row | None, Row | None]:
    extra, missing = _unequal(rows, expected.pool)
    return _first(extra), _first(missing)
