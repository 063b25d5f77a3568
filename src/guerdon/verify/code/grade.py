"""Grading one completion against one task, in the process that knows the answers and never runs the code."""

from __future__ import annotations

import json
import secrets
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, Protocol

from guerdon.backends.sandbox.inside.values import NotPlain, decode, encode
from guerdon.backends.sandbox.result import Infrastructure, Limits, Refused, Result

from .compare import equal, same_text
from .extract import Extracted, defines, extract_code, parsed
from .literal import Assertion, Escalate, Plan, assertion_texts, called_name, holds, plan
from .tasks import CallTask, Case, StdioTask, Task, TaskError, TestTask
from .verdict import TestOutcome, Verdict

_MAX_LINE: Final = 4 << 20
_MAX_NOTES: Final = 64


class Sandbox(Protocol):
    """What grading needs of an isolating back end."""

    def run_program(self, program: str, stdin: bytes, limits: Limits) -> Result: ...

    def answer_calls(self, payload: dict[str, Any], limits: Limits) -> Result: ...

    def examine(
        self, program: str, tests: dict[str, Any], limits: Limits, test_limits: Limits
    ) -> tuple[Result, Result]: ...


RunProgram = Callable[[str, bytes, Limits], Result]


def grade(
    completion: str,
    task: Task,
    sandbox: Sandbox,
    limits: Limits,
    language: str = "python",
    run: RunProgram | None = None,
) -> Verdict:
    """The verdict; never raises for anything the completion or its program does. `run`: for programs not in Python."""
    entry_point = "" if isinstance(task, StdioTask) else task.entry_point
    extracted = extract_code(completion, language=language, entry_point=entry_point)
    if isinstance(task, CallTask):
        verdict = _grade_calls(extracted, task, sandbox, limits)
    elif isinstance(task, StdioTask):
        verdict = _grade_stdio(extracted, task, run or sandbox.run_program, sandbox, limits)
    else:
        verdict = _grade_tests(extracted, task, sandbox, limits)
    return replace(verdict, extracted=extracted)


def program_text(extracted: Extracted, task: CallTask | TestTask) -> str:
    """The program to run: setup, then the prompt where it is code, then the completion as a whole or as a body."""
    code, prompt = extracted.code, task.prompt
    if prompt and (whole := _completed(prompt)) is not None:
        if defines(code, task.entry_point):
            code = f"{whole}\n\n{code}"
        elif code.strip() and not code.startswith((" ", "\t", "\n")) and parsed(prompt + code) is None:
            code = prompt + textwrap.indent(code, "    ")
        else:
            code = prompt + code
    return f"{task.setup}\n{code}" if task.setup else code


def _completed(prompt: str) -> str | None:
    """The prompt as a program of its own (a signature without docstring gets a body); None for one that is not code."""
    return next((text for text in (prompt, f"{prompt}    pass\n") if parsed(text) is not None), None)


def _grade_calls(extracted: Extracted, task: CallTask, sandbox: Sandbox, limits: Limits) -> Verdict:
    payload = {
        "program": program_text(extracted, task),
        "entry_point": task.entry_point,
        "calls": [_call(case, task.in_place) for case in task.cases],
    }
    result = sandbox.answer_calls(payload, limits)
    notes: list[str] = []
    replies = list(_replies(result.reply, notes))
    answers = [reply for reply in replies if "id" in reply]
    tests = [_judge(number, case, answers, task) for number, case in enumerate(task.cases)]
    return _from_calls(result, replies, len(task.cases), tests, notes)


def _from_calls(
    result: Result, replies: list[dict[str, Any]], calls: int, tests: list[TestOutcome], notes: list[str]
) -> Verdict:
    """The verdict on answered calls: all of them, or the reason why not."""
    failure = next((reply["load"] for reply in replies if "load" in reply), None)
    if failure is not None:
        tests = [TestOutcome(test.name, False, "the program did not load") for test in tests]
        return _verdict(result, tests, notes, "the program did not load: " + _described(failure))
    missing = calls - sum("id" in reply for reply in replies)
    if missing and result.state == "finished":
        notes.append(f"ended the process (exit code {result.exit_code}) with {missing} calls unanswered")
    if missing:
        first = next((number for number, test in enumerate(tests) if test.passed is None), None)
        if first is not None:
            tests[first] = replace(tests[first], passed=False, reason=_shortfall(result))
        return _verdict(result, tests, notes, _shortfall(result))
    return _verdict(result, tests, notes)


