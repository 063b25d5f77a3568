"""Seeded perturbed copies of a SQLite database, on which an answer that is right by luck gets caught."""

from __future__ import annotations

import os
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path

from guerdon.verify.queries.databases import cache_folder, database_hash, prune, replacing

MAX_PERTURBED_BYTES = 64_000_000
MAX_PROBED_BYTES = 1_000_000
_VERSION = 2  # of what a seed gives: copies of another version are not taken from the cache
_KEEP, _TWICE, _GROW = 0.8, 0.2, 0.5
_PLANTED_ROWS = 12
_NUMBER_TYPES = ("INT", "REAL", "FLOA", "DOUB", "NUM", "DEC")
_ID_ENDINGS = ("id", "key", "code", "no")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_WORDS = re.compile(r"[^\W\d_](?:[^\W\d_]|[ .'-]){0,200}")

Probe = tuple[str, str | int | float]
"""A column name and a literal that a query compares it with."""


@dataclass(frozen=True)
class CopyRequest:
    """A perturbed copy to make: of which file, with which seed, and which literals to plant."""

    path: str
    seed: int
    probes: tuple[Probe, ...] = ()


def perturbed_copy(request: CopyRequest) -> str:
    """The path of a perturbed copy of a SQLite database, made once per content, seed and probes.

    Every table's rows are put in a random order, and tables without a key get one in five doubled. With an
    even seed about one row in five is dropped. With an odd seed tables with a key gain about half as many
    rows again, under new keys, and the non-key number columns of each table move together to other rows.
    So constant answers, lucky orders and limits fail while joins, ranges of values and sums within a row
    stay as they were. ``probes`` plants literals (and the whole numbers or dates beside them) in their columns, so
    that ``>`` and ``>=`` differ.

    Raises ``ValueError`` for a database over 64 MB.

    """
    size = os.path.getsize(request.path)
    if size > MAX_PERTURBED_BYTES:
        raise ValueError(f"database of {size} bytes, copies are made up to {MAX_PERTURBED_BYTES}")
    probes = request.probes if size <= MAX_PROBED_BYTES else ()
    mark = sha256(repr((_VERSION, request.seed, probes)).encode()).hexdigest()[:16]
    target = cache_folder() / f"{database_hash(request.path)[:32]}-{mark}.sqlite"
    if not target.exists():
        _make_copy(request.path, target, random.Random(f"{target.name}"), odd=request.seed % 2 == 1, probes=probes)
        prune(target.parent)
    return str(target)


