"""Grading one completion against one task, in the process that knows the answers and never runs the code."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Protocol

from guerdon.backends.sandbox.inside.values import NotPlain, decode, encode
from guerdon.backends.sandbox.result import Limits, Result

from .apart import Examines, grade_apart
from .asked import names_asked
from .compare import equal, same_text
from .extract import Extracted, defines, extract_code, parsed
from .literal import Assertion, Escalate, Plan, holds, plan
from .replies import conclude, described, first_number, read_replies, shown
from .tasks import CallTask, Case, StdioTask, Task, TaskError, TestTask
from .verdict import TestOutcome, Verdict


class Sandbox(Examines, Protocol):
    """What grading needs of an isolating back end."""

    def run_program(self, program: str, stdin: bytes, limits: Limits) -> Result: ...

    def answer_calls(self, payload: dict[str, Any], limits: Limits) -> Result: ...


_CONTROL: Final = re.compile(r"[\x08\x1b\u200b]|\r(?!\n)")
_IGNORED_OUTPUT: Final = 16 << 20
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
    extracted = extract_code(completion, language=language, entry_point=names_asked(task))
    if not isinstance(task, StdioTask):  # what such a program prints is nobody's business
        limits = limits.with_changes(output_bytes=max(limits.output_bytes, _IGNORED_OUTPUT))
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
    """The prompt as a program of its own (a signature without docstring gets a body); None for one that is not code.

    Code is what defines something: words such as "Sum" or "a = b" parse as well.
    """
    return next((text for text in (prompt, f"{prompt}    pass\n") if _defines_something(parsed(text))), None)


def _defines_something(tree: ast.Module | None) -> bool:
    return tree is not None and any(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) for node in tree.body
    )


def _grade_calls(extracted: Extracted, task: CallTask, sandbox: Sandbox, limits: Limits) -> Verdict:
    calls = [_call(case, task.in_place) for case in task.cases]
    result, replies, notes = _ask(program_text(extracted, task), task.entry_point, calls, sandbox, limits)
    answers = [reply for reply in replies if "id" in reply]
    tests = [_judge(number, case, answers, task) for number, case in enumerate(task.cases)]
    return _from_calls(result, replies, len(task.cases), tests, notes)


def _ask(
    program: str, entry_point: str, calls: list[dict[str, Any]], sandbox: Sandbox, limits: Limits
) -> tuple[Result, list[dict[str, Any]], list[str]]:
    """How the job ended, its replies, and what is to be noted."""
    first = first_number()
    payload = {"program": program, "entry_point": entry_point, "calls": calls, "first": first}
    result = sandbox.answer_calls(payload, limits)
    notes: list[str] = []
    return result, list(read_replies(result.reply, notes, first)), notes


def _from_calls(
    result: Result, replies: list[dict[str, Any]], calls: int, tests: list[TestOutcome], notes: list[str]
) -> Verdict:
    """The verdict on answered calls: all of them, or the reason why not."""
    failure = next((reply["load"] for reply in replies if "load" in reply), None)
    if failure is not None:
        tests = [TestOutcome(test.name, False, "the program did not load") for test in tests]
        return conclude(result, tests, notes, "the program did not load: " + described(failure))
    missing = calls - sum("id" in reply for reply in replies)
    if missing and result.state == "finished":
        notes.append(f"ended the process (exit code {result.exit_code}) with {missing} calls unanswered")
    if missing:
        first = next((number for number, test in enumerate(tests) if test.passed is None), None)
        if first is not None:
            tests[first] = replace(tests[first], passed=False, reason=_shortfall(result))
        return conclude(result, tests, notes, _shortfall(result))
    return conclude(result, tests, notes)


def _call(case: Case, in_place: bool) -> dict[str, Any]:
    try:
        arguments = [encode(item) for item in case.arguments]
        named = {name: encode(value) for name, value in case.named.items()}
    except NotPlain as error:
        raise TaskError(f"a case's argument can't cross to the sandbox: {error}") from error
    return {"args": arguments, "kwargs": named, "in_place": in_place}


def _judge(number: int, case: Case, answers: list[dict[str, Any]], task: CallTask) -> TestOutcome:
    name = f"case {number}"
    if number >= len(answers):
        return TestOutcome(name, None, "not run")
    answer = answers[number]
    if "raised" in answer:
        return TestOutcome(name, False, "raised " + described(answer["raised"]))
    try:
        value = decode(answer["value"])
        passed = equal(list(case.expected) if task.in_place else case.expected, value, task.tolerance)
    except (NotPlain, RecursionError) as error:
        return TestOutcome(name, False, f"no plain value: {error}")
    return TestOutcome(name, passed, "" if passed else f"returned {shown(value)}, expected {shown(case.expected)}")


def _shortfall(result: Result) -> str:
    return result.reason or f"the process ended with exit code {result.exit_code} before it had answered"


def _grade_stdio(extracted: Extracted, task: StdioTask, run: RunProgram, sandbox: Sandbox, limits: Limits) -> Verdict:
    tests: list[TestOutcome] = []
    notes: list[str] = []
    worst: Result | None = None
    for number, (given, expected) in enumerate(task.pairs):
        result = run(extracted.code, given.encode("utf-8", "surrogatepass"), limits)
        tests.append(_judge_output(f"case {number}", given, expected, result, task, sandbox, limits))
        if _CONTROL.search(result.stdout) and not _CONTROL.search(expected):
            notes.append("wrote control characters that hide what is written")
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
        return replace(conclude(worst, tests, notes), passed=None, reason=f"{unknown.name}: {unknown.reason}")
    return conclude(worst, tests, notes)


def _judge_output(
    name: str, given: str, expected: str, result: Result, task: StdioTask, sandbox: Sandbox, limits: Limits
) -> TestOutcome:
    if result.state in ("refused", "infrastructure"):
        return TestOutcome(name, None, result.reason)
    if result.state != "finished":
        return TestOutcome(name, False, result.reason)
    if result.exit_code != 0:
        last = result.stderr.strip().rpartition("\n")[2]
        return TestOutcome(name, False, f"{result.reason or f'exit code {result.exit_code}'}: {last[:200]}")
    if task.checker:
        return _ask_checker(name, given, expected, result.stdout, task.checker, sandbox, limits)
    passed = same_text(expected, result.stdout, task.rule, task.tolerance)
    return TestOutcome(name, passed, "" if passed else f"wrote {shown(result.stdout)}, expected {shown(expected)}")


def _ask_checker(
    name: str, given: str, expected: str, output: str, checker: str, sandbox: Sandbox, limits: Limits
) -> TestOutcome:
    """A checker program reads {"input", "expected", "output"} as JSON and exits with 0 (accept) or 1 (reject).

    One that breaks on this output though it accepts the expected one has been given what no checker can read: reject.
    """
    accepted, why = _run_checker(given, expected, output, checker, sandbox, limits)
    if accepted is None and expected.strip() and _run_checker(given, expected, expected, checker, sandbox, limits)[0]:
        return TestOutcome(name, False, f"output that the checker can't read: {why}")
    return TestOutcome(name, accepted, why)


# An exception of a checker's must not look like its exit code 1, and what it writes is no sign of one.
_CHECKER = """\
import sys, traceback
try:
    exec(compile({source!r}, "checker.py", "exec"), {{"__name__": "__main__"}})
