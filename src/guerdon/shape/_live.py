"""Rates of named items (unit tests, criteria) over all batches so far: what the policy manages now, and what never."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from guerdon.core.axis import FloatArray, IntArray
from guerdon.core.interval import UNIT
from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import State, transform
from guerdon.shape._groups import labels


def _nothing(**_: object) -> State:
    return {"items": {}}


@transform("shape.live_rate", version=1, groups="batch", initial=_nothing, range=lambda x, *_, **__: x)
def live_rate(
    x: Scores,
    problem: Scores,
    item: Scores | None = None,
    *,
    rate: float = 0.5,
    state: Mapping[str, Any] | None = None,
) -> tuple[Scores, State]:
    """A running mean of each item by name: ``rho <- (1 - rate) rho + rate mean(x)``, this batch included.

    ``x`` lies below the rollout (a test passed, a criterion met). ``problem``: a number that names the prompt in every
    epoch; ``item`` the test or criterion within it, by default its place. The mean is over all rollouts of the batch;
    the first sets it, and ``rate=1`` keeps no past. An item with no known result yet is unknown. State:
    ``{"items": {"problem/item": rho}}``, one entry per item ever tried.

    >>> import guerdon as gd
    >>> session, live = gd.Session(), gd.shape.live_rate(gd.column("passed", axis="test"), gd.column("task"))
    >>> [live.score([{"task": 7, "passed": p}], session=session).scores.values.tolist() for p in ([1, 0], [1, 1])]
    [[1.0, 0.0], [1.0, 0.5]]
    """
    if not 0.0 < rate <= 1.0:
        raise ValueError(f"live_rate needs 0 < rate <= 1, not {rate}")
    at, names, tries, totals = _named(x, problem, item)
    seen: dict[str, float] = dict((state or _nothing())["items"])
    for name, n, k in zip(names, tries.tolist(), totals.tolist(), strict=True):
        if n:
            seen[name] = (1.0 - rate) * seen[name] + rate * k / n if name in seen else k / n
    return _shown(x, at, np.array([seen.get(n, np.nan) for n in names])), {"items": seen}


@transform("shape.ever_positive", version=1, groups="batch", initial=_nothing, range=lambda *_, **__: UNIT)
def ever_positive(
    x: Scores,
    problem: Scores,
    item: Scores | None = None,
    *,
    patience: int = 20,
    state: Mapping[str, Any] | None = None,
) -> tuple[Scores, State]:
    """0 for an item that was tried at least ``patience`` times and never was above 0 (it may be broken), else 1.

    Parameters as in `live_rate`. State: ``{"items": {"problem/item": [tries, total]}}``. Once it was above 0
    it counts for good. ``x`` is not negative; an unknown item is no try, one without a name is unknown.

    >>> import guerdon as gd
    >>> sound = gd.shape.ever_positive(gd.column("passed", axis="test"), gd.column("task"), patience=2)
    >>> sound.score([{"task": 7, "passed": p} for p in ([1, 0], [0, 0])]).scores.values.tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    at, names, tries, totals = _named(x, problem, item)
    seen: dict[str, list[float]] = dict((state or _nothing())["items"])
    for name, n, k in zip(names, tries.tolist(), totals.tolist(), strict=True):
        before = seen.get(name, [0.0, 0.0])
        seen[name] = [before[0] + n, before[1] + k]
    out = np.array([float(seen[n][0] < patience or seen[n][1] > 0) for n in names])
    return _shown(x, at, out), {"items": seen}


def _named(x: Scores, problem: Scores, item: Scores | None) -> tuple[IntArray, list[str], FloatArray, FloatArray]:
    """Each item's cell (-1: unnamed), and the cells' names, tries and totals; a cell is one item of one problem."""
    data, key, *others = aligned(*[p for p in (x, problem, item) if p is not None])
    name = others[0].values if others else labels(data.axis).astype(np.float64)
    usable = key.known & (others[0].known if others else True)
    both, cell = np.unique(np.stack([key.values, name])[:, usable], axis=1, return_inverse=True)
    at = np.full(len(data), -1, dtype=np.int64)
    at[usable] = cell.reshape(-1)
    here = usable & data.known
    tries = np.bincount(at[here], minlength=both.shape[1]).astype(np.float64)
    totals = np.bincount(at[here], weights=data.values[here], minlength=both.shape[1]).astype(np.float64)
    return at, [f"{p:.17g}/{t:.17g}" for p, t in both.T.tolist()], tries, totals


def _shown(x: Scores, at: IntArray, cells: FloatArray) -> Scores:
    known = at >= 0
    known[known] = np.isfinite(cells[at[known]])
    values = np.append(np.where(np.isfinite(cells), cells, 0.0), 0.0)[at]
    return Scores.of(x.axis, values, known, "the item has no known result yet, or no name")
