"""What verifiers read: the authored part of a rollout, its reference answers, and the answer marked in a text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from guerdon.core.errors import GuerdonError, SignalError
from guerdon.core.rollout import Rollout
from guerdon.verify._braces import matching_brace

Part = Literal["final", "text"]
"""``"final"``: the last thing the policy said. ``"text"``: all that it wrote. Tool output is in neither."""

MAX_CHARS = 4_000_000
"""Longer texts are not graded: the score is unknown."""
NO_REFERENCE = "no reference answer"
_SHOWN = 200


class UngradableError(GuerdonError, ValueError):
    """A rollout that a verifier refuses: its text is too long, or its reference answer is of no usable kind."""


class ParameterError(SignalError, UngradableError):
    """A parameter that no text could be graded with. It ends the run, since the next rollout would fare no better."""


class Marked(NamedTuple):
    """An answer found in a text, and the rule that found it."""

    text: str
    rule: str


def written(rollout: Rollout, part: Part = "final") -> str:
    """The authored text that is graded. Raises `UngradableError` above `MAX_CHARS` characters."""
    if part == "final":
        text = rollout.final
    elif part == "text":
        text = rollout.text
    else:
        raise ParameterError(f'part={part!r}: choose "final" or "text"')
    if len(text) > MAX_CHARS:
        raise UngradableError(f"the text has {len(text):,} characters, more than the {MAX_CHARS:,} that are graded")
    return text


def references(rollout: Rollout, column: str = "answer") -> tuple[str, ...]:
    """The reference answers in ``column`` as texts; several where it holds a list. Blank ones are no references."""
    given = rollout.answer if column == "answer" else rollout.get(column)
    if type(given) is str:
        return (given,) if given and not given.isspace() else ()
    if isinstance(given, (list, tuple)):
        return tuple(text for item in given for text in _reference(item))
    return tuple(_reference(given))


def _reference(given: Any) -> Iterator[str]:
    if given is None or (isinstance(given, float) and math.isnan(given)):
        return
    if not isinstance(given, (str, int, float, Decimal, Fraction)):
        raise UngradableError(f"a reference answer is text, a number or a list of these, not {type(given).__name__}")
    text = str(given)
    if text.strip():
        yield text


def shown(text: str) -> str:
    """A text as evidence: cut after 200 characters, and writable to any file (no lone surrogates)."""
    cut = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    return cut if cut.isascii() else cut.encode("utf-8", "replace").decode("utf-8")


def marked(text: str, how: str = "all") -> Marked | None:
    """The answer in a text: ``"all"`` of it, its last non-empty ``"line"``, the last ``"boxed"`` content, what follows
    the last ``"####"`` on its line, or the content of the last tag ``"<name>"``; ``None`` if it is not there or blank.

    >>> marked("So <answer> 7 </answer>", "<answer>")
    Marked(text='7', rule='<answer>')
    """
    if how == "all":
        found: str | None = text
    elif how == "line":
        found = text.rstrip().rsplit("\n", 1)[-1]
    elif how == "boxed":
        found = last_boxed(text)
    elif how == "####":
        found = _after_hashes(text)
    elif how.startswith("<") and how.endswith(">") and len(how) > 2:
        found = _last_tag(text, how[1:-1])
    else:
        raise ParameterError(f'extract={how!r}: choose "all", "line", "boxed", "####" or a tag such as "<answer>"')
    found = found.strip() if found is not None else ""
    return Marked(found, how) if found else None


def last_boxed(text: str) -> str | None:
    r"""The content of the last ``\boxed{...}``; ``None`` if there is none or its braces do not close.

    >>> last_boxed(r"thus \boxed{\frac{1}{2}}")
    '\\frac{1}{2}'
    """
    start = text.rfind("\\boxed")
    if start < 0:
        return None
    start += len("\\boxed")
    while text[start : start + 1] == " ":
        start += 1
    end = matching_brace(text, start) if text.startswith("{", start) else -1
    return None if end < 0 else text[start + 1 : end]


def _after_hashes(text: str) -> str | None:
    start = text.rfind("####")
    return None if start < 0 else text[start + 4 :].split("\n", 1)[0]


def _last_tag(text: str, name: str) -> str | None:
    end = text.rfind(f"</{name}>")
    start = text.rfind(f"<{name}>", 0, end) if end >= 0 else -1
    return None if start < 0 else text[start + len(name) + 2 : end]
