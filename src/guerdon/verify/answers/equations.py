"""Equations are equal when they have the same solutions: proportional, or each solves the other."""

from __future__ import annotations

import random

from flint import acb, arb

from .balls import HopelessError, NoValue, Work, evaluate, precision
from .exact import PRIMES, modular
from .nodes import Expr, Num, Op, Sym, free_names
from .scalar import LOW_BITS, points
from .verdict import Outcome, Reason, differs, same, undecided

__all__ = ["compare_equations", "moved", "solves"]

_RANDOM = random.Random(0xE9A7)  # points of an identity test


def moved(equation: Op) -> Expr:
    """Left side minus right side."""
    left, right = equation.args[0], equation.args[-1]
    if right == Num(0, -1, 0):
        return left
    return Op("add", (left, Op("neg", (right,))))


def compare_equations(a: Op, b: Op) -> Outcome:
    """Compare two equations by their solution sets, never by their difference alone."""
    fa, fb = moved(a), moved(b)
    names = sorted(free_names(fa) | free_names(fb))
    if not names or len(names) > 40:
        return undecided(Reason.UNDECIDED, "structure", "equations without variables")
    proportional = _proportional(fa, fb, names)
    if proportional:
        return same("identity", "equal up to a factor")
    if proportional is None:
        return _numerically_proportional(fa, fb, names)
    solved = [_implies(x, y, names) for x, y in ((fa, fb), (fb, fa))]
    if all(solved):
        return same("identity", "each equation solves the other")
    if False in solved or free_names(fa) != free_names(fb) or len(names) > 1:
        return differs("identity", "not proportional")
    return undecided(Reason.UNDECIDED, "identity", "equations with other roots or powers")


def _proportional(fa: Expr, fb: Expr, names: list[str]) -> bool | None:
    """Whether fa/fb is constant, modulo a large prime at random points; ``None`` if not rational."""
    prime = PRIMES[1]
    rows = []
    for _ in range(3):
        at = {n: _RANDOM.randrange(2, prime) for n in names}
        va, vb = modular(fa, at, prime), modular(fb, at, prime)
        if va is None or vb is None:
            return None
        rows.append((va, vb))
    (a0, b0), *rest = rows
    if not a0 or not b0:
        return a0 == b0 and all(x == y == 0 for x, y in rest)
    return all((x * b0 - y * a0) % prime == 0 for x, y in rest)


def _implies(fa: Expr, fb: Expr, names: list[str]) -> bool | None:
    """Whether fb vanishes where fa does, tried by solving fa for a variable in which it is linear."""
    prime = PRIMES[1]
    for name in names:
        at = {n: _RANDOM.randrange(2, prime) for n in names}
        values = [modular(fa, {**at, name: v}, prime) for v in (0, 1, 2)]
        v0, v1, v2 = values
        if v0 is None or v1 is None or v2 is None:
            continue
        slope = (v1 - v0) % prime
        if slope == 0 or (v2 - v1 - slope) % prime:
            continue
        root = -v0 * pow(slope, -1, prime) % prime
        value = modular(fb, {**at, name: root}, prime)
        if value is not None:
            return value == 0
    return None


def _numerically_proportional(fa: Expr, fb: Expr, names: list[str]) -> Outcome:
    reference = None
    agreed, work = 0, Work(8_000)
    with precision(LOW_BITS):
        for at in points(names):
            try:
                va, vb = evaluate(fa, at, work), evaluate(fb, at, work)
            except HopelessError:
                break
            except NoValue:
                continue
            if va.contains(acb(0)) or vb.contains(acb(0)):
                continue
            ratio = va / vb
            if not ratio.imag.contains(0):
                continue
            if reference is None:
                reference = ratio
            elif not (ratio - reference).contains(acb(0)):
                return differs("evaluation", "not proportional")
            elif bool((ratio - reference).abs_upper() < abs(reference) * arb(2) ** (-LOW_BITS // 2)):
                agreed += 1
            if agreed >= 3:
                return same("evaluation", "equal up to a factor")
    return undecided(Reason.UNDECIDED, "evaluation", "the equations can't be evaluated")


def solves(value: Expr, equation: Op) -> Outcome:
    """Whether the equation says that one of its variables equals ``value`` (2x+1 against y = 2x+1 moved about)."""
    candidates = sorted(free_names(moved(equation)) - free_names(value))
    for name in candidates[:4]:
        outcome = compare_equations(Op("rel:=", (Sym(name), value)), equation)
        if outcome.equal:
            return outcome
    return differs("structure", "an equation and a value")
