"""Every program that tries to get out of the sandbox fails to, and leaves a service that works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guerdon.backends.sandbox import Limits, Zygote, describe_isolation, run_python
from guerdon.backends.sandbox.attacks import Attack, attacks, run_attack_suite

pytestmark = pytest.mark.skipif(not describe_isolation().available, reason=describe_isolation().reason)
_LIMITS = Limits(seconds=0.7, memory_bytes=256 << 20)


def _hold(corpus: list[Attack]) -> None:
    faults = {
        defence.name: defence.seen
        for defence in run_attack_suite(Zygote().run_program, corpus, _LIMITS)
        if not defence.held
    }
    assert faults == {}


def test_no_program_of_our_own_corpus_gets_out():
    assert len(attacks()) >= 180
    _hold(attacks())


def _published(shared_data: Path) -> dict[str, str]:
    rows = map(json.loads, (shared_data / "sandbox" / "programs.jsonl").read_text().splitlines())
    return {row["name"]: row["program"] for row in rows if row["kind"] == "escape"}


def test_no_program_of_the_published_corpus_harms_the_service(shared_data):
    programs = _published(shared_data)
    assert len(programs) == 15
    _hold([Attack(name, program) for name, program in programs.items()])


@pytest.mark.parametrize(
    ("name", "state", "lacks"),
    [
        ("/proc of parent", "finished", "="),
        ("exec shell", "finished", "uid="),
        ("inherited fds", "finished", ", "),
        ("network", "finished", "connected"),
        ("infinite loop ignoring SIGTERM/SIGINT", "timeout", "x"),
        ("sleep forever", "timeout", "x"),
        ("stdout flood", "output", "y"),
        ("segfault", "crash", "x"),
        ("raise rlimit", "finished", "x"),
    ],
)
def test_a_published_program_ends_in_the_state_that_says_what_happened(shared_data, name, state, lacks):
    result = run_python(_published(shared_data)[name], seconds=0.7)
    assert result.state == state
    assert lacks not in result.stdout


def test_a_published_program_sees_no_process_and_gains_nothing(shared_data):
    programs = _published(shared_data)
    assert run_python(programs["kill host pids"]).stdout == "visible 0\n"
    assert run_python(programs["ptrace"]).stdout == "-1 1\n"
    assert run_python(programs["userns escape"]).stdout == "-1 1\n"
    assert "ValueError" in run_python(programs["raise rlimit"]).stderr
    assert run_python(programs["write gigabytes /tmp"]).stdout.startswith("1")
    bomb = run_python(programs["fork bomb"])
    assert int(bomb.stdout.splitlines()[0].split()[2]) < 64
