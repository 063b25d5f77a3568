"""Values with units and percentages: a stated unit is part of the answer."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from .nodes import Expr, Num, Op, Sym
from .normal import text_key
from .policy import Policy
from .units import Unit, parse_unit
from .verdict import Outcome, Reason, differs, same, undecided

__all__ = ["compare_quantities", "is_quantity"]

Equal = Callable[[Expr, Expr], Outcome]


def is_quantity(expr: Expr) -> bool:
    """Whether ``expr`` is a value with a unit or a percentage."""
    return isinstance(expr, Op) and (expr.head in ("quantity", "percent") or _signed(expr))


def _signed(expr: Op) -> bool:
    return expr.head == "neg" and is_quantity(expr.args[0])


def _split(expr: Expr) -> tuple[Expr, str | None]:
    """(value, unit text), with None for no unit and % for a percentage."""
    if isinstance(expr, Op):
        if expr.head == "quantity" and isinstance(expr.args[1], Sym):
            value, inner = _split(expr.args[0])
            if inner == "%":
                return value, inner
            return value, expr.args[1].name if inner is None or inner == expr.args[
                1
            ].name else f"{inner} {expr.args[1].name}"
        if expr.head == "percent":
            return expr.args[0], "%"
        if _signed(expr):
            value, unit = _split(expr.args[0])
            return Op("neg", (value,)), unit
    return expr, None


def compare_quantities(a: Expr, b: Expr, policy: Policy, equal: Equal) -> Outcome:
    """Compare two values of which at least one has a unit or a percent sign."""
    (va, ua), (vb, ub) = _split(a), _split(b)
    if "%" in (ua, ub):
        return _percent(va, ua, vb, ub, policy, equal)
    if ua is None and ub is None:
        return equal(va, vb)
    if ua is None or ub is None:
        counted = _unit(ua or ub or "")
        if counted is not None and not counted.dimension:
            factor = Num(counted.factor)
            return equal(Op("mul", (va, factor)) if ua else va, Op("mul", (vb, factor)) if ub else vb)
        values = equal(va, vb)
        if values.equal is not True or policy.missing_unit == "accept":
            return values
        detail = f"no unit on one side, {ua or ub} on the other"
        return differs("unit", detail) if policy.missing_unit == "reject" else undecided(Reason.POLICY, "unit", detail)
    return _both_units(va, ua, vb, ub, equal)


def _percent(va: Expr, ua: str | None, vb: Expr, ub: str | None, policy: Policy, equal: Equal) -> Outcome:
    if ua == ub:
        return equal(va, vb)
    value, other, unit = (va, vb, ub) if ua == "%" else (vb, va, ua)
    if unit is not None:
        return differs("unit", "a percentage and a unit")
    if policy.percent == "number":
        return equal(value, other)
    if policy.percent == "strict":
        return differs("unit", "a percentage and a plain number")
    fraction = equal(Op("div", (value, Num(100))) if not isinstance(value, Num) else _hundredth(value), other)
    if fraction.equal is not False:
        return fraction
    if equal(value, other).equal:
        return undecided(Reason.POLICY, "unit", "the same number with and without a percent sign")
    return fraction


def _hundredth(value: Num) -> Num:
    return Num(Fraction(value.value) / 100, value.places + 2 if value.places > 0 else value.places, value.figures)


@lru_cache(maxsize=2048)
def _unit(text: str) -> Unit | None:
    known = parse_unit(text)
    return known if known is not None else parse_unit(text.replace("per", "/"))


def _both_units(va: Expr, ua: str, vb: Expr, ub: str, equal: Equal) -> Outcome:
    if ua == ub:
        return equal(va, vb)
    unit_a, unit_b = _unit(ua), _unit(ub)
    if unit_a is None or unit_b is None:
        return _notes(va, ua, vb, ub, unit_a is None and unit_b is None, equal)
    if unit_a.dimension != unit_b.dimension:
        if _generic(unit_a) or _generic(unit_b):
            values = equal(va, vb)
            return undecided(Reason.POLICY, "unit", "units of unspecified kind") if values.equal else values
        if _angles(unit_a, unit_b):
            return _angle(va, unit_a, vb, unit_b, equal)
        return differs("unit", f"{ua} and {ub}")
    ratio = unit_a.factor / unit_b.factor
    if ratio == 1:
        return equal(va, vb)
    outcome = equal(Op("mul", (va, Num(ratio))), vb)
    return same("unit") if outcome.equal and outcome.tier == "number" else outcome


def _generic(unit: Unit) -> bool:
    return any(base == "unit" for base, _ in unit.dimension)


def _angles(a: Unit, b: Unit) -> bool:
    return {a.dimension, b.dimension} == {(("angle", 1),), (("radian", 1),)}


def _angle(va: Expr, a: Unit, vb: Expr, b: Unit, equal: Equal) -> Outcome:
    degrees, radians = (va, vb) if a.dimension == (("angle", 1),) else (vb, va)
    return equal(Op("div", (Op("mul", (degrees, Sym("pi"))), Num(180))), radians)


def _notes(va: Expr, ua: str, vb: Expr, ub: str, both: bool, equal: Equal) -> Outcome:
    """Units that aren't in the table, or remarks: the same words (plural or not) must match, else unknown."""
    values = equal(va, vb)
    if values.equal is not True:
        return values
    ka, kb = (_singular(text_key(u)) for u in (ua, ub))
    if ka == kb or (both and (ka in kb.split() or kb in ka.split() or set(ka.split()) & set(kb.split()))):
        return values
    return undecided(Reason.POLICY, "unit", f"the same number of {ua!r} and of {ub!r}")


def _singular(words: str) -> str:
    return " ".join(w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words.split())
