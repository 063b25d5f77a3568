"""Length penalties over a budget."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from guerdon.core.interval import Interval
from guerdon.core.operators import itemwise
from guerdon.core.scores import Scores
from guerdon.core.transform import transform


def _range(
    length: Interval,
    *,
    budget: float,
    kind: str = "soft",
    buffer: float = 0.0,
    rate: float = 0.01,
    most: float | None = None,
) -> Interval:
    _checked(kind, budget, buffer, rate, most)
    bound = (1.0 if kind == "soft" else math.inf) if most is None else most
    if kind == "linear" and length.high < math.inf:
        bound = min(bound, rate * max(0.0, length.high - budget))
    return Interval(-bound, 0.0)


def _checked(kind: str, budget: float, buffer: float, rate: float, most: float | None) -> None:
    if kind not in ("soft", "linear"):
        raise ValueError(f'kind={kind!r}: choose "soft" or "linear"')
    if not (0 <= buffer <= budget < math.inf):
        raise ValueError(f"length_penalty needs 0 <= buffer <= budget, not buffer={buffer:g}, budget={budget:g}")
    if rate < 0 or (most is not None and most < 0):
        raise ValueError("length_penalty needs rate and most of at least 0: the sign is its own")


@transform("shape.length_penalty", version=1, range=_range)
def length_penalty(
    length: Scores,
    *,
    budget: float,
    kind: Literal["soft", "linear"] = "soft",
    buffer: float = 0.0,
    rate: float = 0.01,
    most: float | None = None,
) -> Scores:
    """A penalty, 0 or less, for what is longer than ``budget`` (in the unit of ``length``: tokens, words, ...).

    ``"soft"``: 0 up to ``budget - buffer``, then falling linearly to ``-most`` (default 1) at ``budget`` and staying
    there: ``-most * clip((L - (budget - buffer)) / buffer, 0, 1)``; without a buffer it is a step. This is DAPO's
    overlong shaping (Yu et al. 2025, arXiv:2503.14476; there budget 20480, buffer 4096).
    ``"linear"``: ``-rate * max(0, L - budget)``, never below ``-most`` (default: no bound). PAR (arXiv:2502.18770) uses
    budget 300, rate 0.01. Of an unknown length it is unknown.

    >>> import guerdon as gd
    >>> rows = [{"n": n} for n in (10, 18, 25)]
    >>> gd.shape.length_penalty(gd.column("n"), budget=20, buffer=4).score(rows).values.tolist()
    [0.0, -0.5, -1.0]
    """
    _checked(kind, budget, buffer, rate, most)
    if kind == "linear":
        floor = math.inf if most is None else most
        return itemwise(lambda n: np.maximum(rate * np.minimum(budget - n, 0.0), -floor), length)
    deep = 1.0 if most is None else most
    if buffer == 0:
        return itemwise(lambda n: np.where(n > budget, -deep, 0.0), length)
    return itemwise(lambda n: deep * np.clip((budget - buffer - n) / buffer, -1.0, 0.0), length)
