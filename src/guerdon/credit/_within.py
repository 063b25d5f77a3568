"""Comparison within a rollout: its items against each other."""

from __future__ import annotations

import numpy as np

from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import transform
from guerdon.shape._finite import measured
from guerdon.shape._groups import Groups


@transform("credit.rollout_relative", version=1, groups="rollout", axis=lambda x, *_, **__: x)
def rollout_relative(x: Scores, where: Scores | None = None, *, ddof: int = 1, eps: float = 1e-6) -> Scores:
    """Standard score of each item among those of its own rollout: ``(x_t - mean x) / (std x + eps)``.

    ``x`` lies on an axis under the rollout, as the result. With ``where``, a 0/1 score, only the items where it is 1
    are compared; the others get 0. Exactly 0 without spread, and for an item alone. ``ddof`` 1 is the sample
    deviation. Unknown items take no part and stay unknown; an unknown ``where`` makes its item unknown.

    As an advantage it is biased: a step looks good beside its own rollout's others, however good the rollout is.

    >>> import guerdon as gd
    >>> rows = [{"s": [1.0, 0.5, 0.0]}, {"s": [0.7]}]
    >>> gd.credit.rollout_relative(gd.column("s", axis="step"), eps=0.0).score(rows).scores.values.tolist()
    [1.0, 0.0, -1.0, 0.0]
    """
    groups = Groups.of(x, axis="rollout", where=where)
    values = np.where(groups.known, groups.standardised(ddof, eps), 0.0)
    if where is None:
        return measured(x.axis, values, x.known, x, x.evidence)
    data, mask = aligned(x, where)
    known = mask.known & (data.known | (mask.values != 1.0))
    return measured(data.axis, values, known, (data, mask), data.evidence)
