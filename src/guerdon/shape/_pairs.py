"""All ordered pairs of members of each group, in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from guerdon.core.axis import IntArray

PIECE = 1 << 20
"""Pairs made at a time (a single member's pairs may be more)."""


def pairs(offsets: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """``(i, j)`` index arrays over consecutive segments: every item with every item of its segment, itself included.

    >>> [(i.tolist(), j.tolist()) for i, j in pairs(np.array([0, 2, 3]))]
    [([0, 0, 1, 1, 2], [0, 1, 0, 1, 2])]
    """
    sizes = np.diff(offsets)
    opponents = np.repeat(sizes, sizes)
    first = np.repeat(offsets[:-1], sizes)
    ends = np.cumsum(opponents)
    a = 0
    while a < len(opponents):
        done = int(ends[a - 1]) if a else 0
        b = max(a + 1, int(np.searchsorted(ends, done + PIECE, side="right")))
        i = np.repeat(np.arange(a, b), opponents[a:b])
        within = np.arange(len(i)) - np.repeat(ends[a:b] - opponents[a:b] - done, opponents[a:b])
        yield i, first[i] + within
        a = b
