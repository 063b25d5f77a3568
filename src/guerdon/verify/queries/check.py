"""Grade SQL by what it returns: extract, guard, run on the database and on perturbed copies, compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any, Literal

from guerdon.core.workers import WorkerPool
from guerdon.verify.queries.compare import Difference, Expected, Row, Tolerance, compare_rows, match_rows
from guerdon.verify.queries.gold import Gold, GoldCache, probes
from guerdon.verify.queries.perturb import CopyRequest, perturbed_copy
from guerdon.verify.queries.run import Job, Limits, QueryResult
from guerdon.verify.queries.statement import Dialect, Extraction, extract_sql
from guerdon.verify.queries.worker import execute_all, sql_pool

_COPY_SECONDS = 60.0


@dataclass(frozen=True)
class Verdict:
    """Whether a prediction is right: True, False, or None where nothing can be said; why; what was seen."""

    passed: bool | None
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SqlTask:
    """One prediction to grade against a gold statement on a database, and on ``suite``, further databases
    of its kind."""

    prediction: str
    gold: str
    database: str
    suite: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grading:
    """How to grade.

    ``ordered``: ``"auto"`` asks for the gold's order if the gold has a top-level ORDER BY; True, always;
    False, never. ``copies``: how many perturbed copies of a SQLite database a right-looking answer must
    also hold on. ``empty``: what an answer is worth when no database gives the gold a result with anything
    in it. ``permute_columns``: columns may come in another order. ``bare``: the prediction is SQL, not a
    chat completion.

    """

    dialect: Dialect = "sqlite"
    limits: Limits = field(default_factory=Limits)
    ordered: bool | Literal["auto"] = "auto"
    copies: int = 2
    empty: Literal["unknown", "fail", "pass"] = "unknown"
    permute_columns: bool = False
    bare: bool = False
    tolerance: Tolerance = field(default_factory=Tolerance)


def check_sql(
    prediction: str,
    *,
    gold: str,
    database: str | PathLike[str],
    dialect: Dialect = "sqlite",
    seconds: float = 1.0,
    ordered: bool | Literal["auto"] = "auto",
    copies: int = 2,
    suite: Sequence[str | PathLike[str]] = (),
    empty: Literal["unknown", "fail", "pass"] = "unknown",
    permute_columns: bool = False,
    bare: bool = False,
    limits: Limits | None = None,
    pool: WorkerPool | None = None,
) -> Verdict:
    """Whether the SQL in a completion returns what the gold statement returns.

    Rows are compared as multisets, in order (up to ties) where the gold has a top-level ORDER BY; an answer
    that is right on ``database`` must also be right on ``suite`` and on ``copies`` seeded perturbations of
    it (SQLite). The statement runs read-only in a worker process that is killed ``seconds`` + 0.1 s after
    it starts.

    ``passed`` is False for a wrong, refused, failing, over-long or over-large answer and for no SQL at all;
    None when the gold itself fails, its result is empty or all NULL everywhere (``empty``), the answer
    takes another number of rows of a tie that the gold's LIMIT cuts, or the worker died. ``database`` is a
    file, or a DSN for PostgreSQL. Raises ``ValueError`` for an unknown dialect and ``FileNotFoundError``
    for a database that isn't there.

    ```python
    answer = "```sql\\nSELECT COUNT(*) FROM users\\n```"
    verdict = check_sql(answer, gold="SELECT COUNT(id) FROM users", database="u.db")
    verdict.passed, verdict.reason
    ```

    """
    grading = Grading(
        dialect=dialect,
        limits=replace(limits or Limits(), seconds=seconds),
        ordered=ordered,
        copies=copies,
        empty=empty,
        permute_columns=permute_columns,
        bare=bare,
    )
    task = SqlTask(prediction, gold, fspath(database), tuple(fspath(name) for name in suite))
    return check_sql_many([task], grading=grading, pool=pool)[0]


def check_sql_many(
    tasks: Sequence[SqlTask], *, grading: Grading | None = None, pool: WorkerPool | None = None
) -> list[Verdict]:
    """`check_sql` for many predictions: each distinct statement runs once per database, all at the same
    time."""
    return _Batch(tasks, grading or Grading(), pool or sql_pool()).verdicts()


_golds = GoldCache()


@dataclass
class _Finding:
    """What one database says about one task: True, False, or None for nothing, and why."""

    equal: bool | None
    reason: str
    trivial: bool = False
    difference: Difference | None = None


class _Batch:
    """One call of `check_sql_many`: first every task on its own database, then the right-looking ones on
    the rest."""

    def __init__(self, tasks: Sequence[SqlTask], grading: Grading, pool: WorkerPool) -> None:
        _check_databases(tasks, grading)
        self.tasks, self.grading, self.pool = tasks, grading, pool
        self.found = [_extract(task.prediction, grading) for task in tasks]
        self.golds: dict[Job, Gold] = {}
        self.results: dict[Job, QueryResult] = {}
        self.notes: dict[int, str] = {}
        self.limits: dict[int, Limits] = {}  # by the number of rows allowed

    def verdicts(self) -> list[Verdict]:
        """Grade all tasks."""
        first = self.findings({index: (task.database,) for index, task in enumerate(self.tasks)})
        hopeful = [index for index, found in first.items() if found[0].equal]
        rest = self.findings(self.other_databases(hopeful))
        return [self.verdict(index, first.get(index, []) + rest.get(index, [])) for index in range(len(self.tasks))]

    def findings(self, databases: dict[int, tuple[str, ...]]) -> dict[int, list[_Finding]]:
        """What each database says about each task, for tasks that have a statement."""
        pairs = [(i, name) for i, names in databases.items() if self.found[i].sql for name in names]
        golds = {pair: self.job(self.tasks[pair[0]].gold, pair[1]) for pair in pairs}
        self.golds.update(_golds.results(list(golds.values()), self.pool))
        jobs = {pair: self.candidate(pair, self.golds[golds[pair]]) for pair in pairs}
        self.run([job for pair, job in jobs.items() if self.golds[golds[pair]].expected is not None])
        found: dict[int, list[_Finding]] = {}
        for pair in pairs:
            gold = self.golds[golds[pair]]
            finding = self.judge(self.results[jobs[pair]], gold) if gold.expected else _Finding(None, gold.problem)
            found.setdefault(pair[0], []).append(finding)
        return found

    def job(self, sql: str, database: str) -> Job:
        return Job(sql, database, self.grading.dialect, self.grading.limits)

    def candidate(self, pair: tuple[int, str], gold: Gold) -> Job:
        """A candidate need not return more rows than would show that it has too many."""
        rows = len(gold.expected.pool) + 1 if gold.expected else 1
        if rows not in self.limits:
            self.limits[rows] = replace(self.grading.limits, rows=min(rows, self.grading.limits.rows))
        return Job(self.found[pair[0]].sql or "", pair[1], self.grading.dialect, self.limits[rows])

    def run(self, jobs: Sequence[Job]) -> None:
        fresh = [job for job in dict.fromkeys(jobs) if job not in self.results]
        self.results.update(zip(fresh, execute_all(fresh, self.pool), strict=True))

    def judge(self, result: QueryResult, gold: Gold) -> _Finding:
        """Compare one result with the gold's on the same database."""
        assert gold.expected is not None
        expected = self.expected(gold)
        trivial = expected.trivial
        if result.state == "unavailable":
            return _Finding(None, result.detail)
        if result.state == "rows":
            difference = Difference("rows", f"{result.detail}, expected {expected.rows}")
            return _Finding(False, f"rows: {difference.detail}", trivial, difference)
        if not result.ok:
            return _Finding(False, result.detail, trivial)
        if gold.reads and not result.reads:
            return _Finding(False, "constant answer: it reads no table", trivial)
        difference_ = compare_rows(
            result.rows,
            expected,
            columns=result.columns,
            permute_columns=self.grading.permute_columns,
            tolerance=self.grading.tolerance,
        )
        if difference_ is None:
            return _Finding(True, "equal", trivial)
        if difference_.kind == "rows" and _other_share_of_tie(result.rows, expected, self.grading.tolerance):
            return _Finding(None, "gold is ambiguous: its LIMIT cuts a tie", trivial, difference_)
        if difference_.kind == "order" and not gold.ties:
            return _Finding(None, "the ties of the gold's order are not known", trivial, difference_)
        return _Finding(False, f"{difference_.kind}: {difference_.detail}", trivial, difference_)

    def expected(self, gold: Gold) -> Expected:
        assert gold.expected is not None
        if self.grading.ordered is False:
            return replace(gold.expected, ordered=False)
        if self.grading.ordered is True and not gold.ordered:
            rows = gold.expected.pool
            return Expected(tuple((1, (row,)) for row in rows), gold.expected.columns, ordered=True)
        return gold.expected

    def other_databases(self, indices: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """The suite and the perturbed copies of each task; why there are none is noted for its evidence."""
        wanted = {index: self.copy_requests(self.tasks[index]) for index in indices}
        distinct = list(dict.fromkeys(request for requests in wanted.values() for request in requests))
        outcomes = self.pool.map(perturbed_copy, distinct, timeout=_COPY_SECONDS) if distinct else []
        made = dict(zip(distinct, outcomes, strict=True))
        others: dict[int, tuple[str, ...]] = {}
        for index, requests in wanted.items():
            good = [made[request].value for request in requests if made[request].kind == "ok"]
            bad = [made[request] for request in requests if made[request].kind != "ok"]
            if bad:
                self.notes[index] = f"copy not made: {bad[0].kind} {bad[0].error.strip().splitlines()[:1]}"
            others[index] = (*self.tasks[index].suite, *good)
        return others

    def copy_requests(self, task: SqlTask) -> list[CopyRequest]:
        if self.grading.dialect != "sqlite" or not self.grading.copies:
            return []
        planted = probes(task.gold, self.grading.dialect)
        return [CopyRequest(task.database, seed, planted) for seed in range(self.grading.copies)]

    def verdict(self, index: int, findings: list[_Finding]) -> Verdict:
        """Put the databases together: any difference decides, then the lack of anything to compare."""
        evidence = self.evidence(index, findings)
        if self.found[index].sql is None:
            return Verdict(False, "no SQL statement found", evidence)
        first = findings[0]
        if first.equal is not True:
            return Verdict(first.equal, first.reason, evidence)
        for number, finding in enumerate(findings[1:], start=1):
            if finding.equal is False and not finding.reason.startswith("timed out"):
                return Verdict(False, f"differs on database {number} of its kind: {finding.reason}", evidence)
        if all(finding.trivial for finding in findings if finding.equal):
            passed = {"unknown": None, "fail": False, "pass": True}[self.grading.empty]
            return Verdict(passed, "the gold result is empty or all NULL on every database", evidence)
        count = sum(bool(finding.equal) for finding in findings)
        return Verdict(True, f"equal on {count} database{'s' if count > 1 else ''}", evidence)

    def evidence(self, index: int, findings: list[_Finding]) -> dict[str, Any]:
        task, found = self.tasks[index], self.found[index]
        seen: dict[str, Any] = {"sql": found.sql, "found": found.how, "candidates": found.candidates}
        if not findings:
            return seen
        gold = self.golds[self.job(task.gold, task.database)]
        seen["databases"] = [finding.reason for finding in findings]
        seen |= {"ordered": gold.ordered, "ambiguous": bool(gold.expected and gold.expected.ambiguous)}
        if gold.expected is not None:
            result = self.results[self.candidate((index, task.database), gold)]
            seen |= {"state": result.state, "rows": len(result.rows), "columns": result.columns}
            seen |= {"expected_rows": gold.expected.rows, "seconds": round(result.seconds, 4)}
        difference = next((finding.difference for finding in findings if finding.difference), None)
        if difference is not None:
            seen["difference"] = {
                "kind": difference.kind,
                "extra": _shown(difference.extra),
                "missing": _shown(difference.missing),
            }
        if index in self.notes:
            seen["copies"] = self.notes[index]
        return seen


def _check_databases(tasks: Sequence[SqlTask], grading: Grading) -> None:
    from os.path import isfile

    if grading.dialect not in ("sqlite", "duckdb", "postgres"):
        raise ValueError(f"unknown SQL dialect {grading.dialect!r}: use 'sqlite', 'duckdb' or 'postgres'")
    if grading.dialect == "postgres":
        return
    for path in {name for task in tasks for name in (task.database, *task.suite)}:
        if not isfile(path):
            raise FileNotFoundError(f"no database file at {path!r}")


def _extract(prediction: str, grading: Grading) -> Extraction:
    if grading.bare:
        return Extraction(prediction.strip() or None, "given", 1)
    return extract_sql(prediction)


def _other_share_of_tie(rows: Sequence[Row], expected: Expected, tolerance: Tolerance) -> bool:
    """Whether the rows are right but for how many they take of a tie that the gold's LIMIT cuts."""
    if not expected.ambiguous:
        return False
    whole = [row for take, pool in expected.blocks if take == len(pool) for row in pool]
    beyond, _ = match_rows(rows, expected.pool, tolerance)
    _, missing = match_rows(rows, whole, tolerance)
    return bool(rows) and not beyond and not missing


def _shown(row: Row | None) -> str | None:
    return None if row is None else repr(row)[:200]
