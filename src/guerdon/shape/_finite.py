"""Scores from a computation that may overflow: what is not finite becomes unknown, never an error or a number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from guerdon.core.axis import Axis, BoolArray, FloatArray
from guerdon.core.scores import NO_EVIDENCE, Evidence, ObjectArray, Scores

OVERFLOW = "not a finite number"


def measured(
    axis: Axis,
    values: FloatArray,
    known: BoolArray,
    reasons: str | ObjectArray | Scores | Sequence[Scores] | None,
    evidence: Evidence = NO_EVIDENCE,
) -> Scores:
    """`Scores.of`, where a known value that is not finite is unknown for the reason *not a finite number*."""
    finite = np.isfinite(values)
    if finite.all():
        return Scores.of(axis, values, known, reasons, evidence)
    out = Scores.of(axis, np.where(finite, values, 0.0), known & finite, reasons, evidence)
    if out.reasons is not None:
        out.reasons[known & ~finite] = OVERFLOW
    return out
