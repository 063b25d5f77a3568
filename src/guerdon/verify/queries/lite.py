"""SQLite: read-only connections with an authorizer, a progress deadline and length limits."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

from guerdon.verify.queries.run import Job, Limits, QueryResult, collect

MAX_CONNECTIONS = 16
_PROGRESS_EVERY = 1000

_SELECT, _READ, _FUNCTION, _RECURSIVE = 21, 20, 31, 33
_ACTION_NAMES = """?
CREATE INDEX,CREATE TABLE,CREATE TEMP INDEX,CREATE TEMP TABLE,CREATE TEMP TRIGGER,CREATE TEMP VIEW
CREATE TRIGGER
CREATE VIEW,DELETE,DROP INDEX,DROP TABLE,DROP TEMP INDEX,DROP TEMP TABLE,DROP TEMP TRIGGER,DROP TEMP VIEW
DROP TRIGGER,DROP VIEW,INSERT,PRAGMA,READ,SELECT,TRANSACTION,UPDATE,ATTACH,DETACH,ALTER TABLE,REINDEX,ANALYZE
CREATE VIRTUAL TABLE,DROP VIRTUAL TABLE,FUNCTION,SAVEPOINT"""
_ACTIONS = dict(enumerate(_ACTION_NAMES.replace("\n", ",").split(",")))  # by the authorizer's action codes
# Deterministic, bounded, and without a way out of the statement. Absent on purpose: printf, format, zeroblob
# (one call can allocate the length limit many times over), random, load_extension, last_insert_rowid.
_FUNCTION_NAMES = """
    abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh
    count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp
    first_value floor glob group_concat hex ifnull iif instr json json_array json_array_length
    json_extract json_group_array json_group_object json_insert json_object json_patch json_quote
    json_remove json_replace json_set json_type json_valid julianday lag last_value lead length like
    likelihood likely ln log log10 log2 lower ltrim max min mod nth_value ntile nullif octet_length
    percent_rank pi pow power quote radians rank replace round row_number rtrim sign sin sinh soundex
    sqrt strftime string_agg substr substring subtype sum tan tanh time timediff total trim trunc typeof
    unicode unixepoch unlikely upper -> ->>
