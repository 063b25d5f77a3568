"""Pass@k and max@k: the unbiased estimator and the analytic advantage, over all subsets of k without listing them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from guerdon.core.axis import FloatArray, IntArray
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.shape._groups import Groups
from guerdon.shape._normalise import member_wise


@transform("credit.pass_at_k", version=1, groups=True, axis=lambda x, **_: "prompt", range=lambda x, **_: x)
def pass_at_k(x: Scores, *, k: int) -> Scores:
    """The mean, over all subsets of ``k`` known members, of the greatest score in the subset: unbiased for pass@k.

    For 0/1 scores with ``c`` ones among ``n``: ``1 - C(n - c, k) / C(n, k)`` (Chen et al. 2021, arXiv:2107.03374). In
    general ``sum_j C(j - 1, k - 1) / C(n, k) x_(j)`` over the sorted scores. One per prompt; unknown for ``n < k``.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "ok": ok} for ok in (1, 0, 0, 0)]
    >>> gd.credit.pass_at_k(gd.column("ok"), k=2).score(rows).values.tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    _check(k)
    groups = Groups.of(x)
    out = np.zeros(groups.count)
    for which, order in _by_size(groups, k):
        out[which] = x.values[order] @ _max_weights(order.shape[1], k)
    return Scores.of(x.axis.ancestor("prompt"), out, groups.members >= k, f"fewer than {k} known members in the group")


@transform("credit.pass_at_k_advantage", version=1, groups=True)
def pass_at_k_advantage(x: Scores, *, k: int, scale: Literal["std", "none"] = "std", eps: float = 1e-6) -> Scores:
    """How much better subsets of ``k`` do that hold this member: ``A_i = (E[max | i] - E[max]) / (std[max] + eps)``.

    Mean and population deviation run over all ``C(n, k)`` subsets of the known members, exactly. For 0/1 scores this is
    Pass@k training's closed form: with ``rho = 1 - C(n-c, k) / C(n, k)`` and ``sigma = sqrt(rho (1 - rho))``,
    ``A_right = (1 - rho) / (sigma + eps)`` and ``A_wrong = (1 - rho - C(n-c-1, k-1) / C(n-1, k-1)) / (sigma + eps)``;
    graded scores take the order-statistics form of the same. 0 for all where every subset has the same maximum;
    unknown for ``n < k``. ``scale="none"`` leaves out the division: then the expected gradient is that of pass@k
    times a constant (each advantage is ``(n - k) / n`` of the one with a leave-one-out baseline); with it there is
    bias, as prompts are weighted by ``1/std``.

    Source: Chen et al. 2025, *Pass@k Training*, arXiv:2508.10751.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "ok": ok} for ok in (1, 0)]
    >>> gd.credit.pass_at_k_advantage(gd.column("ok"), k=1, eps=0.0).score(rows).values.tolist()
    [1.0, -1.0]
    """
    _check(k)
    if scale not in ("std", "none"):
        raise ValueError(f'scale={scale!r}: choose "std" or "none"')
    groups = Groups.of(x)
    values = np.zeros(len(x))
    for _, order in _by_size(groups, k):
        ranked = x.values[order]
        weights = _max_weights(order.shape[1], k)
        mean = (ranked @ weights)[:, None]
        # The k - 1 others are drawn from n - 1: this member is the greatest of all, or one above it is.
        others = np.append(_max_weights(order.shape[1] - 1, k - 1), 0.0) if k > 1 else np.zeros(order.shape[1])
        below = np.append(0.0, np.cumsum(others[:-1])) if k > 1 else np.ones(order.shape[1])
        above = np.cumsum((ranked[:, 1:] * others[:-1])[:, ::-1], axis=1)[:, ::-1]
        # Equal maxima everywhere: members from place k on all share one value (places from 0: k - 1).
        flat = ranked[:, k - 1] >= ranked[:, -1]
        with np.errstate(over="ignore", invalid="ignore"):
            off = below * ranked + np.pad(above, ((0, 0), (0, 1))) - mean
            spread = _deviation(ranked - mean, weights) + eps if scale == "std" else np.ones(len(mean))
            values[order] = np.where(flat[:, None], 0.0, off / np.where(flat, 1.0, spread)[:, None])
    out = member_wise(x, groups, values, least=k)
    if out.reasons is not None:
        out.reasons[x.known & (groups.at(groups.members) < k)] = f"fewer than {k} known members in the group"
    return out


def _deviation(off: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted deviation of each row, scaled first so that no square overflows; shape ``(groups,)``."""
    size = np.maximum(np.abs(off).max(axis=1, keepdims=True), 1e-300)
    return np.asarray(size[:, 0] * np.sqrt((off / size) ** 2 @ weights))


def _check(k: int) -> None:
    if k < 1:
        raise ValueError(f"k={k!r} must be at least 1")


def _max_weights(n: int, k: int) -> FloatArray:
    """The chance that the ``j``-th smallest of ``n`` is the greatest of ``k`` drawn: ``C(j-1, k-1) / C(n, k)``."""
    weights = np.zeros(n)
    if n < k:
        return weights
    weights[n - 1] = k / n
    for j in range(n, k, -1):
        weights[j - 2] = weights[j - 1] * (j - k) / (j - 1)
    return weights


def _by_size(groups: Groups, k: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Groups of one size at a time: which they are, and the indices of their known members sorted by value."""
    at = np.flatnonzero(groups.known)
    at = at[np.lexsort((groups.values[at], groups.owner[at]))]
    members = groups.members.astype(np.int64)
    starts = np.cumsum(members) - members
    for size in np.unique(members[members >= k]).tolist():
        which = np.flatnonzero(members == size)
        yield which, at[starts[which][:, None] + np.arange(size)]
