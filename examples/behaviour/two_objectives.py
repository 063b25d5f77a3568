"""Two objectives of different scale: a plain sum follows the larger, per-component normalisation finds the compromise.

Three arms; the first objective has means 0, 10, 5 (noise 1), the second 1, 0, 0.6 (noise 0.05). Arm 2 is best for the
first objective and worth nothing to the second; arm 3 is good for both.

Measured over 10 seeds, 400 updates of a group of 16 at rate 0.05 (the size of the method's catalogue entry): the plain
sum ends on arm 2 with probability 0.985 (objectives 9.90 and 0.011), per component on arm 3 with 0.74 (4.83 and 0.59).

    python examples/behaviour/two_objectives.py objectives.png
"""

from __future__ import annotations

import numpy as np
from _learning import Actions, Array, save_curves, train_bandit

import guerdon as gd
from guerdon.methods.mo_grpo import mo_grpo

FIRST, SECOND = np.array([0.0, 10.0, 5.0]), np.array([1.0, 0.0, 0.6])
A, B = gd.column("a"), gd.column("b")
ADVANTAGE = {"plain sum": gd.credit.group_relative(A + B), "per component": mo_grpo([A, B])}


def outcome(actions: Actions, rng: np.random.Generator) -> dict[str, Array]:
    """Both objectives of each rollout."""
    size = len(actions)
    return {"a": FIRST[actions] + rng.normal(size=size), "b": SECOND[actions] + 0.05 * rng.normal(size=size)}


def train(way: str, *, updates: int = 400, seeds: int = 10) -> Array:
    """The policies, shape ``(seeds, updates + 1, 3)``."""
    return train_bandit(ADVANTAGE[way], outcome, np.zeros(3), updates=updates, rate=0.05, seeds=seeds)


if __name__ == "__main__":
    curves = {}
    for way in ADVANTAGE:
        policies = train(way)
        curves[f"{way}: arm 2 (first objective only)"] = policies[..., 1]
        curves[f"{way}: arm 3 (compromise)"] = policies[..., 2]
    title = "A plain sum collapses to the objective of larger scale (10 seeds)"
    print(save_curves(curves, "update", "probability of the arm", title, "two_objectives.png"))