def _call(case: Case, in_place: bool) -> dict[str, Any]:
    try:
        arguments = [encode(item) for item in case.arguments]
        named = {name: encode(value) for name, value in case.named.items()}
    except NotPlain as error:
        raise TaskError(f"a case's argument can't cross to the sandbox: {error}") from error
    return {"args": arguments, "kwargs": named, "in_place": in_place}


def _replies(data: bytes, notes: list[str]) -> Iterator[dict[str, Any]]:
    """Well-formed reply lines in exact sequence; stops at the first that is not, noting it."""
    expected = 0
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
                notes.append(reply["note"][:200])
        elif "load" in reply or "end" in reply:
            yield reply
        elif type(reply.get("id")) is int and reply["id"] == expected and ("value" in reply) != ("raised" in reply):
            expected += 1
            yield reply
        else:
            notes.append("answered out of sequence")
            return


def _judge(number: int, case: Case, answers: list[dict[str, Any]], task: CallTask) -> TestOutcome:
    name = f"case {number}"
    if number >= len(answers):
        return TestOutcome(name, None, "not run")
    answer = answers[number]
    if "raised" in answer:
        return TestOutcome(name, False, "raised " + _described(answer["raised"]))
    try:
        value = decode(answer["value"])
        passed = equal(case.expected, list(value) if task.in_place else value, task.tolerance)
    except (NotPlain, RecursionError) as error:
        return TestOutcome(name, False, f"no plain value: {error}")
    return TestOutcome(name, passed, "" if passed else f"returned {_shown(value)}, expected {_shown(case.expected)}")


def _described(failure: Any) -> str:
    if type(failure) is not dict or type(failure.get("types")) is not list or not failure["types"]:
        return "an exception"
    return f"{str(failure['types'][0])[:80]}: {str(failure.get('text', ''))[:200]}"


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an int beyond the digit limit, or very deep
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def _shortfall(result: Result) -> str:
    return result.reason or f"the process ended with exit code {result.exit_code} before it had answered"


def _verdict(result: Result, tests: list[TestOutcome], notes: list[str], reason: str = "") -> Verdict:
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


def _grade_stdio(extracted: Extracted, task: StdioTask, run: RunProgram, sandbox: Sandbox, limits: Limits) -> Verdict:
    tests: list[TestOutcome] = []
    worst: Result | None = None
    for number, (given, expected) in enumerate(task.pairs):
        result = run(extracted.code, given.encode("utf-8", "surrogatepass"), limits)
        tests.append(_judge_output(f"case {number}", given, expected, result, task, sandbox, limits))
        if (
            worst is None
            or result.state != "finished"
            or (worst.state == "finished" and result.seconds > worst.seconds)
        ):
            worst = result
        if result.state in ("refused", "infrastructure"):
            break
    assert worst is not None
    if any(test.passed is None for test in tests) and not any(test.passed is False for test in tests):
        unknown = next(test for test in tests if test.passed is None)
        return replace(_verdict(worst, tests, []), passed=None, reason=f"{unknown.name}: {unknown.reason}")
    return _verdict(worst, tests, [])


def _judge_output(
    name: str, given: str, expected: str, result: Result, task: StdioTask, sandbox: Sandbox, limits: Limits
) -> TestOutcome:
    if result.state in ("refused", "infrastructure"):
        return TestOutcome(name, None, result.reason)
    if result.state != "finished":
        return TestOutcome(name, False, result.reason)
    if result.exit_code != 0:
        last = result.stderr.strip().rpartition("\n")[2]
        return TestOutcome(name, False, f"exit code {result.exit_code}: {last[:200]}")
    if task.checker:
        return _ask_checker(name, given, expected, result.stdout, task.checker, sandbox, limits)
    passed = same_text(expected, result.stdout, task.rule, task.tolerance)
    return TestOutcome(name, passed, "" if passed else f"wrote {_shown(result.stdout)}, expected {_shown(expected)}")


