"""Spearman's rank correlation of a rollout's items with a second score, or with their order."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import PARENTS, FloatArray, IntArray
from guerdon.core.interval import Interval
from guerdon.core.operators import reduce_up
from guerdon.core.scores import Scores
from guerdon.core.segments import segment_ranks, segment_sum
from guerdon.core.transform import transform


@transform(
    "shape.spearman",
    version=1,
    axis=lambda x, truth=None: PARENTS.get(x, "rollout"),
    range=lambda x, truth=None: Interval(-1.0, 1.0),
)
def spearman(x: Scores, truth: Scores | None = None) -> Scores:
    """Correlation of the mid-ranks of each rollout's items with those of ``truth``, or with their places; in [-1, 1].

    ``x`` and ``truth`` lie on one axis; the result on the axis above. Tied values share the mean of their ranks.
    Unknown if any item is, where either side is constant, or with fewer than two items.

    >>> import guerdon as gd
    >>> rising = gd.shape.spearman(gd.column("c", axis="checkpoint"))
    >>> rising.score([{"c": [0.1, 0.3, 0.2, 0.9]}, {"c": [0.5, 0.5]}]).values.round(6).tolist()
    [0.8, nan]
    """
    if x.axis.offsets is None or (truth is not None and not x.axis.matches(truth.axis)):
        raise ValueError("spearman compares two scores item by item: they must lie on one axis under the rollout")
    offsets, owner = x.axis.offsets, x.axis.owner
    known = x.known if truth is None else x.known & truth.known
    other = np.arange(len(x), dtype=np.float64) if truth is None else truth.values
    one, two = (_centred_ranks(np.where(known, v, 0.0), owner, offsets) for v in (x.values, other))
    both = Scores.of(x.axis, one * two, known, (x,) if truth is None else (x, truth))
    size = segment_sum(one * one, offsets) * segment_sum(two * two, offsets)
    out = reduce_up(
        both,
        lambda v, o, n: np.clip(segment_sum(v, o) / np.sqrt(np.where(size > 0, size, 1.0)), -1.0, 1.0),
        to=None,
        missing="unknown",
    )
    constant = out.known & (size <= 0)
    if not constant.any():
        return out
    fewer = Scores.of(out.axis, out.values, out.known & ~constant, out)
    assert fewer.reasons is not None
    fewer.reasons[constant] = "one side is constant, or has one item: no order"
    return fewer


def _centred_ranks(values: FloatArray, owner: IntArray, offsets: IntArray) -> FloatArray:
    return segment_ranks(values, owner) - ((np.diff(offsets) - 1) / 2.0)[owner]
