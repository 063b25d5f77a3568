"""SQLite databases as inputs: identity by content, built from a dump, kept in a cache folder."""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path

MAX_CACHE_BYTES = 2_000_000_000


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
        replacing(target) as temporary,
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
def replacing(target: Path) -> Iterator[str]:
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


def prune(folder: Path) -> None:
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
