"""The operators of reward expressions, as functions on scores with unknowns.

Arithmetic and comparison of an unknown part are unknown, the reasons carried along. ``both``, ``either`` and the
product of values in [0, 1] are three-valued: where a known part decides, the result is known and the rest not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from guerdon.core.axis import PARENTS, BoolArray, FloatArray, IntArray
from guerdon.core.interval import UNIT, Interval
from guerdon.core.reward import Reward
from guerdon.core.scores import NO_EVIDENCE, Evidence, ObjectArray, Scores, aligned
from guerdon.core.segments import segment_count, segment_max, segment_min, segment_product, segment_sum
from guerdon.core.transform import Laziness, transform

Missing = Literal["unknown", "skip"]


def itemwise(compute: Callable[..., FloatArray], *parts: Scores, trouble: str = "not a finite number") -> Scores:
    """``compute`` on the values of ``parts`` (aligned to the finest axis); unknown where any part is.

    Where the result is not finite, it is unknown for the reason ``trouble``.
    """
    fitted = aligned(*parts)
    with np.errstate(all="ignore"):
        values = np.asarray(compute(*[p.values for p in fitted]), dtype=np.float64)
    if all(p.reasons is None for p in fitted) and np.isfinite(values).all():
        return Scores(fitted[0].axis, values, fitted[0].known)
    known = np.logical_and.reduce([p.known for p in fitted])
    finite = np.isfinite(values)
    out = Scores.of(fitted[0].axis, np.where(finite, values, 0.0), known & finite, fitted)
    if out.reasons is not None:
        out.reasons[known & ~finite] = trouble
    return out


@transform("add", version=1, range=lambda a, b: a + b)
def add(a: Scores, b: Scores) -> Scores:
    """``a + b``."""
    return itemwise(np.add, a, b)


@transform("subtract", version=1, range=lambda a, b: a - b)
def subtract(a: Scores, b: Scores) -> Scores:
    """``a - b``."""
    return itemwise(np.subtract, a, b)


@transform("scale", version=1, range=lambda a, b: a * b)
def times(a: Scores, b: Scores) -> Scores:
    """``a * b``; unknown where either is, even beside a 0."""
    return itemwise(np.multiply, a, b)


@transform("divide", version=1, range=lambda a, b: a / b)
def divide(a: Scores, b: Scores) -> Scores:
    """``a / b``; unknown where ``b`` is 0."""
    return itemwise(np.divide, a, b, trouble="division by zero")


@transform("negate", version=1, range=lambda a: -a)
def negate(a: Scores) -> Scores:
    """``-a``."""
    return itemwise(np.negative, a)


@transform("less", version=1, range=lambda a, b: _verdict(a.high < b.low, a.low >= b.high))
def less(a: Scores, b: Scores) -> Scores:
    """1 where ``a < b``, else 0."""
    return itemwise(np.less, a, b)


@transform("less_equal", version=1, range=lambda a, b: _verdict(a.high <= b.low, a.low > b.high))
def less_equal(a: Scores, b: Scores) -> Scores:
    """1 where ``a <= b``, else 0."""
    return itemwise(np.less_equal, a, b)


@transform("equal", version=1, range=lambda a, b: _verdict(False, a.high < b.low or b.high < a.low))
def equal(a: Scores, b: Scores) -> Scores:
    """1 where ``a == b``, else 0."""
    return itemwise(np.equal, a, b)


@transform("not", version=1, range=lambda a: Interval(1, 1) - a)
def negation(a: Scores) -> Scores:
    """``1 - a``: not, of a 0/1 score."""
    return itemwise(lambda x: 1.0 - x, a)


def _verdict(always: bool, never: bool) -> Interval:
    return Interval(1.0 if always else 0.0, 0.0 if never else 1.0)


def _one_by_one(count: int) -> list[list[int]]:
    return [[i] for i in range(count)]


def _undecided(decisive: float) -> Callable[[int, Sequence[Scores | None]], BoolArray | None]:
    """Items that no earlier operand has decided by holding the ``decisive`` value."""

    def wanted(position: int, earlier: Sequence[Scores | None]) -> BoolArray | None:
        decided = [s.known & (s.values == decisive) for s in earlier if s is not None]
        return ~np.logical_or.reduce(decided) if decided else None

    return wanted


def _decided(compute: Callable[..., FloatArray], decisive: float, a: Scores, b: Scores) -> Scores:
    """Three-valued: the ``decisive`` value of one part settles it, else both must be known."""
    one, two = aligned(a, b)
    settled = (one.known & (one.values == decisive)) | (two.known & (two.values == decisive))
    with np.errstate(over="ignore", invalid="ignore"):  # what stands where a value is unknown may be anything
        values = np.where(settled, decisive, compute(one.values, two.values))
    return Scores.of(one.axis, values, settled | (one.known & two.known), (one, two))


@transform(
    "and",
    version=1,
    range=lambda a, b: Interval(min(a.low, b.low), min(a.high, b.high)),
    lazy=Laziness(_one_by_one, _undecided(0.0), reorder=True),
)
def both(a: Scores, b: Scores) -> Scores:
    """The lesser of two scores in [0, 1]; *and*, of 0/1 scores. A known 0 decides."""
    return _decided(np.minimum, 0.0, a, b)


@transform(
    "or",
    version=1,
    range=lambda a, b: Interval(max(a.low, b.low), max(a.high, b.high)),
    lazy=Laziness(_one_by_one, _undecided(1.0), reorder=True),
)
def either(a: Scores, b: Scores) -> Scores:
    """The greater of two scores in [0, 1]; *or*, of 0/1 scores. A known 1 decides."""
    return _decided(np.maximum, 1.0, a, b)


@transform("product", version=1, range=lambda a, b: a * b, lazy=Laziness(_one_by_one, _undecided(0.0), reorder=True))
def joint(a: Scores, b: Scores) -> Scores:
    """The product of two scores in [0, 1]. A known 0 decides."""
    return _decided(np.multiply, 0.0, a, b)


def multiply(a: Any, b: Any) -> Any:
    """``a * b``. Of two rewards in [0, 1], a known 0 decides and the other is not asked; else unknown stays unknown."""
    if isinstance(a, Reward) and isinstance(b, Reward) and a.range.unit and b.range.unit:
        return joint(a, b)
    return times(a, b)


@transform("minimum", version=1, range=lambda a, b: Interval(min(a.low, b.low), min(a.high, b.high)))
def _minimum(a: Scores, b: Scores) -> Scores:
    return itemwise(np.minimum, a, b)


@transform("maximum", version=1, range=lambda a, b: Interval(max(a.low, b.low), max(a.high, b.high)))
def _maximum(a: Scores, b: Scores) -> Scores:
    return itemwise(np.maximum, a, b)


def minimum(a: Any, b: Any) -> Any:
    """The lesser of two, item by item. Of two rewards in [0, 1], a known 0 decides and the other is not asked."""
    return both(a, b) if _in_unit(a, b) else _minimum(a, b)


def maximum(a: Any, b: Any) -> Any:
    """The greater of two, item by item. Of two rewards in [0, 1], a known 1 decides and the other is not asked."""
    return either(a, b) if _in_unit(a, b) else _maximum(a, b)


def _in_unit(a: Any, b: Any) -> bool:
    """Whether these are rewards, or a reward and a number, in [0, 1]."""
    ranges = [
        x.range if isinstance(x, Reward) else Interval(x, x) for x in (a, b) if isinstance(x, (Reward, int, float))
    ]
    return (isinstance(a, Reward) or isinstance(b, Reward)) and len(ranges) == 2 and all(r.unit for r in ranges)


def _branch(position: int, earlier: Sequence[Scores | None]) -> BoolArray | None:
    condition = earlier[0]
    if position == 0 or condition is None:
        return None
    return np.asarray(condition.known & (condition.values == (1.0 if position == 1 else 0.0)))


def _branch_range(condition: Interval, then: Interval, otherwise: Interval) -> Interval:
    if condition == Interval(1, 1):
        return then
    return otherwise if condition == Interval(0, 0) else then.hull(otherwise)


@transform("when", version=1, range=_branch_range, lazy=Laziness(lambda count: [[0], [1, 2]], _branch))
def when(condition: Scores, then: Scores, otherwise: Scores) -> Scores:
    """``then`` where ``condition`` is 1, ``otherwise`` where it is 0, unknown where it is unknown.

    Only the chosen branch is asked, and only its unknowns count. A condition other than 0 or 1 is unknown.
    """
    c, a, b = aligned(condition, then, otherwise)
    yes, no = c.known & (c.values == 1.0), c.known & (c.values == 0.0)
    known = (yes & a.known) | (no & b.known)
    reasons: ObjectArray = np.full(c.axis.size, None, dtype=object)
    reasons[c.known & ~yes & ~no] = "the condition is neither 0 nor 1"
    for chosen, part in ((yes, a), (no, b), (~c.known, c)):
        if part.reasons is not None:
            where = chosen & ~part.known
            reasons[where] = part.reasons[where]
    branch = Evidence(lambda i: {"branch": "then" if yes[i] else "otherwise"} if c.known[i] else None)
    return Scores.of(c.axis, np.where(yes, a.values, b.values), known, reasons, branch)


def _axis_above(x: str, to: str | None = None, missing: str = "unknown") -> str:
    return to or PARENTS.get(x, "rollout")


def _same_range(x: Interval, **_: object) -> Interval:
    return x


def reduce_up(
    x: Scores,
    compute: Callable[[FloatArray, IntArray, IntArray], FloatArray],
    *,
    to: str | None,
    missing: Missing,
    neutral: float = 0.0,
) -> Scores:
    """``compute(values, offsets, count)`` of each parent's items, on the axis ``to`` (default: the parent axis).

    Unknown if any item is unknown or there is none; with ``missing="skip"`` unknown items count as ``neutral``,
    ``count`` is the number of known ones, and their share is evidence.
    """
    target = x.axis.ancestor(to) if to else x.axis.parent
    if target is None:
        raise ValueError(f"there is no axis above '{x.axis.name}'")
    if missing not in ("unknown", "skip"):
        raise ValueError(f'missing={missing!r}: choose "unknown" or "skip"')
    offsets = x.axis.offsets_over(target.name)
    total = np.diff(offsets)
    count = segment_count(x.known, offsets)
    known = (count > 0) if missing == "skip" else (count == total) & (total > 0)
    with np.errstate(all="ignore"):
        values = compute(np.where(x.known, x.values, neutral), offsets, count)
    finite = np.isfinite(values)
    reasons = _reasons_below(x, known, offsets)
    reasons[known & ~finite] = "not a finite number"
    proof = NO_EVIDENCE
    if missing == "skip" and x.reasons is not None:
        proof = Evidence(lambda i: {"known_items": int(count[i]), "items": int(total[i])})
    return Scores.of(target, np.where(known & finite, values, 0.0), known & finite, reasons, proof)


def _reasons_below(x: Scores, known: BoolArray, offsets: IntArray) -> ObjectArray:
    """Why each parent is unknown: the first unknown item's reason, or that it has no items."""
    reasons: ObjectArray = np.full(len(known), None, dtype=object)
    for parent in np.flatnonzero(~known):
        start, end = int(offsets[parent]), int(offsets[parent + 1])
        if start == end:
            reasons[parent] = f"it has no {x.axis.name}s"
            continue
        first = start + int(np.flatnonzero(~x.known[start:end])[0])
        reasons[parent] = f"{x.axis.name} {first - start}: {x.reason(first)}"
    return reasons


