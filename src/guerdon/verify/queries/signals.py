"""SQL rewards as signals: the execution verdict, and the partial ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import signal
from guerdon.verify.queries.check import Grading, SqlTask, Verdict, check_sql_many
from guerdon.verify.queries.databases import build_database
from guerdon.verify.queries.partial import ngram_similarity, schema_linking
from guerdon.verify.queries.run import Job, Limits, QueryResult
from guerdon.verify.queries.statement import Dialect, extract_sql
from guerdon.verify.queries.worker import execute_all, sql_pool

_BUILD_SECONDS = 60.0
_PARSE_SECONDS = 5.0
_MAX_GOLD = 100_000


class _Place(NamedTuple):
    """Where a rollout's database is, or why it can't be used."""

    path: str
    problem: str = ""


@signal(key="verify.sql", version=1, range=(0, 1), needs="sandbox", batch=True, cache=False)
def sql(
    rollouts: Sequence[Rollout],
    *,
    gold: str = "answer",
    database: str = "database",
    root: str | None = None,
    dump: str | None = None,
    dialect: Dialect = "sqlite",
    seconds: float = 1.0,
    ordered: bool | Literal["auto"] = "auto",
    copies: int = 2,
    empty: Literal["unknown", "fail", "pass"] = "unknown",
    permute_columns: bool = False,
) -> list[Score]:
    """1 if the completion's SQL returns what the gold statement returns, else 0; see `check_sql` for the
    rules.

    ``gold`` and ``database`` name the columns with the gold statement and with the database: a file
    (below ``root`` where that is given; a path that leads out of it is refused) or a DSN for PostgreSQL.
    ``dump`` names a column with a SQL dump instead, from which the database is built. Not kept in the
    session's cache, because a database may change under the same name; golds and copies are cached by
    content.

    Unknown: no gold or no database, a gold that fails or returns nothing to compare, an ambiguous gold,
    a dead worker.

    ```python
    reward = gd.verify.sql(database="db_id", root="databases", seconds=2.0)
    ```
    """
    grading = Grading(
        dialect=dialect,
        limits=Limits(seconds=seconds),
        ordered=ordered,
        copies=copies,
        empty=empty,
        permute_columns=permute_columns,
    )
    places = _places(rollouts, database, root, dump, dialect)
    golds = [_gold(rollout, gold) for rollout in rollouts]
    asked = [i for i, place in enumerate(places) if golds[i] and not place.problem]
    tasks = [SqlTask(rollouts[i].final, golds[i], places[i].path) for i in asked]
    verdicts = dict(zip(asked, check_sql_many(tasks, grading=grading), strict=True))
    return [
        _score(verdicts[i]) if i in verdicts else Score.unknown(places[i].problem if golds[i] else "no gold statement")
        for i in range(len(rollouts))
    ]


@signal(key="verify.sql_runs", version=1, range=(0, 1), needs="sandbox", batch=True, cache=False)
def sql_runs(
    rollouts: Sequence[Rollout],
    *,
    database: str = "database",
    root: str | None = None,
    dump: str | None = None,
    dialect: Dialect = "sqlite",
    seconds: float = 1.0,
) -> list[Score]:
    """1 if the completion's SQL is one read-only statement that runs to its end within the limits, else 0.

    Parameters as for `sql`. Unknown: no database, or a dead worker.
    """
    places = _places(rollouts, database, root, dump, dialect)
    found = [extract_sql(rollout.final).sql for rollout in rollouts]
    jobs = {
        i: Job(text, place.path, dialect, Limits(seconds=seconds))
        for i, (text, place) in enumerate(zip(found, places, strict=True))
        if text and not place.problem
    }
    distinct = list(dict.fromkeys(jobs.values()))
    results = dict(zip(distinct, execute_all(distinct), strict=True))
    return [_ran(results[jobs[i]]) if i in jobs else _not_run(places[i], found[i]) for i in range(len(rollouts))]


@signal(key="verify.sql_schema", version=1, range=(0, 1), needs="sandbox", batch=True)
def sql_schema(rollouts: Sequence[Rollout], *, gold: str = "answer", dialect: Dialect = "sqlite") -> list[Score]:
    """Jaccard similarity of the tables and columns that the completion's SQL and the gold statement use.

    See `guerdon.verify.queries.partial.schema_linking`. 0 without a statement that parses; unknown without a gold
    that does. It can be farmed by copying the schema: give it less weight than execution.
    """
    found = [extract_sql(rollout.final).sql for rollout in rollouts]
    pairs = [(text or "", _gold(rollout, gold), dialect) for text, rollout in zip(found, rollouts, strict=True)]
    distinct = [pair for pair in dict.fromkeys(pairs) if pair[1]]
    outcomes = sql_pool().map(_link, distinct, timeout=_PARSE_SECONDS) if distinct else []
    by_pair = dict(zip(distinct, outcomes, strict=True))
    scores = []
    for pair in pairs:
        outcome = by_pair.get(pair)
        if outcome is None:
            scores.append(Score.unknown("no gold statement"))
        elif outcome.kind != "ok":
            scores.append(Score.unknown(f"parsing {outcome.kind}", sql=pair[0][:200]))
        elif outcome.value is None:
            scores.append(Score.unknown("the gold statement does not parse"))
        else:
            scores.append(Score(outcome.value, sql=pair[0][:200]))
    return scores


@signal(key="verify.sql_ngrams", version=1, range=(0, 1))
def sql_ngrams(
    rollout: Rollout, *, gold: str = "answer", n: int = 2, tokens: Literal["whitespace", "sql"] = "whitespace"
) -> Score:
    """Jaccard similarity of the token n-grams of the completion's SQL and of the gold statement, lower-cased.

    See `guerdon.verify.queries.partial.ngram_similarity`. 0 without a statement; unknown without a gold.

    >>> sql_ngrams(Rollout("```sql\\nselect a from t\\n```", answer="SELECT a FROM u")).value
    0.5
    """
    wanted = _gold(rollout, gold)
    if not wanted:
        return Score.unknown("no gold statement")
    found = extract_sql(rollout.final).sql
    return Score(ngram_similarity(found, wanted, n=n, tokens=tokens) if found else 0.0, sql=(found or "")[:200])


def _link(pair: tuple[str, str, Dialect]) -> float | None:
    text, gold, dialect = pair
    return schema_linking(text, gold, dialect=dialect)


def _gold(rollout: Rollout, column: str) -> str:
    given = rollout.get(column)
    return given.strip()[:_MAX_GOLD] if isinstance(given, str) else ""


def _score(verdict: Verdict) -> Score:
    if verdict.passed is None:
        return Score.unknown(verdict.reason, **verdict.evidence)
    return Score(float(verdict.passed), verdict=verdict.reason, **verdict.evidence)


def _ran(result: QueryResult) -> Score:
    if result.state == "unavailable":
        return Score.unknown(result.detail)
    return Score(float(result.ok), state=result.state, detail=result.detail, seconds=round(result.seconds, 4))


def _not_run(place: _Place, found: str | None) -> Score:
    return Score.unknown(place.problem) if place.problem else Score(0.0, state="none", detail=f"no statement: {found}")


def _places(
    rollouts: Sequence[Rollout], column: str, root: str | None, dump: str | None, dialect: Dialect
) -> list[_Place]:
    if dump is not None:
        return _built([rollout.get(dump) for rollout in rollouts])
    return [_place(rollout.get(column), column, root, dialect) for rollout in rollouts]


def _place(given: Any, column: str, root: str | None, dialect: Dialect) -> _Place:
    if not given or not isinstance(given, (str, os.PathLike)):
        return _Place("", f"no database in column {column!r}")
    name = os.fspath(given)
    if dialect == "postgres":
        return _Place(name)
    path = name
    if root is not None:
        path = os.path.realpath(os.path.join(root, name))
        if os.path.commonpath([path, os.path.realpath(root)]) != os.path.realpath(root):
            return _Place("", "the database lies outside root")
    return _Place(path) if os.path.isfile(path) else _Place("", f"no database file at {path!r}")


def _built(dumps: Sequence[Any]) -> list[_Place]:
    """Databases from dumps, which are untrusted too: built in workers, each once."""
    distinct = [dump for dump in dict.fromkeys(d for d in dumps if isinstance(d, str)) if dump.strip()]
    outcomes = sql_pool().map(build_database, distinct, timeout=_BUILD_SECONDS) if distinct else []
    places = {
        dump: _Place(str(outcome.value))
        if outcome.kind == "ok"
        else _Place("", f"database not built: {outcome.error.splitlines()[0] if outcome.error else outcome.kind}")
        for dump, outcome in zip(distinct, outcomes, strict=True)
    }
    return [
        places.get(dump, _Place("", "no database dump")) if isinstance(dump, str) else _Place("", "no database dump")
        for dump in dumps
    ]
