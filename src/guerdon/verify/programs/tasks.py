"""The forms a coding task can come in, each read into one small value."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guerdon.core.errors import GuerdonError

from .compare import STANDARD, TextRule, Tolerance
from .extract import parsed


class TaskError(GuerdonError, ValueError):
    """A row that is no coding task; the message names the forms that are."""


@dataclass(frozen=True, slots=True)
class Case:
    """One call: positional and named arguments, and the value expected of it."""

    arguments: tuple[Any, ...]
    expected: Any
    named: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallTask:
    """Function call cases, compared by the parent. `in_place`: the arguments after the call are the answer."""

    entry_point: str
    cases: tuple[Case, ...]
    prompt: str = ""
    setup: str = ""
    tolerance: Tolerance = STANDARD
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class StdioTask:
    """Whole programs: (input, expected output) pairs, compared by a rule or by a checker program."""

    pairs: tuple[tuple[str, str], ...]
    rule: TextRule = "tokens"
    checker: str = ""
    tolerance: Tolerance = STANDARD


@dataclass(frozen=True, slots=True)
class TestTask:
    """Trusted test code: `form` "check" (defines check(candidate)), "asserts" (`tests` one by one), "file" (pytest,
    unittest)."""

    __test__ = False  # a task, not a test case of ours

    form: str
    tests: tuple[str, ...]
    entry_point: str = ""
    prompt: str = ""
    setup: str = ""
    module: str = "solution"


Task = CallTask | StdioTask | TestTask
TEST_COLUMNS = frozenset({"cases", "input_output", "pytest", "stdio", "test", "test_list"})
"""Columns that make a row a coding task; the others say more about it."""
_FORMS = (
    "HumanEval (prompt, test, entry_point), MBPP (test_list, test_setup_code), {entry_point, cases}, "
    "{entry_point, test}, {stdio: [[input, output], ...]}, {input_output: {inputs, outputs, fn_name}}, {pytest: source}"
)


def read_task(row: Mapping[str, Any]) -> Task:
    """The task in a row; raises `TaskError` saying what is missing.

    >>> read_task({"entry_point": "add", "cases": [[[2, 3], 5]]}).cases[0].expected
    5
    """
    if "cases" in row:
        return _call_task(row, _text(row, "entry_point"), row["cases"])
    if "stdio" in row:
        return _stdio_task(row, row["stdio"])
    if "input_output" in row:
        return _input_output(row)
    if "pytest" in row:
        return TestTask("file", (_text(row, "pytest"),), module=str(row.get("module", "solution")))
    if "test_list" in row or isinstance(row.get("test"), (list, tuple)):
        return _mbpp(row)
    if isinstance(row.get("test"), str):
        return _test_source(row, row["test"])
    raise TaskError(f"no coding task in a row with the keys {sorted(map(str, row))}; known forms: {_FORMS}")


def task_in(given: Any, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The task in one column, as published sets write it; `row` holds the columns beside it (`entry_point`...).

    A mapping is a task, or the `inputs` and `outputs` of APPS. A list holds assert statements, input and output pairs
    (as lists, or as mappings as in LiveCodeBench), or call cases. Text is any of these in JSON, assert statements, or
    test code. Raises `TaskError` for anything else.

    >>> task_in('{"inputs": ["1"], "outputs": ["2"]}', {})
    {'input_output': {'inputs': ['1'], 'outputs': ['2']}}
    >>> task_in("assert f(1) == 2", {})
    {'test_list': ['assert f(1) == 2']}
    """
    beside = {key: value for key, value in row.items() if key not in TEST_COLUMNS}
    if isinstance(given, str):
        if given.lstrip()[:1] in ("{", "["):
            return task_in(_json(given), beside)
        return beside | _source(given)
    if isinstance(given, Mapping):
        return beside | {"input_output": given} if given.keys() >= {"inputs", "outputs"} else given
    if isinstance(given, (list, tuple)) and given:
        return beside | {_list_form(given): given}
    raise TaskError(f"no tests in {given!r:.60}; known forms: {_FORMS}")


def _source(text: str) -> dict[str, Any]:
    tree = parsed(text)
    if tree is None or not tree.body:
        raise TaskError(f"the tests are text, but neither JSON nor Python: {text[:60]!r}")
    if all(isinstance(node, ast.Assert) for node in tree.body):
        return {"test_list": [ast.get_source_segment(text, node) for node in tree.body]}
    return {"test": text}


def _list_form(tests: Sequence[Any]) -> str:
    if all(isinstance(test, str) for test in tests):
        return "test_list"
    if any(isinstance(test, Mapping) and test.get("testtype") == "functional" for test in tests):
        raise TaskError("functional tests: give them as {entry_point, cases: [[arguments, expected], ...]}")
    for test in tests:
        pair = (test.get("input"), test.get("output")) if isinstance(test, Mapping) else test
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            return "cases"
    return "stdio"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise TaskError(f"the tests look like JSON, but can't be read: {error}") from error


