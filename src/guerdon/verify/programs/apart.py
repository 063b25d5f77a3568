"""Tests that need a job of their own, the tester, and what its report is worth."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from typing import Any, Protocol

from guerdon.backends.sandbox.result import Infrastructure, Limits, Refused, Result

from .asked import assertion_texts, called_name
from .replies import EXIT_NOTE, conclude, first_number, read_replies
from .tasks import TestTask
from .verdict import TestOutcome, Verdict


class Examines(Protocol):
    """What this needs of a back end."""

    def examine(
        self, program: str, tests: dict[str, Any], limits: Limits, test_limits: Limits
    ) -> tuple[Result, Result]: ...


def grade_apart(program: str, prompt: str, task: TestTask, sandbox: Examines, limits: Limits) -> Verdict:
    """The verdict of tests that run in a job of their own. `prompt`: the task's prompt where it is code.

    Tests that pass a program which has changed its arguments run once more with the tests' own values kept as they
    were: `ordered(xs) == sorted(xs)` says nothing after `xs.clear()`.
    """
    orders = {
        "form": task.form,
        "test": task.tests[0],
        "tests": list(task.tests),
        "entry_point": task.entry_point or called_name(task),
        "prompt": prompt,
        "setup": task.setup,
        "module": task.module,
    }
    try:
        verdict, report = _examine(program, orders, task, sandbox, limits)
        if verdict.passed and report["changed_arguments"]:
            _, again = _examine(program, {**orders, "withhold": True}, task, sandbox, limits)
            if again.get("circular"):
                return _by_its_arguments(verdict, [str(text) for text in again["circular"]])
    except (Infrastructure, Refused) as error:
        state = "infrastructure" if isinstance(error, Infrastructure) else "refused"
        return Verdict(None, f"{state}: {error}", [], state=state)
    return verdict


def _examine(
    program: str, orders: dict[str, Any], task: TestTask, sandbox: Examines, limits: Limits
) -> tuple[Verdict, dict[str, Any]]:
    nonce = secrets.token_hex(16)
    orders = {**orders, "nonce": nonce, "first": first_number()}
    tester, candidate = sandbox.examine(program, orders, limits, limits)
    notes: list[str] = []
    list(read_replies(candidate.reply, notes))
    report = _report(tester, nonce)
    if report is None:
        return _no_report(task, tester, candidate, notes), {}
    return _read_report(task, report, candidate, notes), report


def _by_its_arguments(verdict: Verdict, texts: list[str]) -> Verdict:
    reason = f"true only because the program changed its arguments: {texts[0]}"
    tests = [replace(test, passed=False, reason=reason) if test.name in texts else test for test in verdict.tests]
    return replace(verdict, passed=False, reason=reason, tests=tests, tampering=[*verdict.tampering, reason])


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
    if report["exits"] and not any("SystemExit" in test for test in task.tests):
        notes.append(EXIT_NOTE)
    if report["compared_opaque"]:
        notes.append("returned an object of its own where the tests compare plain values")
    if kind == "candidate":
        tests = tests or [TestOutcome(name, None, "not run") for name in assertion_texts(task)]
        ended = candidate.reason if candidate.state in ("memory", "output", "crash") else ""
        if text == "the candidate's process ended" and not ended:
            notes.append(f"ended the process (exit code {candidate.exit_code}) before the tests were over")
        return conclude(candidate, tests, notes, ended or text)
    failed = any(test.passed is False for test in tests)
    if kind == "test" or (kind and not failed):
        return Verdict(None, f"{kind}: {text}", tests, notes, candidate.state)
    unknown = next((test for test in tests if test.passed is None), None)
    if unknown is not None and not failed:
        return Verdict(None, f"unsupported: {unknown.name}: {unknown.reason}", tests, notes, candidate.state)
    if report["assertions"] < 1 and not failed:
        if report["orders"] and assertion_texts(task):
            return conclude(candidate, tests, notes, "no assertion ran on what the program returned")
        return Verdict(None, "the tests ran no assertion", tests, notes, candidate.state)
    return conclude(candidate, tests, notes)
