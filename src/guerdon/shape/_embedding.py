"""Preference scores between the members of a group from an embedding of each."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import Axis, BoolArray, FloatArray
from guerdon.core.scores import Scores
from guerdon.core.transform import transform


@transform("shape.skew_preference", version=1, groups=True, axis=lambda x, strengths=None: "opponent")
def skew_preference(x: Scores, strengths: Scores | None = None) -> Scores:
    """Preference scores between the members of a group from an embedding each: ``s(a > b) = <R v_a, v_b>``.

    ``x`` lies on an axis under the rollout and holds an even number of coordinates, the same for all members of a
    group; ``v`` is ``x`` with length 1. ``R`` turns each pair of coordinates by a right angle, so
    ``s(a > b) = sum_l lam_l (v_a[2l-1] v_b[2l] - v_a[2l] v_b[2l-1])``, indices from 1: skew-symmetric, and able to
    hold cycles. ``strengths`` (``lam``, one per pair of coordinates, on an axis of its own; default 1) are those of
    the first rollout ``a``.

    The result lies on the axis "opponent": one number for every member of the group, its own being 0; `sigmoid` of
    it over a temperature is a probability for `win_rate` and its kin. Unknown where either embedding is: partly
    unknown, 0, odd, or of another length. General preference model (Zhang et al. 2024, arXiv:2410.02197).

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "v": v} for v in ([1.0, 0.0], [0.0, 1.0])]
    >>> gd.shape.skew_preference(gd.column("v", axis="dimension")).score(rows).framed.values.tolist()
    [0.0, 1.0, -1.0, 0.0]
    """
    rollout, length = x.axis.parent, x.axis.lengths
    if rollout is None or rollout.offsets is None or x.axis.offsets is None:
        raise ValueError(f"embeddings lie on an axis under the rollout, not on '{x.axis.name}'")
    vectors, usable = _padded(x)
    peak = np.abs(vectors).max(axis=1, initial=0.0)  # first, so that no square vanishes or overflows
    usable &= (length % 2 == 0) & (peak > 0)
    v = vectors / np.where(peak > 0, peak, 1.0)[:, None]
    v = v / np.where(peak > 0, np.linalg.norm(v, axis=1), 1.0)[:, None]
    lam = np.ones((len(v), v.shape[1] // 2))
    if strengths is not None:
        given, complete = _padded(strengths)
        usable &= complete & (strengths.axis.lengths * 2 == length)
        lam = np.zeros_like(lam)
        width = min(lam.shape[1], given.shape[1])
        lam[:, :width] = given[:, :width]
    sizes = rollout.lengths[rollout.owner]
    axis = Axis.under(rollout, sizes, "opponent")
    assert axis.offsets is not None
    i = axis.owner
    j = rollout.offsets[:-1][rollout.owner[i]] + np.arange(axis.size) - axis.offsets[:-1][i]
    even, odd = v[:, 0::2], v[:, 1::2]
    values = (lam[i] * (even[i] * odd[j] - odd[i] * even[j])).sum(axis=1)
    known = usable[i] & usable[j] & (length[i] == length[j])
    return Scores.of(
        axis, np.where(i == j, 0.0, values), known, "an embedding without a direction, or of another length"
    )


def _padded(x: Scores) -> tuple[FloatArray, BoolArray]:
    """The items of each parent as a row, filled with 0 to an even width, and which rows are wholly known."""
    assert x.axis.offsets is not None
    width = int(x.axis.lengths.max(initial=0))
    rows = np.zeros((len(x.axis.lengths), width + width % 2))
    rows[x.axis.owner, np.arange(x.axis.size) - x.axis.offsets[:-1][x.axis.owner]] = np.where(x.known, x.values, 0.0)
    return rows, np.bincount(x.axis.owner[~x.known], minlength=len(rows)) == 0
