"""Multiple choice: which option a reply settles on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import signal
from guerdon.verify._reading import (
    NO_REFERENCE,
    ParameterError,
    Part,
    UngradableError,
    last_boxed,
    marked,
    references,
    shown,
    written,
)
from guerdon.verify._text import normalised

Several = Literal["wrong", "unknown"]

LETTERS = "ABCDEFGHIJ"
_STATED = re.compile(r"\b(?:answer|choice|option)\b[*_\s]*(?:\bis\b|:|=)[*_\s:]*", re.I)
_LEAD = re.compile(r"[\s*_$\\(\[{\"'`:]*(?:(?:the|option|choice|answer|text|textbf|mathrm|boxed)\b[\s*_{(\[:]*)*", re.I)
_UPPER = re.compile(r"([A-Z])(?![\w'’])")
_LOWER = re.compile(r"([A-Za-z])(?:[).:\]}*]|\s*$)")
_JOINED = re.compile(
    r"[\s*_)\]}.:]*(?:[,/&;|+]|\b(?i:and|or)\b)[\s*_(\[{]*(?:(?i:and|or)\b)?\s*"
    r"([A-Za-z])(?![\w'’]| (?!and\b|or\b)[a-z])"
    r"|[\s*_)\]}.:]+[\s*_(\[{]*([A-Z])(?![\w'’]|[\s).:\]]*[a-z])"  # side by side: (A) (B)
)
_NEGATED = re.compile(r"[\s*_]*(?:not|neither|none|unclear|unknown)\b", re.I)
_OPTION_ENDS = re.compile(r"[*_\s]*(?:[).:\]},/&\n]|$|and\b|or\b)")
_ENCLOSED = re.compile(r"\(([A-Z])\)")
_ALONE = re.compile(r"(?<![\w'’(])([A-Z])(?![\w'’)])(?!(?<=[AI]) (?!or\b|and\b)[a-z])")
_WHOLE_LINE = re.compile(r"[\s*_(\[]*([A-Za-z])[\s*_)\].:]*$")
_REGION = 200


class Picked(NamedTuple):
    """The options a reply names (letters, in order) and the rule that found them; none if it settles on nothing."""

    letters: tuple[str, ...]
    rule: str


@signal(key="verify.choice", version=1, range=(0, 1))
def choice(
    rollout: Rollout,
    *,
    options: str | None = None,
    several: Several = "wrong",
    reference: str = "answer",
    part: Part = "final",
) -> Score:
    r"""1 if the reply settles on the reference's option, else 0; also 0 if it settles on none.

    Looked at in this order: the last ``\boxed``, the last ``<answer>`` tag, the last "answer is / answer: ...", a reply
    or last line that is an option ("B", "(b)", "B. Paris"), letters in brackets, lone capitals (not the words A
    and I). The reference is a letter, or an option's text if ``options`` names the column that lists the texts (or maps
    letters to them); then a reply may also give the text. A reply that names several options is ``"wrong"`` (0), or
    ``"unknown"`` if ``several`` says so.

    Unknown: no reference answer, or one that is no option.

    >>> choice(Rollout("A is tempting, but the answer is (B).", answer="B"))
    Score(1.0, extracted='B', rule='stated', reference='B')
    """
    golds = references(rollout, reference)
    if not golds:
        return Score.unknown(NO_REFERENCE)
    texts = _options(rollout, options)
    letters = "".join(texts) or LETTERS
    known = {letter for gold in golds if (letter := _of_reference(gold, texts, letters))}
    if not known:
        return Score.unknown("the reference answer is not one of the options", reference=shown(golds[0]))
    picked = pick(written(rollout, part), texts, letters)
    seen: dict[str, Any] = {
        "extracted": ", ".join(picked.letters) or None,
        "rule": picked.rule,
        "reference": ", ".join(sorted(known)),
    }
    if len(picked.letters) > 1:
        if several == "unknown":
            return Score.unknown("the reply names several options", **seen)
        if several != "wrong":
            raise ParameterError(f'several={several!r}: choose "wrong" or "unknown"')
    return Score(float(len(picked.letters) == 1 and picked.letters[0] in known), **seen)


def pick(reply: str, texts: dict[str, str] | None = None, letters: str = LETTERS) -> Picked:
    """The option (or options) that a reply settles on, by the rules of `choice`.

    >>> pick("Answer: A or B")
    Picked(letters=('A', 'B'), rule='stated')
    """
    texts = texts or {}
    for rule, region in _regions(reply):
        if _NEGATED.match(region):
            return Picked((), f"{rule}, negated")
        found = _leading(region, letters, opening=rule == "whole reply") or _by_text(region, texts)
        if found:
            return Picked(found, rule)
        if rule in ("boxed", "<answer>"):
            return Picked((), f"{rule}, no option")
    for rule, pattern in (("in brackets", _ENCLOSED), ("lone capital", _ALONE)):
        named = tuple(dict.fromkeys(x for x in pattern.findall(reply) if x in letters))
        if named:
            return Picked(named, rule)
    return Picked(_by_text(reply, texts, anywhere=True), "option text") if texts else Picked((), "no option found")


def _regions(reply: str) -> list[tuple[str, str]]:
    """Where the answer may stand, the surest place first."""
    found: list[tuple[str, str]] = []
    box = last_boxed(reply)
    if box is not None:
        found.append(("boxed", box[:_REGION]))
    tag = marked(reply, "<answer>")
    if tag is not None:
        found.append(("<answer>", tag.text[:_REGION]))
    last = None
    for last in _STATED.finditer(reply):  # noqa: B007  # the last one
        pass
    if last is not None:
        found.append(("stated", reply[last.end() : last.end() + _REGION].split("\n", 1)[0]))
    stripped = reply.strip()
    if len(stripped) <= _REGION:
        found.append(("whole reply", stripped))
    line = stripped[-_REGION:].rsplit("\n", 1)[-1] if stripped else ""
    if _WHOLE_LINE.match(line):
        found.append(("last line", line))
    return [(rule, region) for rule, region in found if region.strip()]


def _leading(region: str, letters: str, opening: bool) -> tuple[str, ...]:
    """The letter that a region begins with, and those joined to it by a comma, *and*, *or*...

    Where the region is the whole reply, the letter must stand apart: "A dog" and "D is wrong" settle on nothing.
    """
    lead = _LEAD.match(region)
    at = lead.end() if lead else 0
    match = _UPPER.match(region, at) or _LOWER.match(region, at)
    if match is None or match[1].upper() not in letters:
        return ()
    if opening and not _OPTION_ENDS.match(region, match.end(1)):
        return ()
    found = [match[1].upper()]
    at = match.end(1)
    while (more := _JOINED.match(region, at)) and (letter := (more[1] or more[2]).upper()) in letters:
        found.append(letter)
        at = more.end()
    return tuple(dict.fromkeys(found))


def _by_text(region: str, texts: dict[str, str], anywhere: bool = False) -> tuple[str, ...]:
    """The options whose text the region is (or, ``anywhere``, holds as whole words)."""
    if not texts:
        return ()
    plain = normalised(region)
    equal = tuple(letter for letter, own in texts.items() if own and own == plain)
    if equal or not anywhere:
        return equal
    padded = f" {plain} "
    held = [letter for letter, own in texts.items() if own and f" {own} " in padded]
    longest = [a for a in held if not any(a != b and f" {texts[a]} " in f" {texts[b]} " for b in held)]
    return tuple(longest)


def _options(rollout: Rollout, column: str | None) -> dict[str, str]:
    """Letter to normalised text of each option in the column; empty if no column is named."""
    if column is None:
        return {}
    given = rollout.get(column)
    if isinstance(given, dict):
        pairs = [(str(k).strip().upper(), v) for k, v in given.items()]
    elif isinstance(given, Sequence) and not isinstance(given, str):
        pairs = [(chr(ord("A") + i), v) for i, v in enumerate(given)]
    else:
        raise UngradableError(f"column '{column}' must list the options' texts, not {type(given).__name__}")
    if len(pairs) > 26 or any(len(k) != 1 or not "A" <= k <= "Z" for k, _ in pairs):
        raise UngradableError(f"column '{column}': options are at most 26, keyed by letters")
    return {k: normalised(str(v)) for k, v in pairs}


def _of_reference(gold: str, texts: dict[str, str], letters: str) -> str | None:
    plain = normalised(gold)
    by_text = [letter for letter, own in texts.items() if own == plain]
    if len(by_text) == 1:
        return by_text[0]
    match = _WHOLE_LINE.match(gold) or re.match(r"[\s(]*([A-Z])[).:]\s", gold)
    letter = match[1].upper() if match else ""
    return letter if letter and letter in letters else None
