"""Maps of one score, item by item: clip, affine, sigmoid and its kin, closeness, scaling by a share.

Shape in, same shape out, on whatever axis. An unknown item stays unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from guerdon.core.axis import FloatArray
from guerdon.core.interval import Interval
from guerdon.core.operators import itemwise
from guerdon.core.scores import Scores
from guerdon.core.transform import transform


def stable_sigmoid(x: FloatArray) -> FloatArray:
    """``1 / (1 + exp(-x))`` without overflow, shape kept."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, small) / (1.0 + small))


@transform("shape.clip", version=1, range=lambda x, low=-math.inf, high=math.inf: _clip_range(x, low, high))
def clip(x: Scores, low: float = -math.inf, high: float = math.inf) -> Scores:
    """``min(max(x, low), high)``; an open end (the default) does not clip.

    >>> import guerdon as gd
    >>> gd.shape.clip(gd.column("x"), -1, 1).score([{"x": 3.0}, {"x": -0.5}]).values.tolist()
    [1.0, -0.5]
    """
    _ordered(low, high)
    return itemwise(lambda v: np.clip(v, low, high), x)


def _clip_range(x: Interval, low: float, high: float) -> Interval:
    _ordered(low, high)
    return Interval(min(max(x.low, low), high), max(min(x.high, high), low))


def _ordered(low: float, high: float) -> None:
    if not low <= high:
        raise ValueError(f"clip needs low <= high, not {low:g} and {high:g}")


@transform("shape.affine", version=1, range=lambda x, scale=1.0, shift=0.0: _affine_range(x, scale, shift))
def affine(x: Scores, scale: float = 1.0, shift: float = 0.0) -> Scores:
    """``scale * x + shift``.

    >>> import guerdon as gd
    >>> gd.shape.affine(gd.column("x", range=(0, 1)), 2, -1).range
    Interval(low=-1.0, high=1.0)
    """
    return itemwise(lambda v: scale * v + shift, x)


def _affine_range(x: Interval, scale: float, shift: float) -> Interval:
    if not (math.isfinite(scale) and math.isfinite(shift)):
        raise ValueError(f"affine needs finite numbers, not {scale} and {shift}")
    return x * Interval(scale, scale) + Interval(shift, shift)


def _monotone(f: Callable[[FloatArray], FloatArray], x: Interval) -> Interval:
    """The image of an interval under an increasing function that has limits at both infinities."""
    return Interval(float(f(np.array(x.low))), float(f(np.array(x.high))))


@transform(
    "shape.sigmoid",
    version=1,
    range=lambda x, scale=1.0, centre=0.0: _monotone(stable_sigmoid, _affine_range(x - _point(centre), scale, 0.0)),
)
def sigmoid(x: Scores, scale: float = 1.0, centre: float = 0.0) -> Scores:
    """``1 / (1 + exp(-scale (x - centre)))``, in [0, 1]; no overflow however large ``x`` is.

    >>> import guerdon as gd
    >>> gd.shape.sigmoid(gd.column("x")).score([{"x": 0.0}, {"x": -1000.0}]).values.tolist()
    [0.5, 0.0]
    """
    return itemwise(lambda v: stable_sigmoid(scale * (v - centre)), x)


def _point(value: float) -> Interval:
    return Interval(value, value)


@transform("shape.log_sigmoid", version=1, range=lambda x: _monotone(_log_sigmoid, x))
def log_sigmoid(x: Scores) -> Scores:
    """``-log(1 + exp(-x))``, at most 0: bounded above, linear below.

    >>> import guerdon as gd
    >>> gd.shape.log_sigmoid(gd.column("x")).score([{"x": 0.0}, {"x": -1000.0}]).values.round(6).tolist()
    [-0.693147, -1000.0]
    """
    return itemwise(_log_sigmoid, x)


def _log_sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(np.minimum(x, 0.0) - np.log1p(np.exp(-np.abs(x))))


