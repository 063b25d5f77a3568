"""DuckDB: read-only, no access to files or network, configuration locked."""

from __future__ import annotations

import threading
import time

from guerdon.core.errors import MissingExtraError
from guerdon.verify.queries.run import Job, QueryResult, collect, execute

try:
    import duckdb
except ImportError as error:
    raise MissingExtraError("duckdb, which the DuckDB dialect needs,", "sql") from error


def execute_duckdb(job: Job) -> QueryResult:
    """`execute`, from a module that has loaded DuckDB, so that no statement's deadline pays for that."""
    return execute(job)


def run_duckdb(job: Job, deadline: float) -> QueryResult:
    """Run a statement on a DuckDB file with DuckDB's own parser agreeing that it is one SELECT.

    A timer interrupts it at the deadline; a single function that does not listen is for the owner of this
    process to kill. Statements that read the clock or draw random numbers are refused by the guard.

    """
    try:
        connection = _connect(job)
    except duckdb.Error as error:
        return QueryResult("unavailable", f"database {job.database}: {error}")
    timer = threading.Timer(max(deadline - time.monotonic(), 0.001), connection.interrupt)
    timer.daemon = True
    try:
        refused = _second_opinion(connection, job.sql)
        if refused:
            return QueryResult("refused", f"refused: {refused}")
        timer.start()
        cursor = connection.execute(job.sql)
        return collect(cursor.fetchone, len(cursor.description or ()), job)
    except (duckdb.Error, RuntimeError, ValueError, MemoryError) as error:
        return _failure(error, deadline, job)
    finally:
        timer.cancel()
        connection.close()


def _connect(job: Job) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(
        job.database,
        read_only=True,
        config={
            "enable_external_access": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": f"{max(job.limits.memory // 1_000_000, 16)}MB",
            "threads": "1",
            "max_temp_directory_size": "0KB",
            "lock_configuration": "true",
        },
    )


def _second_opinion(connection: duckdb.DuckDBPyConnection, sql: str) -> str | None:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        return f"{len(statements)} statements, exactly one is allowed"
    kind = statements[0].type
    return None if kind == duckdb.StatementType.SELECT else f"{kind} is not a SELECT statement"


def _failure(error: Exception, deadline: float, job: Job) -> QueryResult:
    text = str(error)
    if time.monotonic() >= deadline or "INTERRUPT" in text.upper():
        return QueryResult("timeout", f"timed out after {job.limits.seconds} s")
    if "Out of Memory" in text or isinstance(error, MemoryError):
        return QueryResult("memory", f"over {job.limits.memory} bytes of memory")
    if "Permission Error" in text:
        return QueryResult("refused", "refused: " + text[:300])
    return QueryResult("syntax" if "Parser Error" in text else "error", text[:300])
