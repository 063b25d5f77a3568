"""Ranks with ties broken by position give advantages out of nothing; mid-ranks do not.

All answers of every group earn the same reward, so there is nothing to learn. Half of each group comes from a sampler
that happens to be listed first, and mostly takes action 0.

    python examples/credit/tied_ranks.py ties.png
"""

from __future__ import annotations

import numpy as np
from _softmax import save_curves, score_functions, softmax

import guerdon as gd
from guerdon.methods.gopo import gopo

GROUP = 8
BY_INDEX = 2.0 - 4.0 * np.arange(GROUP) / (GROUP - 1)
"""What sorting an all-equal group gives: the first listed is 'best'."""


def train(ties: str, *, updates: int = 200, rate: float = 0.1, seed: int = 0) -> list[float]:
    """The probability of action 0 over the updates."""
    rng = np.random.default_rng(seed)
    logits, first = np.zeros(2), []
    for _ in range(updates):
        policy = softmax(logits)
        first.append(float(policy[0]))
        action = np.concatenate([rng.choice(2, GROUP // 2, p=[0.9, 0.1]), rng.choice(2, GROUP // 2, p=policy)])
        advantage = BY_INDEX
        if ties == "mid-rank":
            advantage = gopo(gd.column("r")).score([{"prompt": "p", "r": 1.0}] * GROUP).values
        logits = logits + rate * (advantage[:, None] * score_functions(policy, action)).mean(axis=0)
    return first


if __name__ == "__main__":
    curves = {ties: train(ties) for ties in ("by index", "mid-rank")}
    print(save_curves(curves, "update", "probability of action 0", "Nothing to learn", "tied_ranks.png"))
