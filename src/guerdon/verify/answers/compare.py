"""Comparing two parsed answers of any shape; every comparison is symmetric and bounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .constants import compare_with_constants
from .equations import compare_equations, solves
from .matrices import folded
from .nodes import Expr, Num, Op, Sym, Unparsable, has_head, substitute
from .policy import Policy
from .quantities import compare_quantities, is_quantity
from .realsets import FLIP, as_set, compare_sets, infinite_sign, is_set_like
from .resolve import expanded, resolve
from .scalar import compare_scalars
from .unordered import match_unordered, proportional_inequalities
from .verdict import Outcome, Reason, differs, same, undecided
from .words import compare_texts, number_words

__all__ = ["compare"]

MAX_DEPTH = 12


def compare(a: Expr, b: Expr, policy: Policy, depth: int = 0) -> Outcome:
    """Compare two trees: resolve names and chains, then dispatch on their shapes."""
    if a == b:
        return same("structure")
    if depth > MAX_DEPTH:
        return undecided(Reason.UNDECIDED, "structure", "nested too deep")
    if _head(a) == "either" or _head(b) == "either":
        return _either(a, b, policy, depth)
    try:
        return _shapes(folded(resolve(a)), folded(resolve(b)), policy, depth + 1)
    except Unparsable as problem:
        return undecided(Reason.UNDECIDED, "structure", str(problem))


def _head(expr: Expr) -> str:
    return expr.head if isinstance(expr, Op) else ""


def _either(a: Expr, b: Expr, policy: Policy, depth: int) -> Outcome:
    """A comma that can be read in two ways: the reading that fits the other side counts."""
    results = [
        compare(x, y, policy, depth + 1)
        for x in (a.args if isinstance(a, Op) and a.head == "either" else (a,))
        for y in (b.args if isinstance(b, Op) and b.head == "either" else (b,))
    ]
    for wanted in (True, None):
        for result in results:
            if result.equal is wanted:
                return result
    return results[0]


Rule = Callable[[Op, Expr, Policy, int], "Outcome | None"]


def _shapes(a: Expr, b: Expr, policy: Policy, depth: int) -> Outcome:
    if a == b:
        return same("structure")
    for rule in RULES:
        for x, y in ((a, b), (b, a)):
            if isinstance(x, Op):
                outcome = rule(x, y, policy, depth)
                if outcome is not None:
                    return outcome
    if _composite(a) != _composite(b):
        return differs("structure", "a single value and a composite one")
    if _composite(a):
        return _same_shape(a, b, policy, depth)
    if is_quantity(a) or is_quantity(b):
        return compare_quantities(a, b, policy, lambda x, y: compare(x, y, policy, depth))
    signs = infinite_sign(a), infinite_sign(b)
    if any(signs) and (all(signs) or _plain(a) or _plain(b)):
        return same("structure") if signs[0] == signs[1] else differs("structure", "infinities, or one and a number")
    outcome = compare_scalars(a, b, policy)
    return compare_with_constants(a, b, policy, outcome) if outcome.equal is not True else outcome


def _plain(expr: Expr) -> bool:
    """A written number, perhaps with a sign."""
    return isinstance(expr, Num) or (isinstance(expr, Op) and expr.head == "neg" and isinstance(expr.args[0], Num))


COMPOSITE = ("tuple:", "interval:", "set", "list", "record", "matrix", "row", "cases", "ratio", "joint:", "builder",
             "rel:", "chain:",
             "cup", "cap", "setminus", "equation")  # fmt: skip


def _composite(expr: Expr) -> bool:
    return (isinstance(expr, Op) and expr.head.startswith(COMPOSITE) and expr.head != "setminus:") or is_set_like(expr)


# -- rules; each looks at one side's head and may decline with None -----------------------------------------------


def _text(x: Op, y: Expr, policy: Policy, depth: int) -> Outcome | None:
    if not x.head.startswith("text:"):
        return None
    words = x.head[5:]
    if isinstance(y, Op) and y.head.startswith("text:"):
        return compare_texts(words, y.head[5:], policy)
    if isinstance(y, Sym):
        return compare_texts(words, y.name, policy)
    number = number_words(words)
    if number is not None:
        return compare(Num(number), y, policy, depth)
    return differs("structure", "words and a value")


def _named(x: Op, y: Expr, policy: Policy, depth: int) -> Outcome | None:
    if x.head != "named":
        return None
    name, value = x.args
    if isinstance(y, Op) and y.head == "named":
        return _both_named(x, y, policy, depth)
    if isinstance(y, Op) and y.head == "equation":
        return compare_equations(Op("rel:=", (name, value)), y)
    if isinstance(y, Op) and y.head == "record":
        return (
            compare(_positional(y), value, policy, depth) if _head(value).startswith("tuple:") else differs("structure")
        )
    return compare(value, y, policy, depth)


def _both_named(x: Op, y: Op, policy: Policy, depth: int) -> Outcome:
    x, y = _renamed(x, y)
    values = compare(x.args[1], y.args[1], policy, depth)
    if _key(x.args[0]) == _key(y.args[0]) or (values.equal is False and not _mutual(x, y)):
        return values
    if _mutual(x, y):
        return compare_equations(Op("rel:=", x.args), Op("rel:=", y.args))
    kinds = {_kind(x.args[0]), _kind(y.args[0])}
    if values.equal and kinds in ({"call", "y"}, {"call"}) and _head(x.args[0]) != _head(y.args[0]):
        return values
    return undecided(Reason.POLICY, "structure", "the same value under different names") if values.equal else values


def _mutual(x: Op, y: Op) -> bool:
    """y = 2x against x = y/2: each name occurs in the other's value."""
    nx, ny = x.args[0], y.args[0]
    return (
        isinstance(nx, Sym) and isinstance(ny, Sym) and nx != ny and has_name(y.args[1], nx) and has_name(x.args[1], ny)
    )


