"""Temporal-difference credit: n-step returns, lambda returns, generalised advantages, look-ahead windows.

A rollout with an unknown reward or value is unknown as a whole. Rewards may live on a coarser axis than the values (one
outcome per rollout, one score per step): each is then paid at its last item.
"""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import Axis, BoolArray, FloatArray
from guerdon.core.scores import ObjectArray, Scores
from guerdon.core.transform import transform
from guerdon.credit import _kernels as kernels
from guerdon.credit._rollouts import along, settled
from guerdon.credit._spread import at_last, both_known


@transform("credit.gae", version=1, groups="rollout", axis=lambda reward, value, **_: value)
def gae(reward: Scores, value: Scores, *, gamma: float = 1.0, lam: float = 0.95) -> Scores:
    """Generalised advantage: ``A_t = delta_t + gamma lam A_{t+1}``, ``delta_t = r_t + gamma V_{t+1} - V_t``.

    ``value`` (shape ``(tokens,)``) is the critic's ``V_t`` of the state before item ``t``; beyond the end
    ``V = A = 0``. ``reward``: on the same axis, or one per rollout or step, paid at its last item. ``gamma``, ``lam``
    in [0, 1]. With ``lam < 1`` there is as much bias as ``V`` is wrong. The critic's target is ``lambda_return``. PPO
    whitens the advantages of a batch afterwards: `batch_whiten`.

    >>> import guerdon as gd
    >>> rows = [{"v": [0.5, 0.75], "ok": 1}]
    >>> gd.credit.gae(gd.column("ok"), gd.column("v", axis="step"), lam=0.5).score(rows).scores.values.tolist()
    [0.375, 0.25]
    """
    known, reasons = _known(reward, value)
    paid, offsets = _on_axis(reward, value.axis), value.axis.offsets_over("rollout")
    with np.errstate(over="ignore", invalid="ignore"):
        values = kernels.gae(paid, _plain(value), offsets, gamma, lam)
    return settled(value.axis, values, known, reasons)


@transform("credit.lambda_return", version=1, groups="rollout", axis=lambda reward, value, **_: value)
def lambda_return(reward: Scores, value: Scores, *, gamma: float = 1.0, lam: float = 0.95) -> Scores:
    """The critic's target: ``G_t = r_t + gamma ((1 - lam) V_{t+1} + lam G_{t+1}) = A_t + V_t`` of `gae`; bias as there.

    >>> import guerdon as gd
    >>> rows = [{"v": [0.5, 0.75], "ok": 1}]
    >>> target = gd.credit.lambda_return(gd.column("ok"), gd.column("v", axis="step"), lam=0.5)
    >>> target.score(rows).scores.values.tolist()
    [0.875, 1.0]
    """
    advantage: Scores = gae.function(reward, value, gamma=gamma, lam=lam)
    values = advantage.values
    with np.errstate(over="ignore", invalid="ignore"):
        values += value.values
    return settled(value.axis, values, advantage.known, advantage.reasons)


@transform("credit.n_step", version=1, groups="rollout", axis=lambda reward, value, **_: value)
def n_step(reward: Scores, value: Scores, *, n: int = 1, gamma: float = 1.0) -> Scores:
    """Windowed temporal difference: ``A_t = sum_{j<n} gamma^j r_{t+j} + gamma^n V_{t+n} - V_t``; 0 beyond the end.

    ``n = 1`` is the TD error; ``n`` as long as the rollout is the reward-to-go minus ``V``; a shorter window has as
    much bias as ``V`` is wrong. Shapes as in `gae`; the time is proportional to ``n``.

    >>> import guerdon as gd
    >>> rows = [{"v": [0.5, 0.75, 0.25], "ok": 1}]
    >>> gd.credit.n_step(gd.column("ok"), gd.column("v", axis="step"), n=2).score(rows).scores.values.tolist()
    [-0.25, 0.25, 0.75]
    """
    kernels.unit_interval(gamma=gamma)
    if n < 1:
        raise ValueError(f"n={n!r} must be at least 1")
    offsets = value.axis.offsets_over("rollout")
    known, reasons = _known(reward, value)
    v = _plain(value)
    out = np.negative(v)
    with np.errstate(over="ignore", invalid="ignore"):
        if len(offsets) > 1 and int(np.diff(offsets).max()) > n:
            kernels.add_ahead(out, v, offsets, n, gamma**n)
        _add_windows(out, reward, value.axis, n, gamma)
    return settled(value.axis, out, known, reasons)


