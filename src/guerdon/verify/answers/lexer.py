"""Tokens of LaTeX and plain mathematical text; one linear pass with a cap on length and count."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from guerdon.verify._braces import matching_brace

from .nodes import MAX_CHARS, MAX_DIGITS, MAX_TOKENS, Expr, Num, Rational, Unparsable
from .symbols import ALIASES, CURRENCY, FUNCTIONS, GREEK, OPERATORS, SKIPPED, STYLES, TEXTS
from .units import UNITS

__all__ = ["Token", "tokenise"]


class Token(NamedTuple):
    """``kind`` is num, sym, fn, word, text, op or end; ``space`` says whether white space came before."""

    kind: str
    text: str
    space: bool = False
    value: Expr | None = None


_GROUP = r"(?:\{,\}|,\\!|\\!,|\\,|,\s?\\!\s?|\\ |\{\\,\})"
_GROUPED = re.compile(rf"\d{{1,3}}(?:{_GROUP}\s?\d{{3}})+(?!\d)(?:\.\d+)?")
_COMMAS = re.compile(r"\d{1,3}(?:,\d{3})+(?![\d,]|\.\d*,)(?:\.\d+)?")
_SPACED = re.compile(r"\d{1,3}(?: \d{3})+(?![\d.])")
_REPEAT = re.compile(r"(\d*)\.(\d*)(?:\\overline\s*\{(\d+)\}|\\dot\s*\{(\d)\}|\((\d+)\)|\\bar\s*\{?(\d+)\}?)")
_SCI = re.compile(r"(\d+(?:\.\d*)?|\.\d+)[eE]([+-]?\d{1,6})(?![\w.])")
_NUMBER = re.compile(r"\d+\.\d+|\.\d+|\d+\.(?![\d.])|\d+")
_CONTINUES = frozenset(",{\\ eE(.!")  # what may make a longer numeral of it
_DECIMAL_COMMA = re.compile(r"(\d+),(\d+)(?![\d,.])")
_WORD = re.compile(r"[A-Za-zÀ-ɏͰ-Ͽ一-鿿Ѐ-ӿ]+")
_COMMAND = re.compile(r"\\([A-Za-z]+)\*?|\\(.)", re.S)
_SYMBOL = re.compile(r"<=|>=|!=|==|<>|:=|=>|->|\*\*|\|\||~=|\.\.\.|[-+*/^_!'%,;:=<>|()\[\]{}&~°]")
_SYMBOL_NAMES = {"**": "^", "<>": "!=", ":=": "=", "=>": "implies", "->": "to", "...": "dots", "°": "circ", "==": "="}
_CONNECTIVE = re.compile(r"(or|and)(?=[A-Z(\d])")
_JOINED = re.compile(r"((?:^|(?<=[\s,]))(?:and|or)(?=\s|$))")
_MEASURED = re.compile(r"(-?\d[\d.,/]*)\s+([A-Za-z][A-Za-z ]*)")
_BRACED = re.compile(r"\s*\{")


def decimal(text: str, exponent: int = 0) -> Num:
    """The exact value of a plain decimal numeral, with its written places and significant figures."""
    if len(text) > MAX_DIGITS:
        raise Unparsable(f"a number of {len(text)} digits")
    if abs(exponent) > MAX_DIGITS:
        raise Unparsable(f"an exponent of {exponent}")
    whole, _, part = text.partition(".")
    digits = (whole + part).lstrip("0")
    if not part and not exponent:
        return Num(int(whole or "0"), -1 if "." not in text else 0, len(digits))
    scale = exponent - len(part)
    value: Rational = int(whole + part or "0")
    value = value * 10**scale if scale >= 0 else Fraction(value, 10**-scale)
    return Num(value, max(0, -scale), len(digits))


def _repeating(match: re.Match[str]) -> Num:
    whole, fixed = match[1] or "0", match[2] or ""
    cycle = match[3] or match[4] or match[5] or match[6]
    if len(whole) + len(fixed) + len(cycle) > 200:
        raise Unparsable("a repeating decimal of more than 200 digits")
    bottom = (10 ** len(cycle) - 1) * 10 ** len(fixed)
    top = int(whole + fixed + cycle) - int(whole + fixed)
    return Num(Fraction(top, bottom))


SCAN_BUDGET = 8 * MAX_CHARS


class Lexer:
    """Holds the position, the bracket depth and the tokens so far."""

    def __init__(self, text: str, joined: bool) -> None:
        self.text, self.at, self.depth, self.space = text, 0, 0, False
        self.joined, self.ambiguous, self.budget = joined, False, SCAN_BUDGET
        self.tokens: list[Token] = []

    def add(self, kind: str, text: str, value: Expr | None = None) -> None:
        if len(self.tokens) > MAX_TOKENS:
            raise Unparsable(f"more than {MAX_TOKENS} tokens")
        self.tokens.append(Token(kind, text, self.space, value))
        self.space = False

    def run(self) -> list[Token]:
        while self.at < len(self.text):
            text = self.text  # a spliced group replaces it
            ch = text[self.at]
            if ch.isspace():
                self.at, self.space = self.at + 1, True
            elif (ch.isdecimal() and ch.isascii()) or (ch == "." and text[self.at + 1 : self.at + 2].isdecimal()):
                self.number()
            elif ch == ".":
                self.dot()
            elif ch == "\\":
                self.command()
            else:
                self.other(ch)
        self.tokens.append(Token("end", ""))
        return self.tokens

    def dot(self) -> None:
        if self.text.startswith("...", self.at):
            self.add("op", "dots")
            self.at += 3
        else:
            if self.text[self.at + 1 : self.at + 2].isalnum():
                raise Unparsable("a full stop inside the answer")
            self.at += 1  # \left. and the end of a sentence

    def number(self) -> None:
        text, at = self.text, self.at
        plain = _NUMBER.match(text, at)
        assert plain is not None
        if text[plain.end() : plain.end() + 1] not in _CONTINUES:
            self.at = plain.end()
            self.add("num", plain[0], decimal(plain[0]))
            return
        match = _REPEAT.match(text, at)
        if match:
            value: Expr = _repeating(match)
        elif (match := _GROUPED.match(text, at)) is not None:
            value = decimal(re.sub(r"[^\d.]", "", match[0]))
        elif self.depth == 0 and (match := _COMMAS.match(text, at)) is not None and self.thousands(match[0]):
            value = decimal(match[0].replace(",", ""))
        elif self.depth == 0 and (match := _SPACED.match(text, at)) is not None:
            value = decimal(match[0].replace(" ", ""))
        elif (match := _SCI.match(text, at)) is not None:
            value = decimal(match[1], int(match[2]))
        elif self.depth == 0 and (match := _DECIMAL_COMMA.match(text, at)) is not None and self.comma_decimal(match):
            value = decimal(f"{match[1]}.{match[2]}")
        else:
            match = plain
            value = decimal(match[0])
        self.at = match.end()
        self.add("num", match[0], value)

    def thousands(self, text: str) -> bool:
        """Whether commas group digits; 100,200,300 may also be a list, so both readings are tried."""
        if text[0] == "0" or (self.at and self.text[self.at - 1] == ","):
            return False
        if text.index(",") == 3 and text.count(",") > 1:
            self.ambiguous = True
            return self.joined
        return True

    def comma_decimal(self, match: re.Match[str]) -> bool:
        """Whether ``1,22`` is a decimal; it may also be a list, so both readings are tried."""
        if match.start() and self.text[match.start() - 1] == ",":
            return False
        if match[1] == "0":
            return True
        self.ambiguous = True
        return self.joined

    def command(self) -> None:
        match = _COMMAND.match(self.text, self.at)
        if match is None:
            self.at += 1  # a lone backslash at the end
            return
        name, self.at = match[1] or match[2], match.end()
        if name in TEXTS:
            self.group_text()
        elif name in OPERATORS:
            self.operator(OPERATORS[name])
        elif name in SKIPPED:
            self.space = True
        elif name == "\\":
            self.linebreak()
        elif name in STYLES:
            self.style(name)
        else:
            self.name(name)

    def operator(self, op: str) -> None:
        if op in ("\\{", "lfloor", "lceil", "langle"):
            self.depth += 1
        elif op in ("\\}", "rfloor", "rceil", "rangle"):
            self.depth -= 1
        if op:
            self.add("op", op)

    def linebreak(self) -> None:
        skip = re.compile(r"\s*\[[^\]\[]{0,12}(?:pt|em|ex|cm|mm)\]").match(self.text, self.at)
        self.at = skip.end() if skip else self.at
        self.add("op", "\\\\")

    def name(self, name: str) -> None:
        if name in CURRENCY:
            self.add("word", CURRENCY[name])
        elif name in GREEK:
            self.add("sym", name)
        elif name == "pi":
            self.add("sym", "pi")
        elif name in ("infty", "inf"):
            self.add("sym", "inf")
        elif name in ("emptyset", "varnothing", "oslash"):
            self.add("sym", "emptyset")
        elif name in ("imath", "jmath"):
            self.add("sym", name[0])
        elif name in FUNCTIONS or name in ALIASES:
            self.add("fn", ALIASES.get(name, name))
        else:
            self.unknown(name)

    def unknown(self, name: str) -> None:
        """A known command that runs into the next letters (``\\quadx``), or a name this grammar doesn't know."""
        for cut in range(len(name) - 1, 1, -1):
            head = name[:cut]
            if (head in OPERATORS and cut > 2) or head in ("quad", "qquad", "pi") or (head in GREEK and cut > 3):
                self.at -= len(name) - cut
                if head in OPERATORS:
                    self.operator(OPERATORS[head])
                else:
                    self.add("sym", head)
                return
        self.add("sym", "\\" + name)

    def group(self) -> str:
        """The text of the brace group at this position (or the next character), which is consumed."""
        match = _BRACED.match(self.text, self.at)
        if match is None:
            word = re.compile(r"\s*(\S?)").match(self.text, self.at)
            assert word is not None
            self.at = word.end()
            return word[1]
        start = match.end()
        end = matching_brace(self.text, start - 1)
        end = len(self.text) if end < 0 else end
        self.at = end + 1
        self.spend(end - start)
        return self.text[start:end]

    def spend(self, length: int) -> None:
        """Bound the text read twice, so that nested groups stay linear."""
        self.budget -= length
        if self.budget < 0:
            raise Unparsable("groups nested too deep")

    def group_text(self) -> None:
        content = self.group().strip()
        inner = content.replace("\\ ", " ").replace("~", " ").replace("\\,", " ").strip()
        if not inner:
            self.space = True
        elif "$" in inner or "\\" in inner or re.fullmatch(r"[-+]?[\d.,/\s^()=]*\d[\d.,/\s^()=]*", inner):
            self.splice(inner.replace("$", " "))
        elif (measured := _MEASURED.fullmatch(inner)) is not None:
            self.splice(rf"{measured[1]} \text{{{measured[2]}}} ")
        elif len(inner) == 1 and inner.isalpha():
            self.add("text", inner)
        else:
            self.words(inner)

    def words(self, inner: str) -> None:
        """Text content: connectives become operators, the rest stays one text token."""
        low = inner.casefold().strip(" ,;.")
        if low in ("all real numbers", "all reals", "all real number", "real numbers"):
            self.add("sym", "set:R")
            return
        pieces = _JOINED.split(inner) if len(inner) <= 60 else [inner]
        if len(pieces) > 1 and all(len(piece.split()) <= 2 for piece in pieces):
            for k, piece in enumerate(pieces):
                if k % 2:
                    self.add("op", piece.strip().lower())
                elif piece.strip(" ,"):
                    self.add("text", piece.strip(" ,"))
            return
        if low in ("and", "or", ",", "y", "et", "和", "或", "&"):
            self.add("op", "or" if low in ("or", "或") else "and")
        elif low in ("", "if", "for", "when", "where"):
            self.add("text", low) if low else None
        else:
            self.add("text", inner)

    def splice(self, inner: str) -> None:
        """Tokens of a group's content in place of the group."""
        self.spend(len(self.text) - self.at)
        self.text, self.at = inner + " " + self.text[self.at :], 0

    def style(self, name: str) -> None:
        if name in ("color", "textcolor", "phantom", "tag"):
            self.group()
            return
        content = self.group().strip().strip("~").strip()
        plain = content.replace("\\ ", " ").replace("\\,", " ").replace("~", " ").strip()
        if name == "mathbb" and plain:
            self.add("sym", "set:" + plain)
        elif len(plain) == 1 and plain.isalpha():
            if name == "mathrm" and plain not in "eidxyzABCDEFXYZ" and self.tokens and plain in UNITS:
                self.add("text", plain)
            else:
                self.add("sym", plain)
        elif plain in ("min", "sec") and self.after_value():
            self.add("text", plain)
        elif plain in FUNCTIONS or plain in ALIASES:
            self.add("fn", ALIASES.get(plain, plain))
        elif (
            name in ("mathrm", "operatorname", "mathit", "mathsf", "emph", "mathbf")
            and plain.replace(" ", "").isalpha()
        ):
            if len(plain) == 2 and plain.isupper():
                self.splice(content)
            else:
                self.words(plain)
        else:
            self.splice(content)

    def after_value(self) -> bool:
        """Whether the last token can end a value (so that min is minutes, not the minimum)."""
        last = self.tokens[-1] if self.tokens else None
        return last is not None and (last.kind in ("num", "text", "word") or last.text in ("}", ")", "/"))

    def other(self, ch: str) -> None:
        text = self.text
        word = _WORD.match(text, self.at)
        if word:
            self.word(word[0])
            return
        if ch in CURRENCY:
            self.add("word", CURRENCY[ch])
            self.at += 1
            return
        if ch == "°" and text[self.at + 1 : self.at + 2] in ("C", "F"):
            self.add("word", text[self.at : self.at + 2])
            self.at += 2
            return
        match = _SYMBOL.match(text, self.at)
        if match is None:
            if ch in '"`?#':
                self.at += 1
                return
            raise Unparsable(f"the character {ch!r}")
        if match[0] in "([":
            self.depth += 1
        elif match[0] in ")]":
            self.depth -= 1
        if match[0] == "~":
            self.space = True
        else:
            self.add("op", _SYMBOL_NAMES.get(match[0], match[0]))
        self.at = match.end()

    def word(self, word: str) -> None:
        connective = _CONNECTIVE.match(self.text, self.at)
        if connective and word not in UNITS:
            word = connective[1]
        self.at += len(word)
        low = word.lower()
        if low in ("and", "or"):
            self.add("op", low)
        elif word in ("pi", "Pi", "PI"):
            self.add("sym", "pi")
        elif low in ("infinity", "infty", "oo", "inf"):
            self.add("sym", "inf")
        elif word in FUNCTIONS or word in ALIASES:
            self.add("fn", ALIASES.get(word, word))
        elif low in ("percent", "pct", "percentage", "percents"):
            self.add("op", "%")
        elif low in ("degrees", "degree", "deg"):
            self.add("word", "degree")
        elif low == "mod":
            self.add("op", "mod")
        elif low in ("union", "cup") and self.depth <= 0 and len(word) > 2:
            self.add("op", "cup")
        elif len(word) == 1 or (
            word in GREEK and not self.text[self.at - len(word) - 1 : self.at - len(word)].isalpha()
        ):
            self.add("sym", word)
        else:
            self.runtogether(word)

    def runtogether(self, word: str) -> None:
        """Words of letters such as ``sinx``; anything else is a word token, which the parser reads by context."""
        for name in (
            "arcsin",
            "arccos",
            "arctan",
            "sinh",
            "cosh",
            "tanh",
            "sqrt",
            "sin",
            "cos",
            "tan",
            "log",
            "exp",
            "ln",
            "pi",
        ):
            if (
                word.startswith(name)
                and 0 < len(word) - len(name) <= 2
                and word not in UNITS
                and word[len(name) :] not in ("e", "g", "gs")
            ):
                self.at -= len(word) - len(name)
                self.add("sym" if name == "pi" else "fn", name)
                return
        self.add("word", word)


def tokenise(text: str, joined: bool = False) -> tuple[list[Token], bool]:
    """Tokens of ``text``, ended by an ``end`` token, and whether a comma between digits could be read in two ways.

    ``joined`` chooses the reading as one number. ``Unparsable`` past a guard or for a foreign character.
    """
    if len(text) > MAX_CHARS:
        raise Unparsable(f"{len(text)} characters, more than {MAX_CHARS}")
    lexer = Lexer(text, joined)
    return lexer.run(), lexer.ambiguous
