"""Sets of real numbers: intervals, unions, inequalities and finite sets in one canonical form."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from flint import arb

from .balls import NoValue, evaluate, precision
from .exact import Undefined, rational
from .nodes import Expr, Num, Op, Sym, free_names, substitute
from .policy import Policy
from .scalar import LOW_BITS, compare_scalars
from .verdict import Outcome, Reason, differs, same, undecided

__all__ = ["Piece", "as_set", "compare_sets", "is_set_like"]

INFINITY: Expr = Sym("inf")
MINUS_INFINITY: Expr = Op("neg", (Sym("inf"),))


class Piece(NamedTuple):
    """An interval; ``low_closed`` and ``high_closed`` say whether its ends belong to it."""

    low: Expr
    high: Expr
    low_closed: bool
    high_closed: bool


def is_set_like(expr: Expr) -> bool:
    """Whether ``expr`` can only be read as a set of reals (a plain pair (a, b) may also be a point)."""
    if isinstance(expr, Sym):
        return expr.name in ("emptyset", "set:R")
    if not isinstance(expr, Op):
        return False
    if expr.head.startswith(("interval:", "joint:")) or expr.head in ("cup", "cap", "setminus", "builder", "rel:in"):
        return True
    if expr.head.startswith("tuple:") and len(expr.args) == 2:
        return any(infinite_sign(a) for a in expr.args)
    return expr.head in ("rel:<", "rel:>", "rel:<=", "rel:>=", "rel:!=") or (
        expr.head.startswith("chain:") and not set(expr.head[6:].split()) & {"=", "~=", "==", "in", "implies", "to"}
    )


def infinite_sign(expr: Expr) -> int:
    """1 for infinity, -1 for minus infinity, 0 for anything else."""
    if expr == INFINITY:
        return 1
    return -infinite_sign(expr.args[0]) if isinstance(expr, Op) and expr.head == "neg" else 0


def as_set(expr: Expr) -> tuple[Expr | None, list[Piece]] | None:
    """(the variable that is bounded, its pieces), or ``None`` if ``expr`` isn't a readable set of reals."""
    if expr == Sym("emptyset"):
        return None, []
    if expr == Sym("set:R"):
        return None, [Piece(MINUS_INFINITY, INFINITY, False, False)]
    if not isinstance(expr, Op):
        return None
    if expr.head.startswith(("interval:", "tuple:")) and len(expr.args) == 2:
        left, right = expr.head[-2], expr.head[-1]
        low, high = expr.args
        closed = left == "[" and not infinite_sign(low), right == "]" and not infinite_sign(high)
        return None, [Piece(low, high, *closed)]
    if expr.head in ("set", "list"):
        return None, [Piece(a, a, True, True) for a in expr.args]
    if expr.head in ("cup", "setminus", "cap"):
        return _combined(expr)
    if expr.head == "rel:in":
        inner = as_set(expr.args[1])
        return None if inner is None else (expr.args[0], inner[1])
    if expr.head == "builder":
        return _builder(expr)
    if expr.head.startswith("joint:"):
        return _joint(expr)
    if expr.head.startswith(("rel:", "chain:")):
        return _inequality(expr)
    return None


def _combined(expr: Op) -> tuple[Expr | None, list[Piece]] | None:
    parts = [as_set(a) for a in expr.args]
    if any(p is None for p in parts):
        return None
    pieces = [p[1] for p in parts if p is not None]
    if expr.head == "cup":
        return None, pieces[0] + pieces[1]
    if expr.head == "cap":
        return _meet(pieces[0], pieces[1])
    holes = [p.low for p in pieces[1] if p.low == p.high]
    if len(holes) != len(pieces[1]):
        return None
    result = pieces[0]
    for hole in holes:
        result = [q for p in result for q in _without(p, hole)]
    return None, result


def _without(piece: Piece, hole: Expr) -> list[Piece]:
    low, at, high = _position(piece.low), _position(hole), _position(piece.high)
    if low is None or at is None or high is None or not low < at < high:
        return [piece]
    return [Piece(piece.low, hole, piece.low_closed, False), Piece(hole, piece.high, False, piece.high_closed)]


