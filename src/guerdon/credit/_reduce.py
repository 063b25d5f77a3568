"""From step scores to one score per rollout: reducers beside `mean`, `min`, `max`, `sum` and `last` of the kernel.

Each takes scores on a finer axis and returns them on the parent axis (or ``to``). Unknown if any item is unknown or
there is none; with ``missing="skip"`` unknown items are left out and their share is evidence.
"""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import PARENTS, FloatArray, IntArray
from guerdon.core.interval import UNIT, Interval
from guerdon.core.operators import Missing, reduce_up
from guerdon.core.scores import Scores
from guerdon.core.segments import segment_sum
from guerdon.core.transform import transform
from guerdon.credit._kernels import accumulate


def _above(x: str, to: str | None = None, **_: object) -> str:
    return to or PARENTS.get(x, "rollout")


def _within(x: Interval, **_: object) -> Interval:
    return x


@transform(
    "credit.log_product", version=1, axis=_above, range=lambda x, **_: Interval(-np.inf, 0.0) if x.unit else Interval()
)
def log_product(x: Scores, *, floor: float = 1e-6, to: str | None = None, missing: Missing = "unknown") -> Scores:
    """Product in logs: ``sum_k log(max(x_k, floor))``. Never underflows, however many steps there are.

    >>> import guerdon as gd
    >>> rows = [{"s": [0.5, 0.25]}]
    >>> float(gd.credit.log_product(gd.column("s", axis="step")).score(rows).scores.values[0].round(6))
    -2.079442
    """
    _positive(floor)
    return reduce_up(
        x, lambda v, o, n: segment_sum(np.log(np.maximum(v, floor)), o), to=to, missing=missing, neutral=1.0
    )


@transform("credit.geometric_mean", version=1, axis=_above, range=lambda x, **_: UNIT if x.unit else Interval())
def geometric_mean(x: Scores, *, floor: float = 1e-6, to: str | None = None, missing: Missing = "unknown") -> Scores:
    """``(prod_k x_k)^(1/K)``, computed as ``exp((1/K) sum_k log(max(x_k, floor)))``; for scores that are not negative.

    >>> import guerdon as gd
    >>> rows = [{"s": [0.5, 0.125]}]
    >>> gd.credit.geometric_mean(gd.column("s", axis="step")).score(rows).scores.values.round(12).tolist()
    [0.25]
    """
    _positive(floor)

    def compute(values: FloatArray, offsets: IntArray, count: IntArray) -> FloatArray:
        logs = segment_sum(np.log(np.maximum(values, floor)), offsets)
        return np.asarray(np.exp(logs / np.maximum(count, 1)))

    return reduce_up(x, compute, to=to, missing=missing, neutral=1.0)


@transform("credit.harmonic_mean", version=1, axis=_above)
def harmonic_mean(x: Scores, *, floor: float = 0.01, to: str | None = None, missing: Missing = "unknown") -> Scores:
    """``K / sum_k 1 / max(x_k, floor)``; for scores that are not negative.

    >>> import guerdon as gd
    >>> rows = [{"s": [1.0, 0.25]}]
    >>> gd.credit.harmonic_mean(gd.column("s", axis="step")).score(rows).scores.values.tolist()
    [0.4]
    """
    _positive(floor)

    def compute(values: FloatArray, offsets: IntArray, count: IntArray) -> FloatArray:
        return np.asarray(count / np.maximum(segment_sum(1.0 / np.maximum(values, floor), offsets), 1e-300))

    return reduce_up(x, compute, to=to, missing=missing, neutral=np.inf)


@transform("credit.logit_sum", version=1, axis=_above)
def logit_sum(x: Scores, *, floor: float = 1e-6, to: str | None = None, missing: Missing = "unknown") -> Scores:
    """``sum_k log(p_k / (1 - p_k))`` of probabilities, clipped to ``[floor, 1 - floor]``.

    >>> import guerdon as gd
    >>> gd.credit.logit_sum(gd.column("s", axis="step")).score([{"s": [0.5, 0.5]}]).scores.values.tolist()
    [0.0]
    """
    _positive(floor)

    def compute(values: FloatArray, offsets: IntArray, count: IntArray) -> FloatArray:
        p = np.clip(values, floor, 1.0 - floor)
        return segment_sum(np.log(p) - np.log1p(-p), offsets)

    return reduce_up(x, compute, to=to, missing=missing, neutral=0.5)


@transform("credit.position_mean", version=1, axis=_above, range=_within)
def position_mean(x: Scores, *, growth: float = 0.1, to: str | None = None, missing: Missing = "unknown") -> Scores:
    """Mean weighted by position: ``sum_i w_i x_i / sum_i w_i``, ``w_i = 1 + growth * i``, ``i`` from 0.

    0.1 is a gentle preference for late steps, 1 weights them 1, 2, ..., K; ``growth`` is not negative. With
    ``missing="skip"``, ``i`` counts the known items.

    >>> import guerdon as gd
    >>> rows = [{"s": [1.0, 0.0]}]
    >>> gd.credit.position_mean(gd.column("s", axis="step"), growth=1.0).score(rows).scores.values.round(6).tolist()
    [0.333333]
    """
    if growth < 0:
        raise ValueError(f"growth={growth!r} must not be negative")

    def compute(values: FloatArray, offsets: IntArray, count: IntArray) -> FloatArray:
        here = x.known.astype(np.float64)
        weight = here * (1.0 + growth * (accumulate(np.add, here, offsets) - 1.0))
        share = weight / np.repeat(np.maximum(segment_sum(weight, offsets), 1.0), np.diff(offsets))
        return segment_sum(share * values, offsets)

    return reduce_up(x, compute, to=to, missing=missing)


def _positive(floor: float) -> None:
    if not 0.0 < floor < 0.5:
        raise ValueError(f"floor={floor!r} must lie in (0, 0.5)")
