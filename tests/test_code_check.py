"""Verdicts on honest and wrong code over every task form and the public data sets."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest

from guerdon.backends.sandbox import Infrastructure, Result, describe_isolation
from guerdon.verify.programs import TaskError, acheck_code, check_code, check_code_many
from guerdon.verify.programs.literal import plan
from guerdon.verify.programs.tasks import read_task

pytestmark = pytest.mark.skipif(not describe_isolation().available, reason=describe_isolation().reason)
ADD = {"entry_point": "add", "cases": [[[2, 3], 5], [[10, -4], 6]]}


@pytest.fixture(scope="module")
def humaneval(shared_data):
    with gzip.open(shared_data / "humaneval" / "HumanEval.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def mbpp(shared_data):
    return [json.loads(line) for line in (shared_data / "mbpp" / "mbpp_test.jsonl").read_text().splitlines()]


def test_every_canonical_solution_of_humaneval_passes_and_no_stub_does(humaneval):
    assert len(humaneval) == 164
    solved = check_code_many([(row["canonical_solution"], row) for row in humaneval], seconds=20)
    assert [row["task_id"] for row, verdict in zip(humaneval, solved, strict=True) if verdict.passed is not True] == []
    stubs = check_code_many([(body, row) for row in humaneval for body in ("    pass\n", "")], seconds=20)
    assert {verdict.passed for verdict in stubs} == {False}


def test_a_whole_function_in_a_fence_is_graded_like_its_body(humaneval):
    row = humaneval[0]
    text = f"Sure!\n\n```python\n{row['prompt']}{row['canonical_solution']}```\nDone."
    assert check_code(text, row).passed is True
    assert (
        check_code(
            row["canonical_solution"].strip("\n").replace("    ", "", 1), humaneval[23] | {"prompt": row["prompt"]}
        ).passed
        is False
    )


MBPP_EXCEPTIONS = {
    367: "the row lacks the setup code that makes the tree `root` its test names",
}


def test_the_canonical_solutions_of_mbpp_pass_but_for_explained_exceptions(mbpp):
    assert len(mbpp) == 500
    slow = {123}  # counts amicable numbers below 9999 by trial division: several seconds of honest work
    pairs = [(row["code"], row) for row in mbpp if row["task_id"] not in slow]
    verdicts = check_code_many(pairs, seconds=20)
    failed = {
        row["task_id"]: verdict.reason
        for (_, row), verdict in zip(pairs, verdicts, strict=True)
        if verdict.passed is not True
    }
    assert set(failed) == set(MBPP_EXCEPTIONS)
    assert "name 'root' is not defined" in failed[367]


def test_the_tester_job_agrees_with_the_literal_rule(humaneval, monkeypatch):
    rows = [row for row in humaneval if plan(read_task(row)) is not None]
    assert len(rows) > 140
    rows = rows[::6]
    right, wrong = (
        [(body(row), row) for row in rows]
        for body in (lambda row: row["canonical_solution"], lambda row: "    return 1\n")
    )
    here = check_code_many(right + wrong, seconds=20)
    monkeypatch.setattr("guerdon.verify.programs.grade.plan", lambda task: None)
    apart = check_code_many(right + wrong, seconds=20)
    assert [verdict.passed for verdict in here] == [verdict.passed for verdict in apart]
    assert [[test.passed for test in verdict.tests] for verdict in here] == [
        [test.passed for test in verdict.tests] for verdict in apart
    ]


def test_each_case_has_its_own_outcome():
    verdict = check_code("def add(a, b):\n    if a == 10: raise ValueError('ten')\n    return a + b", ADD)
    assert verdict.passed is False
    assert [(test.name, test.passed) for test in verdict.tests] == [("case 0", True), ("case 1", False)]
    assert verdict.tests[1].reason == "raised ValueError: ten"
    assert verdict.fraction == 0.5


@pytest.mark.parametrize(
    ("program", "expected", "passed"),
    [
        ("return 0.1 + 0.2", 0.3, True),
        ("return float('nan')", float("nan"), True),
        ("return True", 1, False),
        ("return 1", True, False),
        ("return 5.0", 5, True),
        ("return (1, 2)", [1, 2], False),
        ("return (1, 2)", (1, 2), True),
        ("return {1: {'a': (2, {3})}}", {1: {"a": (2, {3})}}, True),
        ("return b'x'", "x", False),
        ("return 10**30", 10**30, True),
        ("return 10**30 + 1", 10**30, False),
        ("return None", None, True),
        ("return '\\ud800'", "\ud800", True),
        ("import collections; return collections.Counter('aab')", {"a": 2, "b": 1}, True),
        ("import fractions; return fractions.Fraction(1, 3)", 1 / 3, False),
        ("import enum; return enum.IntEnum('E', 'a b').b", 2, True),
        ("return iter([1])", [1], False),
        ("return object()", None, False),
    ],
)
def test_values_are_compared_by_exact_plain_type(program, expected, passed):
    verdict = check_code(f"def f():\n    {program}", {"entry_point": "f", "cases": [[[], expected]]})
    assert verdict.passed is passed, verdict.reason


def test_a_tuple_stands_for_a_list_only_where_the_task_says_so():
    task = {"entry_point": "f", "cases": [[[], [1, 2]]]}
    assert check_code("def f(): return (1, 2)", task).passed is False
    assert check_code("def f(): return (1, 2)", task | {"tuple_is_list": True}).passed is True


def test_methods_named_arguments_and_answers_in_place():
    assert check_code(
        "class Solution:\n    def twice(self, n): return 2 * n", {"entry_point": "twice", "cases": [[[4], 8]]}
    ).passed
    assert check_code("class Box:\n    def get(self): return 1", {"entry_point": "Box.get", "cases": [[[], 1]]}).passed
    assert check_code(
        "def f(*, k): return k", {"entry_point": "f", "cases": [{"kwargs": {"k": 3}, "expected": 3}]}
    ).passed
    assert check_code(
        "def f(xs): xs.sort()", {"entry_point": "f", "in_place": True, "cases": [[[[2, 1]], [[1, 2]]]]}
    ).passed


def test_the_cases_before_an_endless_one_keep_their_outcome():
    verdict = check_code(
        "def add(a, b):\n    while a == 10: pass\n    return a + b",
        ADD | {"cases": [*ADD["cases"], [[1, 1], 2]]},
        seconds=0.6,
    )
    assert [test.passed for test in verdict.tests] == [True, False, None]
    assert (verdict.passed, verdict.state, verdict.reason) == (False, "timeout", "timed out after 0.6 s")


@pytest.mark.parametrize(
    ("program", "rule", "passed"),
    [
        ("print(sum(map(int, input().split())))", "tokens", True),
        ("print('', sum(map(int, input().split())), '\\n')", "tokens", True),
        ("print('', sum(map(int, input().split())), '\\n')", "exact", False),
        ("print(str(sum(map(int, input().split()))) + '  ')", "lines", True),
        ("print(sum(map(int, input().split())) + 1)", "tokens", False),
        ("print(sum(map(int, input().split())));1/0", "tokens", False),
    ],
)
def test_programs_are_judged_by_what_they_write(program, rule, passed):
    task = {"stdio": [["1 2\n", "3\n"], ["10 20\n", "30\n"]], "compare": rule}
    verdict = check_code(program, task)
    assert verdict.passed is passed
    assert len(verdict.tests) == 2


def test_a_checker_program_decides_where_many_outputs_are_right():
    checker = (
        "import json, sys\nq = json.load(sys.stdin)\na, b = map(int, q['output'].split())\n"
        "sys.exit(0 if a * b == int(q['input']) and a > 1 and b > 1 else 1)"
    )
    task = {"stdio": [["15", ""]], "checker": checker}
    assert check_code("input()\nprint(5, 3)", task).passed is True
    assert check_code("input()\nprint(15, 1)", task).passed is False
    broken = check_code("input()\nprint('many words here')", task)
    assert broken.passed is None
    assert "checker failed" in broken.reason


PYTEST = """
import unittest
import pytest
from solution import Stack, EmptyStack, top_two

