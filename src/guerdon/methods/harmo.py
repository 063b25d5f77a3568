"""HARMO: a rule where it can check, a model where not, and a penalty on lengths unlike those of right answers."""

from __future__ import annotations

from guerdon.core.operators import maximum, when
from guerdon.core.reward import Reward, as_reward
from guerdon.methods._registry import method
from guerdon.shape import clip, group_statistic


@method(
    "harmo-hybrid-multiaspect",
    family="shape",
    name="HARMO: hybrid and multi-aspect rewards for MLLMs",
    source="Gulhane and Indurthi 2025, arXiv:2510.05283",
    evidence="secondary",
)
def harmo(
    correct: Reward,
    quality: Reward,
    verifiable: Reward,
    form: Reward,
    length: Reward,
    *,
    threshold: float | None = None,
    tolerance: float = 0.5,
    most: float = 0.5,
) -> Reward:
    """``R = R_hybrid + R_format + R_length``; credit it centred, without division (`credit.group_relative`, scale
    none).

    ``R_hybrid`` is ``correct`` (0/1) where ``verifiable`` is 1, else ``quality``, a model's score; the other one is
    not asked. ``verifiable`` must come from the data, never from the response. Of a model-scored item, rollouts with
    ``quality >= threshold`` count as right; without a threshold none does. See `length_term` for the rest. Shape
    ``(rollouts,)``.

    The length term and its defaults are our reading. Traps: the parts are added unscaled; similarity to one reference
    punishes other good answers.
    """
    judged = when(quality >= threshold, 1.0, 0.0) if threshold is not None else as_reward(0.0)
    right = when(verifiable, correct, judged)
    return when(verifiable, correct, quality) + form + length_term(length, right, tolerance=tolerance, most=most)


def length_term(length: Reward, right: Reward, *, tolerance: float = 0.5, most: float = 0.5) -> Reward:
    """``-most clip(|L - Lbar| / Lbar - tolerance, 0, 1)``, ``Lbar`` the mean length of the group's right rollouts.

    0 for all where the group has no right rollout. Lengths are at least 1.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "n": n, "ok": ok} for n, ok in ((100, 1), (100, 1), (300, 0))]
    >>> (length_term(gd.column("n"), gd.column("ok")).score(rows).values + 0.0).tolist()
    [0.0, 0.0, -0.5]
    """
    usual = group_statistic(length, where=right, empty=1.0)
    off = (length - usual) / usual
    term = clip(maximum(off, -off) - tolerance, 0.0, 1.0) * -most
    return when(group_statistic(length, "count", where=right) > 0, term, 0.0)
