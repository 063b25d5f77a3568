"""MO-GRPO: several objectives, each on its own scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import normalised_sum


@method(
    "mo-grpo-per-reward-normalisation",
    family="credit",
    name="MO-GRPO: multi-objective GRPO with per-reward normalisation",
    source="arXiv:2509.22047",
    evidence="secondary",
)
def mo_grpo(
    rewards: Mapping[str, Reward] | Sequence[Reward], weights: Mapping[str, float] | Sequence[float] | None = None
) -> Reward:
    """``A = sum_k w_k (r_k - mean(r_k)) / std(r_k)`` over the group; population deviation, no epsilon.

    Shape ``(rollouts,)``. Any positive affine change of one reward leaves it as it is. A reward without spread adds
    0; one known member: unknown; an unknown reward: that rollout is unknown.

    Traps: a nearly constant noisy reward is blown up to unit variance; one failure of a 0/1 format reward gets a huge
    score; the variance of the sum is up to ``K^2``: rescale where the clip range assumes unit scale. Trades bias, as
    every division by a group's deviation.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "a": a, "b": b} for a, b in ((0, 0.5), (1000, 0.5), (0, 0.0), (1000, 0.0))]
    >>> gd.method("mo-grpo-per-reward-normalisation", [gd.column("a"), gd.column("b")]).score(rows).values.tolist()
    [0.0, 2.0, -2.0, 0.0]
    """
    total: Reward = normalised_sum(rewards, weights, ddof=0, eps=0.0)
    return total
