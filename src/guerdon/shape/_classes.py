"""Classes of groups (all-fail, mixed, all-pass), statistics of a group, and scores stratified by another score."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from guerdon.core.axis import FloatArray
from guerdon.core.interval import Interval
from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import transform
from guerdon.shape._finite import measured
from guerdon.shape._groups import Groups, widest_std
from guerdon.shape._normalise import minmax

ALL_FAIL, MIXED, ALL_PASS = 0.0, 1.0, 2.0
"""The classes that `group_class` gives."""

Statistic = Literal["mean", "std", "var", "min", "max", "sum", "count"]


@transform(
    "shape.group_class", version=1, groups=True, axis=lambda x, **_: "prompt", range=lambda x, **_: Interval(0, 2)
)
def group_class(x: Scores, *, fail: float = 0.0, success: float = 1.0) -> Scores:
    """The class of each group, on the prompt axis: 0 all-fail, 1 mixed, 2 all-pass (`ALL_FAIL`, `MIXED`, `ALL_PASS`).

    All-pass if every known member is at least ``success``, all-fail if every one is at most ``fail``, else mixed.
    Unknown members take no part; a group without a known member is unknown. With `choose` it makes rules that depend
    on the class.

    >>> import guerdon as gd
    >>> rows = [{"prompt": p, "r": r} for p, r in (("a", 1), ("a", 0), ("b", 0), ("c", 1))]
    >>> gd.shape.group_class(gd.column("r")).score(rows).values.tolist()
    [1.0, 1.0, 0.0, 2.0]
    """
    if not fail < success:
        raise ValueError(f"group_class needs fail < success, not {fail:g} and {success:g}")
    groups = Groups.of(x)
    classes = np.where(groups.low >= success, ALL_PASS, np.where(groups.high <= fail, ALL_FAIL, MIXED))
    return Scores.of(x.axis.ancestor("prompt"), classes, groups.members > 0, "no known score in the group")


def statistic(groups: Groups, stat: Statistic, ddof: int) -> FloatArray:
    """One statistic of every group's known members, shape ``(count,)``."""
    match stat:
        case "mean":  # clipped: rounding must not carry a mean beyond its members
            return np.clip(groups.mean, groups.low, np.maximum(groups.low, groups.high))
        case "std":
            return groups.std(ddof)
        case "var":
            return groups.var(ddof)
        case "min":
            return groups.low
        case "max":
            return groups.high
        case "sum":
            return groups.total
        case "count":
            return groups.members
    raise ValueError(f'stat={stat!r}: choose "mean", "std", "var", "min", "max", "sum" or "count"')


def _statistic_range(
    x: Interval, stat: Statistic = "mean", *, where: Interval | None = None, ddof: int = 0, empty: float | None = None
) -> Interval:
    std = widest_std(x, ddof)
    out = {
        "std": Interval(0.0, std), "var": Interval(0.0, std * std * (1 + 1e-12)),
        "count": Interval(0.0, math.inf), "sum": Interval(0 if x.low >= 0 else -math.inf, 0 if x.high <= 0 else
        math.inf),
    }.get(stat, x)  # fmt: skip
    return out if empty is None else out.hull(Interval(empty, empty))


@transform("shape.group_statistic", version=1, groups=True, axis=lambda x, *_, **__: "prompt", range=_statistic_range)
def group_statistic(
    x: Scores, stat: Statistic = "mean", *, where: Scores | None = None, ddof: int = 0, empty: float | None = None
) -> Scores:
    """One number per group, on the prompt axis: mean, deviation, extreme, sum or count of its known members.

    With ``where``, a 0/1 score, only of the members where that is 1: the mean length of the right rollouts, say.
    Without any such member: ``empty`` if given, else unknown (``"count"``: 0). ``ddof`` is that of the deviation;
    the sample deviation (1) of one member is unknown, or ``empty``.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "n": n, "ok": ok} for n, ok in ((100, 1), (200, 1), (40, 0))]
    >>> gd.shape.group_statistic(gd.column("n"), where=gd.column("ok")).score(rows).values.tolist()
    [150.0, 150.0, 150.0]
    """
    groups = Groups.of(x, where=where)
    least = ddof + 1 if stat in ("std", "var") else 0 if stat == "count" else 1
    known = groups.members >= least
    values = np.where(known, statistic(groups, stat, ddof), 0.0 if empty is None else empty)
    if empty is not None:
        known = np.ones_like(known)
    return measured(x.axis.ancestor("prompt"), values, known, "too few known members in the group")


