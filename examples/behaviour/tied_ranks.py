"""Ranks with ties broken by position give advantages out of nothing; mid-ranks do not.

All answers earn the same reward, so there is nothing to learn. They are listed as the workers return them, quick
answers (action 0) before slow ones (action 1). Ranks that break ties by index take the order of arrival for merit.

Measured over 5 seeds, 200 updates of a group of 8: by index, quick answers get probability 0.985; with mid-ranks it
stays exactly 0.5.

    python examples/behaviour/tied_ranks.py ties.png
"""

from __future__ import annotations

import numpy as np
from _learning import Actions, Array, save_curves, train_bandit

import guerdon as gd
from guerdon.methods.gopo import gopo

GROUP = 8
BY_INDEX = 2.0 - 4.0 * np.arange(GROUP) / (GROUP - 1)
"""What sorting an all-equal group gives: the first listed is 'best'."""
ADVANTAGE = {"by index": gd.column("by_index"), "mid-rank": gopo(gd.column("r"))}


def outcome(actions: Actions, rng: np.random.Generator) -> dict[str, Array]:
    """Equal rewards, and the ranks of a sort that keeps equal ones in place."""
    return {"r": np.ones(len(actions)), "by_index": BY_INDEX}


def train(ties: str, *, updates: int = 200, seeds: int = 5) -> Array:
    """The probability of a quick answer, shape ``(seeds, updates + 1)``."""
    policies = train_bandit(
        ADVANTAGE[ties], outcome, np.zeros(2), updates=updates, rate=0.1, group=GROUP, seeds=seeds, arrival=np.sort
    )
    return policies[..., 0]


if __name__ == "__main__":
    curves = {ties: train(ties) for ties in ADVANTAGE}
    title = "Nothing to learn: index-broken ties teach the order of arrival"
    print(save_curves(curves, "update", "probability of a quick answer", title, "tied_ranks.png"))
