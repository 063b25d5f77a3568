"""Docstrings as Markdown: examples at a prompt (``>>>``) are code, not quotations of quotations."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?P=indent)\S.*|\n(?P=indent) +\S.*)*", re.MULTILINE)


def fenced(text: str) -> str:
    """The text with each run of prompt lines and their output in a fence."""
    return _EXAMPLE.sub(lambda m: f"{m['indent']}```pycon\n{m[0]}\n{m['indent']}```", text)


class Doctests(griffe.Extension):
    """Fences the examples of every docstring of the reference."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
