"""Positive step rewards favour longer paths until they are centred.

A policy goes on with probability 1/2 after every item; items earn rewards of mean 0.5 whatever it does. Raw path
rewards push it to go on; centred ones do not push at all.

    python examples/credit/path_length.py length.png
"""

from __future__ import annotations

import numpy as np
from _softmax import save_curves

import guerdon as gd
from guerdon.methods.prorl import centred

STEPS = gd.column("s", axis="step")
TOTAL = {"raw": STEPS.sum(), "centred": centred(STEPS).sum()}


def gradient(way: str, *, logit: float = 0.0, paths: int = 20000, seed: int = 0) -> tuple[float, float]:
    """The policy gradient of the logit to go on, and its standard error; at most 60 items a path."""
    rng = np.random.default_rng(seed)
    go = 1.0 / (1.0 + np.exp(-logit))
    lengths = np.minimum(rng.geometric(1.0 - go, paths), 60)
    rows = [{"s": rng.normal(0.5, 1.0, n).tolist()} for n in lengths]
    total = TOTAL[way].score(rows).values
    score = (lengths - 1) * (1.0 - go) - np.where(lengths < 60, go, 0.0)
    each = total * score
    return float(each.mean()), float(each.std() / np.sqrt(paths))


def train(way: str, *, updates: int = 60, rate: float = 0.3, seed: int = 0) -> list[float]:
    """Mean path length over the updates."""
    logit, lengths = 0.0, []
    for update in range(updates):
        lengths.append(float(1.0 + np.exp(logit)))
        logit = min(logit + rate * gradient(way, logit=logit, paths=500, seed=seed + update)[0], 2.5)
    return lengths


if __name__ == "__main__":
    curves = {way: train(way) for way in TOTAL}
    print(save_curves(curves, "update", "expected path length", "Length bias of step rewards", "path_length.png"))
