"""Metacognition as reward: what the rollout knew, how it followed its plan, and whether it was right."""

from __future__ import annotations

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import known


@method(
    "metacognition-as-reward",
    family="judge",
    name="MaR: Metacognition as Reward",
    source="Chen et al. 2026, arXiv:2605.23384",
    evidence="secondary",
)
def metacognition(
    covered: Reward,
    recovered: Reward,
    units: Reward,
    adherence: Reward,
    shortcut: Reward,
    correct: Reward,
    *,
    lam: float = 0.3,
    listed: Reward | None = None,
    outcome_weight: float = 1.0,
) -> Reward:
    """``R = (k + r) / n + a (1 - lam s) + 1[correct]``, in [0, 3], shape ``(rollouts,)``; for DAPO.

    Counts from the grader: ``covered`` ``k`` of the ``units`` ``n`` gold knowledge units, ``recovered`` ``r`` later in
    the look-back; ``adherence`` ``a`` to the plan and ``shortcut`` severity ``s`` in [0, 1]; ``correct`` 0/1.
    ``lam`` 0.3 is published. ``n = 0``: unknown, and so is ``k + r > n``, since a unit counts once. Any part
    unknown: unknown.

    ``listed`` (ours, not published): how many facts the knowledge part lists. The first term is then the harmonic mean
    of recall and precision, ``2 (k + r) / (n + listed + r)``, so that listing more to raise ``k`` costs.

    Traps: without ``listed`` a long list of facts is free; the process is worth 2 of 3 points, so that a wrong answer
    can outscore a right one unless ``outcome_weight`` exceeds 2.
    """
    if not 0.0 <= lam <= 1.0:
        raise ValueError(f"lam={lam!r} must lie in [0, 1]")
    knowledge = ((covered + recovered) / units).within(0.0, 1.0)
    if listed is not None:
        both = ((covered + recovered) * 2.0) / (units + listed + recovered)
        knowledge = when(known(knowledge), both.within(0.0, 1.0), knowledge)
    regulation = adherence.within(0.0, 1.0) * (1.0 - shortcut.within(0.0, 1.0) * lam)
    return knowledge + regulation + correct.within(0.0, 1.0) * outcome_weight
