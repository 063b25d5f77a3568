"""Schedules: weights that move with the training step, with the number of calls, or with the policy's competence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from guerdon.core.axis import FloatArray
from guerdon.core.interval import Interval
from guerdon.core.operators import itemwise
from guerdon.core.scores import Evidence, Scores, aligned
from guerdon.core.transform import transform
from guerdon.shape._sums import named

Kind = Literal["constant", "linear", "cosine", "exponential"]


def progress(step: FloatArray, kind: Kind, over: float) -> FloatArray:
    """How much of the way from start to end is left at ``step``: 1 at 0, falling to 0."""
    t = np.maximum(step, 0.0) / over
    match kind:
        case "constant":
            return np.ones_like(t)
        case "linear":
            return np.maximum(1.0 - t, 0.0)
        case "cosine":
            return np.asarray((1.0 + np.cos(math.pi * np.minimum(t, 1.0))) / 2.0)
        case "exponential":
            return np.asarray(np.exp(-t))
    raise ValueError(f'kind={kind!r}: choose "constant", "linear", "cosine" or "exponential"')


@transform(
    "shape.anneal",
    version=1,
    range=lambda step, *, over, kind="linear", start=1.0, end=0.0: Interval(min(start, end), max(start, end)),
)
def anneal(step: Scores, *, over: float, kind: Kind = "linear", start: float = 1.0, end: float = 0.0) -> Scores:
    """A weight that moves from ``start`` to ``end`` as the training step grows: ``end + (start - end) left(step /
    over)``.

    ``left(t)`` is ``max(1 - t, 0)`` (linear), ``(1 + cos(pi min(t, 1))) / 2`` (cosine), ``exp(-t)`` (exponential,
    where ``over`` is the time constant and ``end`` is only approached) or 1 (constant). ``step`` is a column, a
    number, or `calls`; below 0 it counts as 0; unknown, so is the weight.

    >>> import guerdon as gd
    >>> gd.shape.anneal(gd.column("step"), over=100).score([{"step": s} for s in (0, 25, 200)]).values.tolist()
    [1.0, 0.75, 0.0]
    """
    if not 0 < over < math.inf:
        raise ValueError(f"anneal needs over > 0, not {over}")
    low, high = min(start, end), max(start, end)
    return itemwise(lambda t: np.clip(end + (start - end) * progress(t, kind, over), low, high), step)


@transform(
    "shape.calls",
    version=1,
    initial=lambda **_: {"calls": 0},
    axis=lambda x, **_: "prompt",
    range=lambda x, **_: Interval(0.0, math.inf),
)
def calls(x: Scores, *, state: Mapping[str, Any] | None = None) -> tuple[Scores, Mapping[str, Any]]:
    """How many batches were scored before this one: a training step kept in the state, on the prompt axis.

    Counts calls of ``score`` with one session; ``x`` only gives the axes, known or not. Where the trainer's step is in
    the data, use that column instead.

    >>> import guerdon as gd
    >>> session, step = gd.Session(), gd.shape.calls(gd.column("x"))
    >>> [step.score([{"x": 1.0}], session=session).values.tolist() for _ in range(3)]
    [[0.0], [1.0], [2.0]]
    """
    seen = int((state or {"calls": 0})["calls"])
    return Scores.constant(x.axis.ancestor("prompt"), float(seen)), {"calls": seen + 1}


def _paced_range(parts: Any, **_: object) -> Interval:
    ranges = list(named(parts).values())
    out: Interval = ranges[0]
    for one in ranges[1:]:
        out = out.hull(one)
    return out


def pace_weights(competence: float, centres: Sequence[float], width: float, floor: float = 0.0) -> FloatArray:
    """``w_j = f + (1 - J f) g_j / sum g`` with ``g_j = exp(-(c - mu_j)^2 / (2 width^2))``; they add up to 1.

    >>> pace_weights(0.2, (0.0, 0.5, 1.0), 0.25).round(6).tolist()
    [0.595752, 0.399345, 0.004903]
    """
    off = (competence - np.asarray(centres, dtype=np.float64)) ** 2 / (2.0 * width**2)
    g = np.exp(off.min() - off)
    return np.asarray(floor + (1.0 - len(g) * floor) * g / g.sum())


@transform(
    "shape.self_paced",
    version=1,
    groups="batch",
    initial=lambda **_: {"competence": 0.0},
    range=_paced_range,
)
def self_paced(
    parts: Mapping[str, Scores] | Sequence[Scores],
    *,
    centres: Sequence[float] | None = None,
    width: float = 0.25,
    rate: float = 0.1,
    floor: float = 0.0,
    state: Mapping[str, Any] | None = None,
) -> tuple[Scores, Mapping[str, Any]]:
    """A mix of parts in [0, 1], ordered from easy to hard, whose weight moves on as the policy's competence ``c``
    grows.

    ``R = sum_j w_j(c) r_j``, weights as in `pace_weights` with ``centres`` spread evenly over [0, 1] by default.
    After the batch, ``c <- max(c, (1 - rate) c + rate x)``, ``x`` the mean of the known scores of the part with the
    largest weight: never falling, and frozen while a batch is scored. State: ``{"competence": c}``, first 0. Unknown
    where a part is.

    >>> import guerdon as gd
    >>> session, mix = gd.Session(), gd.shape.self_paced([gd.column("easy"), gd.column("hard")], rate=0.5)
    >>> [mix.score([{"easy": 1.0, "hard": 0.0}], session=session).values.round(4).tolist() for _ in range(3)]
    [[0.9997], [0.5], [0.018]]
    """
    by_name = named(parts)
    fitted = aligned(*by_name.values())
    places = np.linspace(0.0, 1.0, len(fitted)) if centres is None else np.asarray(centres, dtype=np.float64)
    if len(places) != len(fitted) or not width > 0 or not 0 <= floor * len(fitted) <= 1:
        raise ValueError("self_paced needs a centre per part, a width above 0, and a floor of at most 1 / parts")
    competence = float((state or {"competence": 0.0})["competence"])
    w = pace_weights(competence, places.tolist(), width, floor)
    mixed = itemwise(lambda *rows: _mix(w, rows), *fitted)
    lead = fitted[int(np.argmax(w))]
    seen = float(np.clip(lead.values[lead.known], 0.0, 1.0).mean()) if lead.known.any() else competence
    proof = Evidence(lambda i: {"competence": competence, **dict(zip(by_name, w.tolist(), strict=True))})
    out = Scores(mixed.axis, mixed.values, mixed.known, mixed.reasons, proof)
    return out, {"competence": max(competence, (1.0 - rate) * competence + rate * seen)}


def _mix(w: FloatArray, rows: Sequence[FloatArray]) -> FloatArray:
    stack = np.stack(rows)
    return np.clip(w @ stack, stack.min(axis=0), stack.max(axis=0))
