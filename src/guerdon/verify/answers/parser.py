"""Pratt parser for expressions: LaTeX and plain notation in one grammar, depth-limited, linear in the tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .building import OPENERS, brackets_of, explodes, flat, in_base, negate, numeric
from .lexer import Token
from .nodes import MAX_DEPTH, Expr, Num, Op, Sym, Unparsable
from .units import UNITS

__all__ = ["ExprParser"]

INFIX = {
    "cup": 4, "cap": 5, "setminus": 5, "mod": 8, "+": 10, "-": 10, "pm": 10, "mp": 10, "*": 20, "/": 20,
    "choose": 2, "over": 1,
}  # fmt: skip
IMPLICIT = 20
UNARY = 15
MAX_NESTING = 80


STARTERS = OPENERS | {"frac", "sqrt", "binom", "begin", "overline", "sum", "prod", "int", "lim", "dots"}


class ExprParser(ABC):
    """Parses one expression from a token list; statements and answers build on it."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.i, self.depth, self.bars, self.integrals, self.nesting = tokens, 0, 0, 0, 0, 0
        self.match = brackets_of(tokens)

    # -- tokens -------------------------------------------------------------------------------------------------

    def peek(self) -> Token:
        return self.tokens[self.i]

    def is_op(self, *ops: str) -> bool:
        token = self.tokens[self.i]
        return token.kind == "op" and token.text in ops

    def take(self, *ops: str) -> bool:
        if self.is_op(*ops):
            self.i += 1
            return True
        return False

    def expect(self, *ops: str) -> str:
        token = self.tokens[self.i]
        if token.kind != "op" or token.text not in ops:
            raise Unparsable(f"expected {' or '.join(ops)} but found {token.text or 'the end'!r}")
        self.i += 1
        return token.text

    # -- expressions --------------------------------------------------------------------------------------------

    def expr(self, power: int = 0) -> Expr:
        """An expression whose operators bind tighter than ``power``."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unparsable(f"nested more than {MAX_DEPTH} deep")
        left = self.prefix()
        while True:
            token = self.tokens[self.i]
            binding = INFIX.get(token.text, -1) if token.kind == "op" else -1
            if binding < 0:
                if power >= IMPLICIT or not self.starts_factor(left):
                    break
                left = flat("mul", left, self.expr(IMPLICIT))
                continue
            if binding <= power:
                break
            self.i += 1
            if token.text in ("+", "-"):
                left = self.sum_of(left, token.text, binding)
                continue
            right = self.expr(binding)
            left = self.infix(token.text, left, right)
        self.depth -= 1
        return left

    def sum_of(self, left: Expr, op: str, binding: int) -> Expr:
        """All terms of a sum in one node, so that a long one stays linear."""
        terms = [left]
        while True:
            right = self.expr(binding)
            terms.append(right if op == "+" else negate(right))
            if not self.is_op("+", "-"):
                return Op("add", tuple(terms))
            op = self.tokens[self.i].text
            self.i += 1

    def infix(self, op: str, left: Expr, right: Expr) -> Expr:
        if op == "*":
            return flat("mul", left, right)
        if op in ("/", "over"):
            return Op("div", (left, right))
        if op == "choose":
            return Op("binomial", (left, right))
        return Op(op, (left, right))

    def prefix(self) -> Expr:
        negative, plain = False, True
        while self.is_op("-", "+"):
            negative ^= self.tokens[self.i].text == "-"
            plain = False
            self.i += 1
        if self.is_op("pm", "mp"):
            op = self.tokens[self.i].text
            self.i += 1
            return Op(op, (Num(0), self.expr(UNARY)))
        if not plain:
            inner = self.expr(UNARY)
            return negate(inner) if negative else inner
        return self.powered()

    def powered(self) -> Expr:
        """A primary with its postfix operators and exponent."""
        base = self.postfix(self.primary())
        while self.is_op("^"):
            self.i += 1
            if self.degree_sign():
                base = Op("quantity", (base, Sym("deg")))
                continue
            if self.is_op("'"):
                base = self.postfix(base)
                continue
            if self.primes_ahead():
                base = self.primed(base)
                continue
            exponent = self.exponent()
            base = self.postfix(Op("pow", (base, exponent)))
        return base

    def primes_ahead(self) -> bool:
        close = self.match.get(self.i) if self.is_op("{") else None
        return close is not None and close > self.i + 1 and all(t.text == "'" for t in self.tokens[self.i + 1 : close])

    def primed(self, base: Expr) -> Expr:
        count = self.match[self.i] - self.i - 1
        self.i += count + 2
        return Sym(base.name + "'" * count) if isinstance(base, Sym) else Op("sub:" + "'" * count, (base,))

    def degree_sign(self) -> bool:
        if self.take("circ"):
            return True
        if self.is_op("{") and self.tokens[self.i + 1].text == "circ" and self.tokens[self.i + 2].text == "}":
            self.i += 3
            return True
        return False

    def exponent(self) -> Expr:
        """What follows ^: a group, one token in LaTeX, or a signed power in plain notation (right-associative)."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unparsable(f"nested more than {MAX_DEPTH} deep")
        negative = False
        while self.is_op("-", "+"):
            negative ^= self.tokens[self.i].text == "-"
            self.i += 1
        inner = self.postfix(self.single())
        if self.is_op("^"):
            self.i += 1
            inner = Op("pow", (inner, self.exponent()))
        self.depth -= 1
        return negate(inner) if negative else inner

    def postfix(self, base: Expr) -> Expr:
        while True:
            token = self.tokens[self.i]
            if token.kind != "op":
                return base
            if token.text == "!":
                self.i += 1
                base = Op("factorial", (base,))
            elif token.text == "%":
                self.i += 1
                base = Op("percent", (base,))
            elif token.text == "circ" and not isinstance(base, Sym):
                self.i += 1
                base = Op("quantity", (base, Sym("deg")))
            elif token.text == "'" and isinstance(base, Sym):
                self.i += 1
                base = Sym(base.name + "'")
            elif token.text == "_":
                self.i += 1
                base = self.subscript(base)
            else:
                return base

    def subscript(self, base: Expr) -> Expr:
        start = self.i
        close = self.match.get(start) if self.is_op("{") else None
        if isinstance(base, Sym) and close is not None:
            self.i = close + 1
            return Sym(f"{base.name}_{''.join(t.text for t in self.tokens[start:close] if t.text not in '{}')}")
        inner = self.primary(script=True)
        text = "".join(t.text for t in self.tokens[start : self.i] if t.text not in "{}")
        if isinstance(base, Num) and isinstance(inner, Num) and isinstance(base.value, int):
            return in_base(str(base.value), inner)
        if isinstance(base, Sym):
            return Sym(f"{base.name}_{text}")
        if isinstance(base, Op) and base.head == "mul" and isinstance(inner, Num):
            return in_base(
                "".join(str(a.value) if isinstance(a, Num) else getattr(a, "name", "?") for a in base.args), inner
            )
        if isinstance(base, Op) and isinstance(inner, Num) and base.head == "paren":
            return Op("sub:" + text, base.args)
        return Op("sub:" + text, (base,))

    def starts_factor(self, left: Expr) -> bool:
        """Whether the next token continues ``left`` as an implicit product."""
        token = self.tokens[self.i]
        kind = token.kind
        if kind == "op":
            if token.text == "|":
                return self.bars == 0 and self.closing_bar()
            if token.text in ("(", "[") and self.annotation_ahead():
                return False
            return token.text in STARTERS
        if kind == "sym":
            return not (self.integrals and token.text == "d" and self.tokens[self.i + 1].kind == "sym")
        if kind == "fn":
            return True
        if kind == "num":
            return self.tokens[self.i - 1].kind != "num"
        if kind == "word":
            if self.integrals and len(token.text) == 2 and token.text[0] == "d":
                return False
            return explodes(token.text) and not (token.text in UNITS and numeric(left))
        return False

    def closing_bar(self) -> bool:
        return any(t.kind == "op" and t.text == "|" for t in self.tokens[self.i + 1 : self.i + 60])

    def annotation_ahead(self) -> bool:
        """``12 (pages)``: a bracket that holds only words is a note, not a factor."""
        close = self.match.get(self.i)
        if close is None or close == self.i + 1:
            return False
        inside = self.tokens[self.i + 1 : close]
        return all(t.kind in ("word", "text") for t in inside) and not all(explodes(t.text) for t in inside)

    # -- what the classes built on this one know --------------------------------------------------------------

    @abstractmethod
    def primary(self, script: bool = False) -> Expr:
        """One operand: a number, a name, a group, a function with its argument."""

    @abstractmethod
    def single(self) -> Expr:
        """An argument without braces: one digit, one letter or one command."""
