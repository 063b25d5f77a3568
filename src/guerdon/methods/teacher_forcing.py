"""Teacher forcing recovers rewards: the logits of a trained model, read as Q-values, give a reward per token."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from guerdon import credit, shape
from guerdon.core.axis import FloatArray
from guerdon.core.operators import when
from guerdon.core.reward import Reward, as_reward
from guerdon.methods._registry import method

Value = Literal["max", "soft", "next"]


@method(
    "teacher-forcing-reward",
    family="likelihood",
    name="Teacher forcing recovers reward functions for text generation",
    source="Hao et al. 2022, arXiv:2210.08708",
    evidence="code-read",
)
def teacher_forcing(
    q: Reward,
    next_value: Reward,
    baseline: Reward | float = 0.0,
    ratio: Reward | float = 1.0,
    *,
    scale: float = 100.0,
    limit: float = 1.0,
) -> Reward:
    """Token weights ``clip(rho (G_t - b_t) / scale, -limit, limit)`` of ``-log pi(a_t)``; ``G_t = sum_{u >= t} r_u``.

    ``r_t = Q(s_t, a_t) - V(s_{t+1})``, `induced_reward`. ``q``, ``next_value``, ``baseline`` (the expected ``Q`` under
    the model): columns on the token axis, from `token_values` of the frozen model's logits; ``ratio`` ``rho``:
    importance ratio per token. Shape ``(tokens,)``, in [-limit, limit]. Published: scale 100, limit 1. A rollout with
    an unknown token is unknown.

    Traps: a constant added to all logits of a step must not matter, so they are centred; rewards grow with the
    vocabulary and the temperature, hence ``scale``; the released soft value takes the softmax of the wrong step.
    """
    if not (scale > 0.0 and limit >= 0.0):
        raise ValueError(f"scale={scale!r} must be positive and limit={limit!r} at least 0")
    ahead = credit.returns(induced_reward(q, next_value))
    return shape.clip((ahead - as_reward(baseline)) * ratio * (1.0 / scale), -limit, limit)


def induced_reward(q: Reward, next_value: Reward) -> Reward:
    """``Q(s_t, a_t) - V(s_{t+1})``, where ``V`` is 0 after the last token whatever the column holds there."""
    return q - when(credit.left(q) == 1.0, 0.0, next_value)


class TokenValues(NamedTuple):
    """What a frozen model's logits say of each token; three arrays of shape ``(T,)``."""

    q: FloatArray
    next_value: FloatArray
    baseline: FloatArray


def token_values(logits: FloatArray, tokens: np.ndarray, *, value: Value = "max") -> TokenValues:
    """``Q``, ``V(s_{t+1})`` and the baseline of each token, from ``logits`` (T, vocabulary) and chosen ``tokens`` (T,).

    ``Q(s, a) = f_a - mean f``. ``V(s_{t+1})``: ``"max"``: ``max_a Q(s_{t+1}, a)``; ``"next"``: its mean under the
    softmax of step ``t + 1``; ``"soft"``: under that of step ``t``, as in the released code. 0 after the last token.
    Baseline: the mean of ``Q(s_t, .)`` under the softmax of step ``t``.

    >>> token_values(np.array([[2.0, 0.0, -2.0], [1.0, -1.0, 0.0]]), np.array([0, 1])).next_value.tolist()
    [1.0, 0.0]
    """
    if value not in ("max", "soft", "next"):
        raise ValueError(f'value={value!r}: choose "max", "soft" or "next"')
    q = logits - logits.mean(axis=1, keepdims=True)
    weight = np.exp(q - q.max(axis=1, keepdims=True, initial=-np.inf))
    chance = weight / weight.sum(axis=1, keepdims=True)
    ahead = np.zeros(len(q))
    if value == "max":
        ahead[:-1] = q[1:].max(axis=1, initial=-np.inf)
    else:
        ahead[:-1] = ((chance[:-1] if value == "soft" else chance[1:]) * q[1:]).sum(axis=1)
    return TokenValues(q[np.arange(len(q)), tokens], ahead, (chance * q).sum(axis=1))
