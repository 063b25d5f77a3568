"""Exact arithmetic on trees: rationals with a size cap, and identity of rational functions modulo large primes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from .nodes import Expr, Num, Op, Rational, Sym
from .symbols import words_of

__all__ = ["Undefined", "modular", "rational"]

MAX_BITS = 20_000
MAX_FACTORIAL = 3_000
MAX_TERMS = 2_000
# Fixed primes just below 2**61 and 2**89; an identity that holds at random points modulo both is one.
PRIMES = (2305843009213693951, 618970019642690137449562111)


class Undefined(ArithmeticError):
    """The value doesn't exist (division by zero, 0**0 to a negative power)."""


class TooBig(ArithmeticError):
    """The exact value would exceed the size cap."""


class Steps:
    """Bounds the work of sums inside sums."""

    def __init__(self, limit: int = 10_000) -> None:
        self.left = limit

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooBig


class NotRational(ArithmeticError):
    """The tree isn't built by rational operations alone."""


def rational(expr: Expr) -> Rational | None:
    """The exact value of a constant rational expression, or ``None``; ``Undefined`` for a division by zero.

    Example:
        >>> from guerdon.verify.answers.statements import parse
        >>> rational(parse("1/2 + 1/3"))
        Fraction(5, 6)
        >>> rational(parse("9^9^9")) is None
        True
    """
    if isinstance(expr, Num):
        return expr.value
    try:
        value = _rational(expr, {}, Steps())
    except (TooBig, NotRational):
        return None
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def _checked(value: Rational) -> Rational:
    size = (
        value.bit_length() if isinstance(value, int) else value.numerator.bit_length() + value.denominator.bit_length()
    )
    if size > MAX_BITS:
        raise TooBig
    return value


def _rational(expr: Expr, names: Mapping[str, Rational], steps: Steps) -> Rational:
    steps.spend()
    if isinstance(expr, Num):
        return expr.value
    if isinstance(expr, Sym):
        if expr.name in names:
            return names[expr.name]
        raise NotRational
    head, args = expr.head, expr.args
    if head in ("sum", "prod"):
        return _series(expr, names, steps)
    values = [_rational(a, names, steps) for a in args] if head in RATIONAL_HEADS or head.startswith("base:") else []
    if head == "add":
        total: Rational = 0
        for v in values:
            total = total + v
        return _checked(total)
    if head == "mul":
        product: Rational = 1
        for v in values:
            product = _checked(product * v)
        return product
    if head == "neg":
        return -values[0]
    if head == "div":
        if values[1] == 0:
            raise Undefined("division by zero")
        return _checked(Fraction(values[0]) / values[1])
    if head == "pow":
        return _power(values[0], values[1])
    if head == "percent":
        return Fraction(values[0]) / 100
    if head.startswith("base:"):
        return values[0]
    return _integer_function(head, values)


RATIONAL_HEADS = frozenset(
    words_of(
        "add mul neg div pow percent factorial binomial mod root fn:abs fn:floor fn:ceil fn:gcd fn:lcm "
        "fn:max fn:min fn:sgn"
    )
)


def _power(base: Rational, exponent: Rational) -> Rational:
    if isinstance(exponent, Fraction):
        if exponent.denominator != 1:
            return _root(_power(base, exponent.numerator), exponent.denominator)
        exponent = exponent.numerator
    if base == 0:
        if exponent < 0:
            raise Undefined("zero to a negative power")
        return 1 if exponent == 0 else 0
    size = max(abs(base.numerator).bit_length(), base.denominator.bit_length())
    if abs(base) != 1 and abs(exponent) * size > MAX_BITS:
        raise TooBig
    if abs(base) == 1 and isinstance(base, int):
        return base if exponent % 2 else 1
    return Fraction(base) ** exponent if exponent < 0 else base**exponent


def _root(value: Rational, degree: Rational) -> Rational:
    """An exact real root, else ``NotRational``; odd roots of negative numbers are the real ones."""
    if not isinstance(degree, int) or not 1 <= degree <= 64:
        raise NotRational
    if value < 0:
        if degree % 2 == 0:
            raise NotRational
        return -_root(-value, degree)
    top, bottom = _integer_root(value.numerator, degree), _integer_root(value.denominator, degree)
    return Fraction(top, bottom) if bottom != 1 else top


