"""Whether an answer is the expected one: on plain values of exact types, in a process the answer's code never
touched."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

TextRule = Literal["tokens", "exact", "lines"]
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SPACE: Final = " \t\n\r\v\f"
_BLANK: Final = re.compile(r"[ \t\n\r\v\f]+")
_ODD: Final = re.compile(r"[\x1c-\x1f]")  # white space to Python


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How floats are compared and whether a tuple may stand for a list.

    Two numbers of which at least one is a float are equal when |a - b| <= max(relative * |expected|, absolute); where
    an int is expected |expected| counts as at most 1, so that a large int is no other by a whole number. NaN equals
    NaN. `tuple_is_list`: set where the task says that the sequence type does not matter (tasks stored as JSON
    often do).
    """

    relative: float = 1e-6
    absolute: float = 1e-9
    tuple_is_list: bool = False


STANDARD: Final = Tolerance()


def equal(expected: Any, actual: Any, tolerance: Tolerance = STANDARD) -> bool:
    """Recursive equality of plain data, both sides as `inside.values.decode` builds them.

    A bool equals only a bool; an int equals a float of the same value; text equals only text; a list is no tuple
    unless the tolerance says so. Never calls a method of a foreign type.

    >>> equal([1, 2.0], [1, 2.0000001]), equal(1, True), equal([1], (1,))
    (True, False, False)
    """
    if isinstance(expected, bool) or isinstance(actual, bool):
        return type(expected) is type(actual) and expected == actual
    if type(expected) in (int, float) and type(actual) in (int, float):
        return _close(expected, actual, tolerance)
    if type(expected) is complex and type(actual) in (complex, float, int):
        other = complex(actual)
        return _close(expected.real, other.real, tolerance) and _close(expected.imag, other.imag, tolerance)
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        same_kind = type(expected) is type(actual) or tolerance.tuple_is_list
        return (
            same_kind
            and len(expected) == len(actual)
            and all(equal(first, second, tolerance) for first, second in zip(expected, actual, strict=True))
        )
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _equal_dicts(expected, actual, tolerance)
    if isinstance(expected, (set, frozenset)) and isinstance(actual, (set, frozenset)):
        return _equal_sets(expected, actual)
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, Decimal) and (expected.is_nan() or actual.is_nan()):
        return expected.is_nan() and bool(actual.is_nan())
    return bool(expected == actual)


def _close(expected: float, actual: float, tolerance: Tolerance) -> bool:
    if type(expected) is int and type(actual) is int:
        return expected == actual
    try:
        first, second = float(expected), float(actual)
    except OverflowError:
        return expected == actual
    if math.isnan(first) or math.isnan(second):
        return math.isnan(first) and math.isnan(second)
    if math.isinf(first) or math.isinf(second):
        return first == second
    size = min(abs(first), 1.0) if type(expected) is int else abs(first)
    return abs(first - second) <= max(tolerance.relative * size, tolerance.absolute)


def _equal_dicts(expected: dict[Any, Any], actual: dict[Any, Any], tolerance: Tolerance) -> bool:
    if len(expected) != len(actual):
        return False
    typed = {(type(key), key): value for key, value in actual.items()}
    return all(
        (type(key), key) in typed and equal(value, typed[type(key), key], tolerance) for key, value in expected.items()
    )


def _equal_sets(expected: set[Any] | frozenset[Any], actual: set[Any] | frozenset[Any]) -> bool:
    return Counter((type(item), item) for item in expected) == Counter((type(item), item) for item in actual)


def same_text(expected: str, actual: str, rule: TextRule = "tokens", tolerance: Tolerance = STANDARD) -> bool:
    """Whether a program's output is the expected one.

    "tokens": the same tokens between ASCII white space, numbers within the tolerance where the expected token has a
    fraction or an exponent (and both are numbers in ASCII digits). "lines": the same lines, trailing white space and
    trailing empty lines aside. "exact": character for character, one final newline aside.

    >>> same_text("1 2\\n", "1\\n2"), same_text("0.5", "0.50000001"), same_text("a b", "a  b", "lines")
    (True, True, False)
    """
    if rule == "exact":
        return expected.removesuffix("\n") == actual.removesuffix("\n")
    if rule == "lines":
        return [line.rstrip(_SPACE) for line in expected.rstrip(_SPACE).split("\n")] == [
            line.rstrip(_SPACE) for line in actual.rstrip(_SPACE).split("\n")
        ]
    first, second = _tokens(expected), _tokens(actual)
    return len(first) == len(second) and all(
        _same_token(one, other, tolerance) for one, other in zip(first, second, strict=True)
    )


def _tokens(text: str) -> list[str]:
    """Split at ASCII white space alone, as C programs and checkers do."""
    return text.split() if text.isascii() and not _ODD.search(text) else [part for part in _BLANK.split(text) if part]


def _same_token(expected: str, actual: str, tolerance: Tolerance) -> bool:
    if expected == actual:
        return True
    if not any(mark in expected for mark in ".eE") or len(actual) > 400:
        return False
    if not _NUMBER.fullmatch(expected) or not _NUMBER.fullmatch(actual):
        return False
    return _close(float(expected), float(actual), tolerance)
