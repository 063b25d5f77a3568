"""Positive step rewards favour longer paths until they are centred.

A policy goes on with probability 1/2 after every item; items earn rewards of mean 0.5 (noise 1) whatever it does. Raw
path rewards push it to go on; centred by running statistics, as in ProRL, they do not push at all.

Measured on 200,000 paths (the size of the method's catalogue entry): the gradient of the logit to go on is 0.498 (s.e.
0.006) raw and 0.0008 (s.e. 0.0036) centred. Trained, the mean length runs from 2 into the bound at 13.2 within 10
updates raw, and ends between 1.7 and 2.2 centred.

    python examples/behaviour/path_length.py length.png
"""

from __future__ import annotations

import numpy as np
from _learning import Array, save_curves

import guerdon as gd
from guerdon.methods.prorl import centred

STEPS = gd.column("s", axis="step")
TOTAL = {"raw": STEPS.sum(), "centred": centred(STEPS).sum()}
LONGEST = 60


def gradient(way: str, *, logit: float = 0.0, paths: int = 200_000, seed: int = 0) -> tuple[float, float]:
    """The policy gradient of the logit to go on, and its standard error; at most `LONGEST` items a path."""
    rng = np.random.default_rng(seed)
    go = 1.0 / (1.0 + np.exp(-logit))
    lengths = np.minimum(rng.geometric(1.0 - go, paths), LONGEST)
    items = np.split(rng.normal(0.5, 1.0, lengths.sum()), np.cumsum(lengths)[:-1])
    total = TOTAL[way].score([{"s": path.tolist()} for path in items]).values
    score = (lengths - 1) * (1.0 - go) - np.where(lengths < LONGEST, go, 0.0)
    each = total * score
    return float(each.mean()), float(each.std() / np.sqrt(paths))


def train(way: str, *, updates: int = 60, rate: float = 0.3, seeds: int = 5) -> Array:
    """Mean path length over the updates, shape ``(seeds, updates)``; the logit is held below 2.5."""
    lengths = np.zeros((seeds, updates))
    for seed in range(seeds):
        logit = 0.0
        for update in range(updates):
            lengths[seed, update] = 1.0 + np.exp(logit)
            pushed = gradient(way, logit=logit, paths=500, seed=1000 * seed + update)[0]
            logit = min(logit + rate * pushed, 2.5)
    return lengths


if __name__ == "__main__":
    curves = {way: train(way) for way in TOTAL}
    title = "Step rewards above 0 pay for length until they are centred"
    print(save_curves(curves, "update", "expected path length", title, "path_length.png"))
