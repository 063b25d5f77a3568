"""Credit by comparison within the group: group-relative advantage and leave-one-out."""

from __future__ import annotations

from typing import Literal

import numpy as np

from guerdon.core.scores import Scores
from guerdon.core.transform import transform
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
    one; with division prompts are weighted by ``1 / std`` and the optimum of the expected reward is not kept in
    general.

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
    others = np.maximum(groups.at(groups.members) - 1, 1)
    values = x.values - (groups.at(groups.total) - x.values) / others
    return member_wise(x, groups, np.where(groups.at(groups.flat), 0.0, values))