def _builder(expr: Op) -> tuple[Expr | None, list[Piece]] | None:
    first, *conditions = expr.args
    if isinstance(first, Op) and first.head == "rel:in":
        first = first.args[0]
    if len(conditions) == 1:
        inner = as_set(conditions[0])
        return inner
    return _joint(Op("joint:and", tuple(conditions)))


def _joint(expr: Op) -> tuple[Expr | None, list[Piece]] | None:
    parts = [as_set(a) for a in expr.args]
    known = [p for p in parts if p is not None]
    if len(known) != len(parts) or len({repr(p[0]) for p in known}) != 1:
        return None
    name = known[0][0]
    if expr.head == "joint:and":
        result = known[0][1]
        for _, pieces in known[1:]:
            met = _meet(result, pieces)
            if met is None:
                return None
            result = met[1]
        if result:
            return name, result
    return name, [p for _, pieces in known for p in pieces]


def _meet(a: list[Piece], b: list[Piece]) -> tuple[Expr | None, list[Piece]] | None:
    out: list[Piece] = []
    for p in a:
        for q in b:
            ends = [_position(x) for x in (p.low, q.low, p.high, q.high)]
            if any(e is None for e in ends):
                return None
            pl, ql, ph, qh = (e for e in ends if e is not None)
            low, low_closed = (p.low, p.low_closed) if pl > ql else (q.low, q.low_closed)
            high, high_closed = (p.high, p.high_closed) if ph < qh else (q.high, q.high_closed)
            if pl == ql:
                low_closed = p.low_closed and q.low_closed
            if ph == qh:
                high_closed = p.high_closed and q.high_closed
            if max(pl, ql) < min(ph, qh) or (max(pl, ql) == min(ph, qh) and low_closed and high_closed):
                out.append(Piece(low, high, low_closed, high_closed))
    return None, out


FLIP = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


def _inequality(expr: Op) -> tuple[Expr | None, list[Piece]] | None:
    operators = expr.head.split(":", 1)[1].split()
    if any(op not in FLIP for op in operators):
        return None
    if len(operators) == 2:
        return _between(expr.args, operators)
    if len(operators) != 1:
        return None
    left, right = expr.args
    op = operators[0]
    left_names, right_names = free_names(left), free_names(right)
    if (
        isinstance(right, Sym)
        and right_names
        and not (isinstance(left, Sym) and left_names)
        and right.name not in left_names
    ):
        left, right, op = right, left, FLIP[op]
    elif isinstance(left, Op) and left.head == "fn:abs" and isinstance(left.args[0], Sym) and not right_names:
        return _absolute(left, _ray(right, op))
    elif (left_names and right_names) or (left_names and not isinstance(left, Sym)) or (right_names and not left_names):
        return _linear(left, right, op)
    return _absolute(left, _ray(right, op))


def _ray(bound: Expr, op: str) -> list[Piece]:
    if op == "!=":
        return [Piece(MINUS_INFINITY, bound, False, False), Piece(bound, INFINITY, False, False)]
    if op in ("<", "<="):
        return [Piece(MINUS_INFINITY, bound, False, op == "<=")]
    return [Piece(bound, INFINITY, op == ">=", False)]


def _between(sides: tuple[Expr, ...], operators: list[str]) -> tuple[Expr | None, list[Piece]] | None:
    low, middle, high = sides
    first, second = operators
    if first in (">", ">="):
        low, high, first, second = high, low, FLIP[second], FLIP[first]
    if first not in ("<", "<=") or second not in ("<", "<="):
        return None
    return _absolute(middle, [Piece(low, high, first == "<=", second == "<=")])


def _absolute(middle: Expr, pieces: list[Piece]) -> tuple[Expr | None, list[Piece]]:
    """|x| in a piece of the non-negative reals is x in that piece or its mirror image."""
    if not (isinstance(middle, Op) and middle.head == "fn:abs" and isinstance(middle.args[0], Sym)):
        return middle, pieces
    out: list[Piece] = []
    for p in pieces:
        low = _position(p.low)
        if low is None or low < 0:
            out.append(Piece(Op("neg", (p.high,)), p.high, p.high_closed, p.high_closed))
            continue
        out.append(Piece(Op("neg", (p.high,)), Op("neg", (p.low,)), p.high_closed, p.low_closed))
        out.append(p)
    return middle.args[0], out


