"""Run one guarded statement on one database inside hard limits: the engine protocol and what comes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from guerdon.verify.queries.statement import Dialect, guard

State = Literal["ok", "refused", "syntax", "error", "timeout", "rows", "bytes", "memory", "unavailable"]
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Limits:
    """What one execution may use: wall-clock seconds, rows and bytes of result, bytes of engine memory.

    A result over ``rows`` or ``bytes`` is a failed execution, never a shortened one. ``clock`` is the
    instant that stands for *now* in SQLite (None: statements that read the clock are refused).
    ``schema_tables`` lets statements read the catalogue of tables.

    """

    seconds: float = 1.0
    rows: int = 20_000
    bytes: int = 4_000_000
    memory: int = 256_000_000
    value_bytes: int = 1_000_000
    clock: str | None = "2024-01-01 00:00:00"
    schema_tables: bool = False


@dataclass(frozen=True)
class QueryResult:
    """What an execution gave: ``state`` is ``ok`` with ``rows``, or says why there are none (``detail``)."""

    state: State
    detail: str = ""
    rows: tuple[Row, ...] = ()
    columns: int = 0
    seconds: float = 0.0
    reads: bool = True

    @property
    def ok(self) -> bool:
        """Whether there is a complete result."""
        return self.state == "ok"


@dataclass(frozen=True)
class Job:
    """One statement to run on one database; ``until`` is for golds: stop after that many rows and their
    ties.

    With ``until``, the last column is a rank, and reading goes on past ``until`` rows only while it stays
    equal.

    """

    sql: str
    database: str
    dialect: Dialect = "sqlite"
    limits: Limits = field(default_factory=Limits)
    until: int | None = None


class Engine(Protocol):
    """Runs one guarded statement until ``deadline`` (monotonic seconds); a failure is a state, never an
    exception."""

    def __call__(self, job: Job, deadline: float) -> QueryResult: ...


def execute(job: Job) -> QueryResult:
    """Guard and run one job in this process; give it to a worker that can be killed at the deadline.

    The guard's refusals come back as state ``refused``. A statement that only sqlglot cannot parse is still
    run on SQLite, whose own parser and authorizer then decide, and is state ``syntax`` elsewhere.

    """
    started = time.monotonic()
    guarded = guard(job.sql, job.dialect)
    if guarded.refused and not (guarded.syntax and job.dialect == "sqlite"):
        return QueryResult("syntax" if guarded.syntax else "refused", guarded.refused)
    cleaned = job if guarded.sql == job.sql else replace(job, sql=guarded.sql)
    result = _engine(job.dialect)(cleaned, started + job.limits.seconds)
    return replace(result, reads=guarded.reads, seconds=time.monotonic() - started)


def execute_unguarded(job: Job) -> QueryResult:
    """Run a statement of our own making, one derived from a statement that the guard let through."""
    return _engine(job.dialect)(job, time.monotonic() + job.limits.seconds)


def _engine(dialect: Dialect) -> Engine:
    if dialect == "sqlite":
        from guerdon.verify.queries.lite import run_sqlite

        return run_sqlite
    if dialect == "duckdb":
        from guerdon.verify.queries.duck import run_duckdb

        return run_duckdb
    if dialect == "postgres":
        from guerdon.verify.queries.postgres import run_postgres

        return run_postgres
    raise ValueError(f"unknown SQL dialect {dialect!r}: use 'sqlite', 'duckdb' or 'postgres'")


def collect(fetch: Callable[[], Row | None], columns: int, job: Job) -> QueryResult:
    """Read rows one by one within the limits of the job."""
    rows: list[Row] = []
    size = 0
    limits = job.limits
    while (row := fetch()) is not None:
        if job.until is not None and len(rows) >= job.until and (not rows or row[-1] != rows[-1][-1]):
            break
        if len(rows) >= limits.rows:
            return QueryResult("rows", f"more than {limits.rows} rows", columns=columns)
        size += 8 * columns + sum(len(cell) for cell in row if isinstance(cell, (str, bytes, list, dict)))
        if size > limits.bytes:
            return QueryResult("bytes", f"result over {limits.bytes} bytes", columns=columns)
        rows.append(row)
    return QueryResult("ok", rows=tuple(rows), columns=columns)
