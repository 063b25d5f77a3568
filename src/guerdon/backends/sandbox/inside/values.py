"""How a value crosses a process border: JSON whose containers and rarer types are tagged, exact in both directions.

Plain JSON stands for None, bool, int (up to 2**53), finite float, str and list; everything else is an object with one
key, its type: `{"tuple": [...]}`, `{"dict": [[key, value], ...]}`, `{"int": "0x1f..."}`, `{"float": "nan"}`. A
subclass of a plain type crosses as the plain value it holds, read with the *base* type's methods, so that an object
which claims to equal everything arrives as the number or text that it really is.
"""

from __future__ import annotations

import collections
import importlib
import time
from collections.abc import Callable
from typing import Any

Json = Any
MAX_DEPTH = 100
_EXACT_INT = 1 << 53
_FRACTION_BITS = 1 << 17
_CHUNK = 5000
_HASHING_SECONDS = 2.0
_NAN, _INFINITY = float("nan"), float("inf")


class NotPlain(TypeError):
    """The value is not plain data, or is nested too deeply, or does not decode."""


def encode(value: Any, opaque: Callable[[object, Json], Json] | None = None, depth: int = 0) -> Json:
    """The JSON form of `value`; `opaque(object, form)` answers for objects that are not plain data, with the form of
    the plain part of those that have one (an instance of a subclass) and None for others (default: `NotPlain`).

    >>> encode((1, {"a": float("inf")}))
    {'tuple': [1, {'dict': [['a', {'float': 'inf'}]]}]}
    """
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -_EXACT_INT <= value <= _EXACT_INT else {"int": hex(value)}
    if kind is float:
        return value if -_INFINITY < value < _INFINITY else {"float": repr(value)}
    if depth > MAX_DEPTH:
        raise NotPlain(f"nested deeper than {MAX_DEPTH}, or holds itself")
    if kind is list:
        return [encode(item, opaque, depth + 1) for item in value]
    rule = _ENCODERS.get(kind) or _RARE.get((kind.__module__, kind.__name__))
    if rule is not None:
        tag, parts = rule
        return {tag: encode(parts(value), opaque, depth + 1)}
    for base in BASES:
        if base in kind.__mro__:
            form = encode(plain_part(value, base), opaque, depth + 1)
            return form if opaque is None else opaque(value, form)
    if opaque is not None:
        return opaque(value, None)
    raise NotPlain(f"{kind.__name__} is not plain data")


def decode(form: Json, opaque: Callable[[Json], object] | None = None, depth: int = 0) -> Any:
    """The value of a JSON form; `NotPlain` for anything that `encode` can't have written.

    >>> decode({"tuple": [1, {"set": [2]}]})
    (1, {2})
    """
    if depth > 2 * MAX_DEPTH:
        raise NotPlain("nested too deeply")
    if form is None or type(form) in (bool, int, float, str):
        return form
    if type(form) is list:
        return [decode(item, opaque, depth + 1) for item in form]
    if type(form) is not dict or len(form) != 1:
        raise NotPlain("not a tagged value")
    ((tag, parts),) = form.items()
    if tag == "handle":
        if opaque is None:
            raise NotPlain("an opaque object where plain data is needed")
        return opaque(parts)
    build = _DECODERS.get(tag)
    if build is None:
        raise NotPlain(f"unknown tag {tag[:40]!r}")
    try:
        return build(decode(parts, opaque, depth + 1))
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError) as error:
        raise NotPlain(f"malformed {tag}") from error


def plain_part(value: Any, base: Any) -> object:
    """The content of a subclass instance, read past any method the subclass overrides."""
    if base is int:
        return int.__add__(value, 0)
    if base is float:
        return float.__add__(value, 0.0)
    if base is str:
        return "".join(str.__iter__(value))
    if base is dict:
        return dict(dict.items(value))
    if base in (bytes, bytearray):
        return base(memoryview(value))
    if base is complex:
        return complex.__add__(value, 0j)
    return base(base.__iter__(value))


BASES = (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset)

