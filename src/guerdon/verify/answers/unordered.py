"""Matching without order, in bounded time; and inequalities up to a positive factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flint import acb, arb

from .balls import HopelessError, NoValue, Work, evaluate, precision
from .equations import moved
from .exact import Undefined, rational
from .nodes import Expr, Num, Op, Rational, free_names
from .policy import Policy
from .scalar import LOW_BITS, points
from .verdict import Outcome, Reason, differs, same, undecided

__all__ = ["match_unordered", "proportional_inequalities"]

MAX_COMPARISONS = 600
Equal = Callable[[Expr, Expr], Outcome]


def match_unordered(a: Sequence[Expr], b: Sequence[Expr], equal: Equal, policy: Policy) -> Outcome:
    """Whether two collections have the same members; repeats count only by policy."""
    exact = _exact_match(a, b, policy)
    if exact is not None:
        return exact
    count = policy.duplicates == "count"
    if count and len(a) != len(b):
        return differs("structure", f"{len(a)} and {len(b)} members")
    if len(a) * len(b) > MAX_COMPARISONS and min(len(a), len(b)) > 1:
        return undecided(Reason.UNDECIDED, "structure", "too many members to compare")
    return _pairwise(list(a), list(b), equal, count)


def _pairwise(a: list[Expr], b: list[Expr], equal: Equal, count: bool) -> Outcome:
    """A member that surely has no match decides; a doubtful one leaves it open."""
    table = [[equal(x, y) for y in b] for x in a]
    lines = [*table, *[list(column) for column in zip(*table, strict=True)]]
    doubt: Outcome | None = None
    for line in lines:
        if any(outcome.equal for outcome in line):
            continue
        unknown = next((outcome for outcome in line if outcome.equal is None), None)
        if unknown is None:
            return differs("structure", "a member without a match")
        doubt = doubt or unknown
    if doubt is not None:
        return doubt
    if count and not _one_to_one(table):
        return differs("structure", "a member repeated more often")
    return same("structure")


def _one_to_one(table: list[list[Outcome]]) -> bool:
    """Equal members form classes, so taking the first free match of each is enough."""
    free = set(range(len(table)))
    for line in table:
        match = next((j for j in sorted(free) if line[j].equal), None)
        if match is None:
            return False
        free.remove(match)
    return True


def _exact_match(a: Sequence[Expr], b: Sequence[Expr], policy: Policy) -> Outcome | None:
    """Sorted exact values, when every member has one and none is a rounded decimal."""
    values: list[list[Rational]] = []
    for side in (a, b):
        row: list[Rational] = []
        for member in side:
            if isinstance(member, Op) and member.head.startswith(("quantity", "percent")):
                return None
            try:
                value = rational(member)
            except Undefined:
                return None
            if value is None or (isinstance(member, Num) and member.places > 0 and member.figures > 2):
                return None
            row.append(value)
        values.append(sorted(row) if policy.duplicates == "count" else sorted(set(row)))
    return same("number") if values[0] == values[1] else differs("number")


def proportional_inequalities(a: Op, op_a: str, b: Op, op_b: str) -> Outcome:
    """F < 0 and G < 0 (or G > 0) are the same when F/G is one positive (negative) constant."""
    strict = {"<", ">"}
    if (op_a in strict) != (op_b in strict) or (op_a == "!=") != (op_b == "!="):
        return differs("structure", "strict and weak relations")
    fa, fb = moved(a), moved(b)
    names = sorted(free_names(fa) | free_names(fb))
    want = 1 if op_a[0] == op_b[0] else -1
    reference, agreed, work = None, 0, Work()
    with precision(LOW_BITS):
        for at in points(names):
            try:
                va, vb = evaluate(fa, at, work), evaluate(fb, at, work)
            except HopelessError:
                break
            except NoValue:
                continue
            if va.contains(acb(0)) or vb.contains(acb(0)) or not va.imag.contains(0) or not vb.imag.contains(0):
                continue
            ratio = va / vb
            if op_a != "!=" and bool(ratio.real * want < 0):
                return differs("evaluation", "they hold at different points")
            reference = ratio if reference is None else reference
            if not (ratio - reference).contains(acb(0)):
                return undecided(Reason.UNDECIDED, "evaluation", "inequalities of different form")
            if bool((ratio - reference).abs_upper() <= abs(reference) * arb(2) ** -90):
                agreed += 1
    return same("evaluation") if agreed >= 4 else undecided(Reason.UNDECIDED, "evaluation", "too few points")
