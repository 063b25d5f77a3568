"""Dates and times of day in their common notations."""

from __future__ import annotations

import re

from .symbols import words_of
from .verdict import Outcome, Reason, differs, same, undecided

__all__ = ["compare_times", "date_of", "time_of"]

_MONTHS = {m: i for i, m in enumerate(words_of("jan feb mar apr may jun jul aug sep oct nov dec"), 1)}
_NAME = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_MONTH_FIRST = re.compile(rf"{_NAME}\s+(\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(\d{{4}}))?", re.I)
_DAY_FIRST = re.compile(rf"(?:the\s+)?(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_NAME}(?:,?\s+(\d{{4}}))?", re.I)
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*(?:(a|p)\.?\s?m\.?)?", re.I)
_CLEAN = re.compile(r"\\(?:text|mathrm|textbf)\s*\{([^{}]*)\}|\\[,;: ]|[$~]")


def date_of(text: str) -> tuple[int | None, int, int] | None:
    """(year or None, month, day) of a date that can be read in one way only, else ``None``.

    Example:
        >>> date_of("March 5, 2020") == date_of("2020-03-05") == date_of("5th of March 2020")
        True
    """
    if (match := _ISO.fullmatch(text)) is not None:
        found = (int(match[1]), int(match[2]), int(match[3]))
    elif (match := _MONTH_FIRST.fullmatch(text)) is not None:
        found = (int(match[3] or 0), _MONTHS[match[1][:3].lower()], int(match[2]))
    elif (match := _DAY_FIRST.fullmatch(text)) is not None:
        found = (int(match[3] or 0), _MONTHS[match[2][:3].lower()], int(match[1]))
    else:
        return None
    year, month, day = found
    return (year or None, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None


def time_of(text: str) -> tuple[int, int, int, bool] | None:
    """(hour, minute, second, whether am or pm was said) of a time of day, else ``None``."""
    match = _CLOCK.fullmatch(text)
    if match is None or (match[2] is None and match[4] is None):
        return None
    hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    if hour > 23 or minute > 59 or second > 59 or (match[4] and not 1 <= hour <= 12):
        return None
    if match[4]:
        hour = hour % 12 + (12 if match[4].lower() == "p" else 0)
    return hour, minute, second, match[4] is not None


def compare_times(a: str, b: str) -> Outcome | None:
    """Compare two dates, or two times of which one says am or pm; ``None`` when neither applies."""
    if len(a) > 60 or len(b) > 60 or not (_LOOKS.search(a) and _LOOKS.search(b)):
        return None
    a, b = (re.sub(r"\s+", " ", _CLEAN.sub(lambda m: " " + (m[1] or ""), t)).strip() for t in (a, b))
    da, db = date_of(a), date_of(b)
    if da is not None and db is not None:
        if da[1:] != db[1:] or (da[0] and db[0] and da[0] != db[0]):
            return differs("structure", "dates")
        return same("structure") if da[0] == db[0] else undecided(Reason.POLICY, "structure", "a year on one side only")
    ta, tb = time_of(a), time_of(b)
    if ta is None or tb is None or not (ta[3] or tb[3]):
        return None
    if (ta[3] and tb[3]) or ta[0] > 12 or tb[0] > 12:
        return same("structure") if ta[:3] == tb[:3] else differs("structure", "times")
    if ta[:3] == tb[:3] or (ta[0] % 12, *ta[1:3]) == (tb[0] % 12, *tb[1:3]):
        return undecided(Reason.POLICY, "structure", "am or pm on one side only")
    return differs("structure", "times")


_LOOKS = re.compile(r"\d\s*:\s*\d|\d{4}-\d|[ap]\.?\s?m\b|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.I)
