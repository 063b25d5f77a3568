"""A content-addressed cache of scores in one SQLite file, shared by threads and processes.

```python
from guerdon.backends.cache import ScoreCache

with ScoreCache(None) as cache:  # in memory; give a path to keep it
    cache.put_many([("a1", (1.0, "", {"extracted": "42"}))])
    cache.get_many(["a1", "b2"])  # {"a1": (1.0, "", {"extracted": "42"})}
```
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from guerdon.backends._sqlite import checksum, connect, damaged, guarded, transaction

Entry = tuple[float | None, str, Mapping[str, Any] | None]
"""Value (``None``: unknown), reason (of an unknown), evidence."""

_KIND, _VERSION = 0x67646331, 1
_SCHEMA = """
CREATE TABLE scores (
  age INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value BLOB, reason TEXT NOT NULL, evidence BLOB,
  stored REAL NOT NULL, checksum BLOB NOT NULL)
"""
_ASK_AT_ONCE = 500
_PRUNE_EVERY = 10_000
_VALUE = struct.Struct("<d")


class ScoreCache:
    """Scores by key (node fingerprint x content hash): a value, or unknown with its reason, and the evidence.

    ``path``: the file, or ``None`` for memory only. Entries are dropped, the oldest first, beyond ``max_bytes`` of
    file or ``max_age`` seconds. Every entry carries a checksum: a damaged file raises `StoreError`, never gives a wrong
    value. Safe for many threads and processes at once.
    """

    def __init__(
        self, path: str | Path | None = None, *, max_bytes: int | None = 4 << 30, max_age: float | None = None
    ) -> None:
        self.path = ":memory:" if path is None else str(path)
        self._max_bytes, self._max_age = max_bytes, max_age
        self._lock = threading.Lock()
        self._unpruned = 0
        self._open()
        self.prune()

    def get_many(self, keys: Sequence[str]) -> dict[str, Entry]:
        """The entries that are there and not too old."""
        found: dict[str, Entry] = {}
        oldest = time.time() - self._max_age if self._max_age is not None else -math.inf
        with self._connection() as db:
            for start in range(0, len(keys), _ASK_AT_ONCE):
                some = list(keys[start : start + _ASK_AT_ONCE])
                marks = ",".join("?" * len(some))
                query = f"SELECT key, value, reason, evidence, stored, checksum FROM scores WHERE key IN ({marks})"
                for key, value, reason, evidence, stored, check in db.execute(query, some):
                    if check != _check(key, value, reason, evidence):
                        raise damaged(self.path, f"entry {key} does not match its checksum")
                    if stored >= oldest:
                        number = None if value is None else _VALUE.unpack(value)[0]
                        found[key] = (number, reason, None if evidence is None else _load(evidence))
        return found

    def put_many(self, entries: Iterable[tuple[str, Entry]]) -> None:
        """Keep entries, all or none; a key that is there gets the new entry.

        Raises ``ValueError`` for a value that is not finite and for an unknown without a reason.
        """
        now = time.time()
        rows = [_row(key, entry, now) for key, entry in entries]
        if not rows:
            return
        with self._connection() as db, transaction(db):
            db.executemany(
                "INSERT OR REPLACE INTO scores(key, value, reason, evidence, stored, checksum) VALUES (?,?,?,?,?,?)",
                rows,
            )
            self._unpruned += len(rows)
        if self._unpruned >= _PRUNE_EVERY:
            self.prune()

    def prune(self) -> int:
        """Drop what is too old or too much; gives the number of dropped entries."""
        self._unpruned = 0
        with self._connection() as db:
            with transaction(db):
                dropped = 0
                if self._max_age is not None:
                    limit = time.time() - self._max_age
                    dropped += db.execute("DELETE FROM scores WHERE stored < ?", [limit]).rowcount
                if self._max_bytes is not None and (excess := self._used_bytes(db) / self._max_bytes) > 1.0:
                    dropped += self._drop_oldest(db, 1.0 - 0.9 / excess)
            if dropped:
                db.executescript("PRAGMA incremental_vacuum")  # `execute` would free one page only
        return dropped

    def __len__(self) -> int:
        with self._connection() as db:
            return int(db.execute("SELECT count(*) FROM scores").fetchone()[0])

    def close(self) -> None:
        """Close the file; may be called twice."""
        with self._lock:
            if self._pid == os.getpid():
                self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        self._pid = os.getpid()
        self._db = connect(self.path, kind=_KIND, version=_VERSION, schema=_SCHEMA)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if self._pid != os.getpid() and self.path != ":memory:":
            # A connection must not be used, nor closed, in a forked child: keep the parent's, open one of our own.
            self._parents = self._db
            self._lock = threading.Lock()
            self._open()
        with self._lock, guarded(self.path):
            yield self._db

    @staticmethod
    def _used_bytes(db: sqlite3.Connection) -> int:
        size, pages, free = (
            db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
        )
        return int(size * (pages - free))

    @staticmethod
    def _drop_oldest(db: sqlite3.Connection, share: float) -> int:
        count = db.execute("SELECT count(*) FROM scores").fetchone()[0]
        last = db.execute("SELECT age FROM scores ORDER BY age LIMIT 1 OFFSET ?", [min(count - 1, int(count * share))])
        return db.execute("DELETE FROM scores WHERE age <= ?", [last.fetchone()[0]]).rowcount if count else 0


def _row(key: str, entry: Entry, now: float) -> tuple[str, bytes | None, str, bytes | None, float, bytes]:
    value, reason, evidence = entry
    if value is None and not reason:
        raise ValueError(f"entry {key}: an unknown score needs a reason")
    if value is not None and not math.isfinite(value):
        raise ValueError(f"entry {key}: {value} is not a finite score")
    number = None if value is None else _VALUE.pack(value)  # its very bits: SQLite's own numbers lose the sign of -0.0
    reason = reason.encode("utf-8", "replace").decode()
    data = None if evidence is None else _dump(evidence)
    return key, number, reason, data, now, _check(key, number, reason, data)


def _dump(evidence: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(evidence, default=str, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
    except TypeError:  # an integer of more than 64 bits, a lone surrogate: marked by a space, read back by `json`
        return b" " + json.dumps(evidence, default=str).encode()


def _load(data: bytes) -> Any:
    return json.loads(data) if data.startswith(b" ") else orjson.loads(data)


def _check(key: str, value: bytes | None, reason: str, evidence: bytes | None) -> bytes:
    try:
        return checksum(key.encode(), value or b"", reason.encode(), b"-" if evidence is None else b"+" + evidence)
    except (TypeError, AttributeError):  # a damaged file may hold other types
        return b""
