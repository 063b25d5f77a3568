"""From tokens to whole answers: groups, sets, intervals, matrices, relations, units, lists and records."""

from __future__ import annotations

from functools import lru_cache

from .assemble import assembled, relation
from .building import numeric
from .lexer import Token, tokenise
from .nodes import MAX_LEVELS, Expr, Op, Sym, Unparsable, depth, has_head
from .operands import OperandParser
from .symbols import words_of
from .units import parse_unit

__all__ = ["parse"]

RELATIONS = frozenset(
    {"=", "<", ">", "<=", ">=", "!=", "~=", "==", "in", "notin", "to", "implies", ":", "parallel", "perp", "subset"}
)
SEPARATORS = {",": 2, "and": 2, ",,": 2, ";": 1, "or": 0, "\\\\": 1}
MATRICES = frozenset({"matrix", "pmatrix", "bmatrix", "Bmatrix", "smallmatrix", "array", "vmatrix", "Vmatrix"})
ROWS = frozenset(
    {"aligned", "align", "align*", "gathered", "split", "cases", "gather", "gather*", "equation", "equation*", "dcases"}
)
MAX_ITEMS = 400


class AnswerParser(OperandParser):
    """Adds the constructs that contain whole statements."""

    _opening: dict[int, int] | None = None

    # -- groups -------------------------------------------------------------------------------------------------

    def group(self, op: str) -> Expr:
        start, peeled = self.i - 1, 0
        while (
            op in ("(", "{") and self.peek().text == op and self.match.get(self.i, -9) == self.match.get(start, -9) - 1
        ):
            start, self.i, peeled = self.i, self.i + 1, peeled + 1  # ((((5)))) in a loop: its depth costs nothing
        if op == "{":
            result = self.braced()
        elif op in ("lfloor", "lceil"):
            result = Op("fn:" + op[1:], (self.expr(),))
            self.expect("r" + op[1:])
        elif op == "\\{":
            result = self.set_braces()
        else:
            result = self.brackets(op)
        self.i += peeled
        return result

    @property
    def opening(self) -> dict[int, int]:
        """Index of the opening bracket of each closing one."""
        if self._opening is None:
            self._opening = {c: o for o, c in self.match.items()}
        return self._opening

    def braced(self) -> Expr:
        """A LaTeX group: an expression, or a bare ``{1,2}`` that stands for a set."""
        if self.take("}"):
            return Op("text:", ())
        items = self.items()
        self.expect("}")
        return items[0] if len(items) == 1 else Op("list", tuple(items))

    def items(self) -> list[Expr]:
        items = [self.statement()]
        while self.is_op(",", ";", ",,", "and", "or"):
            while self.is_op(",", ";", ",,", "and", "or"):
                self.i += 1
            if self.is_op(")", "]", "}", "\\}"):
                break
            items.append(self.statement())
            if len(items) > MAX_ITEMS * 20:
                raise Unparsable("a list of thousands of items")
        return items

    def brackets(self, op: str) -> Expr:
        if self.take(")", "]"):
            return Op("tuple:" + op + self.tokens[self.i - 1].text, ())
        items = self.items()
        close = self.expect("rangle") if op == "langle" else self.expect(")", "]")
        if op == "langle":
            return Op("tuple:()", tuple(items))
        if len(items) == 1:
            return items[0] if (op + close) in ("()", "[]") else Op("tuple:" + op + close, tuple(items))
        if len(items) == 2 and op + close in ("(]", "[)"):
            return Op("interval:" + op + close, tuple(items))
        return Op("tuple:" + op + close, tuple(items))

    def set_braces(self) -> Expr:
        if self.take("\\}"):
            return Sym("emptyset")
        self.bars += 1
        first = self.statement(builder=True)
        self.bars -= 1
        if self.take("|", ":"):
            conditions = self.items()
            self.expect("\\}")
            return Op("builder", (first, *conditions))
        items = [first]
        if self.is_op(",", ";", ",,", "and", "or"):
            self.i += 1
            items += self.items()
        self.expect("\\}")
        return Op("set", tuple(items))

    # -- environments and large operators -----------------------------------------------------------------------

    def large(self, op: str) -> Expr:
        if op == "begin":
            return self.environment()
        if op in ("sum", "prod"):
            return self.summation(op)
        if op == "int":
            return self.integral()
        if op == "lim":
            return self.limit()
        if op == "overline":
            inner = self.primary(script=True)
            return Op("over", (inner,)) if not isinstance(inner, Sym) else Sym("bar_" + inner.name)
        if op in ("forall", "exists"):
            return Sym(op)
        raise Unparsable(f"{op} out of place")

    def environment(self) -> Expr:
        name = self.environment_name()
        if name == "array" and self.is_op("{"):
            self.i = self.match.get(self.i, self.i) + 1
        if name not in MATRICES and name not in ROWS:
            raise Unparsable(f"the environment {name}")
        rows: list[tuple[Expr, ...]] = []
        row: list[Expr] = []
        while not self.is_op("end"):
            if self.take("&"):
                continue
            if self.take("\\\\"):
                if row:
                    rows.append(tuple(row))
                row = []
                continue
            row.append(self.cell())
            if len(rows) * (len(row) + 1) > MAX_ITEMS * 4:
                raise Unparsable("a matrix of thousands of entries")
            self.take(",")
        if row:
            rows.append(tuple(row))
        self.i += 1
        self.environment_name()
        return self.shaped(name, rows)

    def shaped(self, name: str, rows: list[tuple[Expr, ...]]) -> Expr:
        if not rows:
            raise Unparsable("an empty environment")
        if name in ROWS:
            head = "cases" if name in ("cases", "dcases") else "list"
            return Op(head, tuple(r[0] if len(r) == 1 else Op("tuple:()", r) for r in rows))
        matrix = Op("matrix", tuple(Op("row", r) for r in rows))
        return Op("fn:det", (matrix,)) if name in ("vmatrix", "Vmatrix") else matrix

    def cell(self) -> Expr:
        while self.peek().kind in ("text", "word") and self.peek().text.strip(" ,").lower() in (
            "if",
            "for",
            "when",
            "where",
        ):
            self.i += 1
        return self.statement()

    def environment_name(self) -> str:
        close = self.match.get(self.i)
        if not self.is_op("{") or close is None:
            raise Unparsable("an environment without a name")
        name = "".join(t.text for t in self.tokens[self.i + 1 : close])
        self.i = close + 1
        return name

    def bounds(self) -> tuple[Expr | None, Expr | None]:
        low: Expr | None = None
        high: Expr | None = None
        for _ in range(2):
            if self.take("_"):
                low = self.primary(script=True)
            elif self.take("^"):
                high = self.exponent()
        return low, high

    def summation(self, op: str) -> Expr:
        low, high = self.bounds()
        body = self.expr(10)
        if isinstance(low, Op) and low.head == "rel:=" and isinstance(low.args[0], Sym) and high is not None:
            return Op(op, (low.args[0], low.args[1], high, body))
        return Op("formal:" + op, tuple(x for x in (low, high, body) if x is not None))

    def integral(self) -> Expr:
        low, high = self.bounds()
        self.integrals += 1
        body = self.expr()
        self.integrals -= 1
        token = self.peek()
        if token.kind == "word" and len(token.text) == 2 and token.text[0] == "d":
            variable = Sym(token.text[1])
            self.i += 1
        elif token.kind == "sym" and token.text == "d" and self.tokens[self.i + 1].kind == "sym":
            variable = Sym(self.tokens[self.i + 1].text)
            self.i += 2
        else:
            return Op("formal:int", tuple(x for x in (low, high, body) if x is not None))
        if low is None or high is None:
            return Op("formal:int", (body, variable))
        return Op("int", (variable, low, high, body))

    def limit(self) -> Expr:
        low, _ = self.bounds()
        body = self.expr(10)
        if isinstance(low, Op) and low.head == "rel:to" and isinstance(low.args[0], Sym):
            return Op("lim", (low.args[0], low.args[1], body))
        raise Unparsable("a limit without its variable")

    # -- statements ---------------------------------------------------------------------------------------------

    def statement(self, builder: bool = False) -> Expr:
        """A relation chain, a ratio, or an expression with its unit or note."""
        while self.is_op("~=", "="):
            self.i += 1
        sides = [self.valued()]
        operators: list[str] = []
        while self.peek().kind == "op" and self.peek().text in RELATIONS:
            if builder and self.is_op(":"):
                break
            operators.append(self.peek().text)
            self.i += 1
            if self.is_op("="):  # ">=" written as "> ="
                self.i += 1
            if self.peek().kind == "end" and operators == [":"]:
                operators.pop()
                break
            sides.append(self.valued())
            if len(sides) > 200:
                raise Unparsable("a chain of hundreds of relations")
        return relation(sides, operators)

    def valued(self) -> Expr:
        value = self.expr()
        return self.unit_after(value)

    def unit_after(self, value: Expr) -> Expr:
        """``5 cm``, ``125\\text{ miles}``, ``12 (pages)``: the words that follow a plain value."""
        start = self.i
        words: list[str] = []
        if not numeric(value) and not has_head(value, "quantity"):
            if self.peek().kind in ("text", "word") and not isinstance(value, Op):
                raise Unparsable("words after a name")
            if self.peek().kind != "text":
                return value
        while True:
            token = self.peek()
            if token.kind in ("word", "text", "sym", "num") or (
                token.kind == "op" and token.text in ("(", ")", "^", "{", "}", "/", "*", "'", "-", "[", "]", "_")
            ):
                if token.kind == "op" and token.text in (")", "]", "}") and self.opening.get(self.i, -1) < start:
                    break
                words.append(token.text)
                self.i += 1
            else:
                break
            if len(words) > 40:
                raise Unparsable("a sentence after a value")
        if not words or not any(t.kind in ("word", "text") for t in self.tokens[start : self.i]):
            self.i = start
            return value
        text = " ".join(words).replace("( ", "").replace(" )", "").strip(" {}")
        if parse_unit(_tidy_unit(text)) is None:
            _check_note(words)
        if isinstance(value, Op) and value.head == "quantity" and text in ("C", "F"):
            return Op("quantity", (value.args[0], Sym("°" + text)))
        return Op("quantity", (value, Sym(_tidy_unit(text))))


