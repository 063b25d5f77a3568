"""Running forms along a rollout: prefix and suffix minima, sums, means, drops.

All keep the axis of ``x`` (steps or tokens; shape ``(items,)``) and treat every rollout by itself. A rollout with an
unknown item is unknown as a whole; with ``missing="skip"`` unknown items are passed over and stay unknown themselves.
"""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import FloatArray, IntArray
from guerdon.core.interval import Interval
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.credit._kernels import accumulate, following, last_items, positions, suffix_discounted
from guerdon.credit._rollouts import Missing, along


def _same(x: Interval, **_: object) -> Interval:
    return x


@transform("credit.prefix_min", version=1, groups="rollout", range=_same)
def prefix_min(x: Scores, *, missing: Missing = "unknown") -> Scores:
    """The worst item so far: ``m_t = min_{j <= t} x_j``. As a return, biased like `suffix_min`.

    >>> import guerdon as gd
    >>> rows = [{"s": [0.9, 0.2, 0.5]}]
    >>> gd.credit.prefix_min(gd.column("s", axis="step")).score(rows).scores.values.tolist()
    [0.9, 0.2, 0.2]
    """
    return along(x, lambda v, o: accumulate(np.minimum, v, o), missing=missing, neutral=np.inf)


@transform("credit.suffix_min", version=1, groups="rollout", range=_same)
def suffix_min(x: Scores, *, missing: Missing = "unknown") -> Scores:
    """The worst item from here on: ``m_t = min_{j >= t} x_j``.

    PURE's min-form return: one bad step spoils what led to it, and good-looking steps add nothing. It stands for
    another objective than the sum of the steps, of whose gradient it is a biased estimate.

    >>> import guerdon as gd
    >>> rows = [{"s": [0.9, 0.2, 0.5]}]
    >>> gd.credit.suffix_min(gd.column("s", axis="step")).score(rows).scores.values.tolist()
    [0.2, 0.2, 0.5]
    """
    return along(x, lambda v, o: accumulate(np.minimum, v, o, reverse=True), missing=missing, neutral=np.inf)


@transform("credit.prefix_sum", version=1, groups="rollout")
def prefix_sum(x: Scores, *, missing: Missing = "unknown") -> Scores:
    """The sum so far: ``S_t = sum_{j <= t} x_j``.

    >>> import guerdon as gd
    >>> gd.credit.prefix_sum(gd.column("s", axis="step")).score([{"s": [1, 2, 4]}]).scores.values.tolist()
    [1.0, 3.0, 7.0]
    """
    return along(x, lambda v, o: accumulate(np.add, v, o), missing=missing)


@transform("credit.prefix_mean", version=1, groups="rollout", range=_same)
def prefix_mean(x: Scores, *, missing: Missing = "unknown") -> Scores:
    """The mean so far: ``(1/t) sum_{j <= t} x_j``; with ``missing="skip"``, ``t`` counts the known items.

    >>> import guerdon as gd
    >>> gd.credit.prefix_mean(gd.column("s", axis="step")).score([{"s": [1, 0, 2]}]).scores.values.tolist()
    [1.0, 0.5, 1.0]
    """

    def compute(values: FloatArray, offsets: IntArray) -> FloatArray:
        seen = accumulate(np.add, x.known.astype(np.float64), offsets)
        return np.asarray(accumulate(np.add, values, offsets) / np.maximum(seen, 1.0))

    return along(x, compute, missing=missing)


@transform("credit.returns", version=1, groups="rollout")
def returns(x: Scores, *, gamma: float = 1.0, missing: Missing = "unknown") -> Scores:
    """Discounted reward-to-go: ``G_t = x_t + gamma G_{t+1}``, ``G = 0`` beyond the rollout's end; ``gamma`` in [0, 1].

    >>> import guerdon as gd
    >>> gd.credit.returns(gd.column("s", axis="step"), gamma=0.5).score([{"s": [1, 2, 4]}]).scores.values.tolist()
    [3.0, 4.0, 4.0]
    """
    return along(x, lambda v, o: suffix_discounted(v, o, gamma), missing=missing)


@transform(
    "credit.drop",
    version=1,
    groups="rollout",
    range=lambda x, **_: x.hull(Interval(0.0, 0.0)) - x.hull(Interval(0.0, 0.0)),
)
def drop(x: Scores, *, before_last: bool = False) -> Scores:
    """Each item minus its successor: ``d_t = x_t - x_{t+1}``, 0 beyond the end. Its reward-to-go is ``x_t`` itself.

    With ``before_last`` the last item counts as 0, as what it says is left to the outcome: its drop is 0, and that of
    the one before it is that one's own score.

    >>> import guerdon as gd
    >>> gd.credit.drop(gd.column("s", axis="step")).score([{"s": [0.5, 0.25, 1.0]}]).scores.values.tolist()
    [0.25, -0.75, 1.0]
    >>> gd.credit.drop(gd.column("s", axis="step"), before_last=True).score([{"s": [0.5, 0.25, 1.0]}]).values.tolist()
    [0.25, 0.25, 0.0]
    """

    def compute(values: FloatArray, offsets: IntArray) -> FloatArray:
        kept = values.copy()
        if before_last:
            kept[last_items(offsets)] = 0.0
        return kept - following(kept, offsets)

    return along(x, compute)


@transform("credit.left", version=1, range=lambda x: Interval(1.0))
def left(x: Scores) -> Scores:
    """How many items are left in the rollout, the item itself counted: ``T - t`` with ``t`` from 0. Always known.

    >>> import guerdon as gd
    >>> gd.credit.left(gd.column("s", axis="step")).score([{"s": [0.5, 0.25, 1.0]}]).scores.values.tolist()
    [3.0, 2.0, 1.0]
    """
    offsets = x.axis.offsets_over("rollout")
    return Scores.of(x.axis, np.repeat(offsets[1:], np.diff(offsets)) - np.arange(x.axis.size))


@transform("credit.place", version=1, range=lambda x: Interval(0.0))
def place(x: Scores) -> Scores:
    """Each item's place in its rollout, from 0. Always known.

    >>> import guerdon as gd
    >>> gd.credit.place(gd.column("s", axis="step")).score([{"s": [0.5, 0.25, 1.0]}]).scores.values.tolist()
    [0.0, 1.0, 2.0]
    """
    return Scores.of(x.axis, positions(x.axis.offsets_over("rollout")))
