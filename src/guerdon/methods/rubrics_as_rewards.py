"""Rubrics as Rewards: a weighted checklist per prompt, or one rating of the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guerdon.core.reward import Reward
from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import signal
from guerdon.methods._registry import method
from guerdon.shape import affine, weighted_items

WEIGHTS: Mapping[str, float] = {"essential": 1.0, "important": 0.7, "optional": 0.3, "pitfall": 0.9}
"""The published weight of each category of item."""


@signal(axis="criterion", per="rollout", range=(0.0, 1.0), key="methods.category_weights", version=1)
def category_weights(rollout: Rollout, *, column: str = "categories") -> list[Score]:
    """The published weight of each rubric item, from a column that lists the items' categories.

    An unknown category is unknown. Pitfalls must be phrased positively: met means avoided.
    """
    names = rollout.get(column)
    if not isinstance(names, Sequence) or isinstance(names, str):
        raise ValueError(f"column '{column}' lists no categories")
    return [_weight(str(name)) for name in names]


def _weight(name: str) -> Score:
    weight = WEIGHTS.get(name.strip().lower())
    return Score(weight) if weight is not None else Score.unknown(f"no weight for category {name!r:.40}")


@method(
    "rubrics-as-rewards",
    family="judge",
    name="Rubrics as Rewards (RaR)",
    source="Gunjal et al. 2025, arXiv:2507.17746",
    evidence="secondary",
)
def rubrics_as_rewards(met: Reward, weights: Reward | None = None) -> Reward:
    """Explicit form: ``r = sum_j w_j c_j / sum_j w_j`` over the items with a verdict, in [0, 1], on the rollout axis.

    ``met``: 0/1 verdicts on the criterion axis (one outside [0, 1] is no verdict); ``weights`` beside them, by default
    `category_weights` of the column ``categories`` (essential 1, important 0.7, optional 0.3, pitfall 0.9). An item
    without a verdict leaves both sums, and the number of known ones is evidence; none left, no items or no weight:
    unknown, never 0 / 0. `rubric_rating` is the implicit form, the better one in the source.

    Traps: a pitfall phrased negatively turns the sign; verdicts left out make a lenient judge of a failing parser, so
    watch their number; prompts with few items vary more; long answers meet more items.
    """
    return weighted_items(met.within(0.0, 1.0), category_weights if weights is None else weights, missing="skip")


def rubric_rating(rating: Reward, *, from_zero: bool = False) -> Reward:
    """Implicit form: a judge's rating 1..10 of the whole rubric as ``(L - 1) / 9``, or ``L / 10`` (``from_zero``)."""
    inside = rating.within(1.0, 10.0)
    return affine(inside, 0.1, 0.0) if from_zero else affine(inside, 1.0 / 9.0, -1.0 / 9.0)
