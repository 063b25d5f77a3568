"""A reward model slightly prefers padding. The raw score is hacked; scores merged within the model's own noise are not.

Action 0 is a wrong answer; actions 1 to 10 are right answers with more and more padding. The model scores a right
answer 1 and adds 0.02 per unit of padding, far below its own noise of 0.1. In truth padding beyond 3 units makes an
answer worse. Both policies learn not to be wrong; dividing by the group's deviation turns the tiny preference into full
pressure towards padding, unless equally good answers get equal scores first.

    python examples/shape/discretised_scores.py discretised.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import guerdon as gd
from guerdon.methods.discretised import discretised

sys.path.append(str(Path(__file__).resolve().parents[1] / "credit"))
from _softmax import Array, save_curves, score_functions, softmax

PADDING = np.arange(10)
PROXY = np.r_[0.0, 1.0 + 0.02 * PADDING]
QUALITY = np.r_[0.0, 1.0 - 0.1 * np.maximum(PADDING - 3, 0)]
NOISE, PASSES = 0.1, 8
SCORES = gd.column("passes", axis="pass")
ADVANTAGE = {
    "raw mean": gd.credit.group_relative(SCORES.mean()),
    "discretised": gd.credit.group_relative(discretised(SCORES)),
}


def train(way: str, *, updates: int = 300, group: int = 16, rate: float = 0.6, seed: int = 0) -> Array:
    """True quality of the policy after every update, shape (updates,)."""
    rng = np.random.default_rng(seed)
    logits, seen = np.r_[2.0, -0.3 * PADDING], []  # it starts out often wrong, and with little padding
    for _ in range(updates):
        policy = softmax(logits)
        action = rng.choice(len(policy), group, p=policy)
        passes = PROXY[action][:, None] + NOISE * rng.normal(size=(group, PASSES))
        rows = [{"prompt": "p", "passes": row.tolist()} for row in passes]
        advantage = ADVANTAGE[way].score(rows).values
        logits = logits + rate * (advantage[:, None] * score_functions(policy, action)).mean(axis=0)
        seen.append(float(softmax(logits) @ QUALITY))
    return np.array(seen)


if __name__ == "__main__":
    curves = {way: train(way).tolist() for way in ADVANTAGE}
    print(
        save_curves(curves, "update", "true quality", "A reward model that slightly likes padding", "discretised.png")
    )
