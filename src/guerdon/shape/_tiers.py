"""Tiers: a dense score or a distance reduced to a few ordered values, so that noise below a tier's width earns
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from guerdon.core.interval import UNIT, Interval
from guerdon.core.operators import itemwise
from guerdon.core.scores import Scores
from guerdon.core.transform import transform


def _checked(edges: Sequence[float], values: Sequence[float]) -> None:
    if len(values) != len(edges) + 1:
        raise ValueError(f"{len(edges)} edges separate {len(edges) + 1} tiers, not {len(values)}")
    if not np.isfinite([*edges, *values]).all() or any(a >= b for a, b in pairwise(edges)):
        raise ValueError(f"tiers need finite values and edges that increase, not {list(edges)}")


def _tier_range(x: Interval, edges: Sequence[float], values: Sequence[float]) -> Interval:
    _checked(edges, values)
    first, last = np.searchsorted(edges, [x.low, x.high], side="left")
    reached = [float(v) for v in values[int(first) : int(last) + 1]]
    return Interval(min(reached), max(reached))


@transform("shape.tiered", version=1, range=_tier_range)
def tiered(x: Scores, edges: Sequence[float], values: Sequence[float]) -> Scores:
    """The value of the tier that ``x`` lies in: ``values[i]`` for ``edges[i-1] < x <= edges[i]``.

    ``edges`` increase; there is one value more than edges, the last for everything above. Of a distance, with falling
    values, it is a distance-tiered reward. An unknown item has no tier.

    >>> import guerdon as gd
    >>> near = gd.shape.tiered(gd.column("distance"), edges=[0, 5, 10], values=[1.0, 0.5, 0.2, 0.0])
    >>> near.score([{"distance": d} for d in (0, 3, 10, 11)]).values.tolist()
    [1.0, 0.5, 0.2, 0.0]
    """
    _checked(edges, values)
    bounds, levels = np.asarray(edges, dtype=np.float64), np.asarray(values, dtype=np.float64)
    return itemwise(lambda v: levels[np.searchsorted(bounds, v, side="left")], x)


@transform("shape.quantise", version=1, range=lambda x, **_: UNIT)
def quantise(x: Scores, *, levels: int = 4, floor: float = 0.0) -> Scores:
    """A score in [0, 1] rounded up to one of ``levels`` equal tiers: ``ceil(K x) / K``; 0 where ``x`` is 0 or below
    ``floor``.

    Keeps the order, removes differences within a tier. Guarded against rounding: what exceeds a tier's edge by less
    than 1e-9 / K still belongs to it. A score outside [0, 1] is unknown. From Sweet Spot Learning (arXiv:2601.22491).

    >>> import guerdon as gd
    >>> gd.shape.quantise(gd.column("s")).score([{"s": s} for s in (1, 0.6, 0.1, 0)]).values.tolist()
    [1.0, 0.75, 0.25, 0.0]
    """
    if levels < 1:
        raise ValueError(f"quantise needs at least one level, not {levels}")

    def up(s: np.ndarray) -> np.ndarray:
        tier = np.maximum(np.ceil(levels * s - 1e-9), 1.0) / levels
        return np.where((s < 0) | (s > 1), np.nan, np.where((s <= 0) | (s < floor), 0.0, tier))

    return itemwise(up, x, trouble="a score outside [0, 1] has no tier")
