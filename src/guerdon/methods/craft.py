"""CRAFT: an answer, its citations and its reasoning, each checked, in one weighted sum."""

from __future__ import annotations

from collections.abc import Collection

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import items, weighted_mean


@method(
    "craft-answer-faithful-traces",
    family="judge",
    name="CRAFT: Calibrated Reasoning with Answer-Faithful Traces",
    source="Liu et al. 2026, arXiv:2602.01348",
    evidence="secondary",
)
def craft(
    form: Reward,
    answer: Reward,
    cited: Reward,
    judged: Reward,
    *,
    weights: tuple[float, float, float, float] = (0.1, 0.4, 0.2, 0.3),
    gated: bool = True,
) -> Reward:
    """``R = w_f R_fmt + w_a R_ans + w_c R_cite + w_j R_judge``, weights made to add up to 1; in [0, 1] per rollout.

    ``form``: 1 if every required tag stands once and in order (`verify.format`); ``answer``: token F1 or exact match
    (`verify.token_f1` with ``extract="<answer>"``); ``cited``: `citation_f1`; ``judged``: 0/1 for each question to the
    judge (evidence supports each step, steps entail the answer, answer equals the conclusion), on an axis of their
    own. ``R_judge`` is their mean, 0 without a question; a question without a verdict is unknown, and so is the reward.
    ``gated``: the judge is only asked, and only counts, where ``form`` is 1. Formula and weights are *our reading*.

    Traps: citing every passage inflates recall, hence F1; a judge that sees the gold answer repeats it; duplicate tags
    must fail ``form``.
    """
    verdict = when(items(judged, to="rollout") == 0.0, 0.0, judged.mean(to="rollout"))
    if gated:
        verdict = when(form, verdict, 0.0)
    total: Reward = weighted_mean([form, answer, cited, verdict], list(weights))
    return total


def citation_f1(cited: Collection[str], gold: Collection[str], context: Collection[str] | None = None) -> float:
    """F1 of the cited passage ids against the gold ones; repeats count once. 0 if nothing is cited.

    0 too if any id is not in the ``context`` (all passages shown), where that is given.

    >>> citation_f1(["d1", "d2"], ["d1", "d4"])
    0.5
    """
    mine, truth = set(cited), set(gold)
    if not mine or (context is not None and not mine <= set(context)):
        return 0.0
    return 2.0 * len(mine & truth) / (len(mine) + len(truth))
