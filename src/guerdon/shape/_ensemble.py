"""Ensembles and repeated scores: mean, deviation, lower bound, and scores merged where they do not differ for sure.

Members are either a sequence of scores, or the items of a finer axis (one column that holds a list per rollout: the
passes of a reward model with dropout, the samples of a judge).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from guerdon.core.axis import PARENTS, Axis, BoolArray, FloatArray, finest
from guerdon.core.interval import Interval
from guerdon.core.operators import reduce_up
from guerdon.core.scores import Evidence, Scores, aligned
from guerdon.core.segments import segment_max, segment_min, segment_sum
from guerdon.core.transform import transform
from guerdon.shape._finite import measured
from guerdon.shape._groups import Groups, widest_std

TOO_FEW_MEMBERS = "too few members for a deviation"


def stacked(members: Scores | Sequence[Scores]) -> Scores:
    """The members as items of one axis under what they score."""
    if isinstance(members, Scores):
        return members
    fitted = aligned(*members)
    count, axis = len(fitted), fitted[0].axis
    below = Axis.under(axis, np.full(axis.size, count), "member")
    values = np.stack([m.values for m in fitted], axis=1).reshape(-1)
    known = np.stack([m.known for m in fitted], axis=1).reshape(-1)
    reasons = np.full(len(values), None, dtype=object)
    for k, member in enumerate(fitted):
        if member.reasons is not None:
            reasons[k::count] = member.reasons
    return Scores.of(below, values, known, reasons)


def _axis(members: Any, *_: object, **__: object) -> str:
    """A sequence is scored on the finest axis among its members, the items of one axis on the axis above."""
    return PARENTS.get(members, "rollout") if isinstance(members, str) else finest(list(members))


def _hull(members: Any) -> Interval:
    ranges = [members] if isinstance(members, Interval) else list(members)
    out: Interval = ranges[0]
    for one in ranges[1:]:
        out = out.hull(one)
    return out


@transform("shape.ensemble_mean", version=1, axis=_axis, range=lambda members, **_: _hull(members))
def ensemble_mean(members: Scores | Sequence[Scores], *, missing: Literal["unknown", "skip"] = "unknown") -> Scores:
    """Mean of the members. Unknown if any is; with ``missing="skip"``, over the known ones, their number as evidence.

    >>> import guerdon as gd
    >>> gd.shape.ensemble_mean([gd.column("a"), gd.column("b")]).score([{"a": 1.0, "b": 2.0}]).values.tolist()
    [1.5]
    """
    x = stacked(members)
    offsets = _offsets(x)
    held = np.where(x.known, x.values, np.inf), np.where(x.known, x.values, -np.inf)
    low, high = segment_min(held[0], offsets, np.inf), segment_max(held[1], offsets, -np.inf)

    def mean(values: FloatArray, ends: Any, count: Any) -> FloatArray:
        with np.errstate(over="ignore"):
            mean_of = segment_sum(values, ends) / np.maximum(count, 1)
        return np.asarray(np.clip(mean_of, low, np.maximum(low, high)))

    return reduce_up(x, mean, to=None, missing=missing)


def _offsets(x: Scores) -> Any:
    if x.axis.offsets is None:
        raise ValueError(f"there is no axis above '{x.axis.name}'")
    return x.axis.offsets


def _spread_range(members: Any, *, ddof: int = 1, **_: object) -> Interval:
    return Interval(0.0, widest_std(_hull(members), ddof))


@transform("shape.ensemble_spread", version=1, axis=_axis, range=_spread_range)
def ensemble_spread(
    members: Scores | Sequence[Scores], *, ddof: int = 1, missing: Literal["unknown", "skip"] = "unknown"
) -> Scores:
    """How much the members disagree: their standard deviation, with ``ddof`` 1 (sample) or 0; exactly 0 where all
    agree.

    Fewer than ``ddof + 1`` known members: unknown. Bring members to a common scale first, or it measures that.

    >>> import guerdon as gd
    >>> passes = gd.column("passes", axis="pass")
    >>> gd.shape.ensemble_spread(passes).score([{"passes": [1.0, 2.0, 3.0]}]).values.tolist()
    [1.0]
    """
    x = stacked(members)
    groups = Groups(x.values, x.known, x.axis.owner, len(_offsets(x)) - 1)
    out = reduce_up(x, lambda v, o, n: groups.std(ddof), to=None, missing=missing)
    return _with_enough(out, groups.members > ddof)


def _with_enough(x: Scores, enough: BoolArray) -> Scores:
    if enough.all():
        return x
    out = measured(x.axis, x.values, x.known & enough, x, x.evidence)
    assert out.reasons is not None
    out.reasons[x.known & ~enough] = TOO_FEW_MEMBERS
    return out


@transform(
    "shape.ensemble_lower_bound",
    version=1,
    axis=_axis,
    range=lambda members, k=1.0, ddof=1, **_: _hull(members) - Interval(0, k) * _spread_range(members, ddof=ddof),
)
def ensemble_lower_bound(
    members: Scores | Sequence[Scores],
    *,
    k: float = 1.0,
    ddof: int = 1,
    missing: Literal["unknown", "skip"] = "unknown",
) -> Scores:
    """Lower confidence bound: mean of the members less ``k`` times their deviation. ``k`` is at least 0.

    Where the members disagree, the score is doubted. Unknown with fewer than ``ddof + 1`` known members.

    >>> import guerdon as gd
    >>> passes = gd.column("passes", axis="pass")
    >>> gd.shape.ensemble_lower_bound(passes).score([{"passes": [1.0, 2.0, 3.0]}]).values.tolist()
    [1.0]
    """
    if not 0 <= k < math.inf:
        raise ValueError(f"ensemble_lower_bound needs k of at least 0, not {k}")
    mean: Scores = ensemble_mean.function(members, missing=missing)
    spread: Scores = ensemble_spread.function(members, ddof=ddof, missing=missing)
    with np.errstate(over="ignore", invalid="ignore"):
        bound = mean.values - k * spread.values
    return measured(mean.axis, bound, mean.known & spread.known, (spread, mean), mean.evidence)


@transform("shape.ensemble_min", version=1, axis=_axis, range=lambda members, **_: _hull(members))
def ensemble_min(members: Scores | Sequence[Scores], *, missing: Literal["unknown", "skip"] = "unknown") -> Scores:
    """The worst case: the least of the members. Unknown if any is; with ``missing="skip"``, of the known ones.

    >>> import guerdon as gd
    >>> gd.shape.ensemble_min([gd.column("a"), gd.column("b")]).score([{"a": 1.0, "b": 2.0}]).values.tolist()
    [1.0]
    """
    x = stacked(members)
    return reduce_up(x, lambda v, o, n: segment_min(v, o), to=None, missing=missing, neutral=np.inf)


def _merged_range(mean: Interval, spread: Interval, *, values: str = "index", **_: object) -> Interval:
    return mean if values == "mean" else Interval(0.0, math.inf)


@transform("shape.merge_uncertain", version=1, groups=True, range=_merged_range)
def merge_uncertain(
    mean: Scores, spread: Scores, *, width: float = 1.0, values: Literal["index", "mean"] = "index"
) -> Scores:
    """Scores of a group merged where their uncertainty overlaps, so that equally good rollouts get equal scores.

    In order of ``mean``, a new cluster starts where the gap to the one before exceeds ``width sqrt(s_i^2 +
    s_{i-1}^2)``. The result is the cluster's number from 0, or (``values="mean"``) the mean of its members. Equal
    means are ordered by spread and always share a cluster, so the input order never matters. Evidence: cluster and
    its size. Many close scores can chain into one cluster; with a spread of 0 nothing merges but equals. Where either
    score is unknown, or the spread below 0, the rollout takes no part and is unknown.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "m": m, "s": 0.1} for m in (1.0, 1.05, 1.1, 2.0, 2.04)]
    >>> gd.shape.merge_uncertain(gd.column("m"), gd.column("s")).score(rows).values.tolist()
    [0.0, 0.0, 0.0, 1.0, 1.0]
    """
    if values not in ("index", "mean"):
        raise ValueError(f'values={values!r}: choose "index" or "mean"')
    mean, spread = aligned(mean, spread)
    known = mean.known & spread.known & (spread.values >= 0)
    owner = mean.axis.owner_in("prompt")
    at = np.flatnonzero(known)
    at = at[np.lexsort((spread.values[at], mean.values[at], owner[at]))]
    m, s, o = mean.values[at], spread.values[at], owner[at]
    opens = np.ones(len(at), dtype=np.bool_)
    with np.errstate(over="ignore"):
        opens[1:] = (o[1:] != o[:-1]) | (np.diff(m) > width * np.hypot(s[1:], s[:-1]))
    cluster = np.cumsum(opens) - 1
    new_group = np.r_[True, o[1:] != o[:-1]] if len(at) else opens
    number = cluster - np.maximum.accumulate(np.where(new_group, cluster, 0)) if len(at) else cluster
    groups = Groups(m, np.ones(len(at), dtype=np.bool_), cluster, int(cluster[-1]) + 1 if len(at) else 0)
    centre = np.clip(groups.mean, groups.low, np.maximum(groups.low, groups.high))
    out, numbers, sizes = np.zeros(len(mean)), np.zeros(len(mean)), np.zeros(len(mean))
    out[at] = number if values == "index" else groups.at(centre)
    numbers[at], sizes[at] = number, groups.at(groups.members)
    proof = Evidence(lambda i: {"cluster": int(numbers[i]), "cluster_size": int(sizes[i])} if known[i] else None)
    merged = measured(mean.axis, out, known, (mean, spread), proof)
    if merged.reasons is not None:
        merged.reasons[mean.known & spread.known & ~known] = "a spread below 0"
    return merged
