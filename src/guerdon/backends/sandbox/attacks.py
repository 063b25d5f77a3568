"""Programs that try to get out, use up, or outlast the sandbox, and a run of them all against a back end.

Each is written so that it prints ESCAPED when, and only when, it got what it wanted. Never run them without
isolation: the runner refuses to.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from .result import Limits, Result
from .zygote import Zygote

_NORMAL = ("print(sum(range(int(input()))))", b"10\n", "45\n")
_SECRET = "SECRET-of-the-host"
_SLACK_SECONDS = 1.0

Run = Callable[[str, bytes, Limits], Result]


@dataclass(frozen=True, slots=True)
class Attack:
    """`states`: the only states it may end in; empty for any but a refusal or our own failure."""

    name: str
    program: str
    states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Defence:
    """How one attack went: `held` and, if not, what was seen."""

    name: str
    held: bool
    seen: str
    state: str
    seconds: float


def attacks() -> list[Attack]:
    """The whole corpus that ships with the package."""
    text = (resources.files(__package__) / "data" / "escapes.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return [Attack(row["name"], row["program"], tuple(row.get("states", ()))) for row in rows]


def run_attack_suite(
    run: Run | None = None, corpus: list[Attack] | None = None, limits: Limits | None = None
) -> Iterator[Defence]:
    """Each attack through `run` (a method of an isolating back end), followed by a normal program that must still work.

    `run` is a back end's `run_program`; by default the fork server's. Yields as it goes; takes about one limit's
    seconds for each endless attack.
    """
    limits = limits or Limits(seconds=1.0, memory_bytes=256 << 20)
    run = run or Zygote().run_program
    with tempfile.TemporaryDirectory(prefix="guerdon-attack-") as folder:
        answers = Path(folder) / "answers.txt"
        answers.write_text(_SECRET)
        answers.chmod(0o644)
        Path(folder).chmod(0o755)
        for attack in attacks() if corpus is None else corpus:
            result = run(attack.program.replace("{ANSWER_FILE}", str(answers)), b"", limits)
            yield _judge(attack, result, run, answers, limits)


def _judge(attack: Attack, result: Result, run: Run, answers: Path, limits: Limits) -> Defence:
    text = result.stdout + result.stderr
    faults = []
    if "ESCAPED" in text or _SECRET in text:
        faults.append("got out: " + text[:200])
    if result.state in ("refused", "infrastructure"):
        faults.append(f"{result.state}: {result.reason}")
    if attack.states and result.state not in attack.states:
        faults.append(f"ended as {result.state} instead of {' or '.join(attack.states)}")
    if result.seconds > limits.seconds + _SLACK_SECONDS:
        faults.append(f"ran for {result.seconds:.2f} s")
    if answers.read_text() != _SECRET:
        faults.append("changed a file of the host")
    program, given, expected = _NORMAL
    after = run(program, given, limits)
    if after.state != "finished" or after.stdout != expected:
        faults.append(f"a normal program afterwards: {after.state} {after.stderr[-200:]}")
    return Defence(attack.name, not faults, "; ".join(faults) or text[:80], result.state, result.seconds)