@transform("shape.tanh", version=1, range=lambda x: _monotone(np.tanh, x))
def tanh(x: Scores) -> Scores:
    """``tanh(x)``, in [-1, 1]: odd, steepest at 0.

    >>> import guerdon as gd
    >>> gd.shape.tanh(gd.column("x")).score([{"x": 0.0}, {"x": 1.0}]).values.round(6).tolist()
    [0.0, 0.761594]
    """
    return itemwise(np.tanh, x)


@transform("shape.arctan", version=1, range=lambda x: _monotone(np.arctan, x))
def arctan(x: Scores) -> Scores:
    """``arctan(x)``, in [-pi/2, pi/2]: bounded like `tanh`, with heavier tails.

    >>> import guerdon as gd
    >>> gd.shape.arctan(gd.column("x")).score([{"x": 0.0}, {"x": 1.0}]).values.round(6).tolist()
    [0.0, 0.785398]
    """
    return itemwise(np.arctan, x)


@transform("shape.exp", version=1, range=lambda x: Interval(_exp(x.low), _exp(x.high)))
def exp(x: Scores) -> Scores:
    """``exp(x)``; where that is too large for a float, unknown.

    >>> import guerdon as gd
    >>> gd.shape.exp(gd.column("x")).score([{"x": 0.0}, {"x": 1000.0}]).values.tolist()
    [1.0, nan]
    """
    return itemwise(np.exp, x)


def _exp(x: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(x))


@transform("shape.log", version=1, range=lambda x, floor=0.0: _log_range(x, floor))
def log(x: Scores, floor: float = 0.0) -> Scores:
    """``ln max(x, floor)``; with the default floor 0, a score of 0 or less is unknown (*not a finite number*).

    >>> import guerdon as gd
    >>> gd.shape.log(gd.column("x")).score([{"x": 1.0}, {"x": 0.0}]).values.tolist()
    [0.0, nan]
    """
    return itemwise(lambda v: np.log(np.maximum(v, floor)), x)


def _log_range(x: Interval, floor: float) -> Interval:
    low, high = max(x.low, floor), max(x.high, floor)
    return Interval(math.log(low) if low > 0 else -math.inf, math.log(high) if 0 < high < math.inf else math.inf)


@transform("shape.power", version=1, range=lambda x, exponent: _power_range(x, exponent))
def power(x: Scores, exponent: float) -> Scores:
    """``x ** exponent`` of a score that is not negative; a negative one is unknown. ``exponent`` is at least 0.

    >>> import guerdon as gd
    >>> gd.shape.power(gd.column("x"), 0.5).score([{"x": 9.0}]).values.tolist()
    [3.0]
    """
    if not 0 <= exponent < math.inf:
        raise ValueError(f"power needs a finite exponent of at least 0, not {exponent}")
    return itemwise(lambda v: np.where(v < 0, np.nan, np.abs(v) ** exponent), x, trouble="negative, so it has no power")


def _power_range(x: Interval, exponent: float) -> Interval:
    low, high = max(x.low, 0.0), max(x.high, 0.0)
    return Interval(low**exponent, high**exponent) if exponent > 0 else Interval(1.0, 1.0)


@transform("shape.gaussian", version=1, range=lambda distance, scale=1.0: Interval(0.0, 1.0))
def gaussian(distance: Scores, scale: float = 1.0) -> Scores:
    """Closeness from a distance: ``exp(-d^2 / (2 scale^2))``, 1 at the target and 0 far away.

    >>> import guerdon as gd
    >>> gd.shape.gaussian(gd.column("d"), 20).score([{"d": 20.0}]).values.round(6).tolist()
    [0.606531]
    """
    if not scale > 0:
        raise ValueError(f"gaussian needs a scale above 0, not {scale}")
    return itemwise(lambda d: np.exp(-0.5 * (d / scale) ** 2), distance)
