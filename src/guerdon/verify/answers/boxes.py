"""Boxed answers: the last box wins, boxes that list values belong together, a negated box is no answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from guerdon.verify._braces import matching_brace

from .normal import normalise
from .policy import Policy
from .symbols import words_of
from .units import SOFT, UNITS

__all__ = ["Extraction", "boxed_answer", "is_negated", "unit_behind"]

MAX_BOXES = 12


@dataclass(frozen=True)
class Extraction:
    """An answer text, the rule that found it, and its span in the completion; ``text`` is ``None`` if ruled out.

    Rules: ``tag``, ``box``, ``hashes``, ``whole``, ``anchor`` (the answer is), ``math`` (last formula),
    ``number``, ``choice``, ``gold``. ``problem`` says why there is no answer (negated, hedged, disagreeing...).
    """

    text: str | None
    rule: str
    span: tuple[int, int] | None = None
    problem: str = ""


_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*(?:\{|(?=[^\s{]))")
_NEGATION = re.compile(
    r"(?:\bnot|n't|n’t|\bnever|\bneither|\bnor|\bno longer|≠|\\neq?)\s*"
    r"(?:equal to|be|necessarily|exactly)?\s*[:$\\(\[*]*\s*$",
    re.I,
)


def is_negated(text: str, at: int) -> bool:
    """Whether what starts at ``at`` directly follows a not."""
    before = text[max(0, at - 30) : at]
    return any(mark in before for mark in _NEGATIVES) and _NEGATION.search(before) is not None


_NEGATIVES = ("ot", "OT", "n't", "n’t", "ever", "ither", "nor", "no longer", "≠", "\\ne")


def _box_at(text: str, match: re.Match[str], policy: Policy) -> tuple[int, int, int] | None:
    """(content start, content end, box end), or ``None`` for a box that doesn't count."""
    if not match[0].endswith("{"):
        bare = re.compile(r"-?\d+(?:\.\d+)?|\S").match(text, match.end())
        return (bare.start(), bare.end(), bare.end()) if bare else None
    end = matching_brace(text, match.end() - 1)
    if end >= 0:
        return match.end(), end, end + 1
    if not policy.unclosed_box:
        return None
    return match.end(), len(text), len(text)


def _last_box(text: str, before: int) -> re.Match[str] | None:
    at = max(text.rfind("\\boxed", 0, before), text.rfind("\\fbox", 0, before), text.rfind("\\framebox", 0, before))
    return _BOX.match(text, at) if at >= 0 else None


def boxed_answer(text: str, policy: Policy, gold: bool = False) -> Extraction | None:
    if policy.which == "first":
        match = _BOX.search(text)
        box = _box_at(text, match, policy) if match else None
        return _box_answer(text, match.start() if match else 0, box) if box else UNCLOSED
    match = _last_box(text, len(text))
    if match is None:
        return None
    box = _box_at(text, match, policy)
    if box is None:
        return UNCLOSED
    group = [(match.start(), box)]
    while len(group) < MAX_BOXES:
        match = _last_box(text, group[0][0])
        box = _box_at(text, match, policy) if match and group[0][0] - match.start() < 2_000 else None
        if match is None or box is None:
            break
        gap = text[box[2] : group[0][0]]
        joined = box[2] <= group[0][0] and (
            _joins(gap) or (gold and not re.search(r"[A-Za-z]{2}", _GAP_NOISE.sub(" ", gap)))
        )
        if policy.which == "last" and not joined:
            break
        group.insert(0, (match.start(), box))
    if policy.which == "all":
        return _all_agree([text[b[0] : b[1]] for _, b in group], group)
    if len(group) == 1:
        return _box_answer(text, group[0][0], group[0][1])
    content = ", ".join(text[b[0] : b[1]] for _, b in group)
    return Extraction(content, "box", (group[0][1][0], group[-1][1][1]))


UNCLOSED = Extraction(None, "box", None, "the last box is never closed")


def _all_agree(texts: list[str], group: list[tuple[int, tuple[int, int, int]]]) -> Extraction:
    keys = {normalise(t).replace(" ", "") for t in texts}
    span = (group[-1][1][0], group[-1][1][1])
    if len(keys) > 1:
        return Extraction(None, "box", span, "the boxes disagree")
    return Extraction(texts[-1], "box", span)


def _box_answer(text: str, start: int, box: tuple[int, int, int]) -> Extraction:
    content = text[box[0] : box[1]]
    while (inner := _BOX.match(content)) and content.rstrip().endswith("}"):
        content = content.rstrip()[inner.end() : -1]
    if not content.strip(" \t\r\n$~\\"):
        return Extraction(None, "box", box[:2], "the box is empty")
    if is_negated(text, start):
        return Extraction(None, "box", box[:2], "negated: the box follows a not")
    return Extraction(content + unit_behind(text, box[2]), "box", box[:2])


_BEHIND = re.compile(r"[\s$]*(?:\\[)\]])?[\s$]*(?:\\text\{\s*)?(\\?%|percent\b|pct\b|[A-Za-z]{2,12}\b)(?!\s*[=:])")


def unit_behind(text: str, end: int) -> str:
    """A percent sign or unit directly behind a box belongs to the answer."""
    match = _BEHIND.match(text, end, min(len(text), end + 40))
    if match is None:
        return ""
    word = match[1]
    if word.lstrip("\\") in ("%", "percent", "pct"):
        return r"\%"
    return rf"\text{{ {word}}}" if word in UNITS and word not in SOFT and word not in SQUARES else ""


SQUARES = frozenset({"square", "sq", "cubic", "unit", "units", "people", "person"})
_GAP_NOISE = re.compile(r"\\(?:q?quad|text|mathrm|textbf|[,;:! \[\]()])|[{}$\s~*]")
_GAP_WORD = re.compile(r"[A-Za-z]+|[,;&]|\S")
_RETRACTING = frozenset(words_of("no not wait then actually thus but or so hence maybe oops and"))


def _joins(gap: str) -> bool:
    """Whether the text between two boxes lists them (comma, and, or; "papers and") rather than replacing one."""
    if len(gap) > 60:
        return False
    parts = _GAP_WORD.findall(_GAP_NOISE.sub(" ", gap).casefold())
    if parts in ([","], [";"], ["and"], ["or"], [",", "and"], [",", "or"], ["&"]):
        return True
    return (
        len(parts) == 2
        and parts[1] in ("and", ",")
        and parts[0].isalpha()
        and len(parts[0]) > 2
        and parts[0] not in _RETRACTING
    )
