"""SALMON: a reward model that is told its principles, and the bonus and penalty put on its score."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import PARENTS
from guerdon.core.interval import Interval
from guerdon.core.operators import greatest, itemwise, least, minimum
from guerdon.core.reward import Reward, as_reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.methods._registry import method


@method(
    "salmon-principle-rm",
    family="models",
    name="SALMON: self-alignment with principle-following reward models",
    source="Sun et al. 2023, arXiv:2310.05910",
    evidence="code-read",
)
def salmon(
    score: Reward,
    length: Reward,
    unfinished: Reward,
    multiplier: Reward | float = 1.0,
    *,
    full: float = 1024.0,
    bonus: float = 5.0,
    most: float = 0.8,
    penalty: float = 6.0,
    scale: float = 1.0,
) -> Reward:
    """``R = RM + 5 min(multiplier length / 1024, 0.8) - 6 [unfinished]``, paid on the last token.

    ``score``: of the principle-conditioned reward model (`principle_score` and `principle_label` make its data);
    ``length`` in tokens; ``unfinished``: 0/1; ``multiplier``: of the prompt. The released script multiplies it, and
    the KL term, by 10 before GAE: ``scale``. Its per-token ``-0.01 max(log pi - log pi_ref, 0)`` belongs to the
    trainer. Shape ``(rollouts,)``.

    Traps: the length bonus, up to 4, dominates the reward model's scale; a principle and its negation must be phrased
    alike, or the label follows the wording.
    """
    share: Reward = minimum(length * as_reward(multiplier) / full, as_reward(most))
    return (score + share * bonus - unfinished * penalty) * scale


@transform("methods.principle_score", version=1)
def principle_score(first: Scores, second: Scores, variance: Scores) -> Scores:
    """``mean(d1, d2) / Var_p`` if both orders agree on the better answer, else 0, per principle.

    ``first``: logit(A) - logit(B) with the answers in order (1, 2); ``second``: logit(B) - logit(A) in order (2, 1):
    both positive favour answer 1. ``variance``: the principle's population variance over all records, both orders
    pooled, above 0. Trap: it divides by the variance, not by the deviation.
    """

    def compute(d1: np.ndarray, d2: np.ndarray, var: np.ndarray) -> np.ndarray:
        agree = ((d1 > 0) & (d2 > 0)) | ((d1 < 0) & (d2 < 0))
        return np.where(var > 0, np.where(agree, (d1 + d2) / 2.0, 0.0) / np.where(var > 0, var, 1.0), np.nan)

    return itemwise(compute, first, second, variance, trouble="a variance that is not above 0")


@transform(
    "methods.principle_label",
    version=1,
    axis=lambda x, negated=None: PARENTS.get(x, "rollout"),
    range=lambda x, negated=None: Interval(-1.0, 1.0),
)
def principle_label(x: Scores, negated: Scores | None = None) -> Scores:
    """Which answer a record of several principles prefers: the sign of the score of greatest size; 0: skip the record.

    ``x``: `principle_score` of the drawn principles, under the record; where ``negated`` (0/1) is 1 the principle is
    turned round, and its score with it. Of equal sizes with different signs: 0. Unknown if any score is, or there is
    none.
    """
    turned = x if negated is None else itemwise(lambda s, n: np.where(n == 1.0, -s, s), x, negated)
    up = greatest.function(itemwise(lambda v: np.maximum(v, 0.0), turned))
    down = least.function(itemwise(lambda v: np.minimum(v, 0.0), turned))
    return itemwise(lambda a, b: np.sign(a + b), up, down)
