"""Solutions that try to be graded as right without being right, and a run of them all through every verdict channel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from .check import check_code

_CASES = [((2, 3), 5), ((10, -4), 6), ((0, 0), 0), ((7, 8), 15)]
_CALLS = "".join(f"    assert candidate{arguments} == {expected}\n" for arguments, expected in _CASES)
CHANNELS: dict[str, dict[str, Any]] = {
    "cases": {"entry_point": "add", "cases": [[list(arguments), expected] for arguments, expected in _CASES]},
    "assertions": {"entry_point": "add", "test": f"def check(candidate):\n{_CALLS}"},
    "tester": {
        "entry_point": "add",
        "test": "def check(candidate):\n    for a in (2, 10, 0, 7):\n        for b in (3, -4, 0, 8):\n"
        "            assert candidate(a, b) == a + b\n            assert abs(candidate(a, b) - (a + b)) < 1e-6\n",
    },
    "pytest": {
        "pytest": "from solution import add\nimport pytest\n\n\n"
        "@pytest.mark.parametrize('a,b,c', [(2, 3, 5), (10, -4, 6), (7, 8, 15)])\n"
        "def test_add(a, b, c):\n    assert add(a, b) == c\n\n\ndef test_zero():\n    assert add(0, 0) == 0\n"
    },
}
"""The same task, add(a, b), in each of the ways a verdict can come about."""


@dataclass(frozen=True, slots=True)
class Fake:
    """A candidate solution and whether an honest grader must pass it."""

    name: str
    program: str
    should_pass: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """How one fake fared on one channel; `held` when the verdict is the right one."""

    name: str
    channel: str
    held: bool
    passed: bool | None
    reason: str
    tampering: tuple[str, ...]


def fakes() -> list[Fake]:
    """The corpus that ships with the package."""
    text = (resources.files(__package__) / "data" / "fakes.jsonl").read_text("utf-8")
    return [Fake(row["name"], row["program"], row["should_pass"]) for row in map(json.loads, text.splitlines())]


def run_fake_suite(
    corpus: list[Fake] | None = None, channels: dict[str, dict[str, Any]] | None = None, *, seconds: float = 1.0
) -> Iterator[Judgement]:
    """Each solution through each channel; a fake must fail (False, not unknown), an honest one must pass."""
    for fake in fakes() if corpus is None else corpus:
        for channel, task in (channels or CHANNELS).items():
            verdict = check_code(fake.program, task, seconds=seconds)
            held = verdict.passed is fake.should_pass
            yield Judgement(fake.name, channel, held, verdict.passed, verdict.reason, tuple(verdict.tampering))
