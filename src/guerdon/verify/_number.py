"""Numeric answers: find the number that a text gives as its answer, and compare it exactly with the reference."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import signal
from guerdon.verify._reading import NO_REFERENCE, ParameterError, Part, last_boxed, references, shown, written

Extract = Literal["auto", "last", "####", "boxed"]
Percent = Literal["strip", "scale"]
Exact = int | Fraction

_WINDOW = 256
_MAX_EXPONENT = 400
_TO_LAST_DIGIT = re.compile(r".*[0-9]", re.S)
_SEPARATOR = r"(?:,|\{,\}|\\,|[\u00a0\u2009\u202f])"
_NUMBER = re.compile(
    rf"""
    (?:(?<![0-9A-Za-z)\]}}%.])(?P<sign>[-+\u2212]))?
    (?:\\?[$€£¥]\s?(?P<inner>[-\u2212])?)?
    (?:
      (?:(?P<whole>[0-9]+)\s?)?\\[dt]?frac\s*(?:\{{\s*(?P<top>-?[0-9]+)\s*\}}|(?P<top1>[0-9]))
        \s*(?:\{{\s*(?P<bottom>[0-9]+)\s*\}}|(?P<bottom1>[0-9]))
    | (?P<mixed>[0-9]+)[ ](?P<over>[0-9]+)/(?P<under>[0-9]+)(?![0-9/])
    | (?P<body>(?:[0-9]{{1,3}}(?:{_SEPARATOR}[0-9]{{3}})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|(?<![0-9])\.[0-9]+)
      (?:\s?/\s?(?P<slash>[0-9]+)(?![0-9/]|\.[0-9])
        | [eE](?P<exponent>[-+]?[0-9]{{1,4}})(?![0-9A-Za-z])
        | \s*(?:\\times|\\cdot|[×*·])\s*10\s*(?:\^|\*\*)\s*\{{?\s*(?P<power>[-+]?[0-9]{{1,4}})\s*\}}?
      )?
    )
    (?P<percent>\s?\\?%)?
    """,
    re.X,
)
_RUN = re.compile(r"[0-9.,/ \t\\{}^*×·+\-\u2212$€£¥%\u00a0\u2009\u202fdtfracimsoeE]*")
"""Every character that can stand inside a number."""
_AFTER_HASHES = re.compile(r"####[\s*:(]*")
_HEADING = re.compile(r"[.):][ \t]*\S")
_SWAP = str.maketrans(",.", ".,")


class Found(NamedTuple):
    """A number in a text: as written, its exact value, and the rule that found it."""

    text: str
    value: Exact
    rule: str


@signal(key="verify.number", version=1, range=(0, 1))
def number(
    rollout: Rollout,
    *,
    extract: Extract = "auto",
    abs_tol: float | str = 0,
    rel_tol: float | str = 0,
    percent: Percent = "strip",
    decimal: Literal[".", ","] = ".",
    reference: str = "answer",
    part: Part = "final",
) -> Score:
    r"""1 if the number given as the answer equals the reference, else 0; also 0 if no number is given.

    ``extract``: ``"last"`` number of the text, the first after the last ``"####"``, the only one in the last
    ``"boxed"``, or ``"auto"``: boxed or ``####``, whichever comes later, and without either the last number.
    Thousands separators, currency signs, fractions (``1/2``, ``\frac{1}{2}``, ``1 1/2``), powers of ten and, by
    ``percent``, the percent sign (``"strip"``: 50% is 50; ``"scale"``: 50% is 0.5) are understood. Comparison is exact
    (rational), or within ``max(abs_tol, rel_tol * |reference|)``. A list of references accepts any of them.

    Unknown: no reference answer, or one without a number.

    >>> number(Rollout("She has 1,250 left, so #### $1,250.00", answer="1250"))
    Score(1.0, extracted='$1,250.00', rule='####', reference='1250')
    """
    golds = references(rollout, reference)
    if not golds:
        return Score.unknown(NO_REFERENCE)
    known = [gold for g in golds if (gold := _of_reference(g, percent, decimal)) is not None]
    if not known:
        return Score.unknown("no number in the reference answer", reference=shown(golds[0]))
    found = find_number(written(rollout, part), extract, percent, decimal)
    if found is None:
        return Score(0.0, extracted=None, rule="no number found", reference=shown(golds[0]))
    exact = abs_tol == 0 and rel_tol == 0
    for gold in known:
        if found.value == gold.value or (not exact and _close(found.value, gold.value, abs_tol, rel_tol)):
            return Score(1.0, extracted=found.text, rule=found.rule, reference=gold.text)
    return Score(0.0, extracted=found.text, rule=found.rule, reference=known[0].text)


def find_number(
    text: str, extract: Extract = "auto", percent: Percent = "strip", decimal: Literal[".", ","] = "."
) -> Found | None:
    """The number that ``text`` gives as its answer, or ``None``; see `number` for the rules."""
    if extract == "last":
        return _last(text, percent, decimal)
    if extract == "####":
        return _after_hashes(text, text.rfind("####"), percent, decimal)
    if extract == "boxed":
        return _boxed(text, percent, decimal)
    if extract != "auto":
        raise ParameterError(f'extract={extract!r}: choose "auto", "last", "####" or "boxed"')
    hashes, box = text.rfind("####"), text.rfind("\\boxed")
    if hashes > box:
        found = _after_hashes(text, hashes, percent, decimal)
        if found is not None:
            return found
    if box >= 0 and last_boxed(text) is not None:
        return _boxed(text, percent, decimal)
    return _last(text, percent, decimal)


def _of_reference(text: str, percent: Percent, decimal: Literal[".", ","]) -> Found | None:
    if len(text) > 200:
        return find_number(text, "auto", percent, decimal)
    return _short_reference(text, percent, decimal)


@lru_cache(maxsize=8192)
def _short_reference(text: str, percent: Percent, decimal: Literal[".", ","]) -> Found | None:
    return find_number(text, "auto", percent, decimal)


def _last(text: str, percent: Percent, decimal: str) -> Found | None:
    head = _TO_LAST_DIGIT.match(text)
    if head is None:
        return None
    end = head.end()
    plain = _plain_integer(text, end)
    if plain:
        return Found(plain, int(plain), "last number")
    start = max(0, end - _WINDOW)
    run = _RUN.match(text[start:end][::-1])
    window = text[start : end + 8]
    if decimal == ",":
        window = window.translate(_SWAP)
    match = None
    for match in _NUMBER.finditer(window, end - start - (run.end() if run else 0)):  # noqa: B007  # the last one
        pass
    if match is None or (start and not match.start()):  # longer than the window
        return None
    value = _value(match, percent)
    if value is None:
        return None
    return Found(text[start + match.start() : start + match.end()].strip(), value, "last number")


def _plain_integer(text: str, end: int) -> str:
    """The digits that end at ``end``, if nothing around them could be part of a longer number; the usual case."""
    start = end - 1
    while start and end - start < 19 and text[start - 1] in "0123456789":
        start -= 1
    before = text[start - 2 : start] if start > 1 else " " + text[:start]
    after = text[end : end + 2]
    if before[-1] not in " \n=:" or before[0] in "/^{*×·0123456789-" or after[:1] in ("%", "}", "\\"):
        return ""
    return "" if after[:1] == " " and after[1:] in ("%", "}", "\\") else text[start:end]


def _after_hashes(text: str, start: int, percent: Percent, decimal: str) -> Found | None:
    """The number right after ``####``; a heading such as ``#### 2. Compute`` is no answer."""
    gap = _AFTER_HASHES.match(text, start) if start >= 0 else None
    if gap is None:
        return None
    window = text[gap.end() : gap.end() + _WINDOW]
    match = _NUMBER.match(window.translate(_SWAP) if decimal == "," else window)
    if match is None or match.end() == _WINDOW or _HEADING.match(window, match.end()):
        return None
    value = _value(match, percent)
    return None if value is None else Found(match.group().strip(), value, "####")


def _boxed(text: str, percent: Percent, decimal: str) -> Found | None:
    """The number in the last box, if it holds only one."""
    content = last_boxed(text)
    if content is None or len(content) > _WINDOW:
        return None
    found = list(_NUMBER.finditer(content.translate(_SWAP) if decimal == "," else content))
    values = {_value(match, percent) for match in found}
    value = values.pop() if len(values) == 1 else None
    return None if value is None else Found(shown(content.strip()), value, "boxed")


def _value(match: re.Match[str], percent: Percent) -> Exact | None:
    """The exact value of a matched number; ``None`` for a zero denominator or an absurd exponent."""
    body = match["body"]
    if body is not None and body.isdecimal() and match.lastgroup == "body":
        value: Exact = int(body)
    else:
        general = _general(match)
        if general is None:
            return None
        value = general
        if match["percent"] and percent == "scale":
            value = Fraction(value) / 100
    return -value if (match["sign"] or "+") + (match["inner"] or "") in ("-", "−", "+-", "+−") else value


def _general(match: re.Match[str]) -> Exact | None:
    if match["body"] is None:
        if match["mixed"] is not None:
            return _fraction(match["mixed"], match["over"], match["under"])
        return _fraction(match["whole"] or "0", match["top"] or match["top1"], match["bottom"] or match["bottom1"])
    value = Fraction(re.sub(r"[^0-9.]", "", match["body"]))
    if match["slash"] is not None:
        bottom = int(match["slash"])
        return value / bottom if bottom else None
    exponent = int(match["exponent"] or match["power"] or 0)
    return value * Fraction(10) ** exponent if abs(exponent) <= _MAX_EXPONENT else None


def _fraction(whole: str, top: str, bottom: str) -> Fraction | None:
    return int(whole) + Fraction(int(top), int(bottom)) if int(bottom) else None


def _close(value: Exact, gold: Exact, abs_tol: float | str, rel_tol: float | str) -> bool:
    absolute, relative = Fraction(str(abs_tol)), Fraction(str(rel_tol))
    if absolute < 0 or relative < 0:
        raise ParameterError("a tolerance is at least 0")
    gap, size = abs(Fraction(value) - gold), abs(Fraction(gold))
    return gap <= absolute or gap <= relative * size