def only_tests(row: Mapping[str, Any], numbers: Sequence[int]) -> dict[str, Any] | None:
    """The row with these of its tests alone; None where its tests are not a list."""
    if "cases" not in row and "stdio" not in row and "input_output" in row:
        given = _inputs_and_outputs(row)
        kept = {key: [given[key][number] for number in numbers] for key in ("inputs", "outputs")}
        return {**row, "input_output": {**given, **kept}}
    for name in ("cases", "stdio", "test_list", "test"):
        if isinstance(row.get(name), (list, tuple)):
            return {**row, name: [row[name][number] for number in numbers]}
    return None


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise TaskError(f"the task's {key!r} must be a non-empty string, not {value!r:.60}")
    return value


def _tolerance(row: Mapping[str, Any]) -> Tolerance:
    return Tolerance(
        float(row.get("rel_tol", 1e-6)), float(row.get("abs_tol", 1e-9)), bool(row.get("tuple_is_list", False))
    )


def _call_task(row: Mapping[str, Any], entry_point: str, cases: Any) -> CallTask:
    if not isinstance(cases, Sequence) or isinstance(cases, str) or not cases:
        raise TaskError("'cases' must be a non-empty list of [arguments, expected]")
    return CallTask(
        entry_point,
        tuple(_case(number, case) for number, case in enumerate(cases)),
        prompt=str(row.get("prompt", "")) if row.get("prompt_is_code") else "",
        setup=str(row.get("setup", "")),
        tolerance=_tolerance(row),
        in_place=bool(row.get("in_place", False)),
    )


def _case(number: int, case: Any) -> Case:
    if isinstance(case, Mapping) and "expected" in case:
        return Case(tuple(case.get("args", ())), case["expected"], dict(case.get("kwargs", {})))
    if isinstance(case, Sequence) and not isinstance(case, str) and len(case) == 2:
        arguments, expected = case
        if isinstance(arguments, Sequence) and not isinstance(arguments, str):
            return Case(tuple(arguments), expected)
    raise TaskError(f"case {number} must be [arguments, expected] or {{args, kwargs, expected}}, not {case!r:.80}")


def _stdio_task(row: Mapping[str, Any], pairs: Any) -> StdioTask:
    if not pairs:
        raise TaskError("'stdio' must hold at least one [input, output] pair")
    read = []
    for number, pair in enumerate(pairs):
        first, second = (pair["input"], pair["output"]) if isinstance(pair, Mapping) else pair
        if not isinstance(first, str) or not isinstance(second, str):
            raise TaskError(f"stdio pair {number} must be two strings")
        read.append((first, second))
    rule = row.get("compare", "tokens")
    if rule not in ("tokens", "exact", "lines"):
        raise TaskError(f"'compare' must be tokens, lines or exact, not {rule!r}")
    return StdioTask(tuple(read), rule, str(row.get("checker", "")), _tolerance(row))


def _input_output(row: Mapping[str, Any]) -> Task:
    """APPS and LiveCodeBench rows: inputs and outputs, with `fn_name` for call-style tasks."""
    spec = _inputs_and_outputs(row)
    inputs, outputs = spec["inputs"], spec["outputs"]
    if len(inputs) != len(outputs):
        raise TaskError(f"{len(inputs)} inputs but {len(outputs)} outputs")
    if spec.get("fn_name"):
        return _call_task({"tuple_is_list": True, **row}, spec["fn_name"], list(zip(inputs, outputs, strict=True)))
    return _stdio_task(row, list(zip(inputs, outputs, strict=True)))


def _inputs_and_outputs(row: Mapping[str, Any]) -> Mapping[str, Any]:
    given = row["input_output"]
    spec = _json(given) if isinstance(given, str) else given
    if not isinstance(spec, Mapping) or not spec.keys() >= {"inputs", "outputs"}:
        raise TaskError(f"'input_output' must hold inputs and outputs, not {given!r:.60}")
    return spec


def _mbpp(row: Mapping[str, Any]) -> TestTask:
    tests = row.get("test_list") or row.get("test") or ()
    if not tests or not all(isinstance(test, str) for test in tests):
        raise TaskError("'test_list' must be a non-empty list of assert statements")
    return TestTask("asserts", tuple(tests), setup=str(row.get("test_setup_code", "") or ""))


def _test_source(row: Mapping[str, Any], source: str) -> TestTask:
    if re.search(r"^def check\(", source, re.MULTILINE):
        return TestTask("check", (source,), _text(row, "entry_point"), prompt=str(row.get("prompt", "")))
    return TestTask("file", (source,), str(row.get("entry_point", "")), module=str(row.get("module", "solution")))
