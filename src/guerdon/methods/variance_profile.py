"""The audit of dense rewards under the z-score: which bounded bonus becomes unbounded pressure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from guerdon.core.axis import FloatArray
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.methods._registry import method
from guerdon.shape._finite import measured
from guerdon.shape._groups import Groups
from guerdon.shape._normalise import member_wise


@dataclass(frozen=True)
class DenseProfile:
    """One training step's look at a dense signal: share of all-fail groups, its mastery, its variance inside groups."""

    all_fail: float
    mastery: float
    variance: float


@dataclass(frozen=True)
class DenseVerdict:
    """``safe`` is ``None`` where the record can't tell; ``reason`` says why. ``correlation``: mastery with variance."""

    safe: bool | None
    reason: str
    all_fail: float
    correlation: float | None


def dense_profile(task: Scores, dense: Scores, *, top: float) -> DenseProfile:
    """The profile of a batch.

    ``f``: share of groups in which no known rollout has ``task > 0``; ``m = mean d / top``; ``V_d``: the
    mean over groups of the population variance of ``dense``. ``top``: the known upper bound of the dense signal, above
    0.
    """
    if not top > 0.0:
        raise ValueError(f"top={top!r}, the upper bound of the dense signal, must be above 0")
    groups, outcomes = Groups.of(dense), Groups.of(task)
    heard = groups.members > 0
    if not heard.any() or not (outcomes.members > 0).any():
        raise ValueError("a profile needs known task and dense scores")
    failed = outcomes.high[outcomes.members > 0] <= 0.0
    mean = float(dense.values[dense.known].mean())
    return DenseProfile(float(failed.mean()), mean / top, float(groups.var()[heard].mean()))


@method(
    "variance-profile-amplifier-audit",
    family="audit",
    name="Dark-room collapse: z-score amplification of dense rewards",
    source="variance-profile criterion (paper summary; the audit is our reading)",
    evidence="secondary",
)
def dense_signal_verdict(profiles: Sequence[DenseProfile]) -> DenseVerdict:
    """Is a dense signal safe under the z-score?

    In an all-fail group the z-score of ``c + lam d`` is ``(d - mean d) / std(d)`` whatever ``lam > 0``: annealing the
    bonus does nothing. Flag if ``corr(m, V_d) >= 0`` over the training steps while the mean share of all-fail groups
    exceeds 0.5; a constant ``V_d > 0`` counts as correlation 0, ``V_d = 0`` is safe. Fewer than two steps, or
    constant mastery: no verdict. Fixes: no division (`credit.group_relative`, ``scale="none"``), or `guarded_zscore`.
    `amplification` measures a batch.

    Traps: an epsilon hides it only where ``lam`` is about as small; mixed groups hide it in averages, so read
    `amplification` by `shape.group_class`.

    >>> import guerdon as gd
    >>> kept = [DenseProfile(all_fail=0.9, mastery=m, variance=0.2) for m in (0.1, 0.5, 0.9)]
    >>> gd.method("variance-profile-amplifier-audit", kept).safe
    False
    """
    failing = float(np.mean([p.all_fail for p in profiles])) if profiles else math.nan
    variance = np.array([p.variance for p in profiles])
    mastery = np.array([p.mastery for p in profiles])
    if len(profiles) < 2:
        return DenseVerdict(None, "fewer than two training steps", failing, None)
    if not variance.any():
        return DenseVerdict(True, "the signal has no variance inside groups", failing, None)
    if mastery.min() == mastery.max():
        return DenseVerdict(None, "mastery never changed", failing, None)
    constant = variance.min() == variance.max()
    correlation = 0.0 if constant else float(np.corrcoef(_shares(mastery), _shares(variance))[0, 1])
    if correlation >= 0.0 and failing > 0.5:
        return DenseVerdict(
            False, "variance is kept or grows with mastery while most groups fail", failing, correlation
        )
    why = "variance shrinks as the signal is mastered" if correlation < 0 else "most groups do not fail"
    return DenseVerdict(True, why, failing, correlation)


def _shares(x: FloatArray) -> FloatArray:
    """From 0 at the least to 1 at the greatest, so that no square of tiny or huge numbers is lost."""
    return np.asarray((x - x.min()) / (x.max() - x.min()))


@transform("methods.guarded_zscore", version=1, groups=True)
def guarded_zscore(x: Scores, *, floor: float, ddof: int = 0) -> Scores:
    """``(r_i - mean) / max(std, floor)``: no spread is blown up beyond ``1 / floor``. Our reading of the fix."""
    if not floor > 0.0:
        raise ValueError(f"floor={floor!r} must be positive")
    groups = Groups.of(x)
    spread = np.maximum(groups.std(ddof), floor)
    with np.errstate(over="ignore", invalid="ignore"):
        off = (x.values - groups.at(groups.mean)) / groups.at(np.where(np.isfinite(spread), spread, np.nan))
    return member_wise(x, groups, np.where(groups.at(groups.flat), 0.0, off))


@transform("methods.amplification", version=1, groups=True, axis=lambda x: "prompt")
def amplification(x: Scores) -> Scores:
    """How much the z-score blows a group up against the batch: ``std_batch / std_group``, population deviations.

    One per prompt; unknown for a group without spread, which gets advantage 0.
    """
    groups, batch = Groups.of(x), Groups(x.values, x.known, np.zeros(len(x), dtype=np.int64), 1)
    spread = groups.std()
    known = (spread > 0.0) & (groups.members > 0)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.where(known, batch.std() / np.where(known, spread, 1.0), 0.0)
    return measured(x.axis.ancestor("prompt"), values, known, "no spread in the group")
