"""DG-PRM: steps as vectors of criterion scores, compared by Pareto dominance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from guerdon.core.interval import Interval
from guerdon.core.operators import itemwise
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.methods._registry import method
from guerdon.shape import pareto_front, weighted_mean
from guerdon.shape._pairs import pairs
from guerdon.shape._pareto import compared


@method(
    "dg-prm",
    family="process",
    name="DG-PRM: reward tree with Pareto-based pairs",
    source="Yin et al. 2025, arXiv:2507.17849",
    evidence="secondary",
)
def dg_prm(
    criteria: Mapping[str, Reward] | Sequence[Reward],
    *,
    scalar: Literal["front", "mean"] = "front",
    grain: float | None = None,
) -> Reward:
    """Dense step rewards ``1 / (1 + front)`` in (0, 1], or the mean of the criteria; on the axis of the criteria.

    ``criteria``: one score per criterion, all on one axis (steps; rollouts work too); ``front``: `shape.pareto_front`
    among all steps of the prompt, 0 for those that none dominates. Both scalars are *our reading*; `dominance_pairs`
    gives the pairs for DPO. A step with an unknown criterion is unknown: it dominates nothing and nothing dominates it,
    since a missing criterion is not a 0.

    Traps: with many criteria almost nothing dominates anything, and every step gets 1: ``grain`` compares scores
    rounded down to its multiples (epsilon boxes; ours); duplicates share a front; growing trees of criteria need a
    merge threshold.
    """
    if scalar not in ("front", "mean"):
        raise ValueError(f'scalar={scalar!r}: choose "front" or "mean"')
    if scalar == "mean":
        mean: Reward = weighted_mean(criteria)
        return mean
    parts = criteria if isinstance(criteria, Mapping) else {str(i): c for i, c in enumerate(criteria)}
    boxes = parts if grain is None else {name: boxed(c, grain) for name, c in parts.items()}
    front: Reward = pareto_front(boxes)
    return 1.0 / (1.0 + front)


@transform("methods.boxed", version=1, range=lambda x, grain: x + Interval(-grain, 0.0))
def boxed(x: Scores, grain: float) -> Scores:
    """``x`` rounded down to a multiple of ``grain``: scores in one box are equal, and dominance stays transitive."""
    if not grain > 0.0:
        raise ValueError(f"grain={grain!r} must be positive")
    return itemwise(lambda v: grain * np.floor(v / grain), x)


def dominance_pairs(criteria: Mapping[str, Scores] | Sequence[Scores]) -> list[tuple[int, int, int]]:
    """``(better, worse, fronts apart)`` for each pair of a prompt in which one dominates the other; far apart first.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "a": a, "b": b} for a, b in ((3, 2), (2, 2), (1, 3))]
    >>> dominance_pairs([gd.column(n).score(rows).framed for n in "ab"])
    [(0, 1, 1)]
    """
    front = pareto_front.function(criteria).values
    _, points, groups = compared(criteria)
    at = np.flatnonzero(groups.known)
    found: list[tuple[int, int, int]] = []
    for i, j in pairs(np.searchsorted(groups.owner[at], np.arange(groups.count + 1))):
        x, y = points[at[i]], points[at[j]]
        beats = (x >= y).all(axis=1) & (x > y).any(axis=1)
        found += [(int(a), int(b), int(front[b] - front[a])) for a, b in zip(at[i[beats]], at[j[beats]], strict=True)]
    return sorted(found, key=lambda p: (-p[2], p[0], p[1]))