@pytest.fixture
def stack():
    s = Stack()
    s.push(1)
    return s

def test_push(stack):
    stack.push(2)
    assert len(stack) == 2
    assert stack.pop() == 2
    assert [item for item in stack] == [1]
    assert stack.name == "stack"

def test_empty():
    with pytest.raises(EmptyStack):
        Stack().pop()

@pytest.mark.parametrize("given, expected", [([1, 2, 3], [3, 2]), ([5], [5])])
def test_top_two(given, expected):
    assert top_two(given) == pytest.approx(expected)

class TestKeyError(unittest.TestCase):
    def test_missing(self):
        with self.assertRaises(KeyError):
            Stack().find("x")
        self.assertEqual(Stack(), Stack())
"""
STACK = """
class EmptyStack(LookupError): pass
class Stack:
    name = "stack"
    def __init__(self): self.items = []
    def push(self, x): self.items.append(x)
    def pop(self):
        if not self.items: raise EmptyStack("empty")
        return self.items.pop()
    def find(self, key): return {}[key]
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __eq__(self, other): return self.items == other.items
def top_two(xs): return sorted(xs)[::-1][:2]
"""


def test_a_pytest_file_sees_classes_exceptions_and_objects_through_handles():
    verdict = check_code(STACK, {"pytest": PYTEST})
    assert verdict.passed is True, verdict
    assert [test.name for test in verdict.tests] == [
        "test_push",
        "test_empty",
        "test_top_two[0]",
        "test_top_two[1]",
        "TestKeyError::test_missing",
    ]
    broken = check_code(STACK.replace('raise EmptyStack("empty")', "return None"), {"pytest": PYTEST})
    assert [test.passed for test in broken.tests] == [True, False, True, True, True]


def test_changed_arguments_reach_the_test():
    task = {
        "entry_point": "f",
        "test": "def check(candidate):\n    xs = [2, 1]\n    candidate(xs)\n    assert xs == [1, 2]\n",
    }
    verdict = check_code("def f(xs): xs.sort()", task)
    assert verdict.passed is True
    assert verdict.tampering == []


@pytest.mark.parametrize(
    "test",
    [
        "def check(candidate):\n    xs = [2, 1]\n    assert candidate(xs) == sorted(xs)\n",
        "def check(candidate):\n    xs = [2, 1]\n    result = candidate(xs)\n    assert result == sorted(xs)\n",
        "def check(candidate):\n    for row in ({'xs': [2, 1]}, {'xs': [3]}):\n"
        "        assert candidate(row['xs']) == sorted(row['xs'])\n",
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    def test(self):\n        "
        "xs = [2, 1]\n"
        "        self.assertEqual(f(xs), sorted(xs))\n",
    ],
)
def test_an_answer_is_not_right_by_changing_what_it_is_compared_with(test):
    task = {"entry_point": "f", "test": test} if "check" in test else {"pytest": test}
    assert check_code("def f(xs):\n    xs.sort()\n    return xs", task).passed is True
    verdict = check_code("def f(xs):\n    xs.clear()\n    return xs", task)
    assert verdict.passed is False
    assert verdict.tampering
    assert "true only because the program changed its arguments" in verdict.reason


@pytest.mark.parametrize(
    "test",
    [
        "def check(candidate):\n    assert candidate(",
        "def check(candidate):\n    pass\n",
        "def check(candidate):\n    for x in []:\n        assert candidate(x)\n",
        "import no_such_module\ndef check(candidate):\n    assert candidate(1) == 1\n    assert no_such_module.f(1)",
        "def check(candidate):\n    f = candidate\n    assert f(lambda x: x) == 1\n",
        "def check(candidate):\n    x = candidate(1)\n    assert x == 1\n    raise SystemExit(0)\n",
    ],
)
def test_a_broken_test_says_nothing_about_the_candidate(test):
    verdict = check_code("def f(x): return 1", {"entry_point": "f", "test": test})
    assert verdict.passed is None
    assert verdict.reason


def test_a_name_the_prompt_defines_is_not_the_candidates_to_redefine():
    prompt = "def helper(x):\n    return x + 1\n\ndef f(x):\n    '''doc'''\n"
    task = {
        "prompt": prompt,
        "entry_point": "f",
        "test": "def check(candidate):\n    for x in range(3):\n        assert helper(candidate(x)) == x + 2\n",
    }
    assert check_code("    return x + 1\n", task).passed is True
    assert check_code("def helper(x):\n    return x + 2\ndef f(x):\n    return x\n", task).passed is False


def test_a_candidate_can_not_shadow_a_built_in_of_the_test():
    test = "def check(candidate):\n    for x in (1.0, 2.0):\n        assert abs(candidate(x) - x) < 1e-6\n"
    fake = "def abs(x): return 0\ndef f(x): return 99.0"
    assert check_code(fake, {"entry_point": "f", "test": test}).passed is False
    assert (
        check_code(
            "def abs(x): return 0\ndef f(x): return 99.0", {"test_list": ["assert abs(f(1.0) - 1.0) < 1e-6"]}
        ).passed
        is False
    )
    assert (
        check_code(
            "def sum(a, b): return a + b", {"test_list": ["assert sum(1, 2) == 3", "assert sum(2, 2) == 4"]}
        ).passed
        is True
    )


def test_failures_of_ours_are_unknown():
    class Broken:
        def answer_calls(self, payload, limits):
            return Result("infrastructure", None, "", "", 0.0, reason="gone")

        def examine(self, *arguments):
            raise Infrastructure("gone")

    verdict = check_code("def add(a, b): return a + b", ADD, backend=Broken())
    assert (verdict.passed, verdict.fraction, {test.passed for test in verdict.tests}) == (None, None, {None})
    loop = {
        "entry_point": "add",
        "test": "def check(candidate):\n    for a in range(2):\n        assert candidate(a, a) == 2 * a",
    }
    assert check_code("def add(a, b): return a + b", loop, backend=Broken()).passed is None


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"entry_point": "f", "cases": []},
        {"entry_point": "", "cases": [[[1], 1]]},
        {"stdio": []},
        {"entry_point": "f", "cases": [[1, 2]]},
        {"test_list": []},
    ],
)
def test_a_row_that_is_no_task_is_refused_with_the_reason(row):
    with pytest.raises(TaskError):
        check_code("x", row)


def test_apps_rows_are_read():
    assert check_code("print(int(input()) * 2)", {"input_output": {"inputs": ["2"], "outputs": ["4"]}}).passed is True
    assert (
        check_code(
            "class Solution:\n    def f(self, xs): return tuple(xs)",
            {"input_output": {"fn_name": "f", "inputs": [[[1, 2]]], "outputs": [[1, 2]]}},
        ).passed
        is True
    )


def test_verdicts_can_be_awaited():
    async def both():
        return await asyncio.gather(
            acheck_code("def add(a, b): return a + b", ADD), acheck_code("def add(a, b): return 0", ADD)
        )

    assert [verdict.passed for verdict in asyncio.run(both())] == [True, False]
