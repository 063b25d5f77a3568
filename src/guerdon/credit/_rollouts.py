"""Credit along a rollout: what an unknown step means for the other steps, in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from guerdon.core.axis import Axis, BoolArray, FloatArray, IntArray
from guerdon.core.scores import ObjectArray, Scores
from guerdon.core.segments import segment_count
from guerdon.shape._finite import measured

Missing = Literal["unknown", "skip"]


def whole(x: Scores) -> tuple[BoolArray, ObjectArray | None]:
    """Which items belong to rollouts whose every item is known, and why the others do not.

    The reason names the first unknown item: *step 2: judge unparsable*.
    """
    if x.reasons is None or x.axis.name == "rollout" or not x.axis.has("rollout"):
        return x.known, x.reasons
    offsets = x.axis.offsets_over("rollout")
    broken = segment_count(~x.known, offsets) > 0
    reasons: ObjectArray = np.full(len(x), None, dtype=object)
    for rollout in np.flatnonzero(broken):
        start, end = int(offsets[rollout]), int(offsets[rollout + 1])
        first = start + int(np.flatnonzero(~x.known[start:end])[0])
        reasons[start:end] = f"{x.axis.name} {first - start}: {x.reason(first)}"
    return np.repeat(~broken, np.diff(offsets)), reasons


def along(
    x: Scores,
    compute: Callable[[FloatArray, IntArray], FloatArray],
    *,
    missing: Missing = "unknown",
    neutral: float = 0.0,
) -> Scores:
    """``compute(values, offsets)`` over each rollout's items, on the same axis.

    A rollout with an unknown item is unknown as a whole, since credit flows between its items. With
    ``missing="skip"`` unknown items count as ``neutral`` and stay unknown themselves, the others are known.
    """
    if missing not in ("unknown", "skip"):
        raise ValueError(f'missing={missing!r}: choose "unknown" or "skip"')
    known, reasons = (x.known, x.reasons) if missing == "skip" else whole(x)
    values = x.values if x.reasons is None else np.where(x.known, x.values, neutral)
    with np.errstate(over="ignore", invalid="ignore"):
        result = compute(values, x.axis.offsets_over("rollout"))
    return settled(x.axis, result, known, reasons)


def settled(axis: Axis, values: FloatArray, known: BoolArray, reasons: ObjectArray | None) -> Scores:
    """Scores from a computation that may overflow: what is not finite is unknown, with that reason.

    `measured` without its temporary arrays, where everything is known and finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        fine = bool(np.isfinite(values.sum())) or bool(np.isfinite(values[known]).all())
    if fine and reasons is None:
        return Scores(axis, values, known)
    return measured(axis, np.where(known, values, 0.0), known, None if reasons is None else reasons.copy())