_LOGIC = frozenset(
    words_of("if else not when for where unless except but minus plus times than or then is isn't no maybe either")
)


def _check_note(words: list[str]) -> None:
    """A note behind a value (12 pages, 5 red roses) is a few words without numbers or logic."""
    plain = [w.casefold() for phrase in words for w in phrase.split()]
    if len(plain) > 8 or any(w in _LOGIC or any(ch.isdigit() for ch in w) for w in plain):
        raise Unparsable("a clause after a value")


def _tidy_unit(text: str) -> str:
    return " ".join(text.replace("{", "").replace("}", "").split())


class _Top(AnswerParser):
    def answer(self) -> Expr:
        """Statements joined by commas, semicolons, and, or."""
        parts: list[tuple[int, Expr]] = []
        level = 2
        while self.is_op(",", ";", ",,", "\\\\", "and"):
            self.i += 1
        while True:
            parts.append((level, self.statement()))
            if len(parts) > MAX_ITEMS * 20:
                raise Unparsable("a list of thousands of items")
            level = 9
            while self.peek().kind == "op" and self.peek().text in SEPARATORS:
                level = min(level, SEPARATORS[self.peek().text])
                self.i += 1
            if self.peek().kind == "end":
                break
            if level == 9:
                raise Unparsable(f"unexpected {self.peek().text!r}")
        return assembled(parts)


def parse(text: str) -> Expr:
    """The tree of a normalised answer text; ``Unparsable`` (saying why) if it isn't an answer in this grammar.

    Example:
        >>> parse("1,2") == Op("either", (parse("1.2"), Op("list", (parse("1"), parse("2")))))
        True
    """
    return _parse_cached(text) if len(text) <= 600 else _parse(text)


@lru_cache(maxsize=4096)
def _parse_cached(text: str) -> Expr:
    return _parse(text)


def _parse(text: str) -> Expr:
    tokens, ambiguous = tokenise(text)
    plain = _finish(tokens)
    if not ambiguous:
        return plain
    try:
        joined = _finish(tokenise(text, joined=True)[0])
    except Unparsable:
        return plain
    return Op("either", (joined, plain))


def _finish(tokens: list[Token]) -> Expr:
    try:
        expr = _Top(tokens).answer()
    except IndexError:
        raise Unparsable("it ends in the middle") from None
    except RecursionError:  # the caller's own stack was nearly full
        raise Unparsable("nested too deep for the stack") from None
    if depth(expr) > MAX_LEVELS:
        raise Unparsable(f"a tree of more than {MAX_LEVELS} levels")
    return expr
