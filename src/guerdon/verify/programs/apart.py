"""Tests that need a job of their own, the tester, and what its report is worth."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from typing import Any, Protocol

from guerdon.backends.sandbox.result import Infrastructure, Limits, Refused, Result

from .literal import assertion_texts, called_name
from .replies import conclude, read_replies
from .tasks import TestTask
from .verdict import TestOutcome, Verdict


class Examines(Protocol):
    """What this needs of a back end."""

    def examine(
        self, program: str, tests: dict[str, Any], limits: Limits, test_limits: Limits
    ) -> tuple[Result, Result]: ...


def grade_apart(program: str, prompt: str, task: TestTask, sandbox: Examines, limits: Limits) -> Verdict:
    """The verdict of tests that run in a job of their own. `prompt`: the task's prompt where it is code."""
    nonce = secrets.token_hex(16)
    orders = {
        "form": task.form,
        "test": task.tests[0],
        "tests": list(task.tests),
        "entry_point": task.entry_point or called_name(task),
        "prompt": prompt,
        "setup": task.setup,
        "module": task.module,
        "nonce": nonce,
    }
    try:
        tester, candidate = sandbox.examine(program, orders, limits, limits)
    except (Infrastructure, Refused) as error:
        state = "infrastructure" if isinstance(error, Infrastructure) else "refused"
        return Verdict(None, f"{state}: {error}", [], state=state)
    notes: list[str] = []
    list(read_replies(candidate.reply, notes))
    report = _report(tester, nonce)
    if report is None:
        return _no_report(task, tester, candidate, notes)
    return _read_report(task, report, candidate, notes)


def _report(tester: Result, nonce: str) -> dict[str, Any] | None:
    """The tester's report, believed only with this run's nonce and exit status 0."""
    if tester.state != "finished" or tester.exit_code != 0:
        return None
    try:
        report = json.loads(tester.reply)
    except (ValueError, RecursionError):
        return None
    return report if type(report) is dict and secrets.compare_digest(str(report.get("nonce")), nonce) else None


def _no_report(task: TestTask, tester: Result, candidate: Result, notes: list[str]) -> Verdict:
    names = assertion_texts(task)
    if tester.state == "timeout":
        return conclude(
            replace(candidate, state="timeout"),
            [TestOutcome(n, None, "timed out") for n in names],
            notes,
            tester.reason,
        )
    if candidate.state in ("memory", "output", "crash"):
        return conclude(candidate, [TestOutcome(n, None, "not run") for n in names], notes, candidate.reason)
    if tester.state in ("memory", "output"):  # tests that pass elsewhere do so only on what a program makes them hold
        reason = f"the tests {tester.reason} on what the program returned"
        return conclude(candidate, [TestOutcome(n, None, "not run") for n in names], notes, reason)
    why = f"the tests ended without a report ({tester.state}, exit code {tester.exit_code}): {tester.stderr[-300:]}"
    return Verdict(None, why, [], notes, tester.state)


def _read_report(task: TestTask, report: dict[str, Any], candidate: Result, notes: list[str]) -> Verdict:
    tests = [TestOutcome(str(name), passed, str(why or "")) for name, passed, why in report["entries"]]
    kind, text = report["problem"] or ("", "")
    if report["changed_arguments"]:
        notes.append("changed its arguments")
    if report["compared_opaque"]:
        notes.append("returned an object of its own where the tests compare plain values")
    if kind == "candidate":
        tests = tests or [TestOutcome(name, None, "not run") for name in assertion_texts(task)]
        ended = candidate.reason if candidate.state in ("memory", "output", "crash") else ""
        if text == "the candidate's process ended" and not ended:
            notes.append(f"ended the process (exit code {candidate.exit_code}) before the tests were over")
        return conclude(candidate, tests, notes, ended or text)
    if kind:
        return Verdict(None, f"{kind}: {text}", tests, notes, candidate.state)
    if report["assertions"] < 1 and not any(test.passed is False for test in tests):
        return Verdict(None, "the tests ran no assertion", tests, notes, candidate.state)
    return conclude(candidate, tests, notes)