def has_name(expr: Expr, name: Sym) -> bool:
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        if node == name:
            return True
        if isinstance(node, Op):
            stack.extend(node.args)
    return False


def _kind(name: Expr) -> str:
    if isinstance(name, Op) and (name.head.startswith("call:") or name.head == "mul"):
        return "call"
    return "y" if name == Sym("y") else "other"


def _key(name: Expr) -> str:
    return repr(name).replace("'\\\\", "'")


def _renamed(x: Op, y: Op) -> tuple[Op, Op]:
    """f(n) = n and f(x) = x: the argument's name doesn't matter, unless the other side uses it for something else."""
    nx, ny = x.args[0], y.args[0]
    alike = _head(nx) == _head(ny) or (_head(nx).startswith("call:") and _head(ny).startswith("call:"))
    if isinstance(nx, Op) and isinstance(ny, Op) and alike and len(nx.args) == len(ny.args):
        for place, (p, q) in enumerate(zip(nx.args, ny.args, strict=True)):
            if isinstance(p, Sym) and isinstance(q, Sym) and p != q and not has_name(y, p) and not has_name(x, q):
                fresh = Sym(f"@{place}")
                x = Op("named", tuple(substitute(part, p.name, fresh) for part in x.args))
                y = Op("named", tuple(substitute(part, q.name, fresh) for part in y.args))
    return x, y


def _equation(x: Op, y: Expr, policy: Policy, depth: int) -> Outcome | None:
    if x.head != "equation":
        return None
    if isinstance(y, Op) and y.head == "equation":
        return compare_equations(x, y)
    if _composite(y):
        return differs("structure", "an equation and something else")
    return solves(y, x)


def _record(x: Op, y: Expr, policy: Policy, depth: int) -> Outcome | None:
    if x.head != "record":
        return None
    if isinstance(y, Op) and y.head == "record":
        return _records(x, y, policy, depth)
    if _head(y).startswith("tuple:") or _head(y) in ("list", "set"):
        return compare(_positional(x, "list" if _head(y) in ("list", "set") else "tuple:()"), y, policy, depth)
    return differs("structure", "several named values and something else")


def _positional(record: Op, head: str = "tuple:()") -> Op:
    return Op(head, tuple(p.args[1] for p in record.args if isinstance(p, Op)))


