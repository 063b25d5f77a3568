"""Statements put together: relation chains, ratios, lists, records of named values."""

from __future__ import annotations

from collections.abc import Sequence

from .nodes import Expr, Op, Sym, Unparsable

__all__ = ["assembled", "is_assignment", "is_name", "relation"]


def relation(sides: list[Expr], operators: list[str]) -> Expr:
    """The node for a chain of relations."""
    if not operators:
        return sides[0]
    if ":" in operators and any(isinstance(s, Sym) and len(s.name) > 3 and s.name.isalpha() for s in sides):
        raise Unparsable("a label before the answer")
    if set(operators) == {":"}:
        return Op("ratio", tuple(sides))
    if ":" in operators:
        return _with_ratios(sides, operators)
    if len(operators) == 1:
        op = operators[0]
        return Op("rel:" + op, (sides[0], sides[1]))
    return Op("chain:" + " ".join(operators), tuple(sides))


def _with_ratios(sides: list[Expr], operators: list[str]) -> Expr:
    merged: list[Expr] = [sides[0]]
    kept: list[str] = []
    for op, side in zip(operators, sides[1:], strict=True):
        if op == ":":
            last = merged[-1]
            parts = last.args if isinstance(last, Op) and last.head == "ratio" else (last,)
            merged[-1] = Op("ratio", (*parts, side))
        else:
            kept.append(op)
            merged.append(side)
    return relation(merged, kept)


def assembled(parts: list[tuple[int, Expr]]) -> Expr:
    if len(parts) == 1:
        return parts[0][1]
    rows = _split(parts, 1)
    if len(rows) > 1 and any(len(r) > 1 for r in rows) and all(all(is_assignment(p) for _, p in r) for r in rows):
        return Op("list", tuple(_row([p for _, p in r]) for r in rows))
    alternatives = any(level == 0 for level, _ in parts[1:])
    return _row([p for _, p in parts], "or" if alternatives else "and")


def _split(parts: Sequence[tuple[int, Expr]], at_most: int) -> list[list[tuple[int, Expr]]]:
    rows: list[list[tuple[int, Expr]]] = []
    names: set[str] = set()
    for level, part in parts:
        name = repr(part.args[0]) if is_assignment(part) and isinstance(part, Op) else ""
        if not rows or level <= at_most or (name and name in names and len(rows[-1]) > 1 and False):
            rows.append([])
            names = set()
        names.add(name)
        rows[-1].append((level, part))
    return rows


def is_assignment(expr: Expr) -> bool:
    return (
        isinstance(expr, Op)
        and expr.head == "rel:="
        and is_name(expr.args[0])
        and not is_name(expr.args[1], strict=True)
    )


def is_name(expr: Expr, strict: bool = False) -> bool:
    """Whether ``expr`` names a quantity: x, x_1, AB, f(x), S:T, NO/BO, (p, q), the angle ABC."""
    if isinstance(expr, Sym):
        return expr.name not in ("pi", "e", "i", "inf", "emptyset") and not (strict and len(expr.name) > 6)
    if not isinstance(expr, Op):
        return False
    if expr.head.startswith(("call:", "text:")):
        return not strict
    if expr.head.startswith("tuple:") or expr.head == "ratio":
        return bool(expr.args) and all(is_name(a, strict) for a in expr.args)
    if expr.head == "mul" and not strict and _is_inverse(expr):
        return True
    if expr.head == "mul" and not strict:
        return all(isinstance(a, Sym) and a.name.isupper() for a in expr.args) or (
            len(expr.args) == 2
            and isinstance(expr.args[0], Sym)
            and isinstance(expr.args[1], Sym)
            and expr.args[0].name in "ABDFGHPQSTVW"
        )
    if expr.head == "div" and not strict:
        return all(is_name(a) and isinstance(a, Op) for a in expr.args)
    return expr.head.startswith(("sub:", "fn:norm")) or (
        expr.head == "fn:abs"
        and not strict
        and all(isinstance(a, Op) and a.head == "mul" and is_name(a) for a in expr.args)
    )


def _is_inverse(expr: Op) -> bool:
    """The inverse function f^{-1}(x)."""
    first = expr.args[0]
    return (
        len(expr.args) == 2
        and isinstance(first, Op)
        and first.head == "pow"
        and first.args[0] in (Sym("f"), Sym("g"), Sym("h"), Sym("F"))
        and isinstance(expr.args[1], Sym)
    )


def _row(parts: list[Expr], joint: str = "and") -> Expr:
    """A record of named values, one name with several values, a bare list, or alternatives of relations."""
    first = parts[0]
    names = [repr(p.args[0]) for p in parts if isinstance(p, Op) and is_assignment(p)]
    if len(parts) == 1:
        return first
    if len(names) == len(parts) and isinstance(first, Op):
        if len(set(names)) == len(names):
            return Op("record", tuple(parts))
        if len(set(names)) == 1:
            values = tuple(v for p in parts if isinstance(p, Op) for v in _spread(p.args[1]))
            return Op("rel:=", (first.args[0], Op("list", values)))
        return _records(parts)
    if (
        is_assignment(first)
        and isinstance(first, Op)
        and not any(isinstance(p, Op) and p.head.startswith(("rel:", "chain:")) for p in parts[1:])
    ):
        return Op("rel:=", (first.args[0], Op("list", (*_spread(first.args[1]), *parts[1:]))))
    if any(isinstance(p, Op) and p.head.startswith(("rel:", "chain:")) and p.head != "rel:=" for p in parts):
        return Op("joint:" + joint, tuple(parts))
    return Op("list", tuple(v for p in parts for v in _spread(p)))


def _records(parts: list[Expr]) -> Expr:
    rows: list[list[Expr]] = [[]]
    seen: set[str] = set()
    for part in parts:
        assert isinstance(part, Op)
        name = repr(part.args[0])
        if name in seen:
            rows.append([])
            seen = set()
        seen.add(name)
        rows[-1].append(part)
    if len({len(r) for r in rows}) == 1 and len(rows[0]) > 1:
        return Op("list", tuple(Op("record", tuple(r)) for r in rows))
    return Op("list", tuple(parts))


def _spread(part: Expr) -> tuple[Expr, ...]:
    return part.args if isinstance(part, Op) and part.head == "list" else (part,)
