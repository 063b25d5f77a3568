"""GOPO: advantages from ranks alone."""

from __future__ import annotations

from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import rank


@method(
    "gopo-rank-advantage",
    family="credit",
    name="GOPO: Group Ordinal Policy Optimization",
    source="Choi et al. 2026, arXiv:2602.03876 (and released code)",
    evidence="code-read",
)
def gopo(reward: Reward) -> Reward:
    """``A_i = 2 - 4 (rho_i - 1) / (G - 1)``, ``rho`` the rank in the group (1 = best), ties at their mid-rank.

    In [-2, 2], shape ``(rollouts,)``; no monotone change of the reward moves it. All equal: 0. One known member:
    unknown.

    Traps: the released code breaks ties by index, which gives an all-equal group +2 to -2 out of nothing, and 0/1
    rewards lose their pass rate; mid-ranks (ours) make of 0/1 rewards ``2 G / (G - 1)`` times the centred ones.
    Differences that are only noise get full weight. Trades bias.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (0.9, 0.1, 0.5)]
    >>> gd.method("gopo-rank-advantage", gd.column("r")).score(rows).values.tolist()
    [2.0, -2.0, 0.0]
    """
    return rank(reward) * 4.0 - 2.0
