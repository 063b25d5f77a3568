"""ConfClip: the verdict, weighted by how sure the policy was."""

from __future__ import annotations

import math

from guerdon import shape
from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method


@method(
    "confclip",
    family="likelihood",
    name="ConfClip: confidence-weighted and clipped reward",
    source="Zhang et al. 2025, arXiv:2509.17730",
    evidence="abstract-only",
)
def confclip(correct: Reward, confidence: Reward, *, low: float = 0.2, high: float = 0.8) -> Reward:
    """``R = c`` if right, ``-c`` if wrong, ``c`` the policy's own confidence clipped to ``[low, high]``.

    ``correct``: 0/1; ``confidence``: usually `mean_confidence`; shape ``(rollouts,)``, in ``[-high, high]``. Group
    normalisation follows. The product and the clipping are published; this form and the bounds are *our reading*.
    Unknown confidence or verdict: unknown.

    Traps: in an all-right group only confidence differs, and the z-score blows that up to about 1 whatever its size:
    use ``methods.variance_profile.guarded_zscore``, whose ``floor`` holds it down. The policy can learn to be sure of
    everything: watch its entropy. The mean log-probability depends on length and on which tokens it is taken over.
    """
    if not 0.0 <= low <= high:
        raise ValueError(f"confclip needs 0 <= low <= high, not {low} and {high}")
    sure = shape.clip(confidence, low, high)
    return when(correct, sure, -sure)


def mean_confidence(logprobs: Reward) -> Reward:
    """``exp((1/T) sum_t log p_t)`` over a rollout's tokens, in [0, 1]: the geometric mean of their probabilities."""
    return shape.exp(logprobs.within(-math.inf, 0.0).mean(to="rollout"))
