"""Reward shifting: a constant per step, and what it does to values."""

from __future__ import annotations

from guerdon.core.reward import Reward
from guerdon.methods._registry import method


@method(
    "reward-shifting",
    family="shape",
    name="Reward shifting in value-based deep RL",
    source="Sun et al. 2022, arXiv:2209.07288",
    evidence="secondary",
)
def reward_shifting(reward: Reward, *, shift: float) -> Reward:
    """``r' = r + shift`` for every step: with an infinite horizon ``Q'* = Q* + shift / (1 - gamma)``, same best policy.

    ``shift > 0`` makes unseen actions look worse than the data (conservative), ``shift < 0`` better (exploration),
    the same as starting the critic at `value_offset` below. Several critics may each have their own.

    Traps: where episodes end, a constant per step rewards their length and changes the best policy. Outcome rewards
    with a group baseline do not feel a shift at all.

    >>> import guerdon as gd
    >>> gd.method("reward-shifting", gd.column("r"), shift=-0.5).score([{"r": 1.0}]).values.tolist()
    [0.5]
    >>> value_offset(-0.5, 0.9).__round__(6)
    -5.0
    """
    return reward + shift


def value_offset(shift: float, gamma: float) -> float:
    """How far the optimal values move: ``shift / (1 - gamma)``, ``0 <= gamma < 1``."""
    if not 0.0 <= gamma < 1.0:
        raise ValueError(f"gamma={gamma!r} must lie in [0, 1)")
    return shift / (1.0 - gamma)
