"""How far two orders agree: the score of a ranking against the true one."""

from __future__ import annotations

from typing import Literal

import numpy as np

from guerdon.core.axis import PARENTS, FloatArray
from guerdon.core.interval import Interval
from guerdon.core.operators import reduce_up
from guerdon.core.scores import Scores
from guerdon.core.segments import segment_sum
from guerdon.core.transform import transform
from guerdon.shape._pairs import pairs


@transform(
    "shape.kendall",
    version=1,
    axis=lambda x, truth, **_: PARENTS.get(x, "rollout"),
    range=lambda x, truth, **_: Interval(-1.0, 1.0),
)
def kendall(x: Scores, truth: Scores, *, ties: Literal["neither", "discordant"] = "neither") -> Scores:
    """Kendall's tau-a between two scores of each rollout's items: ``(C - D) / (n (n - 1) / 2)``, in [-1, 1].

    ``C`` pairs are ordered alike, ``D`` the other way; a pair tied on either side counts in neither, or, with
    ``ties="discordant"``, in ``D`` if only ``x`` ties it: a judge that gives everything the same score then earns
    -1, not 0. ``x`` and ``truth`` lie on one axis; the result on the axis above. Unknown if any item is, or with
    fewer than two.

    >>> import guerdon as gd
    >>> tau = gd.shape.kendall(gd.column("said", axis="answer"), gd.column("gold", axis="answer"))
    >>> tau.score([{"said": [8, 6, 7, 3], "gold": [4, 3, 2, 1]}]).values.round(6).tolist()
    [0.666667]
    """
    if ties not in ("neither", "discordant"):
        raise ValueError(f'ties={ties!r}: choose "neither" or "discordant"')
    if not x.axis.matches(truth.axis) or x.axis.offsets is None:
        raise ValueError("kendall compares two scores item by item: they must lie on one axis under the rollout")
    net = np.zeros(len(x))
    for i, j in pairs(x.axis.offsets):
        said, gold = _order(x.values[i], x.values[j]), _order(truth.values[i], truth.values[j])
        agree = said * gold if ties == "neither" else np.where(said == 0, -np.abs(gold), said * gold)
        net += np.bincount(i, weights=agree, minlength=len(x))
    both = Scores.of(x.axis, net, x.known & truth.known, (x, truth))
    counts = x.axis.lengths
    all_pairs = np.maximum(counts * (counts - 1), 1)
    out = reduce_up(both, lambda v, o, n: segment_sum(v, o) / all_pairs, to=None, missing="unknown")
    single = out.known & (counts < 2)
    if not single.any():
        return out
    fewer = Scores.of(out.axis, out.values, out.known & ~single, out)
    assert fewer.reasons is not None
    fewer.reasons[single] = "one item has no order"
    return fewer


def _order(a: FloatArray, b: FloatArray) -> FloatArray:
    """1 where ``a`` is greater, -1 where ``b`` is, else 0; a difference could overflow."""
    return np.asarray(np.subtract(a > b, a < b, dtype=np.float64))