@transform("shape.group_log_mean", version=1, groups=True, axis=lambda x: "prompt", range=lambda x: x)
def group_log_mean(x: Scores) -> Scores:
    """Log of the mean of the exponentials of a group: ``log((1/n) sum_i exp(x_i))``, on the prompt axis.

    The mean of probabilities from their logarithms, without underflow. Over the known members; without any, unknown.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "logp": x} for x in (-2.302585, -1.203973)]
    >>> gd.shape.group_log_mean(gd.column("logp")).score(rows).values.round(5).tolist()
    [-1.60944, -1.60944]
    """
    groups = Groups.of(x)
    top = np.where(groups.members > 0, groups.high, 0.0)
    with np.errstate(under="ignore", over="ignore"):
        parts = np.where(groups.known, np.exp(np.where(groups.known, x.values, 0.0) - groups.at(top)), 0.0)
    total = np.bincount(groups.owner, weights=parts, minlength=groups.count)
    count = np.maximum(groups.members, 1)
    values = top + np.log(np.where(groups.members > 0, total, count) / count)
    low = np.where(groups.members > 0, groups.low, 0.0)
    return Scores.of(
        x.axis.ancestor("prompt"), np.clip(values, low, top), groups.members > 0, "no known score in the group"
    )


@transform(
    "shape.label_statistic",
    version=1,
    groups=True,
    range=lambda x, stat="mean", ddof=0: _statistic_range(x, stat, ddof=ddof),
)
def label_statistic(x: Scores, stat: Statistic = "mean", *, ddof: int = 0) -> Scores:
    """A statistic over all rollouts of the prompt at one label: of this criterion, this test, this tree node.

    ``x`` lies below the rollout (criterion, test, step). Items of one prompt with the same label belong together; on an
    axis without labels the position within the rollout is the label. Same shape as ``x``: every item, also an
    unknown one, gets its label's statistic over the known ones; where there is none (``ddof`` 1: fewer than two),
    unknown.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "met": m} for m in ([1, 1], [1, 0], [1, 1], [1, 0])]
    >>> gd.shape.label_statistic(gd.column("met", axis="criterion"), "var").score(rows).framed.values[:2].tolist()
    [0.0, 0.25]
    """
    groups = Groups.of(x, across="label")
    least = ddof + 1 if stat in ("std", "var") else 0 if stat == "count" else 1
    known = groups.at(groups.members >= least).astype(bool)
    return measured(
        x.axis, np.where(known, groups.at(statistic(groups, stat, ddof)), 0.0), known, "too few known at this label"
    )


@transform(
    "shape.stratify",
    version=1,
    groups=True,
    range=lambda quality, by, low=(-0.05, 0.05), high=(0.95, 1.05): Interval(*low).hull(Interval(*high)),
)
def stratify(
    quality: Scores, by: Scores, *, low: tuple[float, float] = (-0.05, 0.05), high: tuple[float, float] = (0.95, 1.05)
) -> Scores:
    """Quality as a tie-break inside each class of a 0/1 score, so that no wrong rollout outscores a right one.

    In each group, ``quality`` (any scale) is mapped by min-max into the band ``low`` among the members with ``by`` 0
    and into ``high`` among those with 1; a class with one member or equal scores takes the middle of its band.
    Unknown where either is, or where ``by`` is neither 0 nor 1. The bands are HERO's (arXiv:2510.07242).

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "q": q, "ok": ok} for q, ok in ((2.0, 1), (0.5, 1), (1.5, 0), (-1.0, 0))]
    >>> gd.shape.stratify(gd.column("q"), by=gd.column("ok")).score(rows).values.tolist()
    [1.05, 0.95, 0.05, -0.05]
    """
    if not low[0] <= low[1] < high[0] <= high[1]:
        raise ValueError(f"stratify needs bands in order and apart, not {low} and {high}")
    share: Scores = minmax.function(quality, within=by)
    right = aligned(quality, by)[1].values
    verdict = share.known & ((right == 0) | (right == 1))
    ends = [np.where(right == 1, b, a) for a, b in zip(low, high, strict=True)]
    values = ends[0] + (ends[1] - ends[0]) * share.values
    out = Scores.of(share.axis, np.clip(values, ends[0], ends[1]), verdict, share)
    if out.reasons is not None:
        out.reasons[share.known & ~verdict] = "the class is neither 0 nor 1"
    return out
