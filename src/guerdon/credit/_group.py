"""Credit by comparison within the group: group-relative advantage and leave-one-out."""

from __future__ import annotations

from typing import Literal

import numpy as np

from guerdon.core.operators import itemwise
from guerdon.core.scores import Scores
from guerdon.core.segments import segment_count, segment_sum
from guerdon.core.transform import transform
from guerdon.credit._rollouts import whole
from guerdon.shape._finite import measured
from guerdon.shape._groups import Groups
from guerdon.shape._normalise import centre, member_wise, zscore


@transform("credit.group_relative", version=1, groups=True)
def group_relative(x: Scores, *, scale: Literal["std", "none"] = "std", ddof: int = 0, eps: float = 0.0) -> Scores:
    """Group-relative advantage: ``A_i = (r_i - mean(r)) / (std(r) + eps)``, or without the division.

    ``scale="std"`` is GRPO (Shao et al. 2024, arXiv:2402.03300), ``"none"`` Dr. GRPO (Liu et al. 2025,
    arXiv:2503.20783). ``ddof`` 0 divides by the population's deviation, 1 by the sample's (verl and TRL, with ``eps``
    1e-6 and 1e-4). Takes and returns shape ``(rollouts,)``. Unknown rollouts move no mean; a group without spread
    gives exactly 0; one with fewer than two known members is unknown.

    The mean holds ``r_i`` itself, so that the expected gradient without division is ``(n - 1) / n`` times the exact
    one. Division trades bias: prompts are weighted by ``1 / std``, and the optimum of the expected reward is not kept
    in general.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (1.0, 0.0)]
    >>> gd.credit.group_relative(gd.column("r").score(rows)).values.tolist()
    [1.0, -1.0]
    """
    if scale not in ("std", "none"):
        raise ValueError(f'scale={scale!r}: choose "std" or "none"')
    out: Scores = zscore.function(x, ddof=ddof, eps=eps) if scale == "std" else centre.function(x)
    return out


@transform("credit.leave_one_out", version=1, groups=True, range=lambda x: x - x)
def leave_one_out(x: Scores) -> Scores:
    """Reward minus the mean of the other members: ``A_i = r_i - (sum(r) - r_i) / (n - 1)`` over ``n`` known members.

    RLOO (Ahmadian et al. 2024, arXiv:2402.14740): an unbiased baseline, since it does not depend on ``r_i``.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (1.0, 0.0, 0.5)]
    >>> gd.credit.leave_one_out(gd.column("r").score(rows)).values.tolist()
    [0.75, -0.75, 0.0]
    """
    groups = Groups.of(x)
    return member_wise(x, groups, groups.above_others)


@transform("credit.token_leave_one_out", version=1, groups="batch")
def token_leave_one_out(x: Scores, like: Scores | None = None, *, width: int | None = None) -> Scores:
    """Returns minus the mean return *per token* of the other rollouts: ``A_{i,t} = G_{i,t} - b_i``.

    ``b_i = sum_{k != i} sum_t G_{k,t} / ((K - 1) L)`` over the ``K`` known rollouts of the prompt. ``x``: returns of
    steps (each held by all tokens that ``like``, on the token axis, gives the step) or of tokens; result on the finer
    axis. ``L`` (``width``) is the padded length: the published baseline depends on it. Counting tokens, not steps,
    keeps few huge steps from looking good. A rollout with an unknown item is unknown and takes no part; fewer than two
    known ones: unknown.

    Exact with a fixed ``width``. By default it is the length of the batch's longest rollout, which the policy can
    move: that trades a little bias.

    Source: PURE, Cheng et al. 2025, arXiv:2504.15275 (released code).

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "g": g} for g in ([-0.75, -0.75, 0.0], [0.25, 0.25, 0.25, 0.25])]
    >>> gd.credit.token_leave_one_out(gd.column("g", axis="token_return")).score(rows).scores.values.tolist()
    [-1.0, -1.0, -0.25, 0.625, 0.625, 0.625, 0.625]
    """
    axis = x.axis if like is None else like.axis
    rollout = axis.ancestor("rollout")
    lengths = np.diff(axis.offsets_over("rollout"))
    tokens = np.diff(axis.offsets_over(x.axis.name))
    known, reasons = whole(x)
    with np.errstate(over="ignore", invalid="ignore"):
        total = segment_sum(np.where(known, x.values * tokens, 0.0), x.axis.offsets_over("rollout"))
    heard = segment_count(~known, x.axis.offsets_over("rollout")) == 0
    groups = Groups(total, heard, rollout.owner_in("prompt"), rollout.ancestor("prompt").size)
    others = np.maximum(groups.at(groups.members) - 1, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        baseline = (groups.at(groups.total) - total) / (others * max(width or int(lengths.max(initial=0)), 1))
    kept = Scores.of(x.axis, x.values, known, reasons)
    first = np.minimum(x.axis.offsets_over("rollout")[:-1], len(x) - 1)
    own = measured(rollout, baseline, heard, None if reasons is None else reasons[first])
    below = member_wise(own, groups, baseline)
    return itemwise(np.subtract, kept.broadcast(axis), below.broadcast(axis))
