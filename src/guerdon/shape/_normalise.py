"""Normalising within the group: centre, z-score, min-max, mid-rank.

In all of them unknown rollouts take no part and stay unknown; a group with fewer than two known members is unknown; a
group without spread gives exactly 0.
"""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import FloatArray
from guerdon.core.interval import Interval
from guerdon.core.scores import Scores
from guerdon.core.segments import segment_ranks
from guerdon.core.transform import transform
from guerdon.shape._groups import TOO_FEW, Groups


def member_wise(x: Scores, groups: Groups, values: FloatArray, least: int = 2) -> Scores:
    """``values`` for the known members of groups with at least ``least`` of them; the others are unknown."""
    enough = groups.at(groups.members >= least).astype(bool)
    out = Scores.of(x.axis, np.where(x.known & enough, values, 0.0), x.known & enough, x, x.evidence)
    if out.reasons is not None:
        out.reasons[x.known & ~enough] = TOO_FEW
    return out


@transform("shape.centre", version=1, groups=True, range=lambda x: x - x)
def centre(x: Scores) -> Scores:
    """Score minus the mean of its group: ``r_i - mean(r)``.

    Sums to 0 over a group; in ``[low - high, high - low]`` of ``x``.

    >>> rows = [{"prompt": "p", "r": r} for r in (1.0, 0.0, 0.5)]
    >>> import guerdon as gd
    >>> gd.shape.centre(gd.column("r")).score(rows).scores.values.tolist()
    [0.5, -0.5, 0.0]
    """
    groups = Groups.of(x)
    return member_wise(x, groups, np.where(groups.at(groups.flat), 0.0, x.values - groups.at(groups.mean)))


@transform("shape.zscore", version=1, groups=True)
def zscore(x: Scores, *, ddof: int = 0, eps: float = 0.0) -> Scores:
    """Standard score within the group: ``(r_i - mean(r)) / (std(r) + eps)``.

    ``ddof`` 0 is the population deviation (verl, DeepSeekMath), 1 the sample deviation (TRL). Exactly 0 without spread.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (1.0, 0.0, 1.0, 0.0)]
    >>> gd.shape.zscore(gd.column("r")).score(rows).scores.values.tolist()
    [1.0, -1.0, 1.0, -1.0]
    """
    groups = Groups.of(x)
    spread = groups.at(groups.std(ddof)) + eps
    flat = groups.at(groups.flat).astype(bool)
    off = x.values - groups.at(groups.mean)
    return member_wise(x, groups, np.where(flat, 0.0, off / np.where(flat, 1.0, spread)))


@transform("shape.minmax", version=1, groups=True, range=lambda x, low=0.0, high=1.0, **_: Interval(low, high))
def minmax(x: Scores, *, low: float = 0.0, high: float = 1.0, within: Scores | None = None) -> Scores:
    """Map each group's least known score to ``low`` and its greatest to ``high``; a group without spread to the middle.

    With ``within``, a 0/1 or class score, each class of the group is mapped by itself.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (1.0, 2.0, 5.0)]
    >>> gd.shape.minmax(gd.column("r")).score(rows).scores.values.tolist()
    [0.0, 0.25, 1.0]
    """
    groups = Groups.of(x, within)
    bottom, top = groups.at(groups.low), groups.at(groups.high)
    flat = groups.at(groups.flat).astype(bool)
    with np.errstate(invalid="ignore"):
        share = np.where(flat, 0.5, (x.values - bottom) / np.where(flat, 1.0, top - bottom))
    parts = (x,) if within is None else (x, within)
    known = groups.known
    return Scores.of(x.axis, np.where(known, low + (high - low) * share, 0.0), known, parts, x.evidence)


@transform("shape.rank", version=1, groups=True, range=lambda x: Interval(0.0, 1.0))
def rank(x: Scores) -> Scores:
    """Mid-rank within the group, from 0 (least) to 1 (greatest); ties share the mean of their ranks.

    ``(rank_i - 1) / (n - 1)`` with ranks from 1 over the ``n`` known members; 0.5 for all without spread.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (3.0, 1.0, 3.0)]
    >>> gd.shape.rank(gd.column("r")).score(rows).scores.values.tolist()
    [0.75, 0.0, 0.75]
    """
    groups = Groups.of(x)
    values = np.zeros(len(x))
    values[x.known] = segment_ranks(x.values[x.known], groups.owner[x.known])
    return member_wise(x, groups, values / np.maximum(groups.at(groups.members) - 1, 1))
