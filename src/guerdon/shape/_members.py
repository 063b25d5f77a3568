"""Who takes part in a group: which scores are known, which count in a statistic, and their share of the best."""

from __future__ import annotations

import math

import numpy as np

from guerdon.core.interval import UNIT, Interval
from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import transform
from guerdon.shape._finite import measured
from guerdon.shape._groups import Groups


@transform("shape.known", version=1, range=lambda x: UNIT)
def known(x: Scores) -> Scores:
    """1 where ``x`` is known, 0 where it is not. Itself always known.

    Its least value over a group says whether the whole group was measured.

    >>> import guerdon as gd
    >>> gd.shape.known(gd.column("judge")).score([{"judge": 0.0}, {}]).values.tolist()
    [1.0, 0.0]
    """
    return Scores.of(x.axis, x.known.astype(np.float64))


@transform("shape.only", version=1, range=lambda x, where: x)
def only(x: Scores, where: Scores) -> Scores:
    """``x`` where ``where`` is 1; elsewhere unknown, so that it takes no part in a statistic of a group or a batch.

    ``where`` is a 0/1 score on the axis of ``x`` or above it. Where it is itself unknown, so is the result.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "n": n, "ok": ok} for n, ok in ((1, 1), (3, 1), (90, 0))]
    >>> gd.shape.zscore(gd.shape.only(gd.column("n"), where=gd.column("ok"))).score(rows, unknown=0).values.tolist()
    [-1.0, 1.0, 0.0]
    """
    value, mask = aligned(x, where)
    member = mask.known & (mask.values == 1.0)
    out = Scores.of(value.axis, value.values, value.known & member, (value, mask), value.evidence)
    if out.reasons is not None:
        out.reasons[mask.known & ~member] = "it takes no part"
    return out


@transform("shape.over_best", version=1, groups=True, range=lambda x: Interval(0.0 if x.low >= 0 else -math.inf, 1.0))
def over_best(x: Scores) -> Scores:
    """Share of the group's best: ``x_i / max_j x_j``; ``x_i`` itself where the best is not above 0.

    Of scores that are not negative, in [0, 1]. Unknown members take no part and stay unknown.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (0.8, 0.4, 0.0)]
    >>> gd.shape.over_best(gd.column("r")).score(rows).values.tolist()
    [1.0, 0.5, 0.0]
    """
    groups = Groups.of(x)
    best = groups.at(np.where(groups.members > 0, groups.high, 0.0))
    with np.errstate(over="ignore"):
        values = np.where(best > 0.0, x.values / np.where(best > 0.0, best, 1.0), x.values)
    return measured(x.axis, values, x.known, x, x.evidence)
