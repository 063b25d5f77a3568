"""PCS: confidence that rises late is rewarded, commitment from the start is punished."""

from __future__ import annotations

import numpy as np

from guerdon import credit, shape
from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method


@method(
    "progressive-confidence-shaping",
    family="consensus",
    name="PCS: progressive confidence shaping",
    source="Gai et al. 2026, arXiv:2605.24396",
    evidence="secondary",
)
def progressive_confidence(advantage: Reward, confidence: Reward, *, checkpoints: int = 6, eta: float = 1.0) -> Reward:
    """``A'_t = A_t - eta <c, w>``, on the axis of ``advantage`` (rollouts or tokens).

    ``confidence``: ``c_k``, the share of answers forced at ``K`` evenly spaced places of the reasoning (0 to 100 %)
    that match the gold answer, in [0, 1], ``K = checkpoints`` per rollout on an axis of their own. ``w`` falls
    evenly from 0.5 to -0.5: (0.5, 0.3, 0.1, -0.1, -0.3, -0.5) for 6. It adds up to 0, so that a constant trajectory
    costs nothing. Published: K = 6, 10 answers each, eta 1. A rollout with another number of checkpoints, or an
    unknown one, is unknown. The audit `is_progressive` matches against the final answer instead.

    Traps: ``K`` times 10 more generations per rollout; cut at ends of sentences, not inside a formula; a match with the
    gold answer at 0 % shows contamination; the penalty comes after normalising, so the group's mean advantage is no
    longer 0. Trades bias.
    """
    return advantage - early_commitment(confidence, checkpoints=checkpoints) * eta


def early_commitment(confidence: Reward, *, checkpoints: int = 6) -> Reward:
    """``<c, w>`` per rollout: above 0 where confidence comes early, below where it comes late."""
    if checkpoints < 2:
        raise ValueError(f"checkpoints={checkpoints}: a trajectory needs at least 2")
    weight = 0.5 - credit.place(confidence) / (checkpoints - 1.0)
    bound = float(np.linspace(0.5, -0.5, checkpoints).clip(0.0).sum()) + 1e-9
    complete = shape.items(confidence) == float(checkpoints)
    product = shape.only(confidence * weight, where=complete).sum(to="rollout")
    return product.within(-bound, bound)


def is_progressive(confidence: Reward, *, threshold: float = 0.4) -> Reward:
    """1 if Spearman's correlation of confidence with its place is at least ``threshold``, 0 (premature) if not.

    A constant trajectory has no correlation and is premature. The published audit takes 11 checkpoints, 0 to 100 %.
    """
    constant = confidence.min(to="rollout") == confidence.max(to="rollout")
    return when(constant, 0.0, shape.spearman(confidence) >= threshold)
