"""From what a candidate's job sent back to a verdict: nothing in it is believed beyond its form."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any, Final

from guerdon.backends.sandbox.result import Result

from .verdict import TestOutcome, Verdict

_MAX_LINE: Final = 4 << 20
_MAX_NOTES: Final = 64
EXIT_NOTE: Final = "tried to end the process instead of answering"
_EXITS: Final = ("SystemExit:", "KeyboardInterrupt:", "GeneratorExit:")


def first_number() -> int:
    """Where the numbers of a job's replies start: replies written before the questions are known do not count."""
    return secrets.randbits(48)


def read_replies(data: bytes, notes: list[str], first: int = 0) -> Iterator[dict[str, Any]]:
    """Well-formed reply lines in exact sequence from `first`; stops at the first that is not, noting it."""
    expected = first
    for line in data.split(b"\n")[:-1]:
        try:
            reply = json.loads(line) if len(line) <= _MAX_LINE else None
        except (ValueError, RecursionError):
            reply = None
        if type(reply) is not dict:
            notes.append("wrote something of its own to the reply channel")
            return
        if type(reply.get("note")) is str:
            if len(notes) < _MAX_NOTES:
                notes.append("".join(mark if mark.isprintable() else " " for mark in reply["note"][:200]))
        elif "load" in reply or "end" in reply:
            yield reply
        elif type(reply.get("id")) is int and reply["id"] == expected and ("value" in reply) != ("raised" in reply):
            expected += 1
            if "raised" in reply and described(reply["raised"]).startswith(_EXITS):
                notes.append(EXIT_NOTE)
            yield reply
        else:
            notes.append("answered out of sequence")
            return


def described(failure: Any) -> str:
    if type(failure) is not dict or type(failure.get("types")) is not list or not failure["types"]:
        return "an exception"
    return f"{str(failure['types'][0])[:200].rpartition('.')[2][:80]}: {str(failure.get('text', ''))[:200]}"


def shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an int beyond the digit limit, or very deep
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def conclude(result: Result, tests: list[TestOutcome], notes: list[str], reason: str = "") -> Verdict:
    """Positive evidence only: every test passed; our own failures are unknown, not false."""
    if result.state in ("infrastructure", "refused"):
        return Verdict(
            None,
            f"{result.state}: {result.reason}",
            [TestOutcome(t.name, None, result.state) for t in tests],
            state=result.state,
        )
    passed = bool(tests) and all(test.passed is True for test in tests) and not reason
    if not passed and not reason:
        failed = [test for test in tests if test.passed is not True]
        reason = (
            f"{len(failed)} of {len(tests)} tests failed; first: {failed[0].name}: {failed[0].reason}"
            if failed
            else "no test"
        )
    return Verdict(
        passed,
        reason,
        tests,
        list(dict.fromkeys(notes)),
        result.state,
        seconds=result.seconds,
        cpu_seconds=result.cpu_seconds,
        peak_memory_bytes=result.peak_memory_bytes,
    )
