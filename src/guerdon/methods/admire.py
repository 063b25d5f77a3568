"""ADMIRE: milestones of a long task, credited differently in successes and in failures."""

from __future__ import annotations

import numpy as np

from guerdon import credit
from guerdon.core.interval import UNIT
from guerdon.core.operators import when
from guerdon.core.reward import Reward, as_reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.methods._registry import method
from guerdon.shape import anneal, zscore


@method(
    "admire-milestone",
    family="process",
    name="ADMIRE: adaptive milestone reward with asymmetric credit",
    source="Zheng et al. 2026, arXiv:2602.11524",
    evidence="secondary",
)
def admire(
    outcome: Reward,
    hits: Reward,
    milestones: Reward,
    step: Reward | float = 0.0,
    *,
    floor: float = 0.2,
    bonus: float = 0.5,
    over: float | None = None,
) -> Reward:
    """Step rewards: ``R_out 1[t = T] + c hit_t`` in a success; ``b k / K + c hit_t`` in a failure.

    ``outcome``: 0/1 per rollout; ``hits``: 0/1 on the step axis (`milestone_hits`); ``milestones``: ``K`` per rollout,
    0 while no success is known, and then the outcome alone. ``k``: hits of the whole trajectory, so every step of a
    failure has the same floor; more than ``K``: unknown. With ``over``, ``b`` and ``c`` fall linearly to 0 at that
    training ``step``. Advantage: `admire_advantage`. The concrete form and its constants are our reading.

    Traps: matching descriptions is no check of the state, so narration is paid; a correct other order is not
    recognised; the floor of a failure exceeds a success' steps without a hit.
    """
    weight = as_reward(1.0) if over is None else anneal(as_reward(step), over=over)
    reached = when(milestones > 0.0, (hits.sum() / milestones).within(0.0, 1.0), 0.0)
    extra = when(milestones > 0.0, hits * bonus, 0.0) * weight
    return credit.pay_last(extra + when(outcome, 0.0, reached * floor) * weight, outcome)


def admire_advantage(reward: Reward) -> Reward:
    """``(r_t - mean) / (std + 1e-6)`` over all steps of the group, population deviation; 0 when all are equal."""
    return zscore(reward, eps=1e-6)


@transform(
    "methods.milestone_hits",
    version=1,
    axis=lambda similarity, like, **_: like,
    range=lambda similarity, like, **_: UNIT,
)
def milestone_hits(similarity: Scores, like: Scores, *, threshold: float = 0.75) -> Scores:
    """1 for steps that reach the milestone whose turn it is; a pointer walks through the ordered list.

    ``similarity``: each step's to each milestone, step by step, on an axis of its own under the rollout (``T K``
    values per rollout); ``like``: any score on the step axis. A step reaches a milestone at ``threshold`` or above and
    moves the pointer by one; each is reached once. From the first unknown similarity that the pointer meets, the
    rollout is unknown.
    """
    axis, table = like.axis, similarity.axis
    assert axis.offsets is not None
    assert table.offsets is not None
    lengths, start = axis.lengths, axis.offsets[:-1]
    width = table.lengths // np.maximum(lengths, 1)
    fits = width * lengths == table.lengths
    pointer, sure = np.zeros(len(lengths), dtype=np.int64), fits.copy()
    out, known = np.zeros(axis.size), np.zeros(axis.size, dtype=np.bool_)
    for t in range(int(lengths.max(initial=0))):
        on = np.flatnonzero((lengths > t) & sure)
        left = pointer[on] < width[on]
        cell = table.offsets[:-1][on] + t * width[on] + pointer[on]
        cell = np.where(left, cell, 0)
        seen = ~left | (similarity.known[cell] if table.size else False)
        hit = left & seen & ((similarity.values[cell] >= threshold) if table.size else False)
        out[start[on] + t], known[start[on] + t] = hit, seen
        pointer[on] += hit
        sure[on] &= seen
    return Scores.of(axis, out, known, "a similarity that the pointer meets is unknown, or the table does not fit")
