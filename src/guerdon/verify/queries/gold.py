"""Gold results: run by us, cached by database content and statement, never shown to a candidate."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from guerdon.core.workers import WorkerPool
from guerdon.verify.queries.compare import Expected, compare_rows
from guerdon.verify.queries.databases import database_hash
from guerdon.verify.queries.ordering import Ranking, expected_result, ranking
from guerdon.verify.queries.perturb import Probe
from guerdon.verify.queries.run import Job, QueryResult, execute, execute_unguarded
from guerdon.verify.queries.statement import Dialect, guard, parse
from guerdon.verify.queries.worker import KILL_AFTER, failure, sql_pool

if TYPE_CHECKING:
    from sqlglot import exp

MAX_CACHED_CELLS = 2_000_000
_RANKING_SECONDS = 5.0


@dataclass(frozen=True)
class Gold:
    """A gold statement's result on one database, or the ``problem`` that leaves the item unknown.

    ``ordered`` says that the statement has a top-level ORDER BY; ``ties`` that the rows tied under it are
    known.

    """

    expected: Expected | None
    problem: str = ""
    ordered: bool = False
    ties: bool = True
    reads: bool = True


_Key = tuple[str, Job]


class GoldCache:
    """Gold results by (database content, job), bounded by the number of cells kept; safe between threads."""

    def __init__(self, max_cells: int = MAX_CACHED_CELLS) -> None:
        self._kept: OrderedDict[_Key, Gold] = OrderedDict()
        self._cells, self._max_cells = 0, max_cells
        self._lock = threading.Lock()

    def results(self, jobs: Sequence[Job], pool: WorkerPool | None = None) -> dict[Job, Gold]:
        """The gold of each job; those not cached are run, all at once."""
        keys = {job: _key(job) for job in jobs}
        with self._lock:
            found = {job: self._kept[key] for job, key in keys.items() if key in self._kept}
        fresh = _run_golds([job for job in keys if job not in found], pool)
        with self._lock:
            for job, gold in fresh.items():
                self._keep(keys[job], gold)
        return found | fresh

    def _keep(self, key: _Key, gold: Gold) -> None:
        if gold.expected is None:  # a failure may be of the moment (a timeout on a busy machine): ask again
            return
        self._kept[key] = gold
        self._cells += _cells(gold)
        while self._cells > self._max_cells and len(self._kept) > 1:
            self._cells -= _cells(self._kept.popitem(last=False)[1])


def _cells(gold: Gold) -> int:
    return 1 + (gold.expected.columns * len(gold.expected.pool) if gold.expected else 0)


def _key(job: Job) -> _Key:
    """Content hash for files, so that a copy shares its golds; the name for a server's database."""
    if job.dialect == "postgres":
        return (job.database, job)
    try:
        return (database_hash(job.database), replace(job, database=""))
    except OSError:
        return (job.database, job)


def _run_golds(jobs: Sequence[Job], pool: WorkerPool | None) -> dict[Job, Gold]:
    if not jobs:
        return {}
    seconds = max(job.limits.seconds for job in jobs) + _RANKING_SECONDS
    outcomes = (pool or sql_pool()).map(run_gold, jobs, timeout=seconds + KILL_AFTER)
    return {
        job: outcome.value if outcome.kind == "ok" else Gold(None, f"gold failed: {failure(job, outcome).detail}")
        for job, outcome in zip(jobs, outcomes, strict=True)
    }


def run_gold(job: Job) -> Gold:
    """Run a gold statement and, if it is ordered, learn its ties; for a worker, as it parses and executes."""
    result = execute(job)
    if not result.ok:
        return Gold(None, f"gold failed: {result.detail}")
    whole = Expected(((len(result.rows), result.rows),) if result.rows else (), result.columns)
    plan = ranking(job.sql, job.dialect, result.columns)
    if plan is None:
        return Gold(whole, reads=result.reads)
    blocks = _ranked(job, result, plan)
    if blocks is not None:
        return Gold(blocks, ordered=True, reads=result.reads)
    if len(result.rows) <= 1:
        return Gold(replace(whole, ordered=True), ordered=True, reads=result.reads)
    in_turn = Expected(tuple((1, (row,)) for row in result.rows), result.columns, ordered=True)
    return Gold(in_turn, ordered=True, ties=False, reads=result.reads)


def _ranked(job: Job, result: QueryResult, plan: Ranking) -> Expected | None:
    """The result as blocks of tied rows, by the first form of the ranked query that runs and agrees with it."""
    limits = replace(job.limits, seconds=_RANKING_SECONDS / 2)
    for query in plan.queries():
        answer = execute_unguarded(replace(job, sql=query, until=plan.until, limits=limits))
        blocks = expected_result(result.rows, result.columns, answer.rows, plan) if answer.ok else None
        if blocks is not None and compare_rows(result.rows, blocks, columns=result.columns) is None:
            return blocks
    return None


def probes(sql: str, dialect: Dialect) -> tuple[Probe, ...]:
    """The literals that a statement compares columns with: what perturbed copies should contain.

    >>> probes("SELECT name FROM users WHERE age > 30 AND city = 'Bern'", "sqlite")
    (('age', 30), ('city', 'Bern'))
    """
    from sqlglot import exp

    if guard(sql, dialect).refused:
        return ()
    tree = parse(sql, dialect)
    found: dict[Probe, None] = {}
    for node in tree.find_all(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In):
        columns = [side for side in (node.this, node.args.get("expression")) if isinstance(side, exp.Column)]
        for literal in node.find_all(exp.Literal):
            if columns:
                found[(columns[0].name.lower(), _value(literal))] = None
    return tuple(sorted(found, key=repr))[:32]


def _value(literal: exp.Literal) -> str | int | float:
    if literal.is_string:
        return str(literal.name)
    try:
        return int(literal.name)
    except ValueError:
        return float(literal.name)
