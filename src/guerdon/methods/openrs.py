"""OpenRS: criteria of a comparison combined outside the judge, with a veto and both orders."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import PARENTS
from guerdon.core.operators import reduce_up, when
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores, aligned
from guerdon.core.segments import segment_count, segment_sum
from guerdon.core.transform import transform
from guerdon.methods._registry import method
from guerdon.shape import gate, mean_over_others
from guerdon.shape._finite import measured

FATAL, CORE, IMPORTANT, HIGHLIGHT = 0.0, 1.0, 2.0, 3.0
"""The kinds of criterion that `comparison_score` knows; others are ignored."""


@method(
    "openrs",
    family="judge",
    name="Open Rubric System: pairwise adaptive meta-rubric and verifiable rubrics",
    source="Jia et al. 2026, arXiv:2602.14069",
    evidence="code-read",
)
def openrs(
    forward: Reward,
    backward: Reward,
    passed: Reward | None = None,
    *,
    margin: float = 0.0,
    failed: float = 0.0,
) -> Reward:
    """``r_i = mean_{j != i} verdict(o_i, o_j)`` in [-1, 1], shape ``(rollouts,)``; round robin is our reading.

    ``forward``, ``backward``: `comparison_score` of each rollout against every member of its group, shown first and
    shown second, on the axis "opponent" (one number per member, in the group's order; the own entry is ignored).
    ``passed`` 0/1: the verifiable checks; a rollout that fails gets ``failed`` (0 or -1) and costs no judge call.
    Unknown comparisons are left out of the mean.

    Traps: criteria of score 0 stay out of the weights, which inflates the score; the released code reads a judge's
    malformed reply as a tie: here it is unknown.
    """
    reward = mean_over_others(both_orders(forward, backward, margin=margin))
    return reward if passed is None else gate(reward, by=passed, failed=failed)


def both_orders(forward: Reward, backward: Reward, *, margin: float = 0.0) -> Reward:
    """1 if the first answer wins in both orders, -1 if it loses in both, else 0 (a tie).

    ``S_f > m`` and ``S_b <= -m``: 1; ``S_f <= -m`` and ``S_b > m``: -1. The rule is asymmetric at 0, as released: a win
    in one order and an exact 0 in the other counts.
    """
    won = (forward > margin) & (backward <= -margin)
    lost = (forward <= -margin) & (backward > margin)
    return when(won, 1.0, when(lost, -1.0, 0.0))


@transform("methods.comparison_score", version=1, axis=lambda kind, *_, **__: PARENTS.get(kind, "rollout"))
def comparison_score(
    kind: Scores,
    winner: Scores,
    strength: Scores,
    *,
    weights: tuple[float, float, float] = (5.0, 2.0, 1.0),
    least: float = 0.0,
) -> Scores:
    """The signed score of a comparison from its criteria: ``sum w_i s_i / (sum w_i + 1e-6)``; fatal ones alone decide.

    On a criterion axis: ``kind`` (`FATAL`, `CORE`, `IMPORTANT`, `HIGHLIGHT`; the latter three by ``weights``),
    ``winner`` 1 for the first answer, -1 for the second, 0 for neither, ``strength``: the judge's absolute score.
    ``s = winner * strength``. If any fatal criterion has a nonzero strength the score is the sum of the fatal ones,
    else the weighted mean over those of nonzero strength: one without winner adds 0 and still its weight. No criterion:
    0. Smaller than ``least`` in size: 0. An unknown criterion: unknown.
    """
    k, w, size = aligned(kind, winner, strength)
    read = Scores.of(k.axis, np.zeros(len(k)), k.known & w.known & size.known, (k, w, size))
    live = size.values != 0.0
    signed = np.where(read.known, np.sign(w.values) * np.abs(size.values), 0.0)
    table = np.select([k.values == CORE, k.values == IMPORTANT, k.values == HIGHLIGHT], weights, 0.0) * live
    offsets = k.axis.offsets_over(PARENTS.get(k.axis.name, "rollout"))
    fatal = live & (k.values == FATAL)
    veto = segment_count(fatal, offsets) > 0
    with np.errstate(over="ignore", invalid="ignore"):
        mean = segment_sum(table * signed, offsets) / (segment_sum(table, offsets) + 1e-6)
        values = np.where(veto, segment_sum(np.where(fatal, signed, 0.0), offsets), mean)
    values = np.where(np.abs(values) < least, 0.0, values)
    whole = reduce_up(read, lambda v, o, n: np.zeros(len(n)), to=None, missing="unknown")
    known = whole.known | (np.diff(offsets) == 0)
    return measured(whole.axis, np.where(known, values, 0.0), known, whole)
