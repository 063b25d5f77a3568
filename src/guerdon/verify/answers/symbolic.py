"""The last tier: a computer-algebra check in a killable worker, built from our tree and never from text."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .nodes import Expr, Num, Op, Sym, free_names, size, walk
from .symbols import words_of

if TYPE_CHECKING:
    from guerdon.core.workers import WorkerPool

__all__ = ["algebra_pool", "equal_by_algebra", "worth_algebra"]

MAX_NODES = 200


def worth_algebra(a: Expr, b: Expr) -> bool:
    """Whether the pair holds something only computer algebra can settle: integrals, limits, infinite sums."""
    return (_formal(a) or _formal(b)) and max(size(a), size(b)) <= MAX_NODES


@lru_cache(maxsize=1)
def algebra_pool() -> WorkerPool:
    """Two warm workers with the algebra system loaded; one that misses its deadline is killed and replaced."""
    from guerdon.core.workers import WorkerPool

    return WorkerPool(2, preload=["sympy", "guerdon.verify.answers.symbolic"], memory_bytes=2**31, name="algebra")


def _formal(expr: Expr) -> bool:
    """Whether a limit, an integral, or a sum between constant bounds occurs."""
    for node in walk(expr):
        if isinstance(node, Op) and node.head in ("sum", "prod"):
            return not free_names(node.args[1]) and not free_names(node.args[2])
        if isinstance(node, Op) and node.head in ("int", "lim"):
            return True
    return False


def equal_by_algebra(pair: tuple[Expr, Expr]) -> bool | None:
    """Run in a worker: whether the two trees are equal; ``None`` when the algebra system can't tell."""
    sympy: Any = importlib.import_module("sympy")
    a, b = (_build(e, sympy) for e in pair)
    difference = sympy.simplify((a - b).doit())
    if difference.has(sympy.Integral, sympy.Limit, sympy.Sum, sympy.Product, sympy.nan, sympy.zoo):
        return None
    if difference == 0:
        return True
    if difference.free_symbols:
        return None
    value = difference.evalf(30)
    if value.is_number and value.is_comparable:
        return False if abs(value) > sympy.Float("1e-15") else None
    return None


def _build(expr: Expr, sympy: Any) -> Any:
    if isinstance(expr, Num):
        return sympy.Rational(expr.value.numerator, expr.value.denominator)
    if isinstance(expr, Sym):
        constant = {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "inf": sympy.oo}.get(expr.name)
        return constant if constant is not None else sympy.Symbol(expr.name, real=True)
    args = [_build(a, sympy) for a in expr.args]
    return _operator(expr.head, args, sympy)


def _operator(head: str, args: list[Any], sympy: Any) -> Any:
    if head in ("int", "sum", "prod"):
        kind = {"int": sympy.Integral, "sum": sympy.Sum, "prod": sympy.Product}[head]
        return kind(args[3], (args[0], args[1], args[2]))
    if head == "lim":
        return sympy.Limit(args[2], args[0], args[1])
    table: dict[str, Any] = {
        "add": lambda *x: sympy.Add(*x), "mul": lambda *x: sympy.Mul(*x), "neg": lambda x: -x,
        "div": lambda x, y: x / y,
        "pow": lambda x, y: x**y, "root": lambda x, n: sympy.real_root(x, n) if n != 2 else sympy.sqrt(x),
        "percent": lambda x: x / 100, "factorial": sympy.factorial, "binomial": sympy.binomial, "mod": sympy.Mod,
        "fn:abs": sympy.Abs, "fn:floor": sympy.floor, "fn:ceil": sympy.ceiling, "fn:ln": sympy.log,
    }  # fmt: skip
    if head in table:
        return table[head](*args)
    name = {"fn:arcsin": "asin", "fn:arccos": "acos", "fn:arctan": "atan"}.get(head, head.removeprefix("fn:"))
    if head.startswith("fn:") and name in SAFE:
        return getattr(sympy, name)(*args)
    raise ValueError(f"{head} has no counterpart in computer algebra")


SAFE = frozenset(words_of("sin cos tan cot sec csc asin acos atan sinh cosh tanh asinh acosh atanh gamma"))
