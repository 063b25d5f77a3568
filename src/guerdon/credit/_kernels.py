"""Recursions over ragged segments of a flat array, without padding and with little memory beside the result.

Segment ``s`` is ``x[offsets[s]:offsets[s + 1]]``; empty segments are fine. No segment's numbers ever touch another's,
not even by a rounding error. With numba installed (``pip install 'guerdon[fast]'``) long arrays use compiled loops; the
results are the same up to the order of summation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from guerdon.core.axis import FloatArray, IntArray
from guerdon.core.segments import segment_max
from guerdon.credit import _loops

BLOCK = 16
"""Items that one row of the blocked recursion holds."""
SHORT = 64
"""Segments up to this length are accumulated together with others of their length, longer ones each by itself."""
CHUNK = 1 << 17
"""Items handled at a time, so that temporary arrays stay in the processor's cache."""
HUGE = 1e280
"""Values beyond this are scaled while they are summed."""
COMPILE_FROM = 1 << 16
"""Shorter arrays are not worth loading the compiler for."""


def spread(values: npt.NDArray[Any], lengths: IntArray, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """``values`` (one per segment), repeated ``lengths`` times each, in ``dtype`` (default: their own).

    >>> spread(np.array([0.5, -0.5]), np.array([1, 2])).tolist()
    [0.5, -0.5, -0.5]
    """
    return np.repeat(np.asarray(values, dtype=dtype), lengths)


def chunks(size: int) -> Iterator[slice]:
    """Slices that cover ``size`` items, each small enough for the processor's cache.

    >>> [(part.start, part.stop) for part in chunks(2 * CHUNK - 1)] == [(0, CHUNK), (CHUNK, 2 * CHUNK - 1)]
    True
    """
    return (slice(start, min(start + CHUNK, size)) for start in range(0, size, CHUNK))


def last_items(offsets: IntArray) -> IntArray:
    """The index of the last item of each non-empty segment."""
    return np.asarray(offsets[1:][np.diff(offsets) > 0] - 1)


def following(x: FloatArray, offsets: IntArray, beyond: float = 0.0) -> FloatArray:
    """Each item's successor in its segment; ``beyond`` for the last one.

    >>> following(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 3])).tolist()
    [2.0, 0.0, 0.0]
    """
    out = np.empty_like(x)
    out[:-1] = x[1:]
    out[last_items(offsets)] = beyond
    return out


def preceding(x: FloatArray, offsets: IntArray, before: FloatArray | float = 0.0) -> FloatArray:
    """Each item's predecessor in its segment; ``before`` (a number, or one per segment) for the first one.

    >>> preceding(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 3])).tolist()
    [0.0, 1.0, 0.0]
    """
    out = np.empty_like(x)
    out[1:] = x[:-1]
    filled = np.diff(offsets) > 0
    out[offsets[:-1][filled]] = before if np.isscalar(before) else np.asarray(before)[filled]
    return out


def positions(offsets: IntArray) -> IntArray:
    """Each item's place in its segment, from 0.

    >>> positions(np.array([0, 2, 3])).tolist()
    [0, 1, 0]
    """
    return np.asarray(np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets)))


