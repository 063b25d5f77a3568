"""Split at the first wrong step: what came before it was right, what comes after it does not count."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import BoolArray, IntArray
from guerdon.core.interval import UNIT, Interval
from guerdon.core.scores import ObjectArray, Scores
from guerdon.core.transform import transform
from guerdon.credit._kernels import positions


@transform("credit.first_error", version=1, axis=lambda x, **_: "rollout", range=lambda x, **_: Interval(0.0))
def first_error(x: Scores, *, below: float = 0.5) -> Scores:
    """Index (from 0) of the first step whose score lies below ``below``; the number of steps where there is none.

    ``x``: step scores, shape ``(steps,)``; one index per rollout. Three-valued: an unknown step after the first wrong
    one changes nothing, one before it makes the rollout unknown.

    >>> import guerdon as gd
    >>> rows = [{"s": [0.9, 0.2, 0.8]}, {"s": [0.9]}]
    >>> gd.credit.first_error(gd.column("s", axis="step")).score(rows).scores.values.tolist()
    [1.0, 1.0]
    """
    offsets = x.axis.offsets_over("rollout")
    place = positions(offsets)
    wrong = _first(x.known & (x.values < below), place, offsets)
    unclear = _first(~x.known, place, offsets)
    known = wrong <= unclear  # equal only where there is neither: a step is not both
    reasons: ObjectArray = np.full(len(known), None, dtype=object)
    for rollout in np.flatnonzero(~known):
        step = int(unclear[rollout])
        reasons[rollout] = f"{x.axis.name} {step}: {x.reason(int(offsets[rollout]) + step)}"
    return Scores.of(x.axis.ancestor("rollout"), wrong.astype(np.float64), known, reasons)


def _first(mask: BoolArray, place: IntArray, offsets: IntArray) -> IntArray:
    """The first place in each segment where ``mask`` holds; the segment's length where it does nowhere."""
    lengths = np.diff(offsets)
    out = lengths.copy()
    at = np.flatnonzero(mask)
    np.minimum.at(out, np.repeat(np.arange(len(lengths)), lengths)[at], place[at])
    return out


@transform("credit.before_error", version=1, groups="rollout", axis=lambda x, **_: x, range=lambda x, **_: UNIT)
def before_error(x: Scores, *, below: float = 0.5) -> Scores:
    """1 for steps before the first wrong one (score below ``below``), 0 from it on; all 1 where none is wrong.

    Shape ``(steps,)``. A rollout whose first wrong step is unknown (see `first_error`) is unknown. Rewards masked by it
    are another objective: credit from them is biased for the unmasked sum.

    >>> import guerdon as gd
    >>> rows = [{"s": [0.9, 0.2, 0.8]}]
    >>> gd.credit.before_error(gd.column("s", axis="step")).score(rows).scores.values.tolist()
    [1.0, 0.0, 0.0]
    """
    first: Scores = first_error.function(x, below=below)
    split = first.broadcast(x.axis)
    ahead = positions(x.axis.offsets_over("rollout")) < split.values
    return Scores(x.axis, ahead.astype(np.float64), split.known, split.reasons)
