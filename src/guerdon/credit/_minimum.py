"""Min-form credit: a rollout is worth its worst step, so that adding good-looking steps earns nothing."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import FloatArray, IntArray
from guerdon.core.interval import Interval
from guerdon.core.scores import Scores
from guerdon.core.segments import segment_min, segment_sum
from guerdon.core.transform import transform
from guerdon.credit._rollouts import along


@transform("credit.soft_min", version=1, groups="rollout", range=lambda x, **_: x.hull(Interval(0.0, 0.0)))
def soft_min(x: Scores, *, temperature: float = 0.1) -> Scores:
    """Step rewards whose sum is nearly their minimum: ``w_k x_k``, ``w = softmax(-x / temperature)`` over the rollout.

    As ``temperature`` falls to 0, ``sum_k w_k x_k`` falls to ``min_k x_k``; it never lies below it. Shape
    ``(steps,)``; a rollout with an unknown step is unknown. The softmax is shifted by the minimum, so no temperature
    under- or overflows. An objective of its own: for the sum of the steps it is biased, and can't be padded.

    Source: PURE, Cheng et al. 2025, arXiv:2504.15275.

    >>> import guerdon as gd
    >>> rows = [{"s": [0.9, -0.8, 0.5]}]
    >>> gd.credit.soft_min(gd.column("s", axis="step")).score(rows).scores.values.round(6).tolist()
    [0.0, -0.799998, 1e-06]
    """
    if not temperature > 0.0:
        raise ValueError(f"temperature={temperature!r} must be positive; the exact minimum is credit.suffix_min")

    def compute(values: FloatArray, offsets: IntArray) -> FloatArray:
        lengths = np.diff(offsets)
        above = values - np.repeat(segment_min(values, offsets, empty=0.0), lengths)
        weight = np.exp(-above / temperature)
        return np.asarray(weight * values / np.repeat(segment_sum(weight, offsets), lengths))

    return along(x, compute)
