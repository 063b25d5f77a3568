"""Let's reinforce step by step: which reducer turns step scores into the one reward that PPO gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from guerdon import credit
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores
from guerdon.methods._registry import method
from guerdon.shape import exp

Reducer = Literal["mean", "product", "min", "max", "last", "sum_log", "sum_logit", "geometric"]


@method(
    "reinforce-step-by-step",
    family="process",
    name="Let's Reinforce Step by Step",
    source="Pan et al. 2023, arXiv:2311.05821",
    evidence="abstract-only",
)
def reinforce_step_by_step(process: Reward, *, reducer: Reducer = "mean") -> Reward:
    """One reward per rollout from ``p_k``, the probability that step ``k`` is right; the choice of reducer decides.

    ``mean``, ``min``, ``max``, ``last``; ``sum_log = sum log max(p, 1e-6)`` and ``product = exp(sum_log)``;
    ``sum_logit`` of ``p`` clipped to ``[1e-6, 1 - 1e-6]``; ``geometric``. The list is the usual one; the paper's own
    was not seen. No step: unknown, never 0 / 0. PPO pays it on the last token (`credit.pay_last`), with the KL term
    at every token.

    Traps: product and sums punish long solutions, the mean rewards padding with trivial steps, the maximum ignores
    errors; a product underflows beyond about 100 steps, its log does not. `reducer_agreement` shows how much the
    order changes.
    """
    ways: Mapping[str, Callable[[], Reward]] = {
        "mean": process.mean,
        "product": lambda: exp(credit.log_product(process)),
        "min": process.min,
        "max": process.max,
        "last": process.last,
        "sum_log": lambda: credit.log_product(process),
        "sum_logit": lambda: credit.logit_sum(process),
        "geometric": lambda: credit.geometric_mean(process),
    }
    if reducer not in ways:
        raise ValueError(f"reducer={reducer!r}: choose one of {', '.join(ways)}")
    return ways[reducer]()


def reducer_agreement(one: Scores, two: Scores) -> float | None:
    """Kendall's tau-b between the orders that two reducers give the same rollouts; ``None`` if either ties them all."""
    both = one.known & two.known
    a, b = (np.sign(np.subtract.outer(s.values[both], s.values[both])) for s in (one, two))
    scale = np.sqrt(np.abs(a).sum() * np.abs(b).sum())
    return float((a * b).sum() / scale) if scale > 0 else None
