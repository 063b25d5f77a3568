"""Normalising within the group: centre, z-score, min-max, mid-rank, ordinal; alone or per component before a sum.

In all of them unknown rollouts take no part and stay unknown. A group without spread is one with max == min, exactly:
`centre`, `zscore` and `ordinal` give 0 there, `rank` and `minmax` the middle. A member without another known one to
compare it with is unknown, but for `minmax` and `ordinal`, to which it is a group without spread. ``across="label"``
compares the items of a finer axis with those of the same label (this criterion, this test) in the other rollouts,
instead of with all items of the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from guerdon.core.axis import FloatArray
from guerdon.core.interval import Interval
from guerdon.core.scores import Scores, aligned
from guerdon.core.segments import segment_ranks
from guerdon.core.transform import transform
from guerdon.shape._finite import measured
from guerdon.shape._groups import TOO_FEW, Across, Groups
from guerdon.shape._sums import Missing, Weights, named, weighted_sum


def member_wise(x: Scores, groups: Groups, values: FloatArray, least: int = 2) -> Scores:
    """``values`` for the known members of groups with at least ``least`` of them; the others are unknown."""
    enough = groups.at(groups.members >= least).astype(bool)
    out = measured(x.axis, np.where(x.known & enough, values, 0.0), x.known & enough, x, x.evidence)
    if out.reasons is not None:
        out.reasons[x.known & ~enough] = TOO_FEW
    return out


@transform("shape.centre", version=1, groups=True, range=lambda x, **_: x - x)
def centre(x: Scores, *, across: Across = "group") -> Scores:
    """Score minus the mean of its group: ``r_i - mean(r)``.

    Sums to 0 over a group; in ``[low - high, high - low]`` of ``x``.

    >>> rows = [{"prompt": "p", "r": r} for r in (1.0, 0.0, 0.5)]
    >>> import guerdon as gd
    >>> gd.shape.centre(gd.column("r")).score(rows).scores.values.tolist()
    [0.5, -0.5, 0.0]
    """
    groups = Groups.of(x, across=across)
    with np.errstate(over="ignore", invalid="ignore"):
        off = x.values - groups.at(groups.mean)
    return member_wise(x, groups, np.where(groups.at(groups.flat), 0.0, off))


@transform("shape.zscore", version=1, groups=True)
def zscore(x: Scores, *, ddof: int = 0, eps: float = 0.0, across: Across = "group") -> Scores:
    """Standard score within the group: ``(r_i - mean(r)) / (std(r) + eps)``.

    ``ddof`` 0 is the population deviation (DeepSeekMath), 1 the sample deviation (verl, TRL). Exactly 0 without spread.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (1.0, 0.0, 1.0, 0.0)]
    >>> gd.shape.zscore(gd.column("r")).score(rows).scores.values.tolist()
    [1.0, -1.0, 1.0, -1.0]
    """
    groups = Groups.of(x, across=across)
    return member_wise(x, groups, groups.standardised(ddof, eps))


@transform("shape.minmax", version=1, groups=True, range=lambda x, low=0.0, high=1.0, **_: Interval(low, high))
def minmax(
    x: Scores, *, low: float = 0.0, high: float = 1.0, within: Scores | None = None, across: Across = "group"
) -> Scores:
    """Map each group's least known score to ``low`` and its greatest to ``high``; a group without spread to the middle.

    With ``within``, a 0/1 or class score, each class of the group is mapped by itself.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (1.0, 2.0, 5.0)]
    >>> gd.shape.minmax(gd.column("r")).score(rows).scores.values.tolist()
    [0.0, 0.25, 1.0]
    """
    groups = Groups.of(x, within, across=across)
    parts = aligned(x) if within is None else aligned(x, within)
    flat = groups.at(groups.flat).astype(bool)
    with np.errstate(invalid="ignore", over="ignore"):
        bottom, top = groups.at(groups.low), groups.at(groups.high)
        # Large ones halved before the difference, so that the width of the widest scores is still a number.
        part = np.where(np.maximum(np.abs(bottom), np.abs(top)) > 1.0, 0.5, 1.0)
        share = (groups.values * part - bottom * part) / np.where(flat, 1.0, top * part - bottom * part)
    share = np.where(flat, 0.5, np.clip(share, 0.0, 1.0))
    known = groups.known
    values = np.where(known, np.clip(low + (high - low) * share, low, high), 0.0)
    return Scores.of(parts[0].axis, values, known, parts, parts[0].evidence)


@transform("shape.rank", version=1, groups=True, range=lambda x, **_: Interval(0.0, 1.0))
def rank(x: Scores, *, across: Across = "group") -> Scores:
    """Mid-rank within the group, from 0 (least) to 1 (greatest); ties share the mean of their ranks.

    ``(rank_i - 1) / (n - 1)`` with ranks from 1 over the ``n`` known members; 0.5 for all without spread.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (3.0, 1.0, 3.0)]
    >>> gd.shape.rank(gd.column("r")).score(rows).scores.values.tolist()
    [0.75, 0.0, 0.75]
    """
    groups = Groups.of(x, across=across)
    values = np.zeros(len(x))
    values[x.known] = segment_ranks(x.values[x.known], groups.owner[x.known])
    return member_wise(x, groups, values / np.maximum(groups.at(groups.members) - 1, 1))


@transform("shape.ordinal", version=1, groups=True, range=lambda x, **_: Interval(0.0, float("inf")))
def ordinal(x: Scores, *, across: Across = "group") -> Scores:
    """Dense rank within the group from 0: how many different known scores lie below. Equal scores share a number.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (3.0, 1.0, 3.0, 7.0)]
    >>> gd.shape.ordinal(gd.column("r")).score(rows).scores.values.tolist()
    [1.0, 0.0, 1.0, 2.0]
    """
    groups = Groups.of(x, across=across)
    out = np.zeros(len(x))
    at = np.flatnonzero(x.known)
    at = at[np.lexsort((x.values[at], groups.owner[at]))]
    if len(at):
        v, o = x.values[at], groups.owner[at]
        opens = np.r_[True, o[1:] != o[:-1]]
        steps = np.cumsum(~opens & np.r_[False, v[1:] != v[:-1]])
        out[at] = steps - np.maximum.accumulate(np.where(opens, steps, 0))
    return member_wise(x, groups, out, least=1)


@transform("shape.normalised_sum", version=1, groups=True)
def normalised_sum(
    parts: Mapping[str, Scores] | Sequence[Scores],
    weights: Weights = None,
    *,
    ddof: int = 1,
    eps: float = 1e-6,
    missing: Missing = "unknown",
) -> Scores:
    """Each component brought to the same scale within the group before the sum: ``sum_k w_k zscore(r_k)``.

    A part of large variance can then not swallow the others, as it does in a plain sum. A part without spread adds
    exactly 0. ``missing`` is that of `weighted_sum`. GDPO (arXiv:2601.05242) and MO-GRPO use this; both a sample
    deviation.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "a": a, "b": b} for a, b in ((1, 100), (0.5, 102), (0, 101), (0.5, 101))]
    >>> total = gd.shape.normalised_sum([gd.column("a"), gd.column("b")])
    >>> (total.score(rows).values.round(4) + 0.0).tolist()
    [0.0, 1.2247, -1.2247, 0.0]
    """
    scaled = {name: zscore.function(p, ddof=ddof, eps=eps) for name, p in named(parts).items()}
    out: Scores = weighted_sum.function(scaled, weights, missing=missing)
    return out
