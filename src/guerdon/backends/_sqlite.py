"""SQLite files of our own: opened with a kind and a version, damage and misuse told apart, checksums per record."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from guerdon.core.errors import StoreError

_DAMAGED = "is damaged ({}); remove it to start afresh"


def checksum(*parts: bytes) -> bytes:
    """Eight bytes that tell a damaged record from a sound one (SQLite has no checksums of its own)."""
    state = hashlib.blake2b(digest_size=8)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.digest()


def damaged(path: str, why: str) -> StoreError:
    """The error for a record that does not match its checksum."""
    return StoreError(f"{path} {_DAMAGED.format(why)}")


@contextlib.contextmanager
def guarded(path: str) -> Iterator[None]:
    """Turn SQLite's errors into `StoreError` that says what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise StoreError(f"{path} is in use by another process") from error
        raise StoreError(f"{path} can't be used: {error}") from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: an error text that quotes damaged bytes
        raise damaged(path, str(error)) from error


def connect(path: str, *, kind: int, version: int, schema: str, alone: bool = False) -> sqlite3.Connection:
    """Open or create a file of one ``kind`` (SQLite's application id) and ``version``.

    ``alone``: keep other processes out while it is open. Raises `StoreError` for another kind or version.
    """
    with guarded(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        patience = 0.5 if alone else 30.0
        db = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
        try:
            if alone:
                db.execute("PRAGMA locking_mode=EXCLUSIVE")
            _prepare(db, path, kind, version, schema, patience)
        except BaseException:
            db.close()
            raise
    return db


def _prepare(db: sqlite3.Connection, path: str, kind: int, version: int, schema: str, patience: float) -> None:
    db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only has an effect on a file that is new
    _use_write_ahead_log(db, patience)
    db.execute("PRAGMA synchronous=NORMAL")
    with transaction(db):
        empty = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
        found_kind = db.execute("PRAGMA application_id").fetchone()[0]
        found_version = db.execute("PRAGMA user_version").fetchone()[0]
        if empty and found_kind == 0:
            for statement in schema.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id={kind}")
            db.execute(f"PRAGMA user_version={version}")
        elif found_kind != kind:
            raise StoreError(f"{path} is a database of another kind; choose another file")
        elif found_version != version:
            raise StoreError(
                f"{path} has format version {found_version}, this Guerdon writes version {version};"
                " remove the file or use the Guerdon that made it"
            )


def _use_write_ahead_log(db: sqlite3.Connection, patience: float) -> None:
    """Processes that open a new file together meet here, and SQLite's own timeout does not cover this change."""
    end = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.02)


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; takes the write lock at once, so that two writers wait for each other instead of failing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back on its own
            db.execute("ROLLBACK")
        raise