@transform("mean", version=1, axis=_axis_above, range=_same_range)
def mean(x: Scores, *, to: str | None = None, missing: Missing = "unknown") -> Scores:
    """Mean of each parent's items."""
    return reduce_up(x, lambda v, o, n: segment_sum(v, o) / np.maximum(n, 1), to=to, missing=missing)


@transform("sum", version=1, axis=_axis_above)
def total(x: Scores, *, to: str | None = None, missing: Missing = "unknown") -> Scores:
    """Sum of each parent's items."""
    return reduce_up(x, lambda v, o, n: segment_sum(v, o), to=to, missing=missing)


@transform("min", version=1, axis=_axis_above, range=_same_range)
def least(x: Scores, *, to: str | None = None, missing: Missing = "unknown") -> Scores:
    """Least of each parent's items."""
    return reduce_up(x, lambda v, o, n: segment_min(v, o), to=to, missing=missing, neutral=np.inf)


@transform("max", version=1, axis=_axis_above, range=_same_range)
def greatest(x: Scores, *, to: str | None = None, missing: Missing = "unknown") -> Scores:
    """Greatest of each parent's items."""
    return reduce_up(x, lambda v, o, n: segment_max(v, o), to=to, missing=missing, neutral=-np.inf)


@transform("prod", version=1, axis=_axis_above, range=lambda x, **_: UNIT if x.unit else Interval())
def product(x: Scores, *, to: str | None = None, missing: Missing = "unknown") -> Scores:
    """Product of each parent's items."""
    return reduce_up(x, lambda v, o, n: segment_product(v, o), to=to, missing=missing, neutral=1.0)


@transform("last", version=1, axis=_axis_above, range=_same_range)
def last(x: Scores, *, to: str | None = None, missing: Missing = "unknown") -> Scores:
    """The last of each parent's items; with ``missing="skip"`` the last known one."""

    def pick(values: FloatArray, offsets: IntArray, count: IntArray) -> FloatArray:
        place = np.where(x.known, np.arange(len(values)), -1) if missing == "skip" else np.arange(len(values))
        at = segment_max(place.astype(np.float64), offsets, empty=-1.0).astype(np.int64)
        padded = np.append(values, 0.0)
        return np.asarray(padded[at])

    if x.axis.size == 0:
        return reduce_up(x, lambda v, o, n: np.zeros(len(n)), to=to, missing=missing)
    return reduce_up(x, pick, to=to, missing=missing)
