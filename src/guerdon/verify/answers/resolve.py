"""What an answer amounts to: x = 5 names 5, 2 + 3 = 5 is 5, ± is two values, a lone word is text."""

from __future__ import annotations

from .assemble import is_name
from .nodes import Expr, Num, Op, Sym, Unparsable, free_names, has_head
from .symbols import words_of

__all__ = ["expanded", "resolve"]

MAX_MEMBERS = 5_000


def resolve(expr: Expr) -> Expr:
    """The tree with relations read as ``named`` values, ``equation`` or a plain value."""
    if isinstance(expr, Sym):
        return Op("text:" + expr.name, ()) if _is_word(expr.name) else expr
    if not isinstance(expr, Op):
        return expr
    if expr.head in ("rel:=", "rel:~=", "rel:=="):
        return _equality(expr.args, expr.head == "rel:~=")
    if expr.head.startswith("chain:"):
        return _chain(expr)
    if expr.head == "rel:in":
        return expr
    if expr.head == "mul" and len(expr.args) == 2 and _is_point(*expr.args):
        return Op("named", expr.args)
    if expr.head == "rel:implies":
        return resolve(expr.args[-1])
    if expr.head == "rel:to":
        return resolve(expr.args[-1]) if is_name(expr.args[0]) else expr
    if expr.head in ("set", "list") and len(expr.args) == 1 and not has_head(expr, "pm", "mp"):
        return resolve(expr.args[0])
    if expr.head == "quantity" and isinstance(expr.args[0], Op) and expr.args[0].head in ("rel:=", "list"):
        return expr
    return expr


def _is_point(name: Expr, at: Expr) -> bool:
    """A(1, 2): a point with its name."""
    return (
        isinstance(name, Sym) and name.name[:1].isupper() and isinstance(at, Op) and at.head in ("tuple:()", "either")
    )


def _is_word(name: str) -> bool:
    return len(name) >= 2 and name.isalpha() and name not in ("pi", "inf", "oo") and name not in GREEK_NAMES


GREEK_NAMES = frozenset(
    words_of(
        "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho "
        "varrho sigma tau "
        "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell hbar nabla "
        "partial aleph emptyset"
    )
)


def _constant(expr: Expr) -> bool:
    if isinstance(expr, Op) and expr.head == "quantity":
        return _constant(expr.args[0])
    if free_names(expr) or has_head(expr, "text:", "call:", "tuple:", "list", "set"):
        return False
    return has_head(expr, "fn:det") or not has_head(expr, "matrix")


def _equality(sides: tuple[Expr, ...], approximate: bool) -> Expr:
    first, last = sides[0], sides[-1]
    if is_name(first):
        if (
            isinstance(first, Op)
            and first.head.startswith("text:")
            and isinstance(last, Op)
            and last.head.startswith("text:")
        ):
            return Op("text:" + first.head[5:] + " = " + last.head[5:], ())
        return _named(first, resolve(last))
    if (is_name(last, strict=True) and not isinstance(first, Op | Sym)) or (
        is_name(last, strict=True) and not _mentions(first, last)
    ):
        return Op("named", (last, resolve(first)))
    if all(_constant(s) for s in sides):
        return resolve(first if approximate else last)
    if approximate:
        return resolve(first)
    return Op("equation", (first, last))


def _named(name: Expr, value: Expr) -> Expr:
    """(p, q) = (3, 2) says p = 3 and q = 2."""
    if (
        isinstance(name, Op)
        and name.head.startswith("tuple:")
        and isinstance(value, Op)
        and value.head.startswith("tuple:")
    ) and len(name.args) == len(value.args) > 1:
        return Op("record", tuple(Op("rel:=", pair) for pair in zip(name.args, value.args, strict=True)))
    return Op("named", (name, value))


def _mentions(expr: Expr, name: Expr) -> bool:
    return bool(free_names(expr) & free_names(name))


def _chain(expr: Op) -> Expr:
    operators = expr.head[6:].split()
    if not set(operators) <= {"=", "~=", "=="}:
        equalities = [i for i, op in enumerate(operators) if op in ("=", "==")]
        if equalities and len(equalities) == len(operators) - 1 and operators[-1] == "~=":
            return _equality(expr.args[:-1], False)
        return expr
    sides = expr.args
    if "~=" in operators:
        cut = operators.index("~=") + 1
        exact = sides[:cut]
        if len(exact) == 1 or (len(exact) == 2 and is_name(exact[0])):
            return (
                resolve(exact[0])
                if len(exact) == 1 and not is_name(exact[0])
                else _equality((sides[0], sides[min(1, cut - 1)] if len(exact) > 1 else sides[-1]), False)
            )
        return _equality((exact[0], exact[-1]), False)
    return _equality((sides[0], sides[-1]), False)


# -- plus-minus and nested lists --------------------------------------------------------------------------------


def expanded(collection: Op) -> tuple[Expr, ...]:
    """Members of a set or list, nested bare lists flattened and each ± written out."""
    out: list[Expr] = []
    for member in collection.args:
        if isinstance(member, Op) and member.head == "list":
            out.extend(expanded(member))
        elif has_head(member, "pm", "mp"):
            out.extend(_signs(member))
        else:
            out.append(member)
        if len(out) > MAX_MEMBERS:
            raise Unparsable("thousands of members")
    return tuple(out)


def _signs(expr: Expr) -> list[Expr]:
    """Both values of ±; several ± vary independently unless a ∓ ties them together."""
    if has_head(expr, "mp"):
        return [_choose(expr, [+1] * 99), _choose(expr, [-1] * 99)]
    count = min(_count(expr), 4)
    return [_choose(expr, [1 if bits >> k & 1 else -1 for k in range(count)] + [1] * 99) for bits in range(2**count)]


def _count(expr: Expr) -> int:
    total, stack = 0, [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Op):
            total += node.head == "pm"
            stack.extend(node.args)
    return total


def _choose(expr: Expr, signs: list[int]) -> Expr:
    if not isinstance(expr, Op):
        return expr
    if expr.head in ("pm", "mp"):
        sign = signs.pop(0) if len(signs) > 1 else signs[0]
        left, right = (_choose(a, signs) for a in expr.args)
        plus = (sign > 0) == (expr.head == "pm")
        right = right if plus else Op("neg", (right,))
        return right if left == Num(0) or left == Num(0, -1, 0) else Op("add", (left, right))
    return Op(expr.head, tuple(_choose(a, signs) for a in expr.args))
