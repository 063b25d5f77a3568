"""Building nodes, and what the parser asks about tokens and nodes."""

from __future__ import annotations

from .lexer import Token
from .nodes import Expr, Num, Op, Sym, Unparsable
from .symbols import GREEK, words_of

CLOSE = {"(": (")", "]"), "[": ("]", ")"), "\\{": ("\\}",), "{": ("}",), "lfloor": ("rfloor",), "lceil": ("rceil",),
         "langle": ("rangle",)}  # fmt: skip
OPENERS = frozenset({"(", "[", "\\{", "{", "lfloor", "lceil", "langle"})
CLOSERS = frozenset(c for closes in CLOSE.values() for c in closes)
SHORT_WORDS = frozenset(
    words_of(
        "yes no not the all odd even one two six ten any are is of to by on at it if so or and for its red "
        "east west true none "
        "sum day be as an in we he has was can may new old big low high dne nan max min"
    )
)


def apply(name: str, args: tuple[Expr, ...], base: Expr | None) -> Expr:
    """The node for a named function."""
    if name == "log" and base is not None:
        return Op("div", (Op("fn:ln", args), Op("fn:ln", (base,))))
    if name == "lg":
        return Op("div", (Op("fn:ln", args), Op("fn:ln", (Num(10),))))
    if name == "exp":
        return Op("pow", (Sym("e"), *args[:1]))
    if name == "cbrt":
        return Op("root", (args[0], Num(3)))
    if name in ("factorial", "binomial"):
        return Op(name, args)
    return Op("fn:" + ("ln" if name == "log" else name), args)


def is_minus_one(expr: Expr) -> bool:
    return isinstance(expr, Op) and expr.head == "neg" and isinstance(expr.args[0], Num) and expr.args[0].value == 1


def explodes(word: str) -> bool:
    """Whether a run of letters is a product of variables rather than a word."""
    if len(word) > 3 or not word.isascii() or word in GREEK:
        return False
    return word.isupper() or word.lower() not in SHORT_WORDS


def flat(head: str, *parts: Expr) -> Expr:
    out: list[Expr] = []
    first = parts[0]
    if isinstance(first, Op) and first.head == head:
        return Op(head, first.args + parts[1:])
    out.extend(parts)
    return Op(head, tuple(out))


def negate(expr: Expr) -> Expr:
    return Op("neg", (expr,))


def numeric(expr: Expr) -> bool:
    """Whether ``expr`` looks like a plain value: no variables."""
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Sym) and node.name not in ("pi", "e", "inf"):
            return False
        if isinstance(node, Op):
            if node.head.startswith(("text:", "call:")):
                return False
            stack.extend(node.args)
    return True


def in_base(digits: str, base: Num) -> Expr:
    value = base.value
    if not isinstance(value, int) or not 2 <= value <= 36 or len(digits) > 400:
        raise Unparsable("a base out of range")
    try:
        return Op(f"base:{value}:{digits}", (Num(int(digits, value)),))
    except ValueError:
        raise Unparsable(f"{digits} isn't a number in base {value}") from None


def brackets_of(tokens: list[Token]) -> dict[int, int]:
    """Index of the closing bracket of each opening one, () [] {} \\{\\} and mixed ones for intervals."""
    found: dict[int, int] = {}
    stack: list[tuple[int, str]] = []
    for i, token in enumerate(tokens):
        if token.kind != "op":
            continue
        text = token.text
        if text in CLOSE:
            stack.append((i, text))
        elif text in CLOSERS and stack and text in CLOSE[stack[-1][1]]:
            found[stack.pop()[0]] = i
    return found
