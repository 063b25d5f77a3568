"""A chain in which every step must be right: credit for the right prefix of a wrong rollout keeps learning fast.

At each of ``depth`` levels a softmax policy takes one of two branches; only one leaf is right. Under the outcome alone
a group teaches nothing until some rollout gets everything right; VPPO pays each wrong rollout for its right prefix.

python examples/credit/right_prefix.py prefix.png
"""

from __future__ import annotations

import numpy as np
from _softmax import save_curves, score_functions, softmax

import guerdon as gd
from guerdon.methods.vppo import vppo

CORRECT, RIGHT = gd.column("correct", range=(0, 1)), gd.column("right", axis="step", range=(0, 1))
WAYS = {
    "outcome": gd.credit.spread(gd.credit.group_relative(CORRECT, scale="none"), RIGHT),
    "right prefix": vppo(CORRECT, RIGHT, RIGHT, 0.0),
}


def train(way: str, *, depth: int, seed: int, updates: int = 400, group: int = 8, rate: float = 1.0) -> list[float]:
    """The chance of a right rollout after each update, until it reaches 0.9."""
    rng = np.random.default_rng(seed)
    logits = np.zeros((depth, 2))
    success: list[float] = []
    while len(success) < updates and (not success or success[-1] < 0.9):
        policy = softmax(logits)
        taken = (rng.random((group, depth)) < policy[:, 1]).astype(np.int64)
        rows = [{"prompt": "p", "right": path.tolist(), "correct": int(path.all())} for path in taken]
        advantage = WAYS[way].score(rows).values.reshape(group, depth)
        for level in range(depth):
            logits[level] += rate * advantage[:, level] @ score_functions(policy[level], taken[:, level]) / group
        success.append(float(softmax(logits)[:, 1].prod()))
    return success


def updates_needed(way: str, *, depth: int, seeds: int = 5) -> float:
    """Median number of updates until a rollout is right with probability 0.9."""
    return float(np.median([len(train(way, depth=depth, seed=seed, updates=2000)) for seed in range(seeds)]))


if __name__ == "__main__":
    curves = {way: train(way, depth=8, seed=0, updates=2000) for way in WAYS}
    print(save_curves(curves, "update", "probability of a right rollout", "Eight steps, one right leaf", "prefix.png"))
