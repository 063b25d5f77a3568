"""Group statistics over known members: the one home of counts, means, spreads and extremes within a group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from guerdon.core.axis import Axis, BoolArray, FloatArray, IntArray
from guerdon.core.interval import Interval
from guerdon.core.scores import Scores, aligned
from guerdon.core.segments import segment_max, segment_min

TOO_FEW = "fewer than two known members in the group"

TINY = 1e-150
"""Below this deviation the squares are no longer normal floats."""

Across = Literal["group", "label"]
"""What is compared: all items of the prompt, or those at one label (this criterion, this test) over its rollouts."""


@dataclass(frozen=True)
class Groups:
    """Statistics of the known members of each group, and their way back to the members.

    ``owner`` (shape ``(n,)``) is each item's group, ``count`` groups in all. Per-group results have shape ``(count,)``;
    ``at(x)`` repeats one for every item. Items that are not known take no part.
    """

    values: FloatArray
    known: BoolArray
    owner: IntArray
    count: int

    @classmethod
    def of(
        cls,
        x: Scores,
        within: Scores | None = None,
        axis: str = "prompt",
        *,
        where: Scores | None = None,
        across: Across = "group",
    ) -> Groups:
        """The groups of ``x`` under ``axis``.

        With ``within``, a group is split by equal values of that score; with ``across="label"``, by the items' labels.
        With ``where``, a 0/1 score, only items where it is 1 are members.
        """
        if across not in ("group", "label"):
            raise ValueError(f'across={across!r}: choose "group" or "label"')
        data, *others = aligned(*[p for p in (x, within, where) if p is not None])
        known = np.logical_and.reduce([data.known, *[p.known for p in others]])
        if where is not None:
            known &= others[-1].values == 1.0
        owner, count = data.axis.owner_in(axis), data.axis.ancestor(axis).size
        if across == "label":
            owner, count, _ = cells(owner, labels(data.axis))
        if within is not None:
            owner, count, _ = cells(owner, others[0].values)
        return cls(data.values, known, owner, count)

    def at(self, per_group: FloatArray | BoolArray | IntArray) -> FloatArray:
        """A per-group value for every item, shape ``(n,)``."""
        return np.asarray(np.asarray(per_group)[self.owner])

    @cached_property
    def members(self) -> FloatArray:
        """How many known members each group has."""
        return np.bincount(self.owner, weights=self.known, minlength=self.count).astype(np.float64, copy=False)

    @cached_property
    def total(self) -> FloatArray:
        """Sum of each group's known members."""
        values = np.where(self.known, self.values, 0.0)
        return np.bincount(self.owner, weights=values, minlength=self.count).astype(np.float64, copy=False)

    @cached_property
    def mean(self) -> FloatArray:
        """Mean of each group's known members; 0 where there are none."""
        count = np.maximum(self.members, 1)
        mean = np.asarray(self.total / count)
        if np.isfinite(mean).all():
            return mean
        # A sum may overflow where the mean does not.
        shares = np.where(self.known, self.values, 0.0) / self.at(count)
        apart = np.clip(np.bincount(self.owner, weights=shares, minlength=self.count), self.low, self.high)
        return np.where(np.isfinite(mean), mean, apart)

    @cached_property
    def above_others(self) -> FloatArray:
        """Each known item less the mean of the other known ones, shape ``(n,)``; exactly 0 in a `flat` group.

        ``x_i - (total - x_i) / (n - 1)``: not finite where a sum overflows.
        """
        others = np.maximum(self.at(self.members) - 1, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            off = self.values - (self.at(self.total) - self.values) / others
        return np.where(self.at(self.flat), 0.0, off)

    def standardised(self, ddof: int = 0, eps: float = 0.0) -> FloatArray:
        """Each item's deviation from the mean over ``std(ddof) + eps``, shape ``(n,)``; exactly 0 in a `flat` group.

        Not finite where the deviation is beyond the floats: it says nothing of its members then.
        """
        spread = self.std(ddof)
        unit = np.where(self.flat, 1.0, np.where(np.isfinite(spread), spread, np.nan) + eps)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return np.where(self.at(self.flat), 0.0, (self.values - self.at(self.mean)) / self.at(unit))

    def var(self, ddof: int = 0) -> FloatArray:
        """Variance with ``ddof`` (0: population, 1: sample); exactly 0 where all are equal. Overflows to infinity."""
        if ddof not in (0, 1):
            raise ValueError(f"ddof={ddof!r}: choose 0 (population) or 1 (sample)")
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            off = np.where(self.known, self.values - self.at(self.mean), 0.0)
            squares = np.bincount(self.owner, weights=off * off, minlength=self.count)
            return np.where(self.flat, 0.0, squares / np.maximum(self.members - ddof, 1))

    def std(self, ddof: int = 0) -> FloatArray:
        """Standard deviation with ``ddof`` (0: population, 1: sample); 0 exactly where all are equal."""
        spread = np.sqrt(self.var(ddof))
        lost = ~self.flat & ~((spread > TINY) & np.isfinite(spread))
        if not lost.any():
            return np.asarray(spread)
        # Squares that overflow, vanish or lose digits: the same with deviations in units of the group's width.
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            part = np.where(np.isfinite(self.high - self.low), 1.0, 0.5)  # halves, where the width overflows
            unit = np.where(self.flat, 1.0, self.high * part - self.low * part)
            off = (self.values * self.at(part) - self.at(self.mean * part)) / self.at(unit)
            off = np.where(self.known, off, 0.0)
            squares = np.bincount(self.owner, weights=off * off, minlength=self.count)
            return np.where(lost, unit * np.sqrt(squares / np.maximum(self.members - ddof, 1)) / part, spread)

    @cached_property
    def low(self) -> FloatArray:
        """Least known member of each group; +inf where there are none."""
        return self._extreme(np.inf, segment_min)

    @cached_property
    def high(self) -> FloatArray:
        """Greatest known member of each group; -inf where there are none."""
        return self._extreme(-np.inf, segment_max)

    @cached_property
    def flat(self) -> BoolArray:
        """Groups whose known members are all equal: tested as max == min, never as a small deviation."""
        return np.asarray(self.low >= self.high)

    @cached_property
    def order(self) -> IntArray | None:
        """The items in group order; ``None`` if they stand in it already."""
        return None if (self.owner[1:] >= self.owner[:-1]).all() else np.argsort(self.owner, kind="stable")

    @cached_property
    def offsets(self) -> IntArray:
        """Where each group's items start and end in `order`, shape ``(count + 1,)``."""
        offsets = np.zeros(self.count + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.owner, minlength=self.count), out=offsets[1:])
        return offsets

    def _extreme(self, empty: float, reduce: Callable[[FloatArray, IntArray, float], FloatArray]) -> FloatArray:
        values = np.where(self.known, self.values, empty)
        return reduce(values if self.order is None else values[self.order], self.offsets, empty)


