"""Trade-R1: a noisy return counts as far as evidence, reasoning and decision agree."""

from __future__ import annotations

from typing import Literal

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import weighted_mean

Effect = Literal["dynamic", "fixed", "gate"]


@method(
    "trade-r1",
    family="shape",
    name="Trade-R1: triangular consistency as a gate for noisy returns",
    source="Sun et al. 2026, arXiv:2601.03948",
    evidence="secondary",
)
def trade_r1(
    returns: Reward, semantic: Reward, *, effect: Effect = "dynamic", weight: float = 1.0, threshold: float = 0.5
) -> Reward:
    """``r (0.5 + s)`` for a gain, ``r (2 - s)`` for a loss: good reasoning enlarges gains, bad reasoning losses.

    ``returns``: ``r``, say a 10-day excess return, any scale; ``semantic``: ``s`` in [0, 1], `triangular_consistency`;
    one per rollout. Gains are multiplied by 0.5 to 1.5, losses by 1 to 2; the result never falls in ``s``.
    ``effect="fixed"`` is ``r + weight s``, ``"gate"`` is ``r`` where ``s >= threshold`` and 0 elsewhere: *our reading*
    of the fixed effect, whose published form was not seen, as are ``weight`` and ``threshold``.

    Traps: ``s`` is also a hidden bonus of `semantic_bonus`, which centring within the group does not remove; a judge
    of the same model as the policy inflates ``s``; a return of exactly 0 carries no semantic signal.
    """
    semantic = semantic.within(0.0, 1.0)
    if effect == "dynamic":
        return when(returns > 0.0, returns * (semantic + 0.5), returns * (2.0 - semantic))
    if effect == "fixed":
        return returns + semantic * weight
    if effect == "gate":
        return when(semantic >= threshold, returns, 0.0)
    raise ValueError(f'effect={effect!r}: choose "dynamic", "fixed" or "gate"')


def triangular_consistency(
    evidence_reasoning: Reward,
    reasoning_decision: Reward,
    evidence_decision: Reward,
    *,
    combine: Literal["mean", "product"] = "mean",
) -> Reward:
    """Mean (our reading) or product of three agreements in [0, 1], each judged on its own."""
    if combine == "product":
        return evidence_reasoning * reasoning_decision * evidence_decision
    if combine != "mean":
        raise ValueError(f'combine={combine!r}: choose "mean" or "product"')
    mean: Reward = weighted_mean([evidence_reasoning, reasoning_decision, evidence_decision])
    return mean


def semantic_bonus(size: Reward | float, semantic: Reward) -> Reward:
    """``E|r| (s - 0.75)``: what the dynamic effect pays for ``s`` alone where returns are noise around 0.

    ``size`` is the mean absolute return. Below 0 under the break-even ``s = 0.75``. Report it beside the reward.
    """
    return (semantic - 0.75) * size
