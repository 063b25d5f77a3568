"""Operands of expressions: numbers, names, functions, roots, fractions."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

from .building import CLOSE, OPENERS, apply, explodes, flat, is_minus_one
from .lexer import Token
from .nodes import Expr, Num, Op, Sym, Unparsable
from .parser import MAX_NESTING, STARTERS, UNARY, ExprParser
from .symbols import CURRENCY
from .units import UNITS

__all__ = ["OperandParser"]

CURRENCY_WORDS = frozenset(CURRENCY.values())


class OperandParser(ExprParser):
    """Adds operands to the operators."""

    def primary(self, script: bool = False) -> Expr:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise Unparsable(f"nested more than {MAX_NESTING} deep")
        operand = self.operand(script)
        self.nesting -= 1
        return operand

    def operand(self, script: bool) -> Expr:
        token = self.tokens[self.i]
        self.i += 1
        if token.kind == "num":
            return self.number(token, script)
        if token.kind == "sym":
            return self.symbol(token)
        if token.kind == "fn":
            return self.function(token.text)
        if token.kind == "word":
            return self.word(token)
        if token.kind == "text":
            return Op("text:" + token.text, ())
        if token.kind == "op":
            return self.construct(token.text)
        raise Unparsable("an operand is missing")

    def number(self, token: Token, script: bool) -> Expr:
        assert isinstance(token.value, Num)
        value = token.value
        if (
            script
            and isinstance(value.value, int)
            and len(token.text) > 1
            and self.tokens[self.i - 2].text in ("^", "_")
        ):
            return value  # x^10 in plain notation means ten; LaTeX authors brace it anyway
        return self.mixed(value)

    def mixed(self, whole: Num) -> Expr:
        """``1\\frac{1}{2}`` and ``1 1/2``: a whole number followed by a proper fraction is their sum."""
        tokens, i = self.tokens, self.i
        if not isinstance(whole.value, int) or whole.places >= 0:
            return whole
        if tokens[i].kind == "op" and tokens[i].text == "frac":
            part = self.small_fraction(i + 1)
        elif tokens[i].kind == "num" and tokens[i].space and i + 2 < len(tokens) and tokens[i + 1].text == "/":
            part = (tokens[i].value, tokens[i + 2].value, i + 3)
        else:
            return whole
        if part is None or not isinstance(part[0], Num) or not isinstance(part[1], Num):
            return whole
        top, bottom = part[0].value, part[1].value
        if isinstance(top, int) and isinstance(bottom, int) and 0 < top < bottom:
            self.i = part[2]
            return Num(whole.value + Fraction(top, bottom))
        return whole

    def small_fraction(self, i: int) -> tuple[Expr | None, Expr | None, int] | None:
        """(top, bottom, next index) of the numeric \\frac whose arguments start at ``i``: {1}{2}, 12 or 1{2}."""
        first = self.tokens[i]
        if first.kind == "num" and len(first.text) == 2 and first.text.isdigit():
            return Num(int(first.text[0])), Num(int(first.text[1])), i + 1
        parts: list[Expr | None] = []
        for _ in range(2):
            token = self.tokens[i]
            if token.text == "{" and self.match.get(i) == i + 2:
                parts.append(self.tokens[i + 1].value)
                i += 3
            elif token.kind == "num" and len(token.text) == 1:
                parts.append(token.value)
                i += 1
            else:
                return None
        return parts[0], parts[1], i

    def symbol(self, token: Token) -> Expr:
        name = token.text
        if name in ("f", "g", "h", "F", "G", "W", "P", "Q", "u") and self.is_op("(") and not self.peek().space:
            close = self.match.get(self.i)
            if close is not None and close - self.i > 1:
                args = self.arguments()
                return Op("call:" + name, args)
        if name.startswith("\\") and name[1:] in ("text", "boxed"):
            raise Unparsable(f"\\{name[1:]} out of place")
        return Sym(name)

    def word(self, token: Token) -> Expr:
        word = token.text
        if word in CURRENCY_WORDS and self.peek().kind in ("num", "op") and not (self.is_op(",", ";", "}", ")")):
            if self.peek().kind == "end":
                return Sym(word)
            return Op("quantity", (self.expr(UNARY), Sym(word)))
        if len(word) == 2 and word[0] == "d" and word not in UNITS:
            return Sym(word)
        if explodes(word):
            return flat("mul", *(Sym(ch) for ch in word))
        following = self.peek()
        if following.kind in ("num", "fn", "sym") or (
            following.kind == "op" and following.text in STARTERS and following.text not in ("(", "[")
        ):
            raise Unparsable(f"the word {word!r} before a value")
        return Sym(word)

    def function(self, name: str) -> Expr:
        exponent: Expr | None = None
        base: Expr | None = None
        for _ in range(2):
            if self.take("^"):
                exponent = self.exponent()
            elif self.take("_"):
                base = self.primary(script=True)
        if name == "sqrt":
            return self.sqrt(exponent)
        args = self.arguments() if self.is_op("(", "[") else (self.bare_argument(),)
        if exponent is not None and is_minus_one(exponent) and name in ("sin", "cos", "tan", "cot", "sec", "csc"):
            name, exponent = "arc" + name, None
        result = apply(name, args, base)
        if exponent is not None:
            result = Op("pow", (result, exponent))
        return result

    def arguments(self) -> tuple[Expr, ...]:
        close = CLOSE[self.expect("(", "[")]
        args = [self.expr()]
        while self.take(",", ";"):
            args.append(self.expr())
        self.expect(*close)
        return tuple(args)

    def bare_argument(self) -> Expr:
        """The argument of ``\\sin 2x``: factors up to the next sum, explicit product or function."""
        if self.is_op("-", "+"):
            return self.expr(UNARY)
        left = self.powered()
        while self.starts_factor(left) and self.peek().kind != "fn":
            left = flat("mul", left, self.powered())
        if self.is_op("/") and self.tokens[self.i + 1].kind in ("num", "sym"):
            self.i += 1
            left = Op("div", (left, self.powered()))
        return left

    def sqrt(self, exponent: Expr | None) -> Expr:
        degree: Expr = Num(2)
        if self.is_op("[") and self.match.get(self.i) is not None:
            close = self.match[self.i]
            after = self.tokens[close + 1]
            if after.text in ("{", "(") or after.kind in ("num", "sym"):
                self.i += 1
                degree = self.expr()
                self.expect("]")
        if self.is_op("(") or self.is_op("{"):
            inner = self.primary()
        else:
            inner = self.single()
        result: Expr = Op("root", (inner, degree))
        return result if exponent is None else Op("pow", (result, exponent))

    def single(self) -> Expr:
        """The one-token argument of ``\\sqrt3`` or ``\\frac13``: a single digit of a longer numeral."""
        token = self.tokens[self.i]
        if (
            token.kind == "num"
            and token.text.isdigit()
            and len(token.text) > 1
            and self.tokens[self.i - 1].text == "frac"
        ):
            head, tail = token.text[0], token.text[1:]
            self.tokens[self.i] = Token("num", tail, False, Num(int(tail), -1, len(tail)))
            return Num(int(head), -1, 1)
        if token.kind == "word" and explodes(token.text):
            self.tokens[self.i] = Token("sym" if len(token.text) == 2 else "word", token.text[1:], False)
            return Sym(token.text[0])
        return self.primary(script=True)

    def construct(self, op: str) -> Expr:
        if op in OPENERS:
            return self.group(op)
        if op == "frac":
            top = self.single()
            bottom = self.second_digit() if self.peek().kind == "num" else self.single()
            return Op("div", (top, bottom))
        if op == "sqrt":
            return self.function("sqrt")
        if op == "binom":
            return Op("binomial", (self.single(), self.single()))
        if op == "|":
            return self.absolute()
        if op == "||":
            inner = self.expr()
            self.expect("||")
            return Op("fn:norm", (inner,))
        if op == "dots":
            return Sym("...")
        return self.large(op)

    def second_digit(self) -> Expr:
        token = self.tokens[self.i]
        if token.text.isdigit() and len(token.text) > 1:
            head, tail = token.text[0], token.text[1:]
            self.tokens[self.i] = Token("num", tail, False, Num(int(tail), -1, len(tail)))
            return Num(int(head), -1, 1)
        return self.primary(script=True)

    def absolute(self) -> Expr:
        self.bars += 1
        inner = self.expr()
        self.bars -= 1
        self.expect("|")
        return Op("fn:abs", (inner,))

    @abstractmethod
    def group(self, op: str) -> Expr:
        """What an opening bracket begins."""

    @abstractmethod
    def large(self, op: str) -> Expr:
        """An environment, a sum, an integral, a limit."""