def widest_std(x: Interval, ddof: int) -> float:
    """The largest standard deviation of values in ``x``, with a margin for rounding.

    Half of them at either end (population), or two values, one at each end (sample).
    """
    width = x.high - x.low if x.bounded else np.inf
    return float(width * (0.5 if ddof == 0 else np.sqrt(0.5)) * (1 + 1e-12))


def labels(axis: Axis) -> IntArray:
    """Each item's label; where the axis has none, its position within its parent. Shape ``(size,)``."""
    if axis.labels is not None:
        return axis.labels
    if axis.offsets is None:
        return np.zeros(axis.size, dtype=np.int64)
    return np.arange(axis.size, dtype=np.int64) - axis.offsets[:-1][axis.owner]


def cells(owner: IntArray, keys: FloatArray | IntArray) -> tuple[IntArray, int, IntArray]:
    """Split owners by equal keys: each item's cell, how many there are, and the owner of each cell.

    >>> cells(np.array([0, 0, 0, 1]), np.array([7.0, 7.0, 8.0, 7.0]))[0].tolist()
    [0, 0, 1, 2]
    """
    different, code = np.unique(keys, return_inverse=True)
    pairs = owner * max(len(different), 1) + code.reshape(-1)
    found, cell = np.unique(pairs, return_inverse=True)
    return cell.reshape(-1), len(found), found // max(len(different), 1)
