"""A reward model's score, less what a linear probe of its hidden states says of a concept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from guerdon import shape
from guerdon.core.axis import FloatArray
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape._maps import stable_sigmoid

Squash = Literal["sigmoid", "clip", "none"]


@method(
    "probe-penalised-reward",
    family="audit",
    name="Linear probe penalties reduce sycophancy in reward models",
    source="Papadatos and Freedman 2024, arXiv:2412.00967",
    evidence="abstract-only",
)
def probe_penalised(
    score: Reward,
    probe: Reward,
    *,
    weight: float = 0.5,
    squash: Squash = "sigmoid",
    reference: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Reward:
    """``R' = R - weight s``, ``s`` the ``probe``'s logit for the concept (sycophancy) through a sigmoid; per rollout.

    ``squash="clip"`` clips the logit to [-1, 1], ``"none"`` takes it as it is (for outputs that are probabilities
    already). ``reference``: scores and squashed probe outputs on a fixed set, by whose mean and population deviation
    both are standardised first, so that ``weight`` has no unit; a constant reference only centres. Everything but
    ``R - lambda s`` is *our reading*; values of ``weight`` were swept, not given. `fit_probe` trains the probe.

    Traps: the policy learns to evade a fixed probe: retrain it, and hold out a second one; a probe that goes with
    quality lowers helpfulness: look at their correlation; unbounded logits outweigh ``R``.
    """
    if squash not in ("sigmoid", "clip", "none"):
        raise ValueError(f'squash={squash!r}: choose "sigmoid", "clip" or "none"')
    s = shape.sigmoid(probe) if squash == "sigmoid" else shape.clip(probe, -1.0, 1.0) if squash == "clip" else probe
    if reference is not None:
        score, s = (_standardised(x, values) for x, values in zip((score, s), reference, strict=True))
    return score - s * weight


def _standardised(x: Reward, reference: Sequence[float]) -> Reward:
    values = np.asarray(reference, dtype=np.float64)
    if len(values) == 0 or not np.isfinite(values).all():
        raise ValueError("a reference needs at least one number, all finite")
    flat = values.max() == values.min()
    mean, spread = float(values[0] if flat else values.mean()), 1.0 if flat else float(values.std())
    out: Reward = shape.affine(x, 1.0 / spread, -mean / spread)
    return out


@dataclass(frozen=True)
class Probe:
    """``w . h + b`` on the hidden states of one layer; ``weights`` has shape ``(d,)``."""

    weights: FloatArray
    bias: float

    def logits(self, states: FloatArray) -> FloatArray:
        """For states of shape ``(n, d)``, shape ``(n,)``."""
        return np.asarray(states @ self.weights + self.bias)

    def accuracy(self, states: FloatArray, labels: FloatArray) -> float:
        """Share of labels (0/1) that the sign of the logit gives; choose the layer by that on held-out data."""
        return float(((self.logits(states) > 0) == (labels > 0.5)).mean())


def fit_probe(states: FloatArray, labels: FloatArray, *, steps: int = 500, rate: float = 0.5) -> Probe:
    """Logistic regression by ``steps`` gradient steps from 0, on states of shape ``(n, d)`` and labels 0/1."""
    w, b = np.zeros(states.shape[1]), 0.0
    for _ in range(steps):
        error = stable_sigmoid(states @ w + b) - labels
        w, b = w - rate * states.T @ error / len(labels), b - rate * float(error.mean())
    return Probe(w, b)
