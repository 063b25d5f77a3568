"""How far a program got: it does not compile, breaks off, fails a test, or passes all."""

from __future__ import annotations

import re
from typing import Final, Literal

from guerdon.backends.sandbox.languages import NOT_COMPILED

from .extract import parsed
from .verdict import Verdict

Level = Literal["compile", "runtime", "failed", "passed"]
LEVELS: Final[tuple[Level, ...]] = ("compile", "runtime", "failed", "passed")
"""From bad to good."""
_BROKE_OFF: Final = re.compile(r"raised |exit code |timed out|(?!AssertionError)[A-Za-z_]\w*: ")
_NOT_COMPILED: Final = re.compile(
    r"(the program did not load|exit code \d+): (SyntaxError|IndentationError|TabError)\b"
)


def level(verdict: Verdict, *, language: str = "python") -> Level | None:
    """The level of a verdict; None where it is unknown.

    ``runtime`` is an exception, an early end, or any limit reached (an endless loop too), in loading or in any test;
    a test that only comes out wrong is ``failed``. One broken-off test outweighs any number of wrong ones.

    >>> from guerdon.verify import check_code
    >>> task = {"entry_point": "f", "cases": [[[1], 2]]}
    >>> [level(check_code(f"def f(x): return {body}", task)) for body in ("x + 1", "x", "x / 0", "x +")]
    ['passed', 'failed', 'runtime', 'compile']
    """
    if verdict.passed is None:
        return None
    if verdict.passed:
        return "passed"
    code = verdict.extracted.code
    if not code.strip():
        return "compile"
    said = [verdict.reason, *(test.reason for test in verdict.tests[:1])]
    if language != "python" and any(test.reason.startswith(NOT_COMPILED) for test in verdict.tests):
        return "compile"
    if any(map(_NOT_COMPILED.match, said)) and language == "python" and parsed(code) is None:
        return "compile"  # what parses may still raise SyntaxError as it runs
    return "runtime" if _broke_off(verdict) else "failed"


def _broke_off(verdict: Verdict) -> bool:
    return (
        verdict.state != "finished"
        or verdict.reason.startswith("the program did not load")
        or any(test.passed is None or _BROKE_OFF.match(test.reason) for test in verdict.tests)
    )