except Exception:
    traceback.print_exc()
    sys.exit(3)
"""


def _run_checker(
    given: str, expected: str, output: str, checker: str, sandbox: Sandbox, limits: Limits
) -> tuple[bool | None, str]:
    question = json.dumps({"input": given, "expected": expected, "output": output}).encode()
    answer = sandbox.run_program(_CHECKER.format(source=checker), question, limits)
    if answer.state == "finished" and answer.exit_code in (0, 1):
        return answer.exit_code == 0, answer.stdout.strip()[:200]
    return None, f"the checker failed ({answer.state}): {answer.stderr.strip()[-200:] or answer.reason}"


def _grade_tests(extracted: Extracted, task: TestTask, sandbox: Sandbox, limits: Limits) -> Verdict:
    simple = plan(task)
    if simple is not None:
        try:
            return _grade_simple(extracted, task, simple, sandbox, limits)
        except Escalate:
            pass  # a value or a step that only the tests themselves can judge
    return grade_apart(program_text(extracted, task), _completed(task.prompt) or "", task, sandbox, limits)


def _grade_simple(extracted: Extracted, task: TestTask, simple: Plan, sandbox: Sandbox, limits: Limits) -> Verdict:
    program = program_text(extracted, task)
    result, replies, notes = _ask(program, simple.entry_point, list(simple.calls), sandbox, limits)
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
            if described(answer["raised"]).startswith("NotPlain:"):
                raise Escalate
            return TestOutcome(assertion.text, False, "raised " + described(answer["raised"]))
        try:
            values[number] = decode(answer["value"])
        except (NotPlain, RecursionError) as error:
            return TestOutcome(assertion.text, False, f"no plain value: {error}")
    try:
        passed = holds(assertion, values)
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        return TestOutcome(assertion.text, False, f"{type(error).__name__}: {error}"[:300])
    returned = ", ".join(shown(value) for value in values.values())
    return TestOutcome(assertion.text, passed, "" if passed else f"assertion failed; returned {returned}"[:300])
