"""Pareto dominance within the group: several objectives compared without weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from guerdon.core.axis import BoolArray, FloatArray, IntArray
from guerdon.core.interval import Interval
from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import transform
from guerdon.shape._groups import TOO_FEW, Groups
from guerdon.shape._pairs import pairs
from guerdon.shape._sums import named


@transform("shape.pareto_front", version=1, groups=True, range=lambda parts: Interval(0.0, math.inf))
def pareto_front(parts: Mapping[str, Scores] | Sequence[Scores]) -> Scores:
    """The front that each rollout lies on within its group: 0 if none dominates it, 1 if only members of front 0 do,
    ...

    One dominates another if it is at least as good in every part and better in one; equals share a front. Larger is
    better in every part: negate the others. A rollout with an unknown part is unknown and dominates nobody.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "a": a, "b": b} for a, b in ((1, 0), (0, 1), (0, 0), (1, 0))]
    >>> gd.shape.pareto_front([gd.column("a"), gd.column("b")]).score(rows).values.tolist()
    [0.0, 0.0, 1.0, 0.0]
    """
    scores, points, groups = compared(parts)
    front = np.full(len(points), -1.0)
    left, level = groups.known.copy(), 0.0
    while left.any():
        at = np.flatnonzero(left)
        offsets = np.searchsorted(groups.owner[at], np.arange(groups.count + 1))
        beaten = _beaten_by(points[at], offsets) > 0
        front[at[~beaten]] = level
        left[at[~beaten]] = False
        level += 1.0
    return Scores.of(scores[0].axis, np.maximum(front, 0.0), groups.known, scores)


@transform("shape.dominance", version=1, groups=True, range=lambda parts: Interval(-1.0, 1.0))
def dominance(parts: Mapping[str, Scores] | Sequence[Scores]) -> Scores:
    """How many members of the group it dominates less how many dominate it, over ``n - 1``: in [-1, 1].

    Dominance as in `pareto_front`. Sums to 0 over the group; fewer than two known members: unknown.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "a": a, "b": b} for a, b in ((1, 1), (0, 1), (1, 0))]
    >>> gd.shape.dominance([gd.column("a"), gd.column("b")]).score(rows).values.tolist()
    [1.0, -0.5, -0.5]
    """
    scores, points, groups = compared(parts)
    at = np.flatnonzero(groups.known)
    offsets = np.searchsorted(groups.owner[at], np.arange(groups.count + 1))
    net = np.zeros(len(points))
    net[at] = _beaten_by(-points[at], offsets) - _beaten_by(points[at], offsets)
    others = groups.at(groups.members) - 1
    known = groups.known & (others >= 1)
    out = Scores.of(scores[0].axis, np.where(known, net / np.maximum(others, 1), 0.0), known, scores)
    if out.reasons is not None:
        out.reasons[groups.known & ~known] = TOO_FEW
    return out


def compared(
    parts: Mapping[str, Scores] | Sequence[Scores],
) -> tuple[tuple[Scores, ...], FloatArray, Groups]:
    """The parts on one axis, their values (n, parts), and the groups of items whose parts are all known."""
    scores = aligned(*named(parts).values())
    known: BoolArray = np.logical_and.reduce([s.known for s in scores])
    whole = Scores.of(scores[0].axis, np.where(known, scores[0].values, 0.0), known, scores)
    return scores, np.stack([s.values for s in scores], axis=1), Groups.of(whole)


def _beaten_by(points: FloatArray, offsets: IntArray) -> FloatArray:
    """How many items of its segment dominate each item."""
    count = np.zeros(len(points))
    for i, j in pairs(offsets):
        never, once = np.ones(len(i), dtype=np.bool_), np.zeros(len(i), dtype=np.bool_)
        for part in points.T:  # one part at a time: reducing over a short axis is many times slower
            theirs, mine = part[j], part[i]
            never &= theirs >= mine
            once |= theirs > mine
        better = never & once
        count += np.bincount(i[better], minlength=len(points))
    return count
