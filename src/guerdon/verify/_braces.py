"""Braces in LaTeX text, matched without parsing it."""

from __future__ import annotations

import re

_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)


def matching_brace(text: str, at: int) -> int:
    r"""Index of the brace that closes the one at ``at``; -1 if there is none. Escaped braces don't count.

    >>> matching_brace(r"\frac{a\}{1}}{2}", 5)
    12
    """
    depth = 0
    for match in _BRACES.finditer(text, at):
        brace = match[0]
        if brace == "{":
            depth += 1
        elif brace == "}":
            depth -= 1
            if depth == 0:
                return match.start()
    return -1