def _linear(left: Expr, right: Expr, op: str) -> tuple[Expr | None, list[Piece]] | None:
    """Solve a x + b < c for x when both sides are linear in one variable with rational coefficients."""
    names = free_names(left) | free_names(right)
    if len(names) != 1:
        return (left, _ray(right, op)) if not free_names(right) else None
    name = names.pop()
    difference = Op("add", (left, Op("neg", (right,))))
    try:
        values = [rational(substitute(difference, name, Num(v))) for v in (0, 1, 2, -5)]
    except Undefined:
        return None
    v0, v1, v2, v5 = values
    if v0 is None or v1 is None or v2 is None or v5 is None:
        return (left, _ray(right, op)) if not free_names(right) else None
    slope = v1 - v0
    if slope == 0 or v2 - v1 != slope or v5 - v0 != -5 * slope:
        return None
    return Sym(name), _ray(Num(Fraction(-v0) / slope), op if slope > 0 else FLIP[op])


def _position(expr: Expr) -> float | None:
    """Where an end lies, as a float for ordering; ``None`` if it has no numeric value."""
    infinite = infinite_sign(expr)
    if infinite:
        return float("inf") * infinite
    try:
        value = rational(expr)
        if value is not None:
            return float(value) if -(10**300) < value < 10**300 else None
        with precision(LOW_BITS):
            ball = evaluate(expr, {})
            return float(ball.real.mid()) if ball.imag.contains(0) and bool(abs(ball) < arb(10) ** 300) else None
    except (NoValue, Undefined, OverflowError):
        return None


def _ordered(pieces: list[Piece]) -> list[Piece]:
    """Sorted by position where that is known; touching pieces merged."""
    placed = [(_position(p.low), _position(p.high), p) for p in pieces]
    if any(low is None or high is None for low, high, _ in placed):
        return pieces
    known = sorted(((lo, hi, p) for lo, hi, p in placed if lo is not None and hi is not None), key=lambda t: t[:2])
    merged: list[Piece] = []
    edge = float("-inf")
    for low, high, piece in known:
        if merged and (low < edge or (low == edge and (merged[-1].high_closed or piece.low_closed))):
            last = merged[-1]
            if high > edge:
                merged[-1] = Piece(last.low, piece.high, last.low_closed, piece.high_closed)
            elif high == edge:
                merged[-1] = Piece(last.low, last.high, last.low_closed, last.high_closed or piece.high_closed)
            edge = max(edge, high)
            continue
        merged.append(piece)
        edge = high
    return merged


def compare_sets(a: tuple[Expr | None, list[Piece]], b: tuple[Expr | None, list[Piece]], policy: Policy) -> Outcome:
    """Compare canonical sets piece by piece; a stated variable must be the same on both sides."""
    name_a, name_b = a[0], b[0]
    pa, pb = _ordered(a[1]), _ordered(b[1])
    if len(pa) != len(pb):
        return differs("structure", "a different number of pieces")
    doubt: Outcome | None = None
    for p, q in zip(pa, pb, strict=True):
        if (p.low_closed, p.high_closed) != (q.low_closed, q.high_closed):
            return differs("structure", "open and closed ends")
        for x, y in ((p.low, q.low), (p.high, q.high)):
            outcome = _same_end(x, y, policy)
            if outcome.equal is False:
                return outcome
            doubt = outcome if outcome.equal is None else doubt
    if doubt is not None:
        return doubt
    if name_a is not None and name_b is not None and name_a != name_b:
        return undecided(Reason.POLICY, "structure", "the same set for different variables")
    return same("structure")


def _same_end(x: Expr, y: Expr, policy: Policy) -> Outcome:
    ix, iy = infinite_sign(x), infinite_sign(y)
    if ix or iy:
        return same("structure") if ix == iy else differs("structure")
    return compare_scalars(x, y, policy)
