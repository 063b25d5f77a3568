"""Statistics over everything seen so far, kept in an explicit state: mean and deviation, extremes, quantiles, moving
averages.

A batch is merged into the statistics before it is shaped by them, so the first batch has its own. Unknown items take no
part and stay unknown, and scores beyond 1e100 move nothing. The state is plain data; keep it with the training
checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from guerdon.core.axis import FloatArray
from guerdon.core.interval import UNIT, Interval
from guerdon.core.operators import itemwise
from guerdon.core.scores import Scores
from guerdon.core.transform import State, transform
from guerdon.shape._groups import Groups
from guerdon.shape._maps import stable_sigmoid

LARGEST = 1e100
"""Scores beyond this take no part in running statistics, whose sums of squares they would overflow."""


def start(**_: object) -> State:
    """Nothing seen."""
    return {"count": 0, "mean": 0.0, "squares": 0.0, "low": 0.0, "high": 0.0}


def usable(x: Scores) -> FloatArray:
    """The known scores that move statistics: a single absurd one (beyond 1e100) must not spoil the state for good."""
    return np.asarray(x.values[x.known & (np.abs(x.values) <= LARGEST)])


def merged(state: State | None, x: Scores) -> State:
    """The moments after the known items of ``x``: Chan's parallel form of Welford's update.

    ``squares`` is the sum of squared deviations from the mean.
    """
    old = state or start()
    fresh = usable(x)
    if len(fresh) == 0:
        return dict(old)
    n, m = int(old["count"]), len(fresh)
    mean = float(fresh.mean())
    gap = mean - old["mean"]
    return {
        "count": n + m,
        "mean": old["mean"] + gap * m / (n + m),
        "squares": old["squares"] + float(((fresh - mean) ** 2).sum()) + gap * gap * n * m / (n + m),
        "low": float(fresh.min()) if n == 0 else min(old["low"], float(fresh.min())),
        "high": float(fresh.max()) if n == 0 else max(old["high"], float(fresh.max())),
    }


def deviation(state: State) -> float:
    """Population deviation of what was seen; 1 while all of it is equal, so that it can be divided by."""
    if state["low"] >= state["high"]:
        return 1.0
    return math.sqrt(state["squares"] / state["count"]) or 1.0


@transform("shape.running_zscore", version=1, groups="batch", initial=start)
def running_zscore(x: Scores, *, state: State | None = None) -> tuple[Scores, State]:
    """``(x - mu) / s`` with mean and population deviation over all batches so far, this one included.

    While everything seen is equal, it is divided by 1.

    >>> import guerdon as gd
    >>> session, shaped = gd.Session(), gd.shape.running_zscore(gd.column("x"))
    >>> batches = [[{"x": x} for x in batch] for batch in ([1.0, 2.0], [3.0])]
    >>> [shaped.score(rows, session=session).values.round(4).tolist() for rows in batches]
    [[-1.0, 1.0], [1.2247]]
    """
    new = merged(state, x)
    return itemwise(lambda v: (v - new["mean"]) / deviation(new), x), new


@transform("shape.running_minmax", version=1, groups="batch", initial=start, range=lambda x, **_: UNIT)
def running_minmax(x: Scores, *, state: State | None = None) -> tuple[Scores, State]:
    """``(x - min) / (max - min)`` over all batches so far, this one included; 0 while everything seen is equal.

    >>> import guerdon as gd
    >>> session, shaped = gd.Session(), gd.shape.running_minmax(gd.column("x"))
    >>> [shaped.score([{"x": x} for x in batch], session=session).values.tolist() for batch in ([0.0, 4.0], [5.0, 3.0])]
    [[0.0, 1.0], [1.0, 0.6]]
    """
    new = merged(state, x)
    width = new["high"] - new["low"]
    return itemwise(lambda v: np.clip((v - new["low"]) / (width or 1.0), 0.0, 1.0), x), new


@transform("shape.running_clip", version=1, groups="batch", initial=start, range=lambda x, **_: x)
def running_clip(x: Scores, *, width: float = 1.0, state: State | None = None) -> tuple[Scores, State]:
    """``clip(x, mu - width s, mu + width s)`` with the running mean and population deviation, this batch included.

    >>> import guerdon as gd
    >>> session, shaped = gd.Session(), gd.shape.running_clip(gd.column("x"))
    >>> batches = [[{"x": x} for x in batch] for batch in ([0.0, 2.0], [10.0])]
    >>> [shaped.score(rows, session=session).values.round(4).tolist() for rows in batches]
    [[0.0, 2.0], [8.3205]]
    """
    new = merged(state, x)
    if new["count"] == 0:
        return x, new
    reach = width * (deviation(new) if new["low"] < new["high"] else 0.0)
    low, high = max(new["mean"] - reach, new["low"]), min(new["mean"] + reach, new["high"])
    return itemwise(lambda v: np.clip(v, min(low, high), max(low, high)), x), new


@transform(
    "shape.running_quantile_scale",
    version=1,
    groups="batch",
    initial=lambda **_: {"seen": []},
    range=lambda x, **_: UNIT,
)
def running_quantile_scale(
    x: Scores,
    *,
    low: float = 0.05,
    high: float = 0.95,
    size: int = 1000,
    state: Mapping[str, Any] | None = None,
) -> tuple[Scores, Mapping[str, Any]]:
    """Where ``x`` lies between two quantiles of the last ``size`` scores seen: ``clip((x - q_low) / (q_high -
    q_low), 0, 1)``.

    Quantiles by linear interpolation, this batch included. Where the two are equal (a difference below 1e-8), 0.5.
    The buffer is the state; it makes the score depend on what was seen, so keep it with the checkpoint.

    >>> import guerdon as gd
    >>> session, shaped = gd.Session(), gd.shape.running_quantile_scale(gd.column("x"), low=0.0, high=1.0)
    >>> [shaped.score([{"x": x} for x in batch], session=session).values.tolist() for batch in ([2.0, 3.0, 4.0], [2.5])]
    [[0.0, 0.5, 1.0], [0.25]]
    """
    if not (0 <= low < high <= 1 and size >= 1):
        raise ValueError(f"running_quantile_scale needs 0 <= low < high <= 1 and size >= 1, not {low}, {high}, {size}")
    seen = [*(state or {"seen": []})["seen"], *usable(x).tolist()][-size:]
    if not seen:
        return itemwise(lambda v: v * 0.0, x), {"seen": seen}
    bottom, top = np.quantile(np.array(seen), [low, high])
    if not top - bottom >= 1e-8:
        return itemwise(lambda v: np.full_like(v, 0.5), x), {"seen": seen}
    return itemwise(lambda v: np.clip((v - bottom) / (top - bottom), 0.0, 1.0), x), {"seen": seen}


@transform(
    "shape.running_mean",
    version=1,
    groups="batch",
    initial=lambda **_: {"mean": None},
    axis=lambda x, **_: "prompt",
    range=lambda x, **_: x,
)
def running_mean(
    x: Scores, *, rate: float = 0.1, state: Mapping[str, Any] | None = None
) -> tuple[Scores, Mapping[str, Any]]:
    """Exponential moving average of the batch mean, one number on the prompt axis: ``m <- (1 - rate) m + rate
    mean(x)``.

    The first batch with a known score sets it, a batch without one leaves it; unknown until then. Rate 1 is the
    batch's own mean.

    >>> import guerdon as gd
    >>> session, shaped = gd.Session(), gd.shape.running_mean(gd.column("x"), rate=0.5)
    >>> [shaped.score([{"x": x} for x in batch], session=session).values.tolist() for batch in ([3.0], [7.0])]
    [[3.0], [5.0]]
    """
    if not 0 < rate <= 1:
        raise ValueError(f"running_mean needs 0 < rate <= 1, not {rate}")
    old: float | None = (state or {"mean": None})["mean"]
    fresh = usable(x)
    new = old
    if len(fresh):
        mean = float(np.clip(fresh.mean(), fresh.min(), fresh.max()))
        new = mean if old is None else (1 - rate) * old + rate * mean
    axis = x.axis.ancestor("prompt")
    if new is None:
        return Scores.blank(axis, "no known score was seen yet"), {"mean": new}
    return Scores.constant(axis, new), {"mean": new}


def _no_groups(**_: object) -> State:
    return {"mean": 0.0, "groups": 0}


@transform(
    "shape.spread_weight",
    version=1,
    groups="batch",
    initial=_no_groups,
    axis=lambda x, **_: "prompt",
    range=lambda x, low=0.4, high=3.0, **_: Interval(low, high),
)
def spread_weight(
    x: Scores,
    *,
    low: float = 0.4,
    high: float = 3.0,
    slope: float = 6.0,
    state: Mapping[str, Any] | None = None,
) -> tuple[Scores, Mapping[str, Any]]:
    """A weight per group that grows with its spread: ``low + (high - low) / (1 + exp(-slope (sigma - sigma_bar)))``.

    ``sigma`` is the population deviation of the group's known scores, ``sigma_bar`` its running mean over all groups
    seen, this batch included, kept in the state. On the prompt axis; a group without known scores is unknown. Groups
    whose deviation is beyond 1e100 move nothing.

    >>> import guerdon as gd
    >>> rows = [{"prompt": p, "x": x} for p, x in (("a", 0.0), ("a", 1.0), ("b", 0.5))]
    >>> gd.shape.spread_weight(gd.column("x")).score(rows).values.round(4).tolist()
    [2.5257, 2.5257, 0.8743]
    """
    groups = Groups.of(x)
    sigma, known = groups.std(), groups.members > 0
    seen, usual = (state or _no_groups())["groups"], sigma[known & (sigma <= LARGEST)]
    count = seen + len(usual)
    mean = ((state or _no_groups())["mean"] * seen + float(usual.sum())) / max(count, 1)
    with np.errstate(over="ignore"):
        values = low + (high - low) * stable_sigmoid(slope * (sigma - mean))
    return Scores.of(x.axis.ancestor("prompt"), values, known, "no known score in the group"), {
        "mean": mean,
        "groups": count,
    }
