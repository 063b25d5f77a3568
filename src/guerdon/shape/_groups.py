"""Group statistics over known members: the one home of counts, means, spreads and extremes within a group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from guerdon.core.axis import BoolArray, FloatArray, IntArray
from guerdon.core.scores import Scores, aligned
from guerdon.core.segments import segment_max, segment_min

TOO_FEW = "fewer than two known members in the group"


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
    def of(cls, x: Scores, within: Scores | None = None, axis: str = "prompt") -> Groups:
        """The groups of ``x`` under ``axis``; with ``within``, a group is split by equal values of that score."""
        if within is None:
            return cls(x.values, x.known, x.axis.owner_in(axis), x.axis.ancestor(axis).size)
        data, by = aligned(x, within)
        keys = np.stack([data.axis.owner_in(axis).astype(np.float64), by.values])
        unique, owner = np.unique(keys, axis=1, return_inverse=True)
        return cls(data.values, data.known & by.known, owner.reshape(-1), unique.shape[1])

    def at(self, per_group: FloatArray | BoolArray | IntArray) -> FloatArray:
        """A per-group value for every item, shape ``(n,)``."""
        return np.asarray(per_group)[self.owner]

    @cached_property
    def members(self) -> FloatArray:
        """How many known members each group has."""
        return np.bincount(self.owner, weights=self.known, minlength=self.count)

    @cached_property
    def total(self) -> FloatArray:
        """Sum of each group's known members."""
        return np.bincount(self.owner, weights=np.where(self.known, self.values, 0.0), minlength=self.count)

    @cached_property
    def mean(self) -> FloatArray:
        """Mean of each group's known members; 0 where there are none."""
        return np.asarray(self.total / np.maximum(self.members, 1))

    def std(self, ddof: int = 0) -> FloatArray:
        """Standard deviation with ``ddof`` (0: population, 1: sample); exactly 0 where all members are equal."""
        off = np.where(self.known, self.values - self.at(self.mean), 0.0)
        squares = np.bincount(self.owner, weights=off * off, minlength=self.count)
        spread = np.sqrt(squares / np.maximum(self.members - ddof, 1))
        return np.where(self.flat, 0.0, spread)

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

    def _extreme(self, empty: float, reduce: object) -> FloatArray:
        assert callable(reduce)
        order = np.argsort(self.owner, kind="stable")
        offsets = np.zeros(self.count + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.owner, minlength=self.count), out=offsets[1:])
        return np.asarray(reduce(np.where(self.known, self.values, empty)[order], offsets, empty))
