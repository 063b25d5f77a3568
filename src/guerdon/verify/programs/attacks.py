"""Solutions that try to be graded as right without being right, and a run of them all: the fakes, each through every
verdict channel, and the trials, each on the one task it is about, with honest programs of unusual kinds among them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from guerdon.backends.sandbox.inside.values import decode

from .check import check_code_many
from .verdict import Verdict

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
class Trial:
    """A completion for one task, by the task's name, and whether an honest grader must pass it."""

    name: str
    task: str
    program: str
    should_pass: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """How one fake fared on one channel (a trial: on its task); `held` when the verdict is the right one, and an honest
    trial is not accused of tampering."""

    name: str
    channel: str
    held: bool
    passed: bool | None
    reason: str
    tampering: tuple[str, ...]


def _rows(file: str) -> Iterator[dict[str, Any]]:
    text = (resources.files(__package__) / "data" / file).read_text("utf-8")
    return map(json.loads, text.splitlines())


def fakes() -> list[Fake]:
    """The corpus that ships with the package."""
    return [Fake(row["name"], row["program"], row["should_pass"]) for row in _rows("fakes.jsonl")]


def trials() -> list[Trial]:
    """The trials that ship with the package."""
    return [Trial(row["name"], row["task"], row["program"], row["should_pass"]) for row in _rows("trials.jsonl")]


def trial_tasks() -> dict[str, dict[str, Any]]:
    """Their tasks by name."""
    return {row["name"]: _with_plain_cases(row["task"]) for row in _rows("trial_tasks.jsonl")}


def _with_plain_cases(task: dict[str, Any]) -> dict[str, Any]:
    return {**task, "cases": decode(task["cases"])} if "cases" in task else task


def run_fake_suite(
    corpus: list[Fake] | None = None, channels: dict[str, dict[str, Any]] | None = None, *, seconds: float = 1.0
) -> Iterator[Judgement]:
    """Each solution through each channel, then (unless a corpus or channels are given) each trial; a fake must fail
    (False, not unknown), an honest one must pass."""
    chosen = [
        (fake, channel, task)
        for fake in (fakes() if corpus is None else corpus)
        for channel, task in (channels or CHANNELS).items()
    ]
    verdicts = check_code_many([(fake.program, task) for fake, _, task in chosen], seconds=seconds)
    for (fake, channel, _), verdict in zip(chosen, verdicts, strict=True):
        yield _judgement(fake.name, channel, verdict, held=verdict.passed is fake.should_pass)
    if corpus is None and channels is None:
        yield from run_trials(seconds=2 * seconds)


def run_trials(corpus: list[Trial] | None = None, *, seconds: float = 2.0) -> Iterator[Judgement]:
    """Each trial on its task."""
    tasks, chosen = trial_tasks(), trials() if corpus is None else corpus
    verdicts = check_code_many([(trial.program, tasks[trial.task]) for trial in chosen], seconds=seconds)
    for trial, verdict in zip(chosen, verdicts, strict=True):
        held = verdict.passed is trial.should_pass and not (trial.should_pass and verdict.tampering)
        yield _judgement(trial.name, trial.task, verdict, held=held)


def _judgement(name: str, channel: str, verdict: Verdict, *, held: bool) -> Judgement:
    return Judgement(name, channel, held, verdict.passed, verdict.reason, tuple(verdict.tampering))