def _integer_root(value: int, degree: int) -> int:
    if degree == 2:
        root = math.isqrt(value)
    else:
        if value.bit_length() > 2_000:
            raise NotRational
        low, high = 0, 1 << (value.bit_length() // degree + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= value else (low, middle - 1)
        root = low
    if root**degree != value:
        raise NotRational
    return root


def _whole(value: Rational) -> int:
    if value.denominator != 1:
        raise NotRational
    return value.numerator


def _integer_function(head: str, values: list[Rational]) -> Rational:
    if head == "factorial":
        n = _whole(values[0])
        if n < 0:
            raise NotRational
        if n > MAX_FACTORIAL:
            raise TooBig
        return _checked(math.factorial(n))
    if head == "binomial" and len(values) == 2:
        n, k = _whole(values[0]), _whole(values[1])
        if n < 0 or n > MAX_FACTORIAL:
            raise TooBig
        return math.comb(n, k) if 0 <= k <= n else 0
    if head == "mod":
        if values[1] == 0:
            raise Undefined("remainder by zero")
        return values[0] % values[1]
    if head == "root":
        return _root(values[0], values[1])
    if head == "fn:sgn":
        return (values[0] > 0) - (values[0] < 0)
    if head == "fn:abs":
        return -values[0] if values[0] < 0 else values[0]
    if head in ("fn:floor", "fn:ceil"):
        return math.floor(values[0]) if head == "fn:floor" else math.ceil(values[0])
    if head in ("fn:gcd", "fn:lcm") and values:
        whole = [_whole(v) for v in values]
        return _checked(math.gcd(*whole) if head == "fn:gcd" else math.lcm(*whole))
    if head in ("fn:max", "fn:min") and values:
        return max(values) if head == "fn:max" else min(values)
    raise NotRational


def _series(expr: Op, names: Mapping[str, Rational], steps: Steps) -> Rational:
    index, low, high, body = expr.args
    if not isinstance(index, Sym):
        raise NotRational
    first, last = _whole(_rational(low, names, steps)), _whole(_rational(high, names, steps))
    if last - first >= MAX_TERMS:
        raise TooBig
    total: Rational = 0 if expr.head == "sum" else 1
    for k in range(first, last + 1):
        term = _rational(body, {**names, index.name: k}, steps)
        total = _checked(total + term if expr.head == "sum" else total * term)
    return total


def modular(expr: Expr, names: Mapping[str, int], prime: int) -> int | None:
    """The value of a rational function at a point modulo ``prime``; ``None`` if it isn't one (or has a pole there).

    Works on powers and factorials that are too large to write down: 2^(10^6), 1/2004!, (x+1)^100000.
    """
    try:
        return _modular(expr, names, prime)
    except (NotRational, TooBig, Undefined, ValueError):
        return None


def _modular(expr: Expr, names: Mapping[str, int], p: int) -> int:
    if isinstance(expr, Num):
        value = expr.value
        return value % p if isinstance(value, int) else value.numerator * pow(value.denominator, -1, p) % p
    if isinstance(expr, Sym):
        if expr.name in names:
            return names[expr.name]
        raise NotRational
    head, args = expr.head, expr.args
    if head == "add":
        return sum(_modular(a, names, p) for a in args) % p
    if head == "mul":
        product = 1
        for a in args:
            product = product * _modular(a, names, p) % p
        return product
    if head == "neg":
        return -_modular(args[0], names, p) % p
    if head == "div":
        return _modular(args[0], names, p) * pow(_modular(args[1], names, p), -1, p) % p
    if head == "percent":
        return _modular(args[0], names, p) * pow(100, -1, p) % p
    if head == "pow":
        exponent = rational(args[1])
        if not isinstance(exponent, int):
            raise NotRational
        return pow(_modular(args[0], names, p), exponent, p)
    if head == "factorial":
        n = rational(args[0])
        if not isinstance(n, int) or not 0 <= n <= 4 * MAX_FACTORIAL:
            raise NotRational
        product = 1
        for k in range(2, n + 1):
            product = product * k % p
        return product
    exact = rational(expr)
    if exact is None:
        raise NotRational
    return _modular(Num(exact), names, p)