def _records(x: Op, y: Op, policy: Policy, depth: int) -> Outcome:
    left = {_key(p.args[0]): p.args[1] for p in x.args if isinstance(p, Op)}
    right = {_key(p.args[0]): p.args[1] for p in y.args if isinstance(p, Op)}
    if set(left) == set(right):
        return all_equal([compare(left[k], right[k], policy, depth) for k in left])
    values = compare(_positional(x), _positional(y), policy, depth)
    return (
        undecided(Reason.POLICY, "structure", "the same values under different names")
        if values.equal
        else differs("structure")
    )


def _sets(x: Op, y: Expr, policy: Policy, depth: int) -> Outcome | None:
    if not is_set_like(x) and not is_set_like(y):
        return None
    sx, sy = as_set(x), as_set(y)
    if sx is not None and sy is not None:
        plain = isinstance(sx[0], Sym) and isinstance(sy[0], Sym)
        if sx[0] != sy[0] and not plain and isinstance(y, Op) and _single_relation(x) and _single_relation(y):
            return _relations(x, y, policy, depth)
        return compare_sets(sx, sy, policy)
    if is_set_like(x) and is_set_like(y):
        return _same_shape(x, y, policy, depth)
    return differs("structure", "a set of reals and a value")


def _single_relation(expr: Expr) -> bool:
    return isinstance(expr, Op) and expr.head.startswith("rel:") and expr.head[4:] in FLIP


def _lists(x: Op, y: Expr, policy: Policy, depth: int) -> Outcome | None:
    if x.head not in ("list", "set"):
        return None
    items = expanded(x)
    others: Sequence[Expr]
    if isinstance(y, Op) and y.head in ("list", "set"):
        others = expanded(y)
    elif isinstance(y, Op) and y.head.startswith("tuple:"):
        ordered = all_equal([compare(p, q, policy, depth) for p, q in zip(items, y.args, strict=False)])
        if len(items) == len(y.args) and ordered.equal and x.head == "list":
            return undecided(Reason.POLICY, "structure", "an ordered tuple and a list without order")
        return differs("structure", "an ordered tuple and an unordered list")
    else:
        others = expanded(Op("list", (y,)))
    if any(p == Sym("...") for p in (*items, *others)):
        if len(items) != len(others):
            return differs("structure", "sequences of different form")
        return all_equal([compare(p, q, policy, depth) for p, q in zip(items, others, strict=True)])
    return match_unordered(items, others, lambda p, q: compare(p, q, policy, depth), policy)


def _single(x: Op, y: Expr, policy: Policy, depth: int) -> Outcome | None:
    """± on one side: both values."""
    if not has_head(x, "pm", "mp") or (isinstance(y, Op) and y.head in ("list", "set")) or _composite(x):
        return None
    items = expanded(Op("list", (x,)))
    others = expanded(Op("list", (y,)))
    return match_unordered(items, others, lambda p, q: compare(p, q, policy, depth), policy)


def _matrix_tuple(x: Op, y: Expr, policy: Policy, depth: int) -> Outcome | None:
    if x.head != "matrix" or not _head(y).startswith("tuple:") or not isinstance(y, Op):
        return None
    cells = [c for r in x.args if isinstance(r, Op) for c in r.args]
    if min(len(x.args), max(len(r.args) for r in x.args if isinstance(r, Op))) != 1 or len(cells) != len(y.args):
        return differs("structure", "a matrix and a tuple")
    values = all_equal([compare(p, q, policy, depth) for p, q in zip(cells, y.args, strict=True)])
    return undecided(Reason.POLICY, "structure", "a vector and a tuple") if values.equal else values


def _ratio(x: Op, y: Expr, policy: Policy, depth: int) -> Outcome | None:
    if x.head != "ratio":
        return None
    if isinstance(y, Op) and y.head == "ratio":
        return _ratios(x, y, policy)
    if _composite(y) or len(x.args) != 2:
        return differs("structure", "a ratio and something else")
    value = compare_scalars(Op("div", x.args), y, policy)
    return undecided(Reason.POLICY, "structure", "a ratio and its value") if value.equal else value


