"""The small immutable tree that answers are parsed into.

An expression is a `Num`, a `Sym` or an `Op`. Operators are ``+ - * / ^`` style heads
(``add``, ``mul``, ``div``, ``neg``, ``pow``, ``root``, ``fn:sin``, ``call:f``...), and answers that aren't one
number are operators too: ``set``, ``list`` (bare, unordered), ``tuple``, ``interval:[)``, ``union``, ``matrix``,
``rel:<=``, ``chain``, ``quantity:<unit>``, ``percent``, ``ratio``, ``text:...``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple, TypeAlias

__all__ = ["Expr", "Num", "Op", "Sym", "Unparsable", "free_names", "walk"]

Rational: TypeAlias = int | Fraction


class Num(NamedTuple):
    """An exact number; ``places`` counts written digits after the point, ``figures`` the significant ones."""

    value: Rational
    places: int = -1
    figures: int = 0


class Sym(NamedTuple):
    """A variable or a named constant."""

    name: str


class Op(NamedTuple):
    """An operator with its operands."""

    head: str
    args: tuple[Expr, ...]


Expr: TypeAlias = "Num | Sym | Op"

MAX_CHARS = 24_000
MAX_TOKENS = 12_000
MAX_DEPTH = 40
MAX_DIGITS = 4_000
MAX_LEVELS = 100

CONSTANTS = frozenset({"pi", "e", "i", "inf", "oo"})


class Unparsable(ValueError):
    """The text isn't an answer this grammar knows, or it exceeds a guard."""


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node, the root first; iterative, so that depth can't exhaust the stack."""
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Op):
            stack.extend(node.args)


def free_names(expr: Expr) -> set[str]:
    """Names of the variables in ``expr``, without the constants; bound indices are included."""
    return {n.name for n in walk(expr) if isinstance(n, Sym)} - CONSTANTS


def depth(expr: Expr) -> int:
    """Levels of the tree, counted without recursion."""
    level, levels = [expr], 0
    while level:
        levels += 1
        level = [child for node in level if isinstance(node, Op) for child in node.args]
    return levels


def size(expr: Expr) -> int:
    """Number of nodes."""
    return sum(1 for _ in walk(expr))


def has_head(expr: Expr, *prefixes: str) -> bool:
    """Whether any operator in ``expr`` has one of these heads (prefixes match)."""
    return any(isinstance(n, Op) and n.head.startswith(prefixes) for n in walk(expr))


def substitute(expr: Expr, name: str, value: Expr) -> Expr:
    """``expr`` with every occurrence of the variable replaced."""
    if isinstance(expr, Sym):
        return value if expr.name == name else expr
    if isinstance(expr, Op):
        return Op(expr.head, tuple(substitute(a, name, value) for a in expr.args))
    return expr
