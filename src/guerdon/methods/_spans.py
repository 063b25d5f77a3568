"""From pieces of text that a judge quotes to the tokens that they touch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from guerdon.core.axis import FloatArray

Span = tuple[int, int]
"""Start and end of a piece of text, in characters, the end not included."""


def token_marks(offsets: Sequence[Span], spans: Iterable[Span]) -> FloatArray:
    """1 for the tokens (``offsets``: start and end in the text) that a span touches, if only in part; else 0.

    >>> token_marks([(0, 3), (3, 7), (7, 9)], [(4, 8)]).tolist()
    [0.0, 1.0, 1.0]
    """
    start, end = np.array(offsets, dtype=np.int64).reshape(-1, 2).T
    marks = np.zeros(len(start))
    for low, high in spans:
        marks[(start < high) & (end > low)] = 1.0
    return marks
