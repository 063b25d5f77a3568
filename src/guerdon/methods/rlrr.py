"""RLRR: rewards relative to the others, so that all-right and all-wrong groups still rank."""

from __future__ import annotations

import numpy as np

from guerdon.core.interval import UNIT
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores, aligned
from guerdon.core.segments import segment_ranks
from guerdon.core.transform import transform
from guerdon.methods._registry import method
from guerdon.shape import rank
from guerdon.shape._groups import Groups


@method(
    "rlrr-relative-rewards",
    family="credit",
    name="RLRR: relative rewards",
    source="Niu et al. 2026, arXiv:2601.23058 (abstract)",
    evidence="abstract-only",
)
def rlrr(score: Reward, correct: Reward | None = None, *, beta: float = 0.5) -> Reward:
    """``r_i = v_i + beta (k_i / (n - 1) - 1/2)``: the verdict, plus the rank among the rollouts of the same verdict.

    ``score``: any ranking score per rollout; ``k_i`` its mid-rank from 0 among the ``n`` members of the group with
    the same verdict ``v`` (``correct``, 0/1); ``n = 1``: ``r = v``. With ``beta < 1`` no wrong rollout passes a right
    one. Without ``correct``: ``r_i = k_i / (G - 1) - 1/2``. All *our reading*: the paper's formula was not seen.
    ``beta`` 0.5 is our choice.

    Traps: divided by the group's deviation afterwards, the least bad of an all-wrong group is rewarded like a right
    answer (`variance-profile-amplifier-audit`); a listwise judge favours places, so average its ranks over several
    orders. Trades bias.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "s": s, "ok": ok} for s, ok in ((0.9, 1), (0.2, 1), (0.8, 0), (0.1, 0))]
    >>> gd.method("rlrr-relative-rewards", gd.column("s"), gd.column("ok")).score(rows).values.tolist()
    [1.25, 0.75, 0.25, -0.25]
    """
    if correct is None:
        return rank(score) - 0.5
    if not 0.0 <= beta < 1.0:
        raise ValueError(f"beta={beta!r} must lie in [0, 1), else wrong answers pass right ones")
    return correct + (rank_within(score, correct) - 0.5) * beta


@transform("methods.rank_within", version=1, groups=True, range=lambda x, by: UNIT)
def rank_within(x: Scores, by: Scores) -> Scores:
    """Mid-rank from 0 (least) to 1 among the group's members with the same value of ``by``; 0.5 for one alone."""
    groups = Groups.of(x, by)
    known, ranks = groups.known, np.zeros(len(groups.values))
    ranks[known] = segment_ranks(groups.values[known], groups.owner[known])
    others = groups.at(groups.members) - 1
    values = np.where(others > 0, ranks / np.maximum(others, 1), 0.5)
    parts = aligned(x, by)
    return Scores.of(parts[0].axis, np.where(known, values, 0.0), known, parts)
