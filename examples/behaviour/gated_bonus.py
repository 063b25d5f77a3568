"""A dense bonus beside a check: added up it outbids a failed check, behind a gate it can't.

Three actions: do the task (passes, bonus 0.2), do it well (passes, bonus 0.6, rarely tried), or fake it (fails the
check, bonus 3). The sum of check and bonus teaches faking. Behind the gate the bonus only decides between the two that
pass.

Measured over 5 seeds, 300 updates of a group of 16: the plain sum ends on faking with probability 0.995; gated, on
doing it well with 0.97 and on faking with 0.003.

    python examples/behaviour/gated_bonus.py gated.png
"""

from __future__ import annotations

import numpy as np
from _learning import Actions, Array, save_curves, train_bandit

import guerdon as gd
from guerdon.methods.gated_accumulation import gated_accumulation

PASSES, BONUS = np.array([1.0, 1.0, 0.0]), np.array([0.2, 0.6, 3.0])
CHECK, EXTRA = gd.column("passes", range=(0, 1)), gd.column("bonus", range=(0, 3))
REWARD = {"plain sum": CHECK + EXTRA, "gated": gated_accumulation([CHECK, EXTRA])}


def outcome(actions: Actions, rng: np.random.Generator) -> dict[str, Array]:
    """Whether each rollout passes the check, and its bonus."""
    return {"passes": PASSES[actions], "bonus": BONUS[actions]}


def train(way: str, *, updates: int = 300, seeds: int = 5) -> Array:
    """The policies, shape ``(seeds, updates + 1, 3)``."""
    advantage = gd.credit.group_relative(REWARD[way], scale="none")
    return train_bandit(advantage, outcome, np.array([1.0, -1.0, 0.0]), updates=updates, rate=0.3, seeds=seeds)


if __name__ == "__main__":
    curves = {}
    for way in REWARD:
        policies = train(way)
        curves[f"{way}: fakes it"] = policies[..., 2]
        curves[f"{way}: does it well"] = policies[..., 1]
    title = "A bonus beside a check outbids it; behind a gate it only breaks ties"
    print(save_curves(curves, "update", "probability", title, "gated_bonus.png"))
