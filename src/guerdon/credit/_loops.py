"""The recursions of credit as plain loops over ragged segments: compiled by numba where it is installed.

Segment ``s`` is ``x[offsets[s]:offsets[s + 1]]``. Each function fills ``out`` (same shape as ``x``) and returns
nothing. They are the obvious reference of the array versions in `_kernels`, and run in any Python, slowly.
"""

from __future__ import annotations

from guerdon.core.axis import FloatArray, IntArray


def suffix_discounted(x: FloatArray, offsets: IntArray, decay: float, out: FloatArray) -> None:
    """``out[t] = x[t] + decay * out[t + 1]``, with 0 beyond the segment's end."""
    for s in range(len(offsets) - 1):
        run = 0.0
        for t in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            run = x[t] + decay * run
            out[t] = run


def suffix_min(x: FloatArray, offsets: IntArray, out: FloatArray) -> None:
    """``out[t] = min(x[t], out[t + 1])`` within each segment."""
    for s in range(len(offsets) - 1):
        if offsets[s] == offsets[s + 1]:
            continue
        run = x[offsets[s + 1] - 1]
        for t in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            run = min(x[t], run)
            out[t] = run


def gae(values: FloatArray, offsets: IntArray, gamma: float, decay: float, out: FloatArray) -> None:
    """Adds to ``out``, which holds the rewards: ``A[t] = out[t] + gamma v[t+1] - v[t] + decay * A[t + 1]``."""
    for s in range(len(offsets) - 1):
        run = 0.0
        after = 0.0
        for t in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            run = out[t] + gamma * after - values[t] + decay * run
            after = values[t]
            out[t] = run