_ENCODERS: dict[type, tuple[str, Callable[[Any], object]]] = {
    tuple: ("tuple", list),
    set: ("set", list),
    frozenset: ("frozenset", list),
    dict: ("dict", lambda value: [[key, item] for key, item in value.items()]),
    collections.Counter: ("Counter", lambda value: [[key, item] for key, item in dict.items(value)]),
    collections.OrderedDict: ("OrderedDict", lambda value: [[key, item] for key, item in dict.items(value)]),
    collections.defaultdict: ("dict", lambda value: [[key, item] for key, item in dict.items(value)]),
    collections.deque: ("deque", list),
    bytes: ("bytes", bytes.hex),
    bytearray: ("bytearray", bytearray.hex),
    complex: ("complex", lambda value: [value.real, value.imag]),
    range: ("range", lambda value: [value.start, value.stop, value.step]),
}

# By name, so that a process that never meets them need not import their modules.
_RARE: dict[tuple[str, str], tuple[str, Callable[[Any], object]]] = {
    ("fractions", "Fraction"): ("Fraction", lambda value: [value.numerator, value.denominator]),
    ("decimal", "Decimal"): ("Decimal", str),
    ("datetime", "date"): ("date", lambda value: value.isoformat()),
    ("datetime", "time"): ("time", lambda value: value.isoformat()),
    ("datetime", "datetime"): ("datetime", lambda value: value.isoformat()),
    ("datetime", "timedelta"): ("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
}


def _patiently(build: Callable[[list[Any]], Any]) -> Callable[[Any], object]:
    """A container of hashed items, built in parts: items that all have one hash would take for ever."""

    def build_in_parts(items: Any) -> object:
        if type(items) is not list or len(items) <= _CHUNK:
            return build(items)
        started = time.thread_time()
        made = build(items[:_CHUNK])
        for start in range(_CHUNK, len(items), _CHUNK):
            made = _extended(made, items[start : start + _CHUNK])
            if time.thread_time() - started > _HASHING_SECONDS:
                raise ValueError("its items take too long to tell apart")
        return made

    return build_in_parts


def _extended(made: Any, items: list[Any]) -> Any:
    if isinstance(made, (set, frozenset)):
        return made | type(made)(items)
    for key, value in items:
        made[key] = value
    return made


def _fraction(parts: Any) -> object:
    """Reducing a fraction takes the square of its length."""
    if any(type(part) is not int or part.bit_length() > _FRACTION_BITS for part in parts):
        raise ValueError("too long for a fraction")
    return _rare("fractions", "Fraction")(parts)


def _wide_int(text: str) -> int:
    if not text.lstrip("-").startswith("0x"):
        raise ValueError("not hexadecimal")
    return int(text, 16)


def _rare(module: str, name: str, method: str = "") -> Callable[[Any], object]:
    """A constructor looked up when first needed; a list is its arguments."""

    def build(parts: Any) -> object:
        made = getattr(importlib.import_module(module), name)
        made = getattr(made, method) if method else made
        return made(*parts) if type(parts) is list else made(parts)

    return build


_DECODERS: dict[str, Callable[[Any], object]] = {
    "tuple": tuple,
    "set": _patiently(set),
    "frozenset": _patiently(frozenset),
    "dict": _patiently(dict),
    "Counter": _patiently(lambda pairs: collections.Counter(dict(pairs))),
    "OrderedDict": _patiently(collections.OrderedDict),
    "deque": collections.deque,
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "complex": lambda parts: complex(*parts),
    "range": lambda parts: range(*parts),
    "Fraction": _fraction,
    "Decimal": _rare("decimal", "Decimal"),
    "date": _rare("datetime", "date", "fromisoformat"),
    "time": _rare("datetime", "time", "fromisoformat"),
    "datetime": _rare("datetime", "datetime", "fromisoformat"),
    "timedelta": _rare("datetime", "timedelta"),
    "int": _wide_int,
    "float": {"nan": _NAN, "inf": _INFINITY, "-inf": -_INFINITY}.__getitem__,
}
