"""Whether two single values are equal: exact, then by rounding policy, then by identity, then by evaluation."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import acb, arb

from .balls import Ball, HopelessError, NoValue, Work, evaluate, point, precision
from .exact import PRIMES, Undefined, modular, rational
from .nodes import CONSTANTS, Expr, Num, Op, Rational, Sym, walk
from .policy import Policy
from .verdict import Outcome, Reason, differs, same, undecided

__all__ = ["compare_scalars"]

_RANDOM = random.Random(0x6_E7D0)  # points of an identity test
_SIZES = (0.73, 1.37, 2.71, 0.41, 5.3, 0.31, 11.7, 1.9, 0.93, 40.3, 0.05, 7.7, 103.9, 0.083, 1.07, 3.4)
_SIGNED, _POSITIVE, _WHOLE = 16, 8, 6
MAX_NODES = 1_500
NEEDED = 4
LOW_BITS, HIGH_BITS = 192, 1024


@dataclass(frozen=True)
class Profile:
    """What a tree contains, found in one walk."""

    names: frozenset[str]
    nodes: int
    imaginary: bool
    decimal: tuple[int, int] | None


@lru_cache(maxsize=4096)
def profile(expr: Expr) -> Profile:
    """Names, size, whether i occurs, and the (places, figures) of the coarsest decimal literal."""
    names, nodes, imaginary = set(), 0, False
    coarsest: tuple[int, int] | None = None
    for node in walk(expr):
        nodes += 1
        if isinstance(node, Sym):
            if node.name == "i":
                imaginary = True
            elif node.name not in CONSTANTS:
                names.add(node.name)
        elif isinstance(node, Num) and node.places > 0 and (coarsest is None or node.figures < coarsest[1]):
            coarsest = (node.places, node.figures)
    return Profile(frozenset(names), nodes, imaginary, coarsest)


def compare_scalars(a: Expr, b: Expr, policy: Policy) -> Outcome:
    """Compare two expressions; never raises, never hangs, and is symmetric."""
    if a == b:
        return same("structure")
    pa, pb = profile(a), profile(b)
    if not pa.names and not pb.names:
        return _constants(a, b, pa, pb, policy)
    return _expressions(a, b, pa, pb)


# -- constants --------------------------------------------------------------------------------------------------------


def written(expr: Expr) -> tuple[int, int] | None:
    """(places, figures) when the whole value is written as one decimal, possibly signed or times a power of ten."""
    if isinstance(expr, Num):
        return (expr.places, expr.figures) if expr.places > 0 else None
    if isinstance(expr, Op):
        if expr.head == "neg":
            return written(expr.args[0])
        if expr.head == "percent":
            inner = written(expr.args[0])
            return (inner[0] + 2, inner[1]) if inner else None
        if expr.head == "mul" and len(expr.args) == 2:
            inner, power = written(expr.args[0]), expr.args[1]
            if inner and isinstance(power, Op) and power.head == "pow" and power.args[0] in (Num(10, -1, 2),):
                exponent = rational(power.args[1])
                if isinstance(exponent, int) and abs(exponent) < 5_000:
                    return (inner[0] - exponent, inner[1])
    return None


def _constants(a: Expr, b: Expr, pa: Profile, pb: Profile, policy: Policy) -> Outcome:
    try:
        ra, rb = rational(a), rational(b)
    except Undefined as problem:
        return undecided(Reason.UNDECIDED, "number", f"an undefined value: {problem}")
    if ra is not None and rb is not None:
        if ra == rb:
            return same("number")
        return _near(ra, rb, written(a), written(b), policy)
    if max(pa.nodes, pb.nodes) > MAX_NODES:
        return undecided(Reason.UNDECIDED, "evaluation", "too large to evaluate")
    identity = _identical_constants(a, b)
    if identity is not None and (identity or (pa.decimal is None and pb.decimal is None)):
        return same("identity") if identity else differs("identity")
    return _by_balls(a, b, written(a), written(b), policy)


def _near(
    ra: Rational, rb: Rational, da: tuple[int, int] | None, db: tuple[int, int] | None, policy: Policy
) -> Outcome:
    """Two different rationals, of which one or both may be rounded decimals."""
    if policy.decimal_places is not None:
        if round(Fraction(ra), policy.decimal_places) == round(Fraction(rb), policy.decimal_places):
            return same("number", f"equal to {policy.decimal_places} places")
        return differs("number")
    gap = ra - rb if ra > rb else rb - ra
    for decimal, value in ((da, rb), (db, ra)):
        if decimal is None:
            continue
        if long_decimal(decimal, policy) and gap * 10**policy.digits <= abs(value):
            return same("number", f"equal to {policy.digits} significant digits")
    for decimal, other in ((da, db), (db, da)):
        if (
            decimal is not None
            and decimal[1] >= 2
            and (other is None or other[0] > decimal[0])
            and within(gap, decimal[0])
        ):
            return _rounded(policy)
    return differs("number")


def within(gap: Rational, places: int) -> bool:
    """Whether ``gap`` is at most half a unit in the last written place."""
    return 2 * gap <= (Fraction(1, 10**places) if places >= 0 else 10**-places)


def long_decimal(decimal: tuple[int, int], policy: Policy) -> bool:
    """Whether a decimal has enough digits, enough of them after the point, to stand for an inexact value."""
    places, figures = decimal
    return figures >= policy.digits + 2 and places >= min(figures, policy.digits) - 4


def _rounded(policy: Policy) -> Outcome:
    detail = "one is a rounding of the other and no precision was stated"
    if policy.rounding == "accept":
        return same("number", detail)
    if policy.rounding == "reject":
        return differs("number", detail)
    return undecided(Reason.POLICY, "number", detail)


def _identical_constants(a: Expr, b: Expr) -> bool | None:
    results = []
    for prime in PRIMES:
        va, vb = modular(a, {}, prime), modular(b, {}, prime)
        if va is None or vb is None:
            return None
        results.append(va == vb)
    return all(results)


def _by_balls(a: Expr, b: Expr, da: tuple[int, int] | None, db: tuple[int, int] | None, policy: Policy) -> Outcome:
    for bits in (LOW_BITS, HIGH_BITS):
        with precision(bits):
            try:
                va, vb = evaluate(a, {}), evaluate(b, {})
            except NoValue as problem:
                return undecided(Reason.UNDECIDED, "evaluation", str(problem))
            gap = va - vb
            if not gap.contains(acb(0)):
                return _apart(va, vb, gap, da, db, policy)
            scale = abs(va) + abs(vb) + arb(2) ** (-bits)
            if bool(gap.abs_upper() < scale * arb(2) ** (-bits // 2)) and (
                bits == HIGH_BITS or not _needs_more(va, vb)
            ):
                return same("evaluation", f"equal to {bits // 2} bits")
    return undecided(Reason.UNDECIDED, "evaluation", "too close to tell apart")


def _needs_more(va: Ball, vb: Ball) -> bool:
    """Huge, tiny and zero values must agree at the high precision as well."""
    top, low = arb(10) ** 12, arb(10) ** -12
    return any(bool(abs(v) > top) or not bool(abs(v) > low) for v in (va, vb))


def _apart(
    va: Ball, vb: Ball, gap: Ball, da: tuple[int, int] | None, db: tuple[int, int] | None, policy: Policy
) -> Outcome:
    if policy.decimal_places is not None:
        close = bool(abs(gap) <= arb(10) ** -policy.decimal_places / 2)
        return same("evaluation", f"equal to {policy.decimal_places} places") if close else differs("evaluation")
    for decimal, value in ((da, vb), (db, va)):
        if decimal is None:
            continue
        if long_decimal(decimal, policy) and bool(abs(gap) * arb(10) ** policy.digits <= abs(value)):
            return same("evaluation", f"equal to {policy.digits} significant digits")
        if decimal[1] >= 2 and bool(abs(gap) <= arb(10) ** -decimal[0] / 2):
            return _rounded(policy)
    return differs("evaluation")


# -- expressions with variables ---------------------------------------------------------------------------------------


def _expressions(a: Expr, b: Expr, pa: Profile, pb: Profile) -> Outcome:
    names = sorted(pa.names | pb.names)
    if max(pa.nodes, pb.nodes) > MAX_NODES or len(names) > 60:
        return undecided(Reason.UNDECIDED, "evaluation", "too large to evaluate")
    identity = _identical(a, b, names)
    if identity is not None:
        return same("identity") if identity else differs("identity")
    return _by_points(a, b, pa, pb, names)


def _identical(a: Expr, b: Expr, names: list[str]) -> bool | None:
    """Schwartz-Zippel: equal modulo two large primes at random points (error below 1e-15), or different at one."""
    decided = 0
    for attempt in range(4):
        prime = PRIMES[attempt % 2]
        at = {n: _RANDOM.randrange(2, prime) for n in names}
        va = modular(a, at, prime)
        if va is None and attempt == 1 and not decided:
            return None
        vb = modular(b, at, prime)
        if va is None or vb is None:
            if attempt == 1 and not decided:
                return None
            continue
        if va != vb:
            return False
        decided += 1
        if decided == 2:
            return True
    return None


@lru_cache(maxsize=8192)
def sample(name: str, index: int, place: int = 0) -> Rational:
    """The ``index``-th test value of the ``place``-th variable: every combination of signs within eight points."""
    noise = zlib.crc32(f"{name}/{index}".encode("utf-8", "surrogatepass")) % 9_973
    if index >= _SIGNED + _POSITIVE:
        return 2 + (noise + index) % 9
    size = Fraction(round(_SIZES[index % 16] * 10_000) * (10_000 + noise // 4), 10**8)
    negative = index < _SIGNED and (index >> (place % 3)) & 1
    return -size if negative else size


def points(names: list[str], count: int = _SIGNED + _POSITIVE) -> Iterator[dict[str, Ball]]:
    """Test points: signed, then positive, then (beyond ``_SIGNED + _POSITIVE``) whole numbers."""
    for index in range(count):
        yield {n: point(sample(n, index, place)) for place, n in enumerate(names)}


def _by_points(a: Expr, b: Expr, pa: Profile, pb: Profile, names: list[str]) -> Outcome:
    agreed, complex_allowed = 0, pa.imaginary or pb.imaginary
    work = Work(real=not complex_allowed)
    with precision(LOW_BITS):
        for index, at in enumerate(points(names, _SIGNED + _POSITIVE + _WHOLE)):
            try:
                va, vb = _value(a, at, work), _value(b, at, work)
            except HopelessError as problem:
                return undecided(Reason.UNDECIDED, "evaluation", str(problem))
            if not _counts(va, complex_allowed) or not _counts(vb, complex_allowed):
                continue
            assert va is not None
            assert vb is not None
            gap = va - vb
            if not gap.contains(acb(0)):
                return differs("evaluation", "they differ at a test point")
            if bool(gap.abs_upper() < (abs(va) + abs(vb) + arb(1)) * arb(2) ** (-LOW_BITS // 2)):
                agreed += 1
            if agreed >= NEEDED and index >= 7:
                return same("evaluation", f"equal at {agreed} points")
    detail = f"equal at only {agreed} points" if agreed else "no value at any test point"
    return undecided(Reason.UNDECIDED, "evaluation", detail)


def _value(expr: Expr, at: dict[str, Ball], work: Work) -> Ball | None:
    """The value there, ``None`` if it has none at this point."""
    try:
        return evaluate(expr, at, work)
    except HopelessError:
        raise
    except (NoValue, Undefined):
        return None


def _counts(value: Ball | None, complex_allowed: bool) -> bool:
    return value is not None and (complex_allowed or bool(value.imag.contains(0)))
