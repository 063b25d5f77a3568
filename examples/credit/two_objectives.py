"""Two objectives of different scale: a plain sum follows the larger, per-component normalisation finds the compromise.

Three arms; the first objective has means 0, 10, 5 (noise 1), the second 1, 0, 0.6 (noise 0.05).

    python examples/credit/two_objectives.py objectives.png
"""

from __future__ import annotations

import numpy as np
from _softmax import Array, save_curves, score_functions, softmax

import guerdon as gd
from guerdon.methods.mo_grpo import mo_grpo

FIRST, SECOND = np.array([0.0, 10.0, 5.0]), np.array([1.0, 0.0, 0.6])
A, B = gd.column("a"), gd.column("b")
ADVANTAGE = {"plain sum": gd.credit.group_relative(A + B), "per component": mo_grpo([A, B])}


def train(way: str, *, updates: int = 400, group: int = 16, rate: float = 0.05, seed: int = 0) -> Array:
    """The policy after every update, shape (updates, 3)."""
    rng = np.random.default_rng(seed)
    logits, seen = np.zeros(3), []
    for _ in range(updates):
        policy = softmax(logits)
        arm = rng.choice(3, group, p=policy)
        first, second = FIRST[arm] + rng.normal(size=group), SECOND[arm] + 0.05 * rng.normal(size=group)
        rows = [{"prompt": "p", "a": a, "b": b} for a, b in zip(first, second, strict=True)]
        advantage = ADVANTAGE[way].score(rows).values
        logits = logits + rate * (advantage[:, None] * score_functions(policy, arm)).mean(axis=0)
        seen.append(softmax(logits))
    return np.array(seen)


if __name__ == "__main__":
    curves = {}
    for way in ADVANTAGE:
        policies = train(way)
        curves[f"{way}: arm 2 (first objective only)"] = policies[:, 1].tolist()
        curves[f"{way}: arm 3 (compromise)"] = policies[:, 2].tolist()
    print(save_curves(curves, "update", "probability", "Two objectives, one advantage", "two_objectives.png"))
