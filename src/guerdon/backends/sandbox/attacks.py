"""Programs that try to get out, use up, or outlast the sandbox, and a run of them all against a back end.

Each is written so that it prints ESCAPED when, and only when, it got what it wanted. Never run them without
isolation: the runner refuses to.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path

from .pool import slots_by_default
from .result import Limits, Result
from .zygote import Zygote

# What a job must find whatever the one before it did: a clean /tmp, its modules, its limits, and time.
_NORMAL = """
import os, resource
own = sorted(set(os.listdir("/tmp")) - {"program.py"})
limits = [resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] > 8 for name in ("NOFILE", "NPROC", "STACK")]
print(sum(range(int(input()))), own, limits, os.cpu_count() > 0, os.getpid() < 9)
"""
_EXPECTED = "45 [] [True, True, True] True True\n"
_SECRET = "SECRET-of-the-host"
_SLACK_SECONDS = 2.0  # on a busy host; 0.2 on an idle one

Run = Callable[[str, bytes, Limits], Result]


@dataclass(frozen=True, slots=True)
class Attack:
    """`states`: the only states it may end in; empty for any but a refusal or our own failure. `shared_kernel`: it gets
    out only where the host's kernel answers; from a kernel of the sandbox's own it gets what is not the host's.
    `many_files`: nothing but a limit on the number of files stops it."""

    name: str
    program: str
    states: tuple[str, ...] = ()
    shared_kernel: bool = False
    many_files: bool = False


@dataclass(frozen=True, slots=True)
class Defence:
    """How one attack went: `held` and, if not, what was seen."""

    name: str
    held: bool
    seen: str
    state: str
    seconds: float


def attacks(backend: str = "auto") -> list[Attack]:
    """The corpus that ships with the package; for "gvisor" without what gets nothing of the host's there, and what only
    a limit on the number of files stops, which its /tmp lacks (memory bounds them)."""
    text = (resources.files(__package__) / "data" / "escapes.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    known = [Attack(**{**row, "states": tuple(row.get("states", ()))}) for row in rows]
    return [attack for attack in known if backend != "gvisor" or not (attack.shared_kernel or attack.many_files)]


def run_attack_suite(
    run: Run | None = None,
    corpus: list[Attack] | None = None,
    limits: Limits | None = None,
    *,
    at_once: int | None = None,
) -> Iterator[Defence]:
    """Each attack through `run` (a method of an isolating back end), followed by a normal program that must still work.

    `run` is a back end's `run_program`; by default the fork server's. `at_once`: how many attacks run at a time, by
    default as many as there are processors. Yields in the corpus's order as it goes; takes about one limit's seconds
    for each endless attack.
    """
    limits = limits or Limits(seconds=1.0, memory_bytes=256 << 20)
    run = run or Zygote().run_program
    with tempfile.TemporaryDirectory(prefix="guerdon-attack-") as folder:
        answers = Path(folder) / "answers.txt"
        answers.write_text(_SECRET)
        answers.chmod(0o644)
        Path(folder).chmod(0o755)
        attempt = partial(_attempt, run=run, answers=answers, limits=limits)
        with ThreadPoolExecutor(at_once or slots_by_default()) as threads:
            yield from threads.map(attempt, attacks() if corpus is None else corpus)


def _attempt(attack: Attack, run: Run, answers: Path, limits: Limits) -> Defence:
    result = run(attack.program.replace("{ANSWER_FILE}", str(answers)), b"", limits)
    return _judge(attack, result, run, answers, limits)


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
    after = run(_NORMAL, b"10\n", replace(limits, seconds=limits.seconds + 5 * _SLACK_SECONDS))
    if after.state != "finished" or after.stdout != _EXPECTED:
        faults.append(f"a normal program afterwards: {after.state} {after.stdout[:200]} {after.stderr[-200:]}")
    return Defence(attack.name, not faults, "; ".join(faults) or text[:80], result.state, result.seconds)
