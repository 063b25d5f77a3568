"""Plain values to YAML text: on one line where it fits, else a block; every text reads back as the same text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from guerdon.spec._document import FLOAT, INT

WIDTH = 100

_PLAIN = re.compile(r"[A-Za-z_][\w./-]*( [\w./-]+)*", re.ASCII)
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def layout(tree: dict[str, Any]) -> str:
    """A mapping as a YAML document.

    >>> print(layout({"guerdon": 1, "reward": {"add": ["a", 0.5]}}))
    guerdon: 1
    reward: {add: [a, 0.5]}
    """
    return "\n".join(_block(tree, 0, loose=("nodes",)))


def _block(value: Any, indent: int, loose: tuple[str, ...] = ()) -> Iterator[str]:
    """Lines of a mapping or list in block form."""
    pad = " " * indent
    entries = value.items() if isinstance(value, dict) else ((None, v) for v in value)
    for key, inner in entries:
        head = f"{pad}- " if key is None else f"{pad}{_scalar(key)}: "
        short = _flow(inner)
        if not isinstance(inner, (dict, list)) or not inner or (len(head) + len(short) <= WIDTH and key not in loose):
            yield head + short
        elif key is None:
            first, *rest = _block(inner, indent + 2)
            yield head + first[indent + 2 :]
            yield from rest
        else:
            yield head.rstrip()
            yield from _block(inner, indent + 2)


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else {"inf": ".inf", "-inf": "-.inf"}.get(repr(value), ".nan")
    if isinstance(value, int):
        return repr(value)
    if (
        _PLAIN.fullmatch(value)
        and value.lower() not in _WORDS
        and not INT.fullmatch(value)
        and not FLOAT.fullmatch(value)
    ):
        return str(value)
    return '"' + "".join(_escaped(c) for c in value) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable() and char != "\ufeff":
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
