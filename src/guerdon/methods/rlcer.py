"""RLCER: self-written criteria count only if meeting them goes with being right."""

from __future__ import annotations

from guerdon.core.operators import maximum, when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import clip, fallback, items, label_correlation


@method(
    "rlcer",
    family="judge",
    name="RLCER: RL with CoT supervision from self-evolving rubrics",
    source="Sheng et al. 2026, arXiv:2602.10885",
    evidence="secondary",
)
def rlcer(
    correct: Reward,
    met: Reward,
    points: Reward,
    *,
    alpha: float = 0.2,
    weight: float = 1.0,
    allowed: Reward | None = None,
) -> Reward:
    """The reasoner's reward: +1 if right, -1 if wrong, plus ``weight`` times the points earned on valid criteria.

    ``met`` 0/1 and ``points`` on a criterion axis, one list of criteria per prompt; ``r_cot = sum valid s v / sum valid
    |s|`` in [-1, 1], 0 without a valid criterion; ``valid``: `valid_criteria`. Normaliser and ``weight`` 1 are our
    reading; ``alpha`` 0.2 is recalled, not checked. Shape ``(rollouts,)``; in [-1 - weight, 1 + weight]. Normalise the
    two roles' rewards apart.

    Traps: all right or all wrong: no criterion is valid, only the outcome is left; in small groups criteria pass by
    chance, so raise ``alpha``; a criterion that restates the answer correlates perfectly: refuse it with ``allowed``.
    """
    valid = valid_criteria(met, correct, alpha=alpha, allowed=allowed)
    earned = when(valid, met * points, 0.0).sum()
    most = when(valid, maximum(points, -points), 0.0).sum()
    share = when(items(met) > 0.0, when(most > 0.0, clip(earned / most, -1.0, 1.0), 0.0), 0.0)
    return when(correct, 1.0, -1.0) + share * weight


def rlcer_writer(
    correct: Reward, met: Reward, form: Reward, *, alpha: float = 0.2, allowed: Reward | None = None
) -> Reward:
    """The rubric writer's reward: the share of its criteria that are valid (0 without any), plus ``form``."""
    valid = valid_criteria(met, correct, alpha=alpha, allowed=allowed)
    return when(items(met) > 0.0, valid.mean(), 0.0) + form


def valid_criteria(met: Reward, correct: Reward, *, alpha: float = 0.2, allowed: Reward | None = None) -> Reward:
    """1 for criteria whose correlation with correctness over the group exceeds ``alpha``, else 0; per criterion.

    An undefined correlation (either side constant, fewer than two known rollouts) is not valid. ``allowed``: 0/1 per
    criterion.
    """
    if not 0.0 <= alpha < 1.0:
        raise ValueError(f"alpha={alpha!r} must lie in [0, 1)")
    valid = fallback(label_correlation(met, correct), 0.0) > alpha
    return valid if allowed is None else valid & allowed