def _make_copy(path: str, target: Path, rng: random.Random, *, odd: bool, probes: tuple[Probe, ...]) -> None:
    with (
        replacing(target) as temporary,
        closing(sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as source,
        closing(sqlite3.connect(temporary, isolation_level=None)) as copy,
    ):
        source.backup(copy)
        copy.text_factory = _lossless
        for pragma in ("trusted_schema=0", "journal_mode=OFF", "synchronous=OFF", "foreign_keys=0"):
            copy.execute("PRAGMA " + pragma)
        copy.execute("BEGIN")
        _perturb(copy, rng, odd, probes)
        copy.execute("COMMIT")


def _lossless(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


@dataclass(frozen=True)
class _Table:
    name: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    primary: frozenset[str]
    foreign: frozenset[str]
    unique: bool

    @property
    def keys(self) -> frozenset[str]:
        """Columns declared to identify or join rows."""
        return self.primary | self.foreign


def _perturb(copy: sqlite3.Connection, rng: random.Random, odd: bool, probes: tuple[Probe, ...]) -> None:
    for (trigger,) in copy.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
        copy.execute(f"DROP TRIGGER {_quoted(trigger)}")
    tables = _tables(copy)
    shared = Counter(column.lower() for table in tables for column in table.columns)
    for table in tables:
        rows = copy.execute(f"SELECT {', '.join(map(_quoted, table.columns))} FROM {_quoted(table.name)}").fetchall()
        keys = _key_columns(table, rows, shared)
        rows = _grown(rows, table, rng) if odd else [row for row in rows if rng.random() < _KEEP] or rows[:1]
        if not _identified(table, rows):
            rows += [row for row in rows if rng.random() < _TWICE]
        rng.shuffle(rows)
        free = [i for i, name in enumerate(table.columns) if table.numeric[i] and name.lower() not in keys]
        if odd:
            rows = _shift_columns(rows, free, rng)
        plantable = [i for i, name in enumerate(table.columns) if name.lower() not in keys]
        if probes:
            rows = _plant(rows, table, plantable, probes, _met_first(copy, table, tables, rows, rng))
        copy.execute(f"DELETE FROM {_quoted(table.name)}")
        marks = ", ".join("?" * len(table.columns))
        names = ", ".join(map(_quoted, table.columns))
        copy.executemany(f"INSERT OR IGNORE INTO {_quoted(table.name)} ({names}) VALUES ({marks})", rows)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _tables(copy: sqlite3.Connection) -> list[_Table]:
    """The ordinary tables; virtual ones, their shadows and tables with generated columns are left as they
    are."""
    listed = copy.execute("PRAGMA table_list").fetchall()
    names = [row[1] for row in listed if row[0] == "main" and row[2] == "table" and not row[1].startswith("sqlite_")]
    found = []
    for name in names:
        info = copy.execute(f"PRAGMA table_xinfo({_quoted(name)})").fetchall()
        if any(row[6] for row in info):
            continue
        foreign = frozenset(str(row[3]).lower() for row in copy.execute(f"PRAGMA foreign_key_list({_quoted(name)})"))
        unique = any(row[2] for row in copy.execute(f"PRAGMA index_list({_quoted(name)})"))
        primary = frozenset(row[1].lower() for row in info if row[5])
        numeric = tuple(any(kind in str(row[2]).upper() for kind in _NUMBER_TYPES) for row in info)
        columns = tuple(row[1] for row in info)
        found.append(_Table(name, columns, numeric, primary, foreign, unique or bool(primary)))
    return found


def _distinct_columns(table: _Table, rows: list[tuple[object, ...]]) -> set[str]:
    """Columns that identify a row in the data as it is."""
    return {
        name.lower()
        for index, name in enumerate(table.columns)
        if len(rows) > 1 and len({row[index] for row in rows}) == len(rows)
    }


def _identified(table: _Table, rows: list[tuple[object, ...]]) -> bool:
    """Whether a row is one thing that must not appear twice: a key is declared, or a text or id column acts
    as one."""
    words = {name.lower() for name, numeric in zip(table.columns, table.numeric, strict=True) if not numeric}
    return table.unique or any(c in words or c.endswith(_ID_ENDINGS) for c in _distinct_columns(table, rows))


def _key_columns(table: _Table, rows: list[tuple[object, ...]], shared: Counter[str]) -> set[str]:
    """Columns that join or identify rows: declared, named in more than one table, or an id that is
    distinct."""
    distinct = {name for name in _distinct_columns(table, rows) if name.endswith(_ID_ENDINGS)}
    return set(table.keys) | distinct | {c.lower() for c in table.columns if shared[c.lower()] > 1}


def _grown(rows: list[tuple[object, ...]], table: _Table, rng: random.Random) -> list[tuple[object, ...]]:
    """Some rows once more, under new keys; as they were where no key can be made up that looks like the others."""
    again = [row for row in rows if rng.random() < _GROW]
    columns = list(zip(*rows, strict=True))
    for index, name in enumerate(table.columns):
        if name.lower() not in _distinct_columns(table, rows) or (table.numeric[index] and not _keyed(name, table)):
            continue
        fresh = None if name.lower() in table.foreign else _fresh(columns[index])
        if fresh is None:
            return list(rows)
        again = [(*row[:index], fresh(row[index], number), *row[index + 1 :]) for number, row in enumerate(again, 1)]
    return rows + again


def _fresh(cells: tuple[object, ...]) -> Callable[[object, int], object] | None:
    """What makes a new key from a cell and a number, for whole numbers and for words; None for anything else."""
    numbers = [cell for cell in cells if type(cell) is int]
    if len(numbers) == len(cells):
        last = max(numbers)
        return lambda _, number: last + number
    if all(isinstance(cell, str) and _WORDS.fullmatch(cell) for cell in cells):
        return lambda cell, _: f"{cell} II"
    return None


def _keyed(name: str, table: _Table) -> bool:
    return name.lower() in table.keys or name.lower().endswith(_ID_ENDINGS)


def _shift_columns(rows: list[tuple[object, ...]], columns: list[int], rng: random.Random) -> list[tuple[object, ...]]:
    """Give each row the named columns of another row, all of them from the same one."""
    donors = list(range(len(rows)))
    rng.shuffle(donors)
    moving = set(columns)
    return [
        tuple(rows[donor][i] if i in moving else cell for i, cell in enumerate(row))
        for row, donor in zip(rows, donors, strict=True)
    ]


def _met_first(
    copy: sqlite3.Connection, table: _Table, tables: list[_Table], rows: list[tuple[object, ...]], rng: random.Random
) -> list[int]:
    """The places of the rows at random, those first whose cells other tables hold under the same column name: a join
    keeps them."""
    met = [rng.random() for _ in rows]
    for index, name in enumerate(table.columns):
        for other in tables:
            if other is not table and name.lower() in map(str.lower, other.columns):
                held = {cell for (cell,) in copy.execute(f"SELECT {_quoted(name)} FROM {_quoted(other.name)}")}
                met = [count + (row[index] in held) for count, row in zip(met, rows, strict=True)]
    return sorted(range(len(rows)), key=met.__getitem__, reverse=True)


def _plant(
    rows: list[tuple[object, ...]], table: _Table, free: list[int], probes: tuple[Probe, ...], order: list[int]
) -> list[tuple[object, ...]]:
    """Put the literals of each column and their neighbours into the first rows in that order, at most half of them.

    All columns use the same rows, so that some meet several conditions at once and some miss one of them.
    """
    changed = [list(row) for row in rows]
    some = order[: min(_PLANTED_ROWS, (len(rows) + 1) // 2)]
    for index in free:
        values = [value for column, value in probes if column.lower() == table.columns[index].lower()]
        near = [*values, *(beside for step in (1, -1) for value in values for beside in _beside(value, step))]
        for position, row in enumerate(some if near else ()):
            changed[row][index] = near[position % len(near)]
    return [tuple(row) for row in changed]


def _beside(value: str | float, step: int) -> list[str | float]:
    """The number, or the ISO date, one further or one back; nothing for other text."""
    if not isinstance(value, str):
        return [value + step]
    if not _DATE.fullmatch(value):
        return []
    try:
        return [(date.fromisoformat(value) + timedelta(days=step)).isoformat()]
    except (ValueError, OverflowError):
        return []
