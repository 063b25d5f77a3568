"""A bounded bonus becomes unbounded pressure when all-fail groups are divided by their deviation.

Two actions: *search* solves the task in 2 % of cases and earns little of the dense signal, *stare* never solves it
and earns much. The bonus has weight 0.01, so that honest expected reward prefers searching. In most groups nobody
succeeds; there the z-score rescales the bonus to full size, whatever its weight.

Measured over 5 seeds, 400 updates of 8 groups of 8: divided by the group's deviation the policy stares with probability
0.999 after 50 updates and 0.9998 in the end; not divided, it searches, and stares with probability 0.03.

    python examples/behaviour/dark_room.py dark_room.png
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from _learning import Actions, Array, save_curves, train_bandit

import guerdon as gd

SEARCH, STARE = 0, 1
REWARD = gd.column("task") + gd.column("dense") * 0.01


def outcome(actions: Actions, rng: np.random.Generator) -> dict[str, Array]:
    """Whether each rollout solved the task, and its dense signal in [0, 1]."""
    task = ((actions == SEARCH) & (rng.random(len(actions)) < 0.02)).astype(float)
    dense = np.where(actions == STARE, 0.8, 0.2) + 0.05 * rng.normal(size=len(actions))
    return {"task": task, "dense": np.clip(dense, 0.0, 1.0)}


def train(scale: Literal["std", "none"], *, updates: int = 400, seeds: int = 5) -> Array:
    """The probability of staring, shape ``(seeds, updates + 1)``, with ``scale="std"`` or ``"none"``."""
    advantage = gd.credit.group_relative(REWARD, scale=scale)
    policies = train_bandit(advantage, outcome, np.zeros(2), updates=updates, rate=4.0, group=8, prompts=8, seeds=seeds)
    return policies[..., STARE]


if __name__ == "__main__":
    curves = {"divided by the group's deviation": train("std"), "not divided": train("none")}
    title = "A bonus of weight 0.01 rules all-fail groups once they are divided by their deviation"
    print(save_curves(curves, "update", "probability of staring", title, "dark_room.png"))
