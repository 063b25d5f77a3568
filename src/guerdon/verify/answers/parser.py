"""Pratt parser for expressions: LaTeX and plain notation in one grammar, depth-limited, linear in the tokens."""

from __future__ import annotations

from fractions import Fraction

from .lexer import CURRENCY, GREEK, Token
from .nodes import MAX_DEPTH, Expr, Num, Op, Sym, Unparsable
from .units import SOFT, UNITS

__all__ = ["ExprParser"]

INFIX = {
    "cup": 4, "cap": 5, "setminus": 5, "mod": 8, "+": 10, "-": 10, "pm": 10, "mp": 10, "*": 20, "/": 20,
    "choose": 2, "over": 1,
}  # fmt: skip
IMPLICIT = 20
UNARY = 15
POWER = 30
CLOSE = {"(": (")", "]"), "[": ("]", ")"), "\\{": ("\\}",), "{": ("}",), "lfloor": ("rfloor",), "lceil": ("rceil",),
         "langle": ("rangle",)}  # fmt: skip
OPENERS = frozenset({"(", "[", "\\{", "{", "lfloor", "lceil", "langle"})
STARTERS = OPENERS | {"frac", "sqrt", "binom", "begin", "overline", "sum", "prod", "int", "lim", "dots"}
SHORT_WORDS = frozenset(
    "yes no not the all odd even one two six ten any are is of to by on at it if so or and for its red east west true none "
    "sum day be as an in we he has was can may new old big low high dne nan max min".split()
)
CURRENCY_WORDS = frozenset(CURRENCY.values())


class ExprParser:
    """Parses one expression from a token list; statements and answers build on it."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.i, self.depth, self.bars, self.integrals = tokens, 0, 0, 0, 0
        self.match = _brackets(tokens)

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
                left = _flat("mul", left, self.expr(IMPLICIT))
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
            terms.append(right if op == "+" else _negate(right))
            if not self.is_op("+", "-"):
                return Op("add", tuple(terms))
            op = self.tokens[self.i].text
            self.i += 1

    def infix(self, op: str, left: Expr, right: Expr) -> Expr:
        if op == "*":
            return _flat("mul", left, right)
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
            return _negate(inner) if negative else inner
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
        return _negate(inner) if negative else inner

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
            return _in_base(str(base.value), inner)
        if isinstance(base, Sym):
            return Sym(f"{base.name}_{text}")
        if isinstance(base, Op) and base.head == "mul" and isinstance(inner, Num):
            return _in_base("".join(str(a.value) if isinstance(a, Num) else getattr(a, "name", "?") for a in base.args), inner)
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
            return explodes(token.text) and not (token.text in UNITS and _numeric(left))
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

    # -- primaries ----------------------------------------------------------------------------------------------

    def primary(self, script: bool = False) -> Expr:
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
        if script and isinstance(value.value, int) and len(token.text) > 1 and self.tokens[self.i - 2].text in ("^", "_"):
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
            return _flat("mul", *(Sym(ch) for ch in word))
        following = self.peek()
        if following.kind in ("num", "fn", "sym") or (following.kind == "op" and following.text in STARTERS and following.text not in ("(", "[")):
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
        if exponent is not None and _is_minus_one(exponent) and name in ("sin", "cos", "tan", "cot", "sec", "csc"):
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
            left = _flat("mul", left, self.powered())
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
        if token.kind == "num" and token.text.isdigit() and len(token.text) > 1 and self.tokens[self.i - 1].text == "frac":
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

    def group(self, op: str) -> Expr:
        raise NotImplementedError

    def large(self, op: str) -> Expr:
        raise NotImplementedError


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


def _is_minus_one(expr: Expr) -> bool:
    return isinstance(expr, Op) and expr.head == "neg" and isinstance(expr.args[0], Num) and expr.args[0].value == 1


def explodes(word: str) -> bool:
    """Whether a run of letters is a product of variables rather than a word."""
    if len(word) > 3 or not word.isascii() or word in GREEK:
        return False
    return word.isupper() or word.lower() not in SHORT_WORDS


def _flat(head: str, *parts: Expr) -> Expr:
    out: list[Expr] = []
    first = parts[0]
    if isinstance(first, Op) and first.head == head:
        return Op(head, first.args + parts[1:])
    out.extend(parts)
    return Op(head, tuple(out))


def _negate(expr: Expr) -> Expr:
    return Op("neg", (expr,))


def _numeric(expr: Expr) -> bool:
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


def _in_base(digits: str, base: Num) -> Expr:
    value = base.value
    if not isinstance(value, int) or not 2 <= value <= 36 or len(digits) > 400:
        raise Unparsable("a base out of range")
    try:
        return Op(f"base:{value}:{digits}", (Num(int(digits, value)),))
    except ValueError:
        raise Unparsable(f"{digits} isn't a number in base {value}") from None


def _brackets(tokens: list[Token]) -> dict[int, int]:
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


CLOSERS = frozenset(c for closes in CLOSE.values() for c in closes)
HARD_UNITS = frozenset(UNITS) - SOFT
