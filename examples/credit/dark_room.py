"""A bounded bonus becomes unbounded pressure when all-fail groups are divided by their deviation.

Two actions: *search* solves the task in 2 % of cases and earns little of the dense signal, *stare* never solves it
and earns much. The bonus has weight 0.01, so that honest expected reward prefers searching. In most groups nobody
succeeds; there the z-score rescales the bonus to full size.

    python examples/credit/dark_room.py dark_room.png
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from _softmax import save_curves, score_functions, softmax

import guerdon as gd

SEARCH, STARE = 0, 1
REWARD = gd.column("task") + gd.column("dense") * 0.01


def train(
    scale: Literal["std", "none"],
    *,
    updates: int = 400,
    prompts: int = 8,
    group: int = 8,
    rate: float = 4.0,
    seed: int = 0,
) -> list[float]:
    """The probability of staring over the updates, with ``scale="std"`` or ``"none"``."""
    rng = np.random.default_rng(seed)
    advantage = gd.credit.group_relative(REWARD, scale=scale)
    logits, staring = np.zeros(2), []
    size = prompts * group
    for _ in range(updates):
        policy = softmax(logits)
        staring.append(float(policy[STARE]))
        action = rng.choice(2, size, p=policy)
        task = ((action == SEARCH) & (rng.random(size) < 0.02)).astype(float)
        dense = np.clip(np.where(action == STARE, 0.8, 0.2) + 0.05 * rng.normal(size=size), 0.0, 1.0)
        rows = [
            {"prompt": str(i // group), "task": t, "dense": d} for i, (t, d) in enumerate(zip(task, dense, strict=True))
        ]
        scored = advantage.score(rows).values
        logits = logits + rate * (scored[:, None] * score_functions(policy, action)).mean(axis=0)
    return staring


if __name__ == "__main__":
    curves = {"divided by the group's deviation": train("std"), "not divided": train("none")}
    title = "A 0.01 bonus in all-fail groups"
    print(save_curves(curves, "update", "probability of staring", title, "dark_room.png"))
