"""What the SQL worker processes run, and their pool."""

from __future__ import annotations

import threading
from collections.abc import Callable

from guerdon.core.workers import Outcome, WorkerPool
from guerdon.verify.queries.run import Job, QueryResult, execute
from guerdon.verify.queries.statement import Dialect

KILL_AFTER = 0.1
"""Seconds past a job's own limit at which its worker is killed; the engines' own deadlines come first."""

WORKER_MEMORY = 1_000_000_000
"""Address space, bytes, that one query may take on top of a bare worker."""


def execute_all(jobs: list[Job], pool: WorkerPool | None = None) -> list[QueryResult]:
    """Run jobs of one dialect in killable workers; results in order.

    A job that overran its limit in C code is killed and reads ``timeout``. A worker that died twice on the
    same job, and anything else that is no fault of the statement, reads ``unavailable``.

    """
    if not jobs:
        return []
    seconds = max(job.limits.seconds for job in jobs)
    outcomes = (pool or sql_pool()).map(_entry(jobs[0].dialect), jobs, timeout=seconds + KILL_AFTER)
    return [
        outcome.value if outcome.kind == "ok" else failure(job, outcome)
        for job, outcome in zip(jobs, outcomes, strict=True)
    ]


def _entry(dialect: Dialect) -> Callable[[Job], QueryResult]:
    """The function to send to workers: its module loads what the dialect needs before any deadline starts."""
    if dialect == "duckdb":
        from guerdon.verify.queries.duck import execute_duckdb

        return execute_duckdb
    if dialect == "postgres":
        from guerdon.verify.queries.postgres import execute_postgres

        return execute_postgres
    return execute


def failure(job: Job, outcome: Outcome) -> QueryResult:
    """What an outcome that is not ``ok`` says about its job."""
    if outcome.kind == "timeout":
        detail = f"timed out after {job.limits.seconds} s inside one function; the worker was killed"
        return QueryResult("timeout", detail, seconds=outcome.seconds)
    if "MemoryError" in outcome.error:
        return QueryResult("memory", "over the worker's memory", seconds=outcome.seconds)
    return QueryResult("unavailable", f"worker {outcome.kind}: {outcome.error[:300]}", seconds=outcome.seconds)


_pool: WorkerPool | None = None
_lock = threading.Lock()


def sql_pool() -> WorkerPool:
    """The worker pool of SQL rewards in this process: started at first use, one worker per core.

    Raises `MissingExtraError` where no parser is installed: here, not in each worker.
    """
    from guerdon.verify.queries import warm

    global _pool
    with _lock:
        if _pool is None:
            _pool = WorkerPool(preload=(warm.__name__,), memory_bytes=WORKER_MEMORY, name="sql")
        return _pool
