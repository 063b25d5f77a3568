"""Items of one axis pooled onto the items of another: several readings for each step, say, down to one."""

from __future__ import annotations

from typing import Literal

import numpy as np

from guerdon.core.interval import Interval
from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import transform
from guerdon.shape._finite import measured

Pool = Literal["max", "min", "sum"]
_WAYS = {"max": (np.maximum, -np.inf), "min": (np.minimum, np.inf), "sum": (np.add, 0.0)}


def _pool_range(x: Interval, at: Interval, like: Interval, pool: Pool = "max") -> Interval:
    return x if pool != "sum" else Interval(0.0 if x.low >= 0 else -np.inf, 0.0 if x.high <= 0 else np.inf)


@transform("shape.pooled", version=1, axis=lambda x, at, like, **_: like, range=_pool_range)
def pooled(x: Scores, at: Scores, like: Scores, *, pool: Pool = "max") -> Scores:
    """Greatest (or least, or sum) of the readings ``x`` that belong to each item of ``like``.

    ``x`` and ``at`` lie on one axis under the rollout; ``at`` says to which item of the axis of ``like`` (whose values
    play no part) a reading belongs, by its position in the rollout from 0. An item with an unknown reading, or
    without any, is unknown; so is a rollout with a reading that belongs nowhere.

    >>> import guerdon as gd
    >>> rows = [{"gain": [2.0, -1.0, 5.0], "of": [0, 0, 1], "s": [0, 0]}]
    >>> best = gd.shape.pooled(gd.column("gain", axis="suffix"), gd.column("of", axis="suffix"), gd.column("s", "step"))
    >>> best.score(rows).scores.values.tolist()
    [2.0, 5.0]
    """
    if pool not in _WAYS:
        raise ValueError(f"pool={pool!r}: choose one of {', '.join(_WAYS)}")
    reading, place = aligned(x, at)
    owner = reading.axis.owner_in("rollout")
    offsets = like.axis.offsets_over("rollout")
    size = np.diff(offsets)[owner]
    fits = place.known & (place.values >= 0) & (place.values < size) & (place.values == np.floor(place.values))
    item = offsets[:-1][owner[fits]] + place.values[fits].astype(np.int64)
    ufunc, start = _WAYS[pool]
    values = np.full(like.axis.size, start)
    with np.errstate(over="ignore"):
        ufunc.at(values, item, np.where(reading.known, reading.values, start)[fits])
    heard = np.bincount(item, minlength=like.axis.size)
    missed = np.bincount(item[~reading.known[fits]], minlength=like.axis.size)
    lost = np.isin(like.axis.owner_in("rollout"), owner[~fits])
    known = (heard > 0) & (missed == 0) & ~lost
    reasons = np.full(like.axis.size, "no reading belongs to it", dtype=object)
    reasons[missed > 0] = "a reading of it is unknown"
    reasons[lost] = "a reading of the rollout belongs to none of its items"
    reasons[known] = None
    return measured(like.axis, np.where(known, values, 0.0), known, reasons)
