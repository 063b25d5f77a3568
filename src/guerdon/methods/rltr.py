"""RLTR: reasoning that another model can finish earns more."""

from __future__ import annotations

import math

from guerdon.core.operators import when
from guerdon.core.reward import Reward, as_reward
from guerdon.methods._registry import method


@method(
    "rltr-transfer-reward",
    family="verify",
    name="RLTR: Reinforcement Learning with Transferable Reward",
    source="Lee et al. 2026, arXiv:2602.08489",
    evidence="secondary",
)
def rltr(
    correct: Reward,
    transferred: Reward,
    form: Reward | float = 0.0,
    *,
    answer_weight: float = 1.0,
    transfer_weight: float = 0.5,
    gated: bool = False,
) -> Reward:
    """``R = a R_ans + R_fmt + b R_tr``, one per rollout; ``a``, ``b`` (1 and 0.5) are *our reading*.

    ``correct``: 0/1; ``transferred``: 1 if a frozen receiver, given the prompt and the rollout cut at a random place
    (`cut_length`), reaches the gold answer; several cuts lie on an axis of their own and are averaged, which is also
    the measure of transferability. Published: one receiver, one cut. ``gated`` counts it for right answers only, and
    asks it of them only.

    Traps: a cut near the end leaks the answer; a receiver that solves everything, or nothing, gives every rollout the
    same; wrong rollouts earn it too unless ``gated``; cut the text, not tokens: the tokenizers differ.
    """
    share = transferred if transferred.axis == "rollout" else transferred.mean(to="rollout")
    if gated:
        share = when(correct, share, 0.0)
    return correct * answer_weight + as_reward(form) + share * transfer_weight


def cut_length(length: int, tau: float, *, most: float = 0.9) -> int:
    """``floor(min(tau, most) * length)`` for ``tau`` in (0, 1], drawn uniformly; 0 measures the receiver alone.

    1e-9 is added first, so that 0.29 of 100 is 29. ``most`` keeps the answer at the end out; 1 is as published.

    >>> [cut_length(37, tau) for tau in (0.25, 0.5, 0.9, 1.0)], cut_length(100, 0.29)
    ([9, 18, 33, 33], 29)
    """
    if not (0.0 < tau <= 1.0 and 0.0 < most <= 1.0 and length >= 0):
        raise ValueError(f"a cut needs 0 < tau <= 1, 0 < most <= 1 and a length, not {tau}, {most}, {length}")
    return math.floor(min(tau, most) * length + 1e-9)
