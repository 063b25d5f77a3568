"""PiCA: a reward for each search, and none for too many."""

from __future__ import annotations

import numpy as np

from guerdon import credit
from guerdon.core.axis import FloatArray
from guerdon.core.interval import Interval
from guerdon.core.operators import itemwise, when
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.methods._registry import method


@method(
    "pica-pivot-credit",
    family="credit",
    name="PiCA: Pivot-Based Credit Assignment",
    source="Liu et al. 2026, arXiv:2605.09287 (released code)",
    evidence="code-read",
)
def pica(
    risk: Reward,
    outcome: Reward,
    tokens: Reward | None = None,
    *,
    search: Reward | None = None,
    baseline: float = 0.55,
    step_weight: float = 0.3,
    outcome_weight: float = 1.5,
) -> Reward:
    """Step rewards ``step_weight * (1 - p_i - baseline - penalty_i)``; ``outcome_weight * outcome`` on the last token.

    ``risk``: the step model's ``p_i`` per search, lower is better, shape ``(steps,)``. ``search``: 1 for steps that are
    searches and brought information, 0 for the others (the answer), which earn nothing, count in no budget and have no
    risk; without it every step is one. ``penalty_i``: `over_budget`. With ``tokens`` (any token score) a step is paid
    at its last token, else the result is on steps. No search: only the outcome. A search token that is also the last
    gets both (our reading).

    Traps: the released code adds the row to itself in place, so that its scale is 1.3 instead of 0.3 (this is pure); it
    cuts the longer of the model's list and the searches without a word (here: an error of the axis); the paper's idea,
    ``gamma Phi' - Phi``, is `credit.potential_shaping`, the code's centred score is not. Trades bias.
    """
    earlier = credit.place(risk) if search is None else credit.prefix_sum(search) - 1.0
    step = (1.0 - risk - baseline - over_budget(earlier)) * step_weight
    if search is not None:
        step = when(search, step, 0.0)
    if tokens is not None:
        step = credit.spread(step, tokens, how="last")
    return credit.pay_last(step, outcome, weight=outcome_weight)


@transform("methods.over_budget", version=2, range=lambda earlier, **_: Interval(0.0))
def over_budget(earlier: Scores, *, free: int = 3, base: float = 0.3, growth: float = 1.5) -> Scores:
    """0 for the first ``free`` searches, then ``base * growth^(i - free + 1)``; ``i`` of them came ``earlier``."""

    def cost(i: FloatArray) -> FloatArray:
        return np.where(i < free, 0.0, np.minimum(base * growth ** np.minimum(i - free + 1.0, 1000.0), 1e100))

    return itemwise(cost, earlier)
