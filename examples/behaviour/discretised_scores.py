"""A reward model slightly prefers padding. The raw score is hacked; scores merged within the model's own noise are not.

Action 0 is a wrong answer; actions 1 to 10 are right answers with more and more padding. The model scores a right
answer 1 and adds 0.02 per unit of padding, far below its own noise of 0.1. In truth padding beyond 3 units makes an
answer worse. Both policies learn not to be wrong; dividing by the group's deviation turns the tiny preference into full
pressure towards padding, unless equally good answers get equal scores first.

Measured over 5 seeds, 300 updates of a group of 16: true quality under raw scores rises to 0.91 and falls to 0.40 to
0.60; under discretised ones it ends at 0.95 to 0.98.

    python examples/behaviour/discretised_scores.py discretised.png
"""

from __future__ import annotations

import numpy as np
from _learning import Actions, Array, save_curves, train_bandit

import guerdon as gd
from guerdon.methods.discretised import discretised

PADDING = np.arange(10)
PROXY = np.r_[0.0, 1.0 + 0.02 * PADDING]
QUALITY = np.r_[0.0, 1.0 - 0.1 * np.maximum(PADDING - 3, 0)]
NOISE, PASSES = 0.1, 8
SCORES = gd.column("passes", axis="pass")
ADVANTAGE = {
    "raw mean": gd.credit.group_relative(SCORES.mean()),
    "discretised": gd.credit.group_relative(discretised(SCORES)),
}


def outcome(actions: Actions, rng: np.random.Generator) -> dict[str, Array]:
    """What the model says of each rollout in several passes with dropout."""
    return {"passes": PROXY[actions][:, None] + NOISE * rng.normal(size=(len(actions), PASSES))}


def train(way: str, *, updates: int = 300, seeds: int = 5) -> Array:
    """True quality of the policy, shape ``(seeds, updates + 1)``."""
    start = np.r_[2.0, -0.3 * PADDING]  # it starts out often wrong, and with little padding
    return np.asarray(train_bandit(ADVANTAGE[way], outcome, start, updates=updates, rate=0.6, seeds=seeds) @ QUALITY)


if __name__ == "__main__":
    curves = {way: train(way) for way in ADVANTAGE}
    title = "Scores merged within the model's own noise are hacked less than raw ones"
    print(save_curves(curves, "update", "true quality", title, "discretised_scores.png"))
