"""Internally rewarded RL: a discriminator's reward that does not amplify its noise."""

from __future__ import annotations

from typing import Literal

import numpy as np

from guerdon.core.reward import Reward, as_reward
from guerdon.methods._registry import method
from guerdon.shape import clip, log


@method(
    "irrl-clipped-linear",
    family="shape",
    name="Internally Rewarded RL: clipped linear discriminator reward",
    source="Li et al. 2023, arXiv:2302.00270",
    evidence="code-read",
)
def irrl(
    probability: Reward,
    prior: Reward | float,
    *,
    form: Literal["clipped", "linear", "log", "clipped-log"] = "clipped",
    floor: float = 1e-8,
) -> Reward:
    """``max(q - p, 0)``: how much better than its prior the jointly trained discriminator names the true label.

    ``probability`` ``q`` in [0, 1] of the true label, per trajectory or step; ``prior`` ``p``, 1 / classes if
    uniform. Also ``"linear"`` ``q - p``, ``"log"`` ``ln max(q, floor) - ln p``, and ``"clipped-log"``. The slope of
    the logarithm, 1 / q, is unbounded where an immature discriminator is noisiest; that of the linear form is 1.

    Traps: clipping takes away the penalty below chance, and its gradient; the prior must match how labels are drawn.

    >>> import guerdon as gd
    >>> rows = [{"q": 0.75}, {"q": 0.05}]
    >>> gd.method("irrl-clipped-linear", gd.column("q"), 0.25).score(rows).values.tolist()
    [0.5, 0.0]
    """
    chance = as_reward(prior)
    if form not in ("clipped", "linear", "log", "clipped-log"):
        raise ValueError(f"form={form!r}: choose clipped, linear, log or clipped-log")
    gain = log(probability, floor) - log(chance) if form.endswith("log") else probability - chance
    return clip(gain, 0.0, np.inf) if form.startswith("clipped") else gain
