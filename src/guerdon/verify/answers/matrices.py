"""Arithmetic of matrices and vectors inside an answer: sums, products and multiples are carried out."""

from __future__ import annotations

from .nodes import Expr, Num, Op, has_head

__all__ = ["folded"]

MAX_ENTRIES = 400


def folded(expr: Expr) -> Expr:
    """``expr`` with sums, products and scalar multiples of matrices written as one matrix where shapes allow."""
    if not isinstance(expr, Op) or expr.head in ("matrix", "row") or not has_head(expr, "matrix"):
        return expr
    args = tuple(folded(a) for a in expr.args)
    if expr.head == "neg" and _is(args[0]):
        return _scaled(Num(-1), args[0])
    if expr.head == "add" and all(_is(a) for a in args):
        result = args[0]
        for a in args[1:]:
            total = _sum(result, a)
            if total is None:
                return Op(expr.head, args)
            result = total
        return result
    if expr.head == "mul":
        return _product(args)
    if expr.head == "div" and _is(args[0]) and not _is(args[1]):
        return _scaled(Op("div", (Num(1), args[1])), args[0])
    return Op(expr.head, args)


def _is(expr: Expr) -> bool:
    return isinstance(expr, Op) and expr.head == "matrix"


def _rows(matrix: Expr) -> list[tuple[Expr, ...]]:
    return [r.args for r in matrix.args if isinstance(r, Op)] if isinstance(matrix, Op) else []


def _matrix(rows: list[list[Expr]]) -> Op:
    return Op("matrix", tuple(Op("row", tuple(r)) for r in rows))


def _scaled(factor: Expr, matrix: Expr) -> Expr:
    return _matrix([[Op("mul", (factor, x)) for x in r] for r in _rows(matrix)])


def _sum(a: Expr, b: Expr) -> Expr | None:
    ra, rb = _rows(a), _rows(b)
    if [len(r) for r in ra] != [len(r) for r in rb]:
        return None
    return _matrix([[Op("add", (x, y)) for x, y in zip(p, q, strict=True)] for p, q in zip(ra, rb, strict=True)])


def _product(args: tuple[Expr, ...]) -> Expr:
    result: Expr | None = None
    for a in args:
        if result is None:
            result = a
            continue
        if _is(result) and _is(a):
            ra, rb = _rows(result), _rows(a)
            if any(len(r) != len(rb) for r in ra) or len(ra) * len(rb[0]) > MAX_ENTRIES or len(rb) > 20:
                return Op("mul", args)
            result = _matrix(
                [
                    [Op("add", tuple(Op("mul", (x, rb[k][j])) for k, x in enumerate(r))) for j in range(len(rb[0]))]
                    for r in ra
                ]
            )
        elif _is(result):
            result = _scaled(a, result)
        elif _is(a):
            result = _scaled(result, a)
        else:
            result = Op("mul", (result, a))
    assert result is not None
    return result