def accumulate(ufunc: np.ufunc, x: FloatArray, offsets: IntArray, *, reverse: bool = False) -> FloatArray:
    """``ufunc.accumulate`` (sum, minimum, maximum...) within each segment; from its end with ``reverse``.

    >>> accumulate(np.minimum, np.array([3.0, 1.0, 2.0]), np.array([0, 2, 3]), reverse=True).tolist()
    [1.0, 1.0, 2.0]
    """
    out = np.empty_like(x)
    if ufunc is np.minimum and reverse and (compiled := _compiled(len(x))):
        compiled("suffix_min")(x, offsets, out)
        return out
    lengths = np.diff(offsets)
    long = lengths > SHORT
    for start, end in zip(offsets[:-1][long].tolist(), offsets[1:][long].tolist(), strict=True):
        way = slice(None, None, -1 if reverse else 1)
        ufunc.accumulate(x[start:end][way], out=out[start:end][way])
    for length in np.unique(lengths[~long & (lengths > 0)]).tolist():
        starts = offsets[:-1][lengths == length]
        column = np.arange(length)[:: -1 if reverse else 1]
        for some in np.array_split(starts, len(starts) * length // CHUNK + 1):
            index = some[:, None] + column
            out[index] = ufunc.accumulate(x[index], axis=1)
    return out


def suffix_discounted(x: FloatArray, offsets: IntArray, decay: float, *, reuse: bool = False) -> FloatArray:
    """``G[t] = x[t] + decay * G[t + 1]`` within each segment, ``0 <= decay <= 1``; writes into ``x`` with ``reuse``.

    >>> suffix_discounted(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 3]), 0.5).tolist()
    [2.0, 2.0, 4.0]
    """
    unit_interval(decay=decay)
    if compiled := _compiled(len(x)):
        out = x if reuse else np.empty_like(x)
        compiled("suffix_discounted")(x, offsets, decay, out)
        return out
    if decay == 1.0:
        return accumulate(np.add, x, offsets, reverse=True)
    out = x if reuse else x.copy()
    # Segments whose sum could overflow are scaled down: an infinity times the 0 at their end would leak into the next.
    scale = None
    if len(x) and max(out.max(), -out.min()) > HUGE:
        huge = segment_max(np.abs(out), offsets) > HUGE
        scale = np.repeat(np.where(huge, 2.0**-64, 1.0), np.diff(offsets))
        out *= scale
    _recur(out, last_items(offsets), decay)
    if scale is not None:
        out /= scale
    return out


def window_sums(x: FloatArray, offsets: IntArray, width: int, decay: float) -> FloatArray:
    """``sum_{j < width} decay^j x[t + j]`` over the items left in the segment.

    >>> window_sums(np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 3, 4]), 2, 0.5).tolist()
    [2.0, 4.0, 4.0, 8.0]
    """
    unit_interval(decay=decay)
    longest = int(np.diff(offsets).max(initial=0))
    if width < 1:
        raise ValueError(f"a window holds at least one item, not {width}")
    if width >= longest:
        return suffix_discounted(x, offsets, decay)
    out = np.empty_like(x)
    for span in chunks(len(x) - width + 1):
        part = x[span.start + width - 1 : span.stop + width - 1].copy()
        for j in range(width - 2, -1, -1):
            part *= decay
            part += x[span.start + j : span.stop + j]
        out[span] = part
    _short_windows(x, offsets, width, decay, out)
    return out


def _short_windows(x: FloatArray, offsets: IntArray, width: int, decay: float, out: FloatArray) -> None:
    """Fill in the items whose window reaches beyond their segment's end."""
    tail = np.minimum(np.diff(offsets), width - 1)
    left = accumulate(np.add, np.ones(int(tail.sum())), np.r_[0, np.cumsum(tail)], reverse=True).astype(np.int64)
    at = np.repeat(offsets[1:], tail) - left
    run = np.zeros(len(at))
    for j in range(width - 2, -1, -1):
        inside = j < left
        run[inside] = x[at[inside] + j] + decay * run[inside]
    out[at] = run


def gae(rewards: FloatArray, values: FloatArray, offsets: IntArray, gamma: float, lam: float) -> FloatArray:
    """``A[t] = delta[t] + gamma lam A[t + 1]``, ``delta[t] = rewards[t] + gamma v[t + 1] - v[t]``.

    Writes into ``rewards`` and returns it.
    """
    unit_interval(gamma=gamma, lam=lam)
    if compiled := _compiled(len(rewards)):
        compiled("gae")(values, offsets, gamma, gamma * lam, rewards)
        return rewards
    last = last_items(offsets)
    ends = rewards[last] - values[last]
    for part in chunks(len(rewards) - 1):
        rewards[part] += gamma * values[part.start + 1 : part.stop + 1]
        rewards[part] -= values[part]
    rewards[last] = ends
    return suffix_discounted(rewards, offsets, gamma * lam, reuse=True)


def add_ahead(out: FloatArray, x: FloatArray, offsets: IntArray, ahead: int, weight: float) -> None:
    """``out[t] += weight * x[t + ahead]`` where that item is still in the segment."""
    lengths = np.diff(offsets)
    short = np.minimum(lengths, ahead)
    ends = np.repeat(offsets[1:] - short, short) + positions(np.r_[0, np.cumsum(short)])
    kept = out[ends]
    for part in chunks(len(x) - ahead):
        out[part] += weight * x[part.start + ahead : part.stop + ahead]
    out[ends] = kept


def unit_interval(**given: float) -> None:
    """An error for a parameter outside [0, 1]."""
    for name, value in given.items():
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"{name}={value!r} must lie in [0, 1]")


def _recur(x: FloatArray, last: IntArray, decay: float) -> None:
    """``x[t] += decay * x[t + 1]`` from the back, in place, cut after each index of ``last``.

    First inside rows of `BLOCK` items, all rows at once; then over the rows' first items, which is the same recursion;
    then what enters each row from the next one is passed down the row, as far as no segment ends.
    """
    rows = len(x) // BLOCK
    if rows < 4:
        stops = set(last.tolist())
        for t in range(len(x) - 2, -1, -1):
            if t not in stops:
                x[t] += decay * x[t + 1]
        return
    body, tail = x[: rows * BLOCK].reshape(rows, BLOCK), x[rows * BLOCK :]
    _recur(tail, last[last >= rows * BLOCK] - rows * BLOCK, decay)
    last = last[last < rows * BLOCK]
    for part, factor in _columns(body, last, decay):
        columns = np.ascontiguousarray(part.T)
        for t in range(BLOCK - 2, -1, -1):
            columns[t] += factor[t] * columns[t + 1]
        part[:] = columns.T
    heads = np.concatenate([body[:, 0], tail[:1]])
    _recur(heads, np.unique(last // BLOCK), decay**BLOCK)
    entering = np.zeros(rows)
    entering[: len(heads) - 1] = heads[1:]
    for part, factor in _columns(body, last, decay):
        gain, entering = entering[: len(part)].copy(), entering[len(part) :]
        columns = np.empty((BLOCK, len(part)))
        for t in range(BLOCK - 1, -1, -1):
            gain *= factor[t]
            columns[t] = gain
        part += columns.T


def _columns(body: FloatArray, last: IntArray, decay: float) -> Iterator[tuple[FloatArray, FloatArray]]:
    """The rows in parts that fit the cache, each with its factors by column: ``decay``, and 0 where a segment ends."""
    step = CHUNK // BLOCK
    for start in range(0, len(body), step):
        part = body[start : start + step]
        ends = (
            last[np.searchsorted(last, start * BLOCK) : np.searchsorted(last, (start + step) * BLOCK)] - start * BLOCK
        )
        factor = np.full((BLOCK, len(part)), decay)
        factor[ends % BLOCK, ends // BLOCK] = 0.0
        yield part, factor


def _compiled(size: int) -> Callable[[str], Callable[..., None]] | None:
    """Compiled loops by name, where numba is installed and the array is long enough to pay for loading it."""
    return _loop if size >= COMPILE_FROM and _numba() is not None else None


@cache
def _numba() -> Any:
    try:
        import numba
    except ImportError:
        return None
    return numba


@cache
def _loop(name: str) -> Callable[..., None]:
    compile_it: Callable[..., Callable[..., None]] = _numba().njit(cache=True, nogil=True)
    return compile_it(getattr(_loops, name))
