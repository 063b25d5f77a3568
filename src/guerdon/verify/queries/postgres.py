"""PostgreSQL: a fresh connection per statement, prepared so that it can only be one, in a read-only
transaction."""

from __future__ import annotations

import threading
import time
from functools import partial
from itertools import chain
from typing import Any

from guerdon.core.errors import MissingExtraError
from guerdon.verify.queries.run import Job, QueryResult, collect, execute

try:
    import psycopg
except ImportError as error:
    raise MissingExtraError("psycopg, which the PostgreSQL dialect needs,", "postgres") from error

_GRACE = 0.05


def execute_postgres(job: Job) -> QueryResult:
    """`execute`, from a module that has loaded psycopg, so that no statement's deadline pays for that."""
    return execute(job)


def run_postgres(job: Job, deadline: float) -> QueryResult:
    """Run a statement on the server that the DSN ``job.database`` names.

    Use a role that may only SELECT: the read-only transaction and the time-out are settings that a function
    call could change, the role's rights are not. The time-out is set on the connection, which serves this one
    statement, and a watchdog cancels the statement from outside at the deadline.
    """
    try:
        connection = psycopg.connect(job.database, connect_timeout=5, options=_options(job), autocommit=False)
    except (psycopg.Error, OSError) as error:
        return QueryResult("unavailable", f"connection: {error}")
    left = deadline - time.monotonic()
    watchdog = threading.Timer(max(left + _GRACE, 0.001), connection.cancel_safe, kwargs={"timeout": 1.0})
    watchdog.daemon = True
    watchdog.start()
    try:
        return _run(connection, job)
    except (psycopg.Error, ValueError, RecursionError, MemoryError) as error:
        return _failure(error, job)
    finally:
        watchdog.cancel()
        connection.close()


def _options(job: Job) -> str:
    settings = {
        "statement_timeout": max(int(job.limits.seconds * 1000), 1),
        "default_transaction_read_only": "on",
        "client_connection_check_interval": 100,  # a killed worker ends its statement
        "idle_in_transaction_session_timeout": 10_000,
    }
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def _run(connection: psycopg.Connection[Any], job: Job) -> QueryResult:
    """Read row by row over the extended protocol, which takes one statement only."""
    with connection.cursor() as cursor:
        rows = cursor.stream(job.sql)
        first = next(rows, None)
        columns = len(cursor.description or ())
        return collect(partial(next, chain([] if first is None else [first], rows), None), columns, job)


def _failure(error: Exception, job: Job) -> QueryResult:
    text = str(error)
    if isinstance(error, psycopg.errors.QueryCanceled):
        return QueryResult("timeout", f"timed out after {job.limits.seconds} s")
    if isinstance(error, (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.InsufficientPrivilege)):
        return QueryResult("refused", "refused: " + text[:300])
    if isinstance(error, psycopg.errors.SyntaxError):
        return QueryResult("syntax", text[:300])
    if isinstance(error, psycopg.OperationalError) and not isinstance(error, psycopg.errors.ProgramLimitExceeded):
        return QueryResult("unavailable", f"connection: {text[:300]}")
    return QueryResult("error", text[:300])
