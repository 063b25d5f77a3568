"""Closed intervals that travel with an expression: where its known values can lie."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """``low <= value <= high``; infinite ends mean that no bound is known.

    >>> Interval(0, 1) * Interval(-2, 3)
    Interval(low=-2.0, high=3.0)
    """

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        if not self.low <= self.high:
            raise ValueError(f"a range needs low <= high, not [{self.low:g}, {self.high:g}]")

    @classmethod
    def of(cls, bounds: Interval | tuple[float, float] | None) -> Interval:
        """An interval from itself, a pair, or ``None`` (no bound). Raises ``ValueError`` for anything else."""
        if bounds is None:
            return cls()
        if isinstance(bounds, Interval):
            return bounds
        if isinstance(bounds, str) or len(bounds) != 2:
            raise ValueError(f"a range is a pair of numbers, not {bounds!r}")
        return cls(*bounds)

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]"

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def unit(self) -> bool:
        """Whether it lies inside [0, 1]."""
        return self.within(UNIT)

    def within(self, other: Interval) -> bool:
        """Whether every value of this interval lies in ``other``."""
        return other.low <= self.low and self.high <= other.high

    def hull(self, other: Interval) -> Interval:
        """The smallest interval that holds both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval) -> Interval:
        return self + (-other)

    def __mul__(self, other: Interval) -> Interval:
        ends = [_times(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def __truediv__(self, other: Interval) -> Interval:
        if other.low <= 0 <= other.high:
            return Interval()
        return self * Interval(_inverse(other.high), _inverse(other.low))


def _times(a: float, b: float) -> float:
    """0 times an open end is 0: the end is a bound, not a value."""
    return 0.0 if a == 0 or b == 0 else a * b


def _inverse(x: float) -> float:
    return 0.0 if math.isinf(x) else 1.0 / x


UNIT = Interval(0.0, 1.0)