def _ask_checker(
    name: str, given: str, expected: str, output: str, checker: str, sandbox: Sandbox, limits: Limits
) -> TestOutcome:
    """A checker program reads {"input", "expected", "output"} as JSON and exits with 0 (accept) or 1 (reject)."""
    question = json.dumps({"input": given, "expected": expected, "output": output}).encode()
    answer = sandbox.run_program(checker, question, limits)
    if answer.state == "finished" and answer.exit_code in (0, 1) and "Traceback" not in answer.stderr:
        return TestOutcome(name, answer.exit_code == 0, answer.stdout.strip()[:200])
    return TestOutcome(
        name, None, f"the checker failed ({answer.state}): {answer.stderr.strip()[-200:] or answer.reason}"
    )


def _grade_tests(extracted: Extracted, task: TestTask, sandbox: Sandbox, limits: Limits) -> Verdict:
    simple = plan(task)
    if simple is not None:
        try:
            return _grade_simple(extracted, task, simple, sandbox, limits)
        except Escalate:
            pass  # a value or a step that only the tests themselves can judge
    return _grade_apart(extracted, task, sandbox, limits)


def _grade_simple(extracted: Extracted, task: TestTask, simple: Plan, sandbox: Sandbox, limits: Limits) -> Verdict:
    program = program_text(extracted, task)
    payload = {"program": program, "entry_point": simple.entry_point, "calls": list(simple.calls)}
    result = sandbox.answer_calls(payload, limits)
    notes: list[str] = []
    replies = list(_replies(result.reply, notes))
    answers = [reply for reply in replies if "id" in reply]
    tests = [_judge_assertion(assertion, answers) for assertion in simple.assertions]
    return _from_calls(result, replies, len(simple.calls), tests, notes)


def _judge_assertion(assertion: Assertion, answers: list[dict[str, Any]]) -> TestOutcome:
    values: dict[int, Any] = {}
    for number in assertion.calls.values():
        if number >= len(answers):
            return TestOutcome(assertion.text, None, "not run")
        answer = answers[number]
        if "raised" in answer:
            if (answer["raised"] or {}).get("types", [""])[0] == "NotPlain":
                raise Escalate
            return TestOutcome(assertion.text, False, "raised " + _described(answer["raised"]))
        try:
            values[number] = decode(answer["value"])
        except (NotPlain, RecursionError) as error:
            return TestOutcome(assertion.text, False, f"no plain value: {error}")
    try:
        passed = holds(assertion, values)
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        return TestOutcome(assertion.text, False, f"{type(error).__name__}: {error}"[:300])
    shown = ", ".join(_shown(value) for value in values.values())
    return TestOutcome(assertion.text, passed, "" if passed else f"assertion failed; returned {shown}"[:300])


def _grade_apart(extracted: Extracted, task: TestTask, sandbox: Sandbox, limits: Limits) -> Verdict:
    """The tests in a job of their own."""
    nonce = secrets.token_hex(16)
    orders = {
        "form": task.form,
        "test": task.tests[0],
        "tests": list(task.tests),
        "entry_point": task.entry_point or called_name(task),
        "prompt": _completed(task.prompt) or "",
        "setup": task.setup,
        "module": task.module,
        "nonce": nonce,
    }
    try:
        tester, candidate = sandbox.examine(program_text(extracted, task), orders, limits, limits)
    except (Infrastructure, Refused) as error:
        state = "infrastructure" if isinstance(error, Infrastructure) else "refused"
        return Verdict(None, f"{state}: {error}", [], state=state)
    notes: list[str] = []
    list(_replies(candidate.reply, notes))
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
        return _verdict(
            replace(candidate, state="timeout"),
            [TestOutcome(n, None, "timed out") for n in names],
            notes,
            tester.reason,
        )
    if candidate.state in ("memory", "output", "crash"):
        return _verdict(candidate, [TestOutcome(n, None, "not run") for n in names], notes, candidate.reason)
    if tester.state in ("memory", "output"):  # tests that pass elsewhere do so only on what a program makes them hold
        reason = f"the tests {tester.reason} on what the program returned"
        return _verdict(candidate, [TestOutcome(n, None, "not run") for n in names], notes, reason)
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
        return _verdict(candidate, tests, notes, ended or text)
    if kind:
        return Verdict(None, f"{kind}: {text}", tests, notes, candidate.state)
    if report["assertions"] < 1 and not any(test.passed is False for test in tests):
        return Verdict(None, "the tests ran no assertion", tests, notes, candidate.state)
    return _verdict(candidate, tests, notes)