@transform("credit.window_mean", version=1, groups="rollout", range=lambda x, **_: x)
def window_mean(x: Scores, *, width: int = 3, gamma: float = 1.0) -> Scores:
    """Weighted mean over a look-ahead window: ``sum_j gamma^j x_{t+j} / sum_j gamma^j``, ``j < width``.

    Near the end over what is left. A smoothed score, not a return: as an advantage it trades bias for less variance.

    >>> import guerdon as gd
    >>> rows = [{"s": [1.0, 0.0, 0.5]}]
    >>> gd.credit.window_mean(gd.column("s", axis="step"), width=2).score(rows).scores.values.tolist()
    [0.5, 0.25, 0.5]
    """

    def compute(values: FloatArray, offsets: np.typing.NDArray[np.int64]) -> FloatArray:
        left = np.repeat(offsets[1:], np.diff(offsets)) - np.arange(offsets[-1])
        weights = np.r_[0.0, np.cumsum(gamma ** np.arange(float(width)))]
        return np.asarray(kernels.window_sums(values, offsets, width, gamma) / weights[np.minimum(left, width)])

    return along(x, compute)


@transform("credit.potential_shaping", version=1, groups="rollout")
def potential_shaping(
    potential: Scores, start: Scores | None = None, *, gamma: float = 1.0, absorb: bool = True
) -> Scores:
    """Potential-based shaping: ``F_t = gamma Phi_t - Phi_{t-1}``, ``Phi_0 = start`` (default 0).

    ``potential`` holds ``Phi_t`` after item ``t``, shape ``(steps,)``. With ``absorb`` the potential after the last
    item counts as 0, as the theorem needs: the discounted sum is then ``-start`` whatever the policy does, so every
    policy keeps its order (Ng, Harada and Russell 1999). Without it the sum is ``gamma^T Phi_T - start``: the last
    potential acts as an outcome reward, which is wanted where the potential *is* the outcome score (`gain` with
    ``gamma = 1``).

    >>> import guerdon as gd
    >>> rows = [{"phi": [0.5, 0.25, 0.75]}]
    >>> gd.credit.potential_shaping(gd.column("phi", axis="step")).score(rows).scores.values.tolist()
    [0.5, -0.25, -0.25]
    """
    kernels.unit_interval(gamma=gamma)
    offsets = potential.axis.offsets_over("rollout")
    begins = np.zeros(len(offsets) - 1)
    known, reasons = potential.known, potential.reasons
    if start is None:
        known, reasons = _known(potential, potential)
    else:
        first = start if start.axis.name == "rollout" else start.broadcast(potential.axis.ancestor("rollout"))
        begins, (known, reasons) = _plain(first), both_known(potential, first)
    after = _plain(potential).copy()
    before = kernels.preceding(after, offsets, begins)
    if absorb:
        after[kernels.last_items(offsets)] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        shaped = gamma * after - before
    return settled(potential.axis, shaped, known, reasons)


def _add_windows(out: FloatArray, reward: Scores, axis: Axis, n: int, gamma: float) -> None:
    """``out[t] += sum_{j<n} gamma^j r_{t+j}``; rewards paid at a few items only reach the ``n`` before each of them."""
    offsets = axis.offsets_over("rollout")
    dense = reward.axis.name == axis.name
    paid = reward if reward.axis.has("rollout") else reward.broadcast(axis.ancestor("rollout"))
    if dense or n * len(paid) > axis.size:
        out += kernels.window_sums(_on_axis(reward, axis), offsets, n, gamma)
        return
    span = axis.offsets_over(paid.axis.name)
    at, filled = kernels.last_items(span), np.diff(span) > 0
    amount, first = _plain(paid)[filled], offsets[np.searchsorted(offsets, at, side="right") - 1]
    for j in range(n):
        inside = at - j >= first
        at, amount, first = at[inside], amount[inside], first[inside]
        out[at - j] += gamma**j * amount


def _known(reward: Scores, value: Scores) -> tuple[BoolArray, ObjectArray | None]:
    if reward.axis.has("rollout"):
        return both_known(value, reward)
    return both_known(value, reward.broadcast(value.axis.ancestor("rollout")))


def _plain(x: Scores) -> FloatArray:
    """Values with 0 where unknown."""
    return x.values if x.reasons is None else np.where(x.known, x.values, 0.0)


def _on_axis(reward: Scores, axis: Axis) -> FloatArray:
    """A fresh array of rewards on ``axis``."""
    if reward.axis.name == axis.name:
        return np.where(reward.known, reward.values, 0.0) if reward.reasons is not None else reward.values.copy()
    paid = reward if reward.axis.has("rollout") else reward.broadcast(axis.ancestor("rollout"))
    return at_last(paid, axis)
