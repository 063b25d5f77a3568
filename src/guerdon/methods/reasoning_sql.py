"""Reasoning-SQL: execution accuracy with SQL-tailored partial rewards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import fallback, weighted_sum
from guerdon.verify._format import format as tag_format
from guerdon.verify.queries.signals import sql, sql_ngrams, sql_runs, sql_schema
from guerdon.verify.queries.statement import Dialect

WEIGHTS: Mapping[str, float] = {
    "execution": 3.0,
    "judge": 1.0,
    "syntax": 0.5,
    "schema": 0.5,
    "ngram": 0.5,
    "format": 0.25,
}
"""Ours: the paper's were not recovered. Execution outweighs all the others together."""


@method(
    "reasoning-sql",
    family="verify",
    name="Reasoning-SQL: GRPO with SQL-tailored partial rewards",
    source="Pourreza et al. 2025, arXiv:2503.23157",
    evidence="secondary",
)
def reasoning_sql(
    *,
    judge: Reward | None = None,
    form: Reward | None = None,
    weights: Mapping[str, float] | None = None,
    gold: str = "answer",
    database: str = "database",
    root: str | None = None,
    dump: str | None = None,
    dialect: Dialect = "sqlite",
    seconds: float = 1.0,
    **options: Any,
) -> Reward:
    """``R = w_ex R_ex + w_j R_judge + w_syn R_syn + w_sch R_schema + w_ng R_ngram + w_f R_format``, each
    term in [0, 1].

    ``R_ex``: the result equals the gold's (multiset of rows, ordered where the gold is); ``R_syn``: the
    statement runs; ``R_schema``: Jaccard of the tables and columns used; ``R_ngram``: Jaccard of token
    bigrams; ``R_format``: ``form``, by default the tags ``think`` and ``answer`` in order; ``R_judge``:
    ``judge`` (any reward in [0, 1]), asked only where ``R_ex = 0`` and 1 where ``R_ex = 1``; an unknown
    judge counts as 0, with its reason as evidence, and without a judge the term is left out. Shape
    ``(rollouts,)``. The Jaccard forms and the rule for the judge are *inferred*.

    ``weights`` by name (`WEIGHTS` for those not given; ours, the paper's were not recovered). Raises
    ``ValueError`` unless execution weighs more than all others together: then no wrong query can beat a
    right one. The other parameters are those of `guerdon.verify.queries`. Unknown where the execution
    verdict or another term is unknown.

    Traps: empty results match trivially (unknown here); the partial terms need the gold and can be
    farmed by copying the schema; test data must separate ``>`` from ``>=`` (perturbed copies of the
    database do).
    """
    given = {**WEIGHTS, **(weights or {})}
    unknown = set(given) - set(WEIGHTS)
    if unknown:
        raise ValueError(f"no such weight: {', '.join(sorted(unknown))}; there are {', '.join(WEIGHTS)}")
    if judge is None:
        given.pop("judge")
    others = sum(weight for name, weight in given.items() if name != "execution")
    if min(given.values()) < 0 or given["execution"] <= others:
        raise ValueError(f"execution weighs {given['execution']:g}: it must outweigh the others, {others:g} together")
    place = {"database": database, "root": root, "dump": dump, "dialect": dialect, "seconds": seconds}
    execution = sql(gold=gold, **place, **options)
    parts: dict[str, Reward] = {
        "execution": execution,
        "syntax": sql_runs(**place),
        "schema": sql_schema(gold=gold, dialect=dialect),
        "ngram": sql_ngrams(gold=gold),
        "format": form if form is not None else tag_format(tags=["think", "answer"]),
    }
    if judge is not None:
        parts["judge"] = when(execution, 1.0, fallback(judge, 0.0))
    total: Reward = weighted_sum(parts, given)
    return total
