"""Gates: one score decides whether, and how far, another counts; in order, soft, as a cap, or by class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from guerdon.core.axis import BoolArray, FloatArray
from guerdon.core.interval import UNIT, Interval
from guerdon.core.operators import add, itemwise, less, when
from guerdon.core.scores import Evidence, Scores, aligned
from guerdon.core.transform import Laziness, transform
from guerdon.shape._finite import measured
from guerdon.shape._maps import stable_sigmoid


def _sequence(by: Any) -> list[Any]:
    gates = list(by) if isinstance(by, (list, tuple)) else [by]
    if not gates:
        raise ValueError("gate needs at least one gate")
    return gates


def _failed_values(count: int, failed: float | Sequence[float]) -> FloatArray:
    values = np.full(count, float(failed)) if isinstance(failed, (int, float)) else np.array(failed, dtype=np.float64)
    if values.shape != (count,) or not np.isfinite(values).all():
        raise ValueError(f"failed={failed!r}: give one finite number, or one for each of the {count} gates")
    return values


def _gate_range(x: Interval, by: Any, failed: float | Sequence[float] = 0.0) -> Interval:
    gates = _sequence(by)
    out: Interval | None = None
    for gate_range, value in zip(gates, _failed_values(len(gates), failed), strict=True):
        if gate_range.low < 1.0:
            out = Interval(value, value) if out is None else out.hull(Interval(value, value))
        if gate_range.high < 1.0:
            return out if out is not None else Interval(value, value)
    return x if out is None else x.hull(out)


def _behind(position: int, earlier: Sequence[Scores | None]) -> BoolArray | None:
    """Items that passed every gate asked so far; operand 0 is the gated score, the others the gates in order."""
    passed = [s.known & (s.values == 1.0) for s in earlier[1:] if s is not None]
    return np.logical_and.reduce(passed) if passed else None


@transform(
    "shape.gate",
    version=1,
    range=_gate_range,
    lazy=Laziness(lambda count: [*([i] for i in range(1, count)), [0]], _behind),
)
def gate(x: Scores, by: Scores | Sequence[Scores], failed: float | Sequence[float] = 0.0) -> Scores:
    """``x`` where every gate is 1; else the ``failed`` value of the first gate that is 0.

    The gates (0/1 scores) are tried in order, and what lies behind a failed gate, further gates and ``x``, can't
    raise the score and is not asked. A gate that is unknown, or neither 0 nor 1, makes the score unknown. ``failed``
    is one number or one per gate. Evidence: which gate failed.

    >>> import guerdon as gd
    >>> shaped = gd.shape.gate(gd.column("quality"), by=[gd.column("parsed"), gd.column("safe")], failed=[-1, 0])
    >>> rows = [{"parsed": 1, "safe": 1, "quality": 0.7}, {"parsed": 1, "safe": 0}, {"parsed": 0}]
    >>> shaped.score(rows).values.tolist()
    [0.7, 0.0, -1.0]
    """
    gates = _sequence(by)
    values = _failed_values(len(gates), failed)
    score, *checks = aligned(x, *gates)
    size = len(score)
    out, known, decided_by = score.values.copy(), score.known.copy(), np.full(size, -1)
    reasons = np.full(size, None, dtype=object) if score.reasons is None else score.reasons.copy()
    for i in reversed(range(len(checks))):
        check = checks[i]
        shut = check.known & (check.values == 0.0)
        odd = check.known & ~shut & (check.values != 1.0)
        out[shut], known[shut], decided_by[shut] = values[i], True, i
        stuck = ~check.known | odd
        known[stuck], decided_by[stuck] = False, -1
        reasons[odd] = f"gate {i} is neither 0 nor 1"
        if check.reasons is not None:
            reasons[~check.known] = check.reasons[~check.known]
    proof = Evidence(lambda i: {"failed_gate": int(decided_by[i])} if decided_by[i] >= 0 else score.evidence[i])
    return Scores.of(score.axis, out, known, reasons, proof)


def gated_sum(parts: Sequence[Any], thresholds: Sequence[float]) -> Any:
    """Parts by falling priority, each counted only while all before it exceed their thresholds.

    ``sum_i x_i prod_{j<i} 1[x_j > g_j]`` (G-RA), with ``parts`` (rewards or scores) and a threshold for each but the
    last. The comparison is strict; a shut gate masks everything below it, whose parts are then not asked and whose
    unknowns don't count.

    >>> import guerdon as gd
    >>> total = gd.shape.gated_sum([gd.column("outcome"), gd.column("steps")], [0.0])
    >>> total.score([{"outcome": -1.0, "steps": 0.5}, {"outcome": 1.0, "steps": 0.5}]).values.tolist()
    [-1.0, 1.5]
    """
    if len(thresholds) != len(parts) - 1:
        raise ValueError(f"{len(parts)} parts need {len(parts) - 1} thresholds, not {len(thresholds)}")
    result = parts[-1]
    for part, threshold in zip(reversed(parts[:-1]), reversed(thresholds), strict=True):
        result = add(part, when(less(threshold, part), result, 0.0))
    return result


@transform("shape.cap", version=1, range=lambda x, at, unless=None: _cap_range(x, at, unless))
def cap(x: Scores, at: Scores, *, unless: Scores | None = None) -> Scores:
    """``min(x, at)``; with ``unless``, a 0/1 score, only where that is 0. ``at`` is a number or a score.

    What a failed check may still earn at most: unlike `gate`, worse scores stay worse. Unknown parts that count make it
    unknown; ``at`` does not count where ``unless`` is 1.

    >>> import guerdon as gd
    >>> rows = [{"x": 0.9, "ok": 1}, {"x": 0.9, "ok": 0}, {"x": 0.1, "ok": 0}]
    >>> gd.shape.cap(gd.column("x"), 0.3, unless=gd.column("ok")).score(rows).values.tolist()
    [0.9, 0.3, 0.1]
    """
    if unless is None:
        return itemwise(np.minimum, x, at)
    out: Scores = when.function(unless, x, itemwise(np.minimum, x, at))
    return out


def _cap_range(x: Interval, at: Interval, unless: Interval | None) -> Interval:
    capped = Interval(min(x.low, at.low), min(x.high, at.high))
    return capped if unless is None or unless.high < 1 else capped.hull(x)


@transform("shape.soft_gate", version=1, range=lambda x, by, **_: x * UNIT)
def soft_gate(x: Scores, by: Scores, *, threshold: float = 0.5, width: float = 0.1) -> Scores:
    """``x / (1 + exp(-(by - threshold) / width))``: a gate with a slope of ``width``, so that near misses keep a
    gradient.

    As ``width`` falls to 0 it becomes ``x`` above the threshold and 0 below it. Unknown where either is.

    >>> import guerdon as gd
    >>> gd.shape.soft_gate(gd.column("x"), gd.column("g")).score([{"x": 2.0, "g": 0.5}]).values.tolist()
    [1.0]
    """
    if not width > 0:
        raise ValueError(f"soft_gate needs a width above 0, not {width}; a hard gate is `gate`")
    return itemwise(lambda v, g: v * stable_sigmoid((g - threshold) / width), x, by)


@transform("shape.soft_and", version=1, range=lambda parts, **_: UNIT)
def soft_and(parts: Sequence[Scores], *, delta: float = 0.01) -> Scores:
    """Smoothed geometric mean of scores in [0, 1]: ``exp(mean_i log((s_i + delta) / (1 + delta)))``.

    1 where all are 1; one failure collapses it, the more so the smaller ``delta`` and the fewer the parts. The slope
    of its logarithm stays below ``1 / (m delta)``. A score outside [0, 1] is unknown; no parts: 1. From SearchLLM's
    gated aggregation.

    >>> import guerdon as gd
    >>> both = gd.shape.soft_and([gd.column("a"), gd.column("b"), gd.column("c")])
    >>> both.score([{"a": 1.0, "b": 1.0, "c": 0.0}]).values.round(7).tolist()
    [0.2147301]
    """
    if not delta > 0:
        raise ValueError(f"soft_and needs delta above 0, not {delta}")
    scores = aligned(*parts)
    values = np.stack([p.values for p in scores])
    known = np.logical_and.reduce([p.known for p in scores])
    inside = ((values >= 0.0) & (values <= 1.0)).all(axis=0)
    logs = np.log((np.clip(values, 0.0, 1.0) + delta) / (1.0 + delta)).mean(axis=0)
    weakest = values.argmin(axis=0)
    proof = Evidence(lambda i: {"weakest_part": int(weakest[i])} if known[i] else None)
    out = Scores.of(scores[0].axis, np.minimum(np.exp(logs), 1.0), known & inside, scores, proof)
    if out.reasons is not None:
        out.reasons[known & ~inside] = "a part lies outside [0, 1]"
    return out


@transform(
    "shape.base_bonus",
    version=1,
    range=lambda base, bonus, **_: base.hull(base * bonus) if base.low >= 0 else Interval(),
)
def base_bonus(base: Scores, bonus: Scores, *, base_weight: float = 0.6, bonus_weight: float = 0.4) -> Scores:
    """A necessary score that another can only raise: ``base (w1 + w2 bonus) / (w1 + w2)``. Both in [0, 1].

    With a base of 0 no bonus counts, so that a perfect second score can't be had by skipping the first. Unknown where
    either is. From FIRM (base-and-bonus).

    >>> import guerdon as gd
    >>> gd.shape.base_bonus(gd.column("e"), gd.column("c")).score([{"e": 0.8, "c": 0.6}]).values.round(3).tolist()
    [0.672]
    """
    if not (base_weight > 0 and bonus_weight >= 0):
        raise ValueError(f"base_bonus needs base_weight > 0 and bonus_weight >= 0, not {base_weight}, {bonus_weight}")
    total = base_weight + bonus_weight
    return itemwise(lambda b, c: b * ((base_weight + bonus_weight * c) / total), base, bonus)


def _unknown_so_far(position: int, earlier: Sequence[Scores | None]) -> BoolArray | None:
    first = earlier[0]
    return None if position == 0 or first is None else ~first.known


@transform(
    "shape.fallback",
    version=1,
    range=lambda x, other: x.hull(other),
    lazy=Laziness(lambda count: [[0], [1]], _unknown_so_far),
)
def fallback(x: Scores, other: Scores) -> Scores:
    """``x`` where it is known, else ``other``: a stated stand-in, never one by accident.

    ``other``, a number or a score, is asked only where ``x`` is unknown. Evidence: why it stepped in.

    >>> import guerdon as gd
    >>> gd.shape.fallback(gd.column("judge"), 0.5).score([{"judge": 0.9}, {}]).values.tolist()
    [0.9, 0.5]
    """
    first, second = aligned(x, other)
    proof = Evidence(
        lambda i: first.evidence[i] if first.known[i] else {"fallback": first.reason(i), **(second.evidence[i] or {})}
    )
    values = np.where(first.known, first.values, second.values)
    return Scores.of(first.axis, values, first.known | second.known, second, proof)


def _chosen(position: int, earlier: Sequence[Scores | None]) -> BoolArray | None:
    index = earlier[0]
    return None if position == 0 or index is None else index.known & (index.values == position - 1)


def _choose_range(index: Interval, cases: Sequence[Interval]) -> Interval:
    possible = [c for i, c in enumerate(cases) if index.low <= i <= index.high]
    if not possible:
        return Interval()
    out = possible[0]
    for case in possible[1:]:
        out = out.hull(case)
    return out


@transform(
    "shape.choose", version=1, range=_choose_range, lazy=Laziness(lambda count: [[0], list(range(1, count))], _chosen)
)
def choose(index: Scores, cases: Sequence[Scores]) -> Scores:
    """``cases[index]``: a switch by a class or mode from 0. Only the chosen case is asked, and only its unknowns count.

    An index that is no position among the cases is unknown.

    >>> import guerdon as gd
    >>> chosen = gd.shape.choose(gd.column("mode"), [0.0, gd.column("walk"), 2.0])
    >>> chosen.score([{"mode": 1, "walk": 0.3}]).values.tolist()
    [0.3]
    """
    where, *options = aligned(index, *cases)
    size = len(where)
    out, known = np.zeros(size), np.zeros(size, dtype=np.bool_)
    reasons = np.full(size, None, dtype=object) if where.reasons is None else where.reasons.copy()
    reasons[where.known] = f"the index is no position among the {len(options)} cases"
    for i, option in enumerate(options):
        mine = where.known & (where.values == i)
        out[mine], known[mine] = option.values[mine], option.known[mine]
        if option.reasons is not None:
            reasons[mine] = option.reasons[mine]
    return measured(where.axis, out, known, reasons)
