"""Along the items of a rollout, in order: differences, gains over the best so far, and what lies before a first hit."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import Axis, FloatArray, IntArray
from guerdon.core.interval import UNIT, Interval
from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import transform
from guerdon.shape._finite import measured


def _starts(axis: Axis) -> IntArray:
    """The index of each item's first sibling, shape ``(size,)``."""
    if axis.offsets is None:
        raise ValueError(f"axis '{axis.name}' has no order within a parent")
    return axis.offsets[:-1][axis.owner]


@transform("shape.delta", version=1, groups="rollout", range=lambda x, start=0.0: x - x.hull(Interval(start, start)))
def delta(x: Scores, *, start: float = 0.0) -> Scores:
    """What each item adds to the one before it: ``x_t - x_{t-1}``, the first one to ``start``.

    On the axis of ``x`` (step, token), within each rollout. Adds up to ``x_T - start``: repeating a step earns nothing.
    Unknown where either is.

    >>> import guerdon as gd
    >>> gd.shape.delta(gd.column("v", axis="step")).score([{"v": [0.25, 0.75, 0.75]}]).values.tolist()
    [0.25, 0.5, 0.0]
    """
    first = _starts(x.axis) == np.arange(len(x))
    before, known_before = np.full(len(x), start), np.ones(len(x), dtype=np.bool_)
    before[1:], known_before[1:] = x.values[:-1], x.known[:-1]
    before[first], known_before[first] = start, True
    with np.errstate(over="ignore", invalid="ignore"):
        out = measured(x.axis, x.values - before, x.known & known_before, x)
    if out.reasons is not None:
        out.reasons[x.known & ~known_before] = "the item before it is unknown"
    return out


@transform(
    "shape.gain", version=1, groups="rollout", range=lambda x, start=0.0: Interval(0.0, max(x.high - start, 0.0))
)
def gain(x: Scores, *, start: float = 0.0) -> Scores:
    """What each item adds to the best so far: ``max(0, x_t - max(start, max_{u<t} x_u))``.

    Never negative, and adds up to ``max(start, max x) - start`` whatever the path: going back and forth earns
    nothing. An unknown reading is unknown and moves no mark.

    >>> import guerdon as gd
    >>> gd.shape.gain(gd.column("progress", axis="step")).score([{"progress": [30, 10, 30, 50]}]).values.tolist()
    [30.0, 0.0, 0.0, 20.0]
    """
    readings = np.where(x.known, np.maximum(x.values, start), start)
    best = running_max(readings, x.axis)
    before = np.full(len(x), start)
    before[1:] = best[:-1]
    before[_starts(x.axis) == np.arange(len(x))] = start
    return measured(x.axis, best - before, x.known, x)


def running_max(values: FloatArray, axis: Axis) -> FloatArray:
    """The greatest value so far within each parent; exact, since it compares ranks, not shifted values."""
    different, code = np.unique(values, return_inverse=True)
    if len(different) == 0:
        return values.copy()
    place = code.reshape(-1) + axis.owner * len(different)
    return np.asarray(different[np.maximum.accumulate(place) - axis.owner * len(different)])


@transform("shape.until", version=1, groups="rollout", range=lambda hit: UNIT)
def until(hit: Scores) -> Scores:
    """1 for the items up to and with the first one that hits (a 0/1 score), 0 for those after it.

    What a hard violation leaves standing of an episode. Before the first known hit an unknown item leaves everything
    after itself unknown; it is itself still 1.

    >>> import guerdon as gd
    >>> gd.shape.until(gd.column("crash", axis="step")).score([{"crash": [0, 1, 0]}]).values.tolist()
    [1.0, 1.0, 0.0]
    """
    (hit,) = aligned(hit)
    hits = _earlier(hit.known & (hit.values == 1.0), hit.axis)
    doubts = _earlier(~hit.known, hit.axis)
    known = (hits > 0) | (doubts == 0)
    return Scores.of(hit.axis, (hits == 0) * 1.0, known, f"an earlier {hit.axis.name} is unknown")


def _earlier(mask: np.ndarray, axis: Axis) -> IntArray:
    """How many earlier siblings of each item are true."""
    total = np.zeros(len(mask) + 1, dtype=np.int64)
    np.cumsum(mask, out=total[1:])
    return np.asarray(total[:-1] - total[_starts(axis)])
