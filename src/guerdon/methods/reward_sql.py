"""Reward-SQL: good queries are paid by their good steps, bad queries by their bad ones."""

from __future__ import annotations

import numpy as np

from guerdon import credit
from guerdon.core.interval import Interval
from guerdon.core.operators import reduce_up, when
from guerdon.core.reward import Reward, as_reward
from guerdon.core.scores import Scores
from guerdon.core.segments import segment_count, segment_sum
from guerdon.core.transform import transform
from guerdon.methods._registry import method


@method(
    "reward-sql",
    family="process",
    name="Reward-SQL: process rewards over chains of common table expressions",
    source="Zhang et al. 2025, arXiv:2505.04671",
    evidence="code-read",
)
def reward_sql(
    step: Reward,
    executed: Reward | None = None,
    tokens: Reward | None = None,
    *,
    step_weight: float = 1.0,
    outcome_weight: float = 1.0,
    distinct: bool = True,
    flip: bool = False,
) -> Reward:
    """``u a_i`` for the steps of a good rollout (``a_i > 0``), ``(1 - u) a_i`` for those of a bad one.

    ``u = step_weight p + outcome_weight exec``: ``p`` (``step``, shape ``(steps,)``) is the step's probability of being
    right, ``executed`` 0/1 per rollout (`verify.sql`), on every step; with ``step_weight=0`` on the last step or token
    only. Where ``u > 1``, ``u - 1`` stands in for it. ``a_i = (avg_i - mean) / (std + 1e-6)``, sample deviation over
    the group, 0 for a rollout alone; ``avg_i``: `present_mean` of its ``u``. Result on steps, or on ``tokens`` (any
    token score). A rollout with an unknown step is unknown. The released settings are weights 0 and 1 (execution only).

    Traps: steps with ``u = 0`` count as absent: they leave the mean and get 0, also in a bad rollout. The mean of
    *distinct* values drops repeated equal steps: ``distinct=False`` keeps them. The released code uses ``1 - u`` also
    for ``u > 1``, so that steps of a bad rollout whose query runs are *raised*: ``flip=True``. Trades bias.
    """
    u = step * step_weight
    if executed is not None and step_weight:
        u = u + executed * outcome_weight
    elif executed is not None:
        u = credit.pay_last(u if tokens is None else credit.spread(u, tokens), executed, weight=outcome_weight)
    average = present_mean(u, distinct=distinct)
    level = credit.place_relative(average, as_reward(0.0), ddof=1, eps=1e-6, least=1)
    inside = when(u > 1.0, u - 1.0, u)
    share = when(level > 0.0, inside, 1.0 - (u if flip else inside))
    advantage = when(u == 0.0, 0.0, share) * level
    return advantage if tokens is None or not step_weight else credit.spread(advantage, tokens)


@transform(
    "methods.present_mean",
    version=1,
    axis=lambda x, **_: "rollout",
    range=lambda x, **_: x.hull(Interval(0.0, 0.0)),
)
def present_mean(x: Scores, *, distinct: bool = True) -> Scores:
    """Mean of the values of a rollout that are not 0, each different value counted once (or every item); 0 if none.

    Unknown if any item is, or if there is none.
    """
    owner = x.axis.owner_in("rollout")
    order = np.lexsort((x.values, owner))
    here = x.known & (x.values != 0.0)
    if distinct:
        v, o = x.values[order], owner[order]
        first = np.ones(len(x), dtype=np.bool_)
        first[1:] = (v[1:] != v[:-1]) | (o[1:] != o[:-1])
        here = here & first[np.argsort(order)]
    kept = np.where(here, x.values, 0.0)
    return reduce_up(
        x,
        lambda v, o, n: segment_sum(kept, o) / np.maximum(segment_count(here, o), 1),
        to="rollout",
        missing="unknown",
    )