"""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_CLOCK = re.compile(
    r"\bnow\b|\bcurrent_(?:date|time|timestamp)\b|\blocaltime\b|\b(?:date|time|datetime|julianday|unixepoch)\s*\(\s*\)"
    r"|\bstrftime\s*\(\s*'[^']*'\s*\)",
    re.I,
)
_CLOCK_FUNCTIONS = ("date", "time", "datetime", "julianday", "unixepoch", "strftime")
_HIDDEN_TABLES = ("sqlite_", "pragma_", "dbstat", "bytecode", "tables_used")


@dataclass
class _Open:
    """A connection with the state its callbacks read."""

    connection: sqlite3.Connection
    deadline: float = 0.0
    expired: bool = False
    denied: str = ""
    schema_tables: bool = False
    stamp: tuple[int, ...] = field(default_factory=tuple)

    def progress(self) -> int:
        self.expired = time.monotonic() > self.deadline
        return int(self.expired)

    def authorize(self, action: int, first: str | None, second: str | None, _db: str | None, _by: str | None) -> int:
        if action in (_SELECT, _RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == _READ:
            if self.schema_tables or not (first or "").lower().startswith(_HIDDEN_TABLES):
                return sqlite3.SQLITE_OK
            self.denied = f"table {first} is not readable"
        elif action == _FUNCTION:
            if (second or "").lower() in _FUNCTIONS:
                return sqlite3.SQLITE_OK
            self.denied = f"function {second}() is not allowed"
        elif first == "sqlite_master" and action in (18, 23):  # how a table-valued function declares itself
            self.denied = "table-valued functions other than json_each and json_tree are not allowed"
        else:
            self.denied = f"{_ACTIONS.get(action, f'action {action}')} is not read-only"
        return sqlite3.SQLITE_DENY


_connections: OrderedDict[tuple[str, str | None], _Open] = OrderedDict()


def run_sqlite(job: Job, deadline: float) -> QueryResult:
    """Run a statement on a SQLite file opened read-only and immutable.

    Statements past the deadline are interrupted between opcodes; one that hangs inside a single function is
    bounded by the value-length limit and by whoever owns this process. Connections are kept per file and
    reopened when the file changes.

    """
    clock = _CLOCK.search(job.sql)
    if clock and job.limits.clock is None:
        return QueryResult("refused", f"refused: {clock.group(0).strip()} reads the clock")
    try:
        opened = _connection(job.database, job.limits, job.limits.clock if clock else None)
    except (OSError, sqlite3.Error, ValueError) as error:
        return QueryResult("unavailable", f"database {job.database}: {error}")
    opened.deadline, opened.expired, opened.denied = deadline, False, ""
    opened.schema_tables = job.limits.schema_tables
    cursor = opened.connection.cursor()
    try:
        cursor.execute(job.sql)
        columns = len(cursor.description or ())
        return collect(cursor.fetchone, columns, job)
    except MemoryError:
        return QueryResult("memory", f"over {job.limits.memory} bytes of memory")
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        return _failure(error, opened, job.limits)
    finally:
        cursor.close()


def _failure(error: Exception, opened: _Open, limits: Limits) -> QueryResult:
    text = str(error)
    if opened.denied:
        return QueryResult("refused", "refused: " + opened.denied)
    if opened.expired or "interrupted" in text:
        return QueryResult("timeout", f"timed out after {limits.seconds} s")
    if "one statement at a time" in text:
        return QueryResult("refused", "refused: more than one statement, exactly one is allowed")
    if "out of memory" in text:
        return QueryResult("memory", f"over {limits.memory} bytes of memory")
    return QueryResult("syntax" if "syntax error" in text else "error", text[:300])


def _connection(path: str, limits: Limits, clock: str | None) -> _Open:
    stat = os.stat(path)
    stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns, limits.memory, limits.value_bytes)
    key = (path, clock)
    known = _connections.get(key)
    if known is not None and known.stamp == stamp:
        _connections.move_to_end(key)
        return known
    if known is not None:
        del _connections[key]
        known.connection.close()
    opened = _open(path, limits, clock)
    opened.stamp = stamp
    _connections[key] = opened
    if len(_connections) > MAX_CONNECTIONS:
        _connections.popitem(last=False)[1].connection.close()
    return opened


def _open(path: str, limits: Limits, clock: str | None) -> _Open:
    wal = path + "-wal"
    if os.path.exists(wal) and os.path.getsize(wal):
        raise ValueError("it has an unfinished write-ahead log (-wal file); checkpoint it first")
    connection = sqlite3.connect(f"file:{quote(path)}?mode=ro&immutable=1", uri=True, isolation_level=None)
    opened = _Open(connection)
    for pragma in ("query_only=1", "trusted_schema=0", "temp_store=2", f"hard_heap_limit={limits.memory}"):
        connection.execute("PRAGMA " + pragma)
    connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')").fetchall()  # declared before the authorizer
    connection.text_factory = _decode
    for category, limit in _length_limits(limits.value_bytes):
        connection.setlimit(category, limit)
    if clock is not None:
        _freeze_clock(connection, clock)
    connection.set_progress_handler(opened.progress, _PROGRESS_EVERY)
    connection.set_authorizer(opened.authorize)
    return opened


def _length_limits(value_bytes: int) -> list[tuple[int, int]]:
    return [
        (sqlite3.SQLITE_LIMIT_LENGTH, value_bytes),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 200),
        (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 100),
        (sqlite3.SQLITE_LIMIT_VDBE_OP, 100_000),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 0),
        (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
    ]


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:  # real databases hold text that is not UTF-8; distinct bytes stay distinct
        return raw.decode(errors="backslashreplace")


def _freeze_clock(connection: sqlite3.Connection, clock: str) -> None:
    """Make *now* mean ``clock`` in every date function, by asking a second connection with it filled in."""
    other = sqlite3.connect(":memory:", isolation_level=None)

    def frozen(name: str, *args: Any) -> Any:
        given = list(args)
        first = 1 if name == "strftime" else 0
        if len(given) <= first:
            given.append(clock)
        given = [clock if isinstance(arg, str) and arg.strip().lower() == "now" else arg for arg in given]
        return other.execute(f"SELECT {name}({','.join('?' * len(given))})", given).fetchone()[0]

    for name in _CLOCK_FUNCTIONS:
        connection.create_function(name, -1, partial(frozen, name), deterministic=True)
    for name in ("date", "time", "datetime"):
        alias = {"date": "current_date", "time": "current_time", "datetime": "current_timestamp"}[name]
        connection.create_function(alias, 0, partial(frozen, name), deterministic=True)
