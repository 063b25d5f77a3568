"""Step credit from a score at every step of a chain: DenseGRPO, TurningPoint-GRPO, VGPO."""

from __future__ import annotations

import numpy as np

from guerdon import credit
from guerdon.core.axis import BoolArray, FloatArray
from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.credit._kernels import positions, preceding
from guerdon.credit._rollouts import settled
from guerdon.credit._spread import both_known
from guerdon.methods._registry import method


@method(
    "densegrpo-stepwise-gain",
    family="credit",
    name="DenseGRPO: step-wise reward gain",
    source="Deng et al. 2026, arXiv:2601.20218",
    evidence="secondary",
)
def densegrpo(score: Reward, start: Reward | float) -> Reward:
    """What a step adds to the score of its completion, standardised over the group at the same step.

    ``score``: ``R`` after each step, shape ``(steps,)``; ``start``: ``R`` before the first. ``d_t = R_t - R_{t-1}``
    adds up to ``R_T - R_0``; ``A = (d - mean) / std`` per step, population deviation, no epsilon (our reading), 0
    without spread.

    Traps: a denser reward is easier to hack; early completions are noisy; it costs a scoring per step.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "s": s, "start": 0.0} for s in ([0.5, 1.0], [0.25, 0.75])]
    >>> gains = gd.method("densegrpo-stepwise-gain", gd.column("s", axis="step"), gd.column("start"))
    >>> gains.score(rows).values.tolist()
    [1.0, 0.0, -1.0, 0.0]
    """
    gains = credit.potential_shaping(score, start, absorb=False)
    return credit.place_relative(gains, scale="std", ddof=0)


def calibrated_noise(noise: FloatArray, gains: Scores, *, by: float, tolerance: float) -> FloatArray:
    """DenseGRPO's exploration: noise of a step goes up by ``by`` where gains are balanced, else down.

    ``noise``, result: shape ``(T,)``, the noise of each step. Balanced: ``|#positive - #negative| / G <= tolerance``
    over the known gains at that step (our reading of the tolerance); a zero gain counts on neither side. A step
    without a known gain keeps its noise.
    """
    place, values = positions(gains.axis.offsets_over("rollout"))[gains.known], gains.values[gains.known]
    count = np.bincount(place, minlength=len(noise))[: len(noise)]
    lean = np.bincount(place, weights=np.sign(values), minlength=len(noise))[: len(noise)]
    balanced = np.abs(lean) <= tolerance * count
    return np.asarray(noise + np.where(count == 0, 0.0, np.where(balanced, by, -by)))


@method(
    "tp-grpo-turning-points",
    family="credit",
    name="TurningPoint-GRPO",
    source="Tong et al. 2026, arXiv:2602.06422 (released code and run script)",
    evidence="code-read",
)
def tp_grpo(score: Reward, start: Reward, final: Reward, *, eta: float = 1.0, balance: bool = True) -> Reward:
    """Increments, but a turning point earns all the change that is left; standardised over the group at the same step.

    See `turning_rewards` for the rule, which is that of the released run script. Traps: rewards no longer telescope;
    noise in the scores makes false turning points; trades bias.
    """
    return credit.place_relative(turning_rewards(score, start, final, eta=eta, balance=balance), ddof=0)


@transform("methods.turning_rewards", version=1, groups=True, axis=lambda score, *_, **__: score)
def turning_rewards(score: Scores, start: Scores, final: Scores, *, eta: float = 1.0, balance: bool = False) -> Scores:
    """``eta (R_final - R_{t-1})`` at turning points, the increment ``d_t = R_t - R_{t-1}`` elsewhere, per step.

    With ``s_t = sign(d_t) sign(R_final - R_0)``, step ``t`` turns if ``s_{t-1} < 0 < s_t`` (the first step: no
    condition) and ``sign(d_t) sign(R_final - R_t) > 0``. ``balance``: of the turning points of the batch with a
    positive and with a negative total change, only as many of each as of the rarer are kept, those of the largest
    change; if one sign is absent, all. ``start``, ``final``: one per rollout. A rollout with anything unknown is
    unknown.

    >>> import guerdon as gd
    >>> rows = [{"s": [0.25, 0.75, 1.0], "start": 0.5, "final": 1.5}]
    >>> turning_rewards(gd.column("s", axis="step"), gd.column("start"), gd.column("final")).score(rows).values.tolist()
    [-0.25, 1.25, 0.25]
    """
    offsets = score.axis.offsets_over("rollout")
    (known, why), (also, whynot) = both_known(score, start), both_known(score, final)
    reasons = why if whynot is None else np.where(also, why, whynot) if why is not None else whynot
    values, lengths = np.where(known & also, score.values, 0.0), np.diff(offsets)
    before = preceding(values, offsets, start.values)
    last = np.repeat(final.values, lengths)
    with np.errstate(over="ignore"):
        change = np.repeat(final.values - start.values, lengths)
        step, ahead, left = values - before, last - values, last - before
    way = np.sign(step) * np.sign(change)
    turns = (positions(offsets) == 0) | ((preceding(way, offsets, -1.0) < 0) & (way > 0))
    turns &= (np.sign(step) * np.sign(ahead) > 0) & (left != 0) & known & also
    if balance:
        turns = _balanced(turns, change)
    return settled(score.axis, np.where(turns, eta * left, step), known & also, reasons)


def _balanced(turns: BoolArray, change: FloatArray) -> BoolArray:
    """As many turning points of rising as of falling rollouts, those of the largest change; all if one is absent."""
    up, down = np.flatnonzero(turns & (change > 0)), np.flatnonzero(turns & (change < 0))
    keep = min(len(up), len(down))
    if keep == 0:
        return turns
    out = np.zeros_like(turns)
    for side in (up, down):
        out[side[np.argsort(-np.abs(change[side]), kind="stable")[:keep]]] = True
    return out


@method(
    "vgpo-value-anchored",
    family="credit",
    name="VGPO: Value-Anchored Group Policy Optimization",
    source="arXiv:2512.12387",
    evidence="secondary",
)
def vgpo(score: Reward, *, gamma: float = 0.9, k: float = 0.1) -> Reward:
    """``A_t = omega_t (z_t + k Q_t)``: a group z-score anchored in the value itself, so that equal groups still learn.

    ``score``: instant scores in denoising order, not negative, shape ``(steps,)``. ``Q_t = R_t + gamma Q_{t+1}``;
    ``omega_t = Q_t / mean_t Q_t`` over the rollout's own steps (1 where that is 0); ``z`` over the group at step
    ``t``, population deviation, 0 without spread. Our reading of the paper's ``alpha = k std``: its quotient as
    printed is 0 / 0 without spread. ``gamma`` and ``k`` are not published; these are ours.

    Traps: all-right groups push up forever (needs a KL term); negative scores break ``omega``; the constant part is no
    baseline-free gradient: trades bias.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "s": [0.9]}] * 2
    >>> gd.method("vgpo-value-anchored", gd.column("s", axis="step")).score(rows).values.round(6).tolist()
    [0.09, 0.09]
    """
    value = credit.returns(score, gamma=gamma)
    level = value.mean(to="rollout")
    omega = when(level == 0.0, 1.0, value / level)
    return omega * (credit.place_relative(value, ddof=0) + value * k)
