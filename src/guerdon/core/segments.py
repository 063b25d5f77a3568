"""Reductions over consecutive segments of a flat array. Segment ``s`` is ``values[offsets[s]:offsets[s + 1]]``."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import BoolArray, FloatArray, IntArray


def _reduce(ufunc: np.ufunc, values: FloatArray, offsets: IntArray, empty: float) -> FloatArray:
    lengths = np.diff(offsets)
    out = np.full(len(lengths), empty, dtype=np.float64)
    filled = lengths > 0
    if filled.any():
        out[filled] = ufunc.reduceat(values, offsets[:-1][filled])
    return out


def segment_sum(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Sum of each segment; an empty one gives 0.

    >>> segment_sum(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 2, 3])).tolist()
    [3.0, 0.0, 4.0]
    """
    return _reduce(np.add, values, offsets, 0.0)


def segment_product(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Product of each segment; an empty one gives 1."""
    return _reduce(np.multiply, values, offsets, 1.0)


def segment_min(values: FloatArray, offsets: IntArray, empty: float = np.inf) -> FloatArray:
    """Least value of each segment; an empty one gives ``empty``."""
    return _reduce(np.minimum, values, offsets, empty)


def segment_max(values: FloatArray, offsets: IntArray, empty: float = -np.inf) -> FloatArray:
    """Greatest value of each segment; an empty one gives ``empty``."""
    return _reduce(np.maximum, values, offsets, empty)


def segment_count(mask: BoolArray, offsets: IntArray) -> IntArray:
    """How many items of each segment are true."""
    total = np.zeros(len(mask) + 1, dtype=np.int64)
    np.cumsum(mask, out=total[1:])
    return np.asarray(total[offsets[1:]] - total[offsets[:-1]])


def segment_any(mask: BoolArray, offsets: IntArray) -> BoolArray:
    """Whether any item of each segment is true."""
    return np.asarray(segment_count(mask, offsets) > 0)


def segment_ranks(values: FloatArray, owner: IntArray) -> FloatArray:
    """Mid-rank of each item within its segment, from 0; ties share the mean of their ranks.

    ``owner``, same shape as ``values``, is each item's segment.

    >>> segment_ranks(np.array([5.0, 1.0, 5.0, 7.0]), np.array([0, 0, 0, 1])).tolist()
    [1.5, 0.0, 1.5, 0.0]
    """
    if len(values) == 0:
        return np.zeros(0)
    order = np.lexsort((values, owner))
    v, o = values[order], owner[order]
    place = np.arange(len(v), dtype=np.float64)
    opens = np.r_[True, o[1:] != o[:-1]]
    first_of_segment = np.maximum.accumulate(np.where(opens, place, 0.0))
    run = np.cumsum(opens | np.r_[True, v[1:] != v[:-1]]) - 1
    members = np.bincount(run)
    mean_place = np.bincount(run, weights=place) / members
    out = np.empty(len(v))
    out[order] = mean_place[run] - first_of_segment
    return out