def _ratios(x: Op, y: Op, policy: Policy) -> Outcome:
    """1:2 = 2:4, by cross products; terms that all agree settle it first (12:00 is a time and no proportion)."""
    if len(x.args) != len(y.args):
        return differs("structure", "ratios of different length")
    direct = all_equal([compare_scalars(p, q, policy) for p, q in zip(x.args, y.args, strict=True)])
    if direct.equal or any(_looks_timed(r) for r in (x, y)):
        return direct
    cross = [
        compare_scalars(Op("mul", (x.args[0], q)), Op("mul", (y.args[0], p)), policy)
        for p, q in zip(x.args[1:], y.args[1:], strict=True)
    ]
    zero = any(compare_scalars(a, Num(0), policy).equal is not False for a in (x.args[0], y.args[0]))
    return direct if zero else all_equal(cross)


def _looks_timed(ratio: Op) -> bool:
    """Two-digit minutes: h:mm is a time of day, where 1:30 isn't 2:60."""
    last = ratio.args[-1]
    return (
        len(ratio.args) == 2
        and isinstance(last, Num)
        and isinstance(last.value, int)
        and (last.figures >= 2 or last.value == 0)
    )


RULES: tuple[Rule, ...] = (_text, _record, _named, _equation, _single, _lists, _sets, _matrix_tuple, _ratio)


def all_equal(outcomes: Sequence[Outcome]) -> Outcome:
    """All must be equal; one difference decides, else one unknown."""
    unknown: Outcome | None = None
    for outcome in outcomes:
        if outcome.equal is False:
            return outcome
        if outcome.equal is None:
            unknown = unknown or outcome
    return unknown or (max(outcomes, key=lambda o: TIERS.index(o.tier)) if outcomes else same("structure"))


TIERS = ("", "text", "number", "unit", "structure", "identity", "evaluation", "algebra", "extraction")


def _same_shape(a: Expr, b: Expr, policy: Policy, depth: int) -> Outcome:
    """Two composites of one kind, part by part; different kinds are different."""
    if not isinstance(a, Op) or not isinstance(b, Op):
        return differs("structure")
    if a.head.startswith("tuple:") and b.head.startswith("tuple:"):
        return _tuples(a, b, policy, depth)
    if a.head.startswith(("rel:", "chain:")) and b.head.startswith(("rel:", "chain:")):
        return _relations(a, b, policy, depth)
    if a.head != b.head or len(a.args) != len(b.args):
        return differs("structure", "different shapes")
    return all_equal([compare(p, q, policy, depth) for p, q in zip(a.args, b.args, strict=True)])


def _tuples(a: Op, b: Op, policy: Policy, depth: int) -> Outcome:
    if len(a.args) != len(b.args):
        return differs("structure", "tuples of different length")
    if a.head != b.head and len(a.args) == 2:
        return differs("structure", "different brackets")
    if policy.tuple_order == "free":
        return match_unordered(a.args, b.args, lambda p, q: compare(p, q, policy, depth), policy)
    return all_equal([compare(p, q, policy, depth) for p, q in zip(a.args, b.args, strict=True)])


def _relations(a: Op, b: Op, policy: Policy, depth: int) -> Outcome:
    """Inequalities that couldn't be solved: equal up to a positive factor, or side by side."""
    oa, ob = a.head.split(":", 1)[1].split(), b.head.split(":", 1)[1].split()
    if len(oa) == 1 and len(ob) == 1 and oa[0] in FLIP and ob[0] in FLIP:
        return proportional_inequalities(a, oa[0], b, ob[0])
    if oa == ob and len(a.args) == len(b.args):
        return all_equal([compare(p, q, policy, depth) for p, q in zip(a.args, b.args, strict=True)])
    if [FLIP.get(o, o) for o in reversed(ob)] == oa:
        return all_equal([compare(p, q, policy, depth) for p, q in zip(a.args, reversed(b.args), strict=True)])
    return undecided(Reason.UNDECIDED, "structure", "relations of different form")
