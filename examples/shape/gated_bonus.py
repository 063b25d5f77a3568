"""A dense bonus beside a check: added up it outbids a failed check, behind a gate it can't.

Three actions: do the task (passes, bonus 0.2), do it well (passes, bonus 0.6, rarely tried), or fake it (fails the
check, bonus 3). The sum of check and bonus teaches faking. Behind the gate the bonus only decides between the two that
pass.

    python examples/shape/gated_bonus.py gated.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import guerdon as gd
from guerdon.methods.gated_accumulation import gated_accumulation

sys.path.append(str(Path(__file__).resolve().parents[1] / "credit"))
from _softmax import Array, save_curves, score_functions, softmax

PASSES, BONUS = np.array([1.0, 1.0, 0.0]), np.array([0.2, 0.6, 3.0])
CHECK, EXTRA = gd.column("passes", range=(0, 1)), gd.column("bonus", range=(0, 3))
REWARD = {"plain sum": CHECK + EXTRA, "gated": gated_accumulation([CHECK, EXTRA])}


def train(way: str, *, updates: int = 300, group: int = 16, rate: float = 0.3, seed: int = 0) -> Array:
    """The policy after every update, shape (updates, 3)."""
    rng = np.random.default_rng(seed)
    reward = gd.credit.group_relative(REWARD[way], scale="none")
    logits, seen = np.array([1.0, -1.0, 0.0]), []
    for _ in range(updates):
        policy = softmax(logits)
        action = rng.choice(3, group, p=policy)
        rows = [{"prompt": "p", "passes": PASSES[a], "bonus": BONUS[a]} for a in action]
        advantage = reward.score(rows).values
        logits = logits + rate * (advantage[:, None] * score_functions(policy, action)).mean(axis=0)
        seen.append(softmax(logits))
    return np.array(seen)


if __name__ == "__main__":
    curves = {}
    for way in REWARD:
        policies = train(way)
        curves[f"{way}: fakes it"] = policies[:, 2].tolist()
        curves[f"{way}: does it well"] = policies[:, 1].tolist()
    print(save_curves(curves, "update", "probability", "A bonus beside a check", "gated.png"))
