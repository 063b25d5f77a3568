"""FIRM: a base that must be earned, and a bonus that only multiplies it."""

from __future__ import annotations

from typing import Literal

from guerdon.core.operators import minimum, when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import affine, base_bonus, clip, fallback


def likert(score: Reward, low: float = 1.0, high: float = 5.0) -> Reward:
    """A rating brought to [0, 1]: ``(s - low) / (high - low)``; a rating outside its scale is unknown."""
    return affine(score.within(low, high), 1.0 / (high - low), -low / (high - low))


@method(
    "firm-base-bonus",
    family="shape",
    name="FIRM: faithful image reward modelling with Base-and-Bonus composition",
    source="Zhao et al. 2026, arXiv:2603.12247",
    evidence="code-read",
)
def firm(execution: Reward, consistency: Reward, *, base_weight: float = 0.6, bonus_weight: float = 0.4) -> Reward:
    """For edits: ``CME = E (w1 + w2 C) / (w1 + w2)``, clipped to [0, 1]. `firm_generation` is the one for generation.

    ``execution`` ``E`` and ``consistency`` ``C`` in [0, 1]; ratings from 1 to 5 go through `likert` (the released
    editing code divides by 5 instead, so that a 1 is worth 0.2: don't mix the two). Doing nothing, with perfect
    consistency, earns only what its execution is worth. Shape ``(rollouts,)``. A missing part: unknown.

    Trap: a base of 0 takes the gradient of the bonus away, which is intended, but sparse for an early policy.

    >>> import guerdon as gd
    >>> rows = [{"e": 0.8, "c": 0.6}, {"e": 0.2, "c": 1.0}]
    >>> gd.method("firm-base-bonus", gd.column("e"), gd.column("c")).score(rows).values.round(3).tolist()
    [0.672, 0.2]
    """
    return clip(base_bonus(execution, consistency, base_weight=base_weight, bonus_weight=bonus_weight), 0.0, 1.0)


def firm_generation(
    instruction: Reward,
    quality: Reward,
    *,
    base_weight: float = 0.4,
    missing_quality: Literal["unknown", "instruction"] = "instruction",
) -> Reward:
    """For generation: ``QMA = I (0.4 + 0.6 Q)``; where ``Q`` is unknown, ``I`` alone (as released), or unknown.

    ``base_weight`` 0.5 is the legacy form.
    """
    both = clip(base_bonus(instruction, quality, base_weight=base_weight, bonus_weight=1.0 - base_weight), 0.0, 1.0)
    if missing_quality not in ("unknown", "instruction"):
        raise ValueError(f'missing_quality={missing_quality!r}: choose "unknown" or "instruction"')
    return both if missing_quality == "unknown" else fallback(both, instruction)


def firm_quality(parts: tuple[Reward, Reward, Reward] | None = None, total: Reward | None = None) -> Reward:
    """``Q`` from three ratings 1..5, the least of them, or from their total 3..15; the ratings win where both are
    known."""
    if parts is None and total is None:
        raise ValueError("firm_quality needs three parts or a total")
    whole = None if total is None else likert(total, 3.0, 15.0)
    if parts is None:
        assert whole is not None
        return whole
    least = likert(minimum(minimum(parts[0], parts[1]), parts[2]))
    return least if whole is None else fallback(least, whole)


def firm_guarded(
    execution: Reward, consistency: Reward, *, weights: tuple[float, float] = (0.5, 0.5), threshold: float = 2.0
) -> Reward:
    """A weighted sum of ratings 1..5 in which consistency counts only above an execution of ``threshold`` (raw, <=)."""
    base = likert(execution) * weights[0]
    return when(execution <= threshold, base, base + likert(consistency) * weights[1])
