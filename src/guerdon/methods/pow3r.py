"""POW3R: rubric weights that follow what the policy's rollouts still disagree on."""

from __future__ import annotations

import numpy as np

from guerdon.core.interval import Interval
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import transform
from guerdon.methods._registry import method
from guerdon.shape import label_statistic, weighted_items
from guerdon.shape._groups import cells
from guerdon.shape._sums import averages


@method(
    "pow3r-policy-aware-rubric",
    family="shape",
    name="POW3R: policy-aware rubric rewards",
    source="arXiv:2605.20164 (2026)",
    evidence="secondary",
)
def pow3r(verdicts: Reward, weights: Reward, categories: Reward, factors: Reward | None = None) -> Reward:
    """Category-normalised rubric reward with weights ``w_j alpha_j``; without ``factors`` the base reward.

    ``r = (1/K) sum_k (sum_{j in C_k} w_j alpha_j s_j) / (sum_{j in C_k} w_j alpha_j)`` over the ``K`` categories, on
    the rollout axis. ``verdicts`` in [0, 1], ``weights`` > 0 and ``categories`` (numbers) lie on the criterion axis,
    as do ``factors``: the ``alpha`` that `pow3r_factors` gave at the last visit of the prompt (first: 1). A missing
    verdict leaves both sums of its rollout, an empty category the mean over categories; no verdict at all: unknown
    (our reading).

    Traps: store ``alpha`` per prompt and criterion across epochs; the scale of the reward drifts with it, so log the
    base reward too, and evaluate with that only; a judge's noise looks like contrast and raises ``alpha``.

    >>> import guerdon as gd
    >>> met, weight, kind = (gd.column(n, axis="criterion") for n in ("met", "weight", "kind"))
    >>> rows = [{"met": [1, 0, 1], "weight": [3, 1, 5], "kind": [0, 0, 1]}]
    >>> gd.method("pow3r-policy-aware-rubric", met, weight, kind).score(rows).values.tolist()
    [0.875]
    """
    w = weights if factors is None else weights * factors
    return weighted_items(verdicts, w, classes=categories, missing="skip")


@transform(
    "methods.pow3r_factors",
    version=1,
    groups=True,
    axis=lambda verdicts, *_, **__: verdicts,
    range=lambda verdicts, weights, categories, previous, *, low=0.25, high=4.0, **_: Interval(low, high),
)
def pow3r_factors(
    verdicts: Scores,
    weights: Scores,
    categories: Scores,
    previous: Scores,
    *,
    mix: float = 0.5,
    eps: float = 0.01,
    low: float = 0.25,
    high: float = 4.0,
    rate: float = 1.0,
    share: float = 0.75,
) -> Scores:
    """The factors for the next visit, from this visit's verdicts: high where the rollouts disagree on a criterion.

    ``v_j``: population variance of the verdicts on criterion ``j`` over the group; ``g_j = v_j + eps``; ``gbar_k``:
    its mean over the category, weighted by ``w``. ``alpha_hat = clip(1 - mix + mix g_j / gbar_k, low, high)``, 1 in
    a category where all ``v`` are 0; ``alpha <- clip((1 - rate) alpha + rate alpha_hat, low, high)``. A criterion
    with verdicts from fewer than ``share`` of the rollouts keeps its factor and stays out of ``gbar``. All operands
    on the criterion axis; every item gets its criterion's factor, whether its own verdict is known or not. The
    numbers were not published: defaults are those of a worked example.
    """
    verdicts, weights, categories, previous = aligned(verdicts, weights, categories, previous)
    axis = verdicts.axis
    variance: Scores = label_statistic.function(verdicts, "var")
    judged: Scores = label_statistic.function(verdicts, "count")
    prompt = axis.owner_in("prompt")
    members = axis.ancestor("rollout").lengths[prompt]
    fresh = variance.known & weights.known & categories.known & (judged.values >= share * members)
    cell, count, _ = cells(prompt, categories.values)
    g = variance.values + eps
    usual, _ = averages(np.where(fresh, g, 0.0), np.where(fresh, weights.values, 0.0), cell, count)
    ratio = np.where(usual[cell] > 0, g / np.where(usual[cell] > 0, usual[cell], 1.0), 1.0)  # 1 without any contrast
    wanted = np.clip(1.0 - mix + mix * ratio, low, high)
    blended = np.where(fresh, (1.0 - rate) * previous.values + rate * wanted, previous.values)
    return Scores.of(axis, np.clip(blended, low, high), previous.known, previous)
