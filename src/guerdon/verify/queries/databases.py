"""SQLite databases as inputs: identity by content, built from a dump, and seeded perturbed copies."""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

MAX_PERTURBED_BYTES = 64_000_000
MAX_PROBED_BYTES = 1_000_000
MAX_CACHE_BYTES = 2_000_000_000
_KEEP, _TWICE = 0.8, 0.2
_PLANTED_ROWS = 12
_NUMBER_TYPES = ("INT", "REAL", "FLOA", "DOUB", "NUM", "DEC")
_ID_ENDINGS = ("id", "key", "code", "no")

Probe = tuple[str, str | int | float]
"""A column name and a literal that a query compares it with."""


def database_hash(path: str) -> str:
    """SHA-256 of a database file's bytes; read again only when the file changes."""
    stat = os.stat(path)
    return _hash_file(path, stat.st_ino, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=1024)
def _hash_file(path: str, _inode: int, _size: int, _modified: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_folder() -> Path:
    """Where databases made here lie: ``$GUERDON_CACHE/sql``, by default ``~/.cache/guerdon/sql``."""
    root = os.environ.get("GUERDON_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "guerdon")
    folder = Path(root) / "sql"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def build_database(script: str, *, max_bytes: int = 64_000_000) -> Path:
    """A SQLite file with what a dump of CREATE and INSERT statements builds; cached by the text of the
    dump.

    The dump is untrusted: anything but tables, indexes, rows and the functions those need raises
    ``ValueError``, as does a database over ``max_bytes``. Bound its time by running it in a worker.

    """
    target = cache_folder() / f"{hashlib.sha256(script.encode()).hexdigest()[:32]}.sqlite"
    if target.exists():
        return target
    with (
        _replacing(target) as temporary,
        closing(sqlite3.connect(temporary, isolation_level=None)) as connection,
    ):
        page = connection.execute("PRAGMA page_size").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={max(max_bytes // page, 1)}")
        connection.execute("PRAGMA trusted_schema=0")
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000_000)
        connection.set_authorizer(_allow_building)
        try:
            connection.executescript(script)
        except sqlite3.Error as error:
            raise ValueError(f"the dump does not build a database: {error}") from error
    return target


# create index, table, view; insert, read, select, transaction, update (of the schema by those), reindex
_BUILDING = frozenset({1, 2, 8, 18, 20, 21, 22, 23, 27})


def _allow_building(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action == 31:  # a function: only what defaults and checks of plain tables use
        allowed = (second or "").lower() in {
            "abs",
            "length",
            "lower",
            "upper",
            "trim",
            "round",
            "coalesce",
            "replace",
        }
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
    if action == 9:  # dumps of tables with AUTOINCREMENT reset their counters
        return sqlite3.SQLITE_OK if first == "sqlite_sequence" else sqlite3.SQLITE_DENY
    if action == 19:  # dumps start with this one
        return sqlite3.SQLITE_OK if (first or "").lower() == "foreign_keys" else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _BUILDING else sqlite3.SQLITE_DENY


@contextmanager
def _replacing(target: Path) -> Iterator[str]:
    """A temporary path that becomes ``target`` in one step if the block succeeds."""
    handle, temporary = tempfile.mkstemp(dir=target.parent, suffix=".partial")
    os.close(handle)
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        for leftover in (temporary, temporary + "-journal"):
            if os.path.exists(leftover):
                os.unlink(leftover)


@dataclass(frozen=True)
class CopyRequest:
    """A perturbed copy to make: of which file, with which seed, and which literals to plant."""

    path: str
    seed: int
    probes: tuple[Probe, ...] = ()


def perturbed_copy(request: CopyRequest) -> str:
    """The path of a perturbed copy of a SQLite database, made once per content, seed and probes.

    Every table's rows are put in a random order, about one in five is dropped, and tables without a key get
    one in five doubled. With an odd seed the non-key number columns of each table move together to other
    rows, so that constant answers and lucky orders fail while joins, ranges of values and sums within a row
    stay as they were. ``probes`` plants literals (and the whole numbers beside them) in their columns, so
    that ``>`` and ``>=`` differ.

    Raises ``ValueError`` for a database over 64 MB.

    """
    size = os.path.getsize(request.path)
    if size > MAX_PERTURBED_BYTES:
        raise ValueError(f"database of {size} bytes, copies are made up to {MAX_PERTURBED_BYTES}")
    probes = request.probes if size <= MAX_PROBED_BYTES else ()
    mark = hashlib.sha256(repr((request.seed, probes)).encode()).hexdigest()[:16]
    target = cache_folder() / f"{database_hash(request.path)[:32]}-{mark}.sqlite"
    if not target.exists():
        _make_copy(request.path, target, random.Random(f"{target.name}"), shift=request.seed % 2 == 1, probes=probes)
        _prune(target.parent)
    return str(target)


def _make_copy(path: str, target: Path, rng: random.Random, *, shift: bool, probes: tuple[Probe, ...]) -> None:
    with (
        _replacing(target) as temporary,
        closing(sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as source,
        closing(sqlite3.connect(temporary, isolation_level=None)) as copy,
    ):
        source.backup(copy)
        copy.text_factory = _lossless
        for pragma in ("trusted_schema=0", "journal_mode=OFF", "synchronous=OFF", "foreign_keys=0"):
            copy.execute("PRAGMA " + pragma)
        copy.execute("BEGIN")
        _perturb(copy, rng, shift, probes)
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
    declared_keys: frozenset[str]
    unique: bool


def _perturb(copy: sqlite3.Connection, rng: random.Random, shift: bool, probes: tuple[Probe, ...]) -> None:
    for (trigger,) in copy.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
        copy.execute(f"DROP TRIGGER {_quoted(trigger)}")
    tables = _tables(copy)
    shared = Counter(column.lower() for table in tables for column in table.columns)
    for table in tables:
        rows = copy.execute(f"SELECT {', '.join(map(_quoted, table.columns))} FROM {_quoted(table.name)}").fetchall()
        keys = _key_columns(table, rows, shared)
        rows = _perturb_rows(rows, rng, may_repeat=not _identified(table, rows))
        free = [i for i, name in enumerate(table.columns) if table.numeric[i] and name.lower() not in keys]
        if shift:
            rows = _shift_columns(rows, free, rng)
        plantable = [i for i, name in enumerate(table.columns) if name.lower() not in keys]
        rows = _plant(rows, table, plantable, probes, rng)
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
        foreign = {str(row[3]).lower() for row in copy.execute(f"PRAGMA foreign_key_list({_quoted(name)})")}
        unique = any(row[2] for row in copy.execute(f"PRAGMA index_list({_quoted(name)})"))
        primary = {row[1].lower() for row in info if row[5]}
        numeric = tuple(any(kind in str(row[2]).upper() for kind in _NUMBER_TYPES) for row in info)
        columns = tuple(row[1] for row in info)
        found.append(_Table(name, columns, numeric, frozenset(foreign | primary), unique or bool(primary)))
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
    return set(table.declared_keys) | distinct | {c.lower() for c in table.columns if shared[c.lower()] > 1}


def _perturb_rows(rows: list[tuple[object, ...]], rng: random.Random, *, may_repeat: bool) -> list[tuple[object, ...]]:
    kept = [row for row in rows if rng.random() < _KEEP] or rows[:1]
    if may_repeat:
        kept += [row for row in kept if rng.random() < _TWICE]
    rng.shuffle(kept)
    return kept


def _shift_columns(rows: list[tuple[object, ...]], columns: list[int], rng: random.Random) -> list[tuple[object, ...]]:
    """Give each row the named columns of another row, all of them from the same one."""
    donors = list(range(len(rows)))
    rng.shuffle(donors)
    moving = set(columns)
    return [
        tuple(rows[donor][i] if i in moving else cell for i, cell in enumerate(row))
        for row, donor in zip(rows, donors, strict=True)
    ]


def _plant(
    rows: list[tuple[object, ...]], table: _Table, free: list[int], probes: tuple[Probe, ...], rng: random.Random
) -> list[tuple[object, ...]]:
    """Put the literals of each column and their neighbours into a few rows, at most half of them.

    All columns use the same rows, so that some meet several conditions at once and some miss one of them.
    """
    changed = [list(row) for row in rows]
    some = rng.sample(range(len(rows)), min(_PLANTED_ROWS, (len(rows) + 1) // 2))
    for index in free:
        values = [value for column, value in probes if column.lower() == table.columns[index].lower()]
        numbers = [value for value in values if not isinstance(value, str)]
        near = [*values, *(n + 1 for n in numbers), *(n - 1 for n in numbers)]
        for position, row in enumerate(some if near else ()):
            changed[row][index] = near[position % len(near)]
    return [tuple(row) for row in changed]


def _prune(folder: Path) -> None:
    """Keep the cache of copies under 2 GB by removing those that were made first."""
    if random.randrange(64):  # listing a full folder costs milliseconds
        return
    files = sorted((entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in os.scandir(folder))
    excess = sum(size for _, size, _ in files) - MAX_CACHE_BYTES
    for _, size, path in files:
        if excess <= 0:
            break
        Path(path).unlink(missing_ok=True)
        excess -= size
