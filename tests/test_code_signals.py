"""Code as signals in expressions: one score per test, reductions, and the signals beside the verdict."""

from __future__ import annotations

import pytest

from guerdon.backends.sandbox import Result, describe_isolation
from guerdon.verify.programs import signals

pytestmark = pytest.mark.skipif(not describe_isolation().available, reason=describe_isolation().reason)

TASK = {"entry_point": "add", "cases": [[[2, 3], 5], [[10, -4], 6], [[0, 0], 0]]}
RIGHT, HALF, WRONG = (
    "def add(a, b): return a + b",
    "def add(a, b): return a + b if a < 9 else 0",
    "def add(a, b): return None",
)


def _rows(*completions, **columns):
    return [{"prompt": "Add two numbers.", "completion": text, "tests": TASK, **columns} for text in completions]


def test_each_test_has_a_score_and_the_reduction_is_the_callers():
    rows = _rows(RIGHT, HALF, WRONG)
    scored = signals.code.score(rows).framed
    assert scored.axis.name == "test"
    assert scored.values.tolist() == [1, 1, 1, 1, 0, 1, 0, 0, 0]
    assert signals.code.min().score(rows).values.tolist() == [1, 0, 0]
    assert signals.code.mean().score(rows).values.tolist() == pytest.approx([1, 2 / 3, 0])


def test_rows_of_the_public_data_sets_are_tasks_as_they_are():
    humaneval = {"prompt": "def f(x):\n", "completion": "    return x + 1", "entry_point": "f", "test": "def check(candidate):\n    assert candidate(1) == 2\n"}  # fmt: skip  # noqa: E501
    mbpp = {
        "prompt": "Write f.",
        "completion": "def f(x): return x",
        "test_list": ["assert f(1) == 1", "assert f(2) == 3"],
    }
    assert signals.code.mean().score([humaneval, mbpp]).values.tolist() == [1, 0.5]


ADD = "def add(a, b): return a + b"
DOUBLE = "print(int(input()) * 2)"
CHECK = "def check(candidate):\n    assert candidate(2, 3) == 5\n"
IN_A_COLUMN = [
    (ADD, ["assert add(2, 3) == 5", "assert add(1, 1) == 3"], [1, 0]),
    (ADD, "assert add(2, 3) == 5\nassert add(1, 1) == 3", [1, 0]),
    (ADD, '["assert add(2, 3) == 5"]', [1]),
    (ADD, CHECK, [1]),
    (ADD, "from solution import add\n\ndef test_add():\n    assert add(2, 3) == 5\n", [1]),
    (ADD, [[[2, 3], 5], [[1, 1], 3]], [1, 0]),
    (ADD, [{"args": [2], "kwargs": {"b": 3}, "expected": 5}], [1]),
    (ADD, '{"entry_point": "add", "cases": [[[2, 3], 5]]}', [1]),
    (ADD, '{"inputs": [[2, 3], [1, 1]], "outputs": [5, 3], "fn_name": "add"}', [1, 0]),
    (ADD, {"input_output": '{"inputs": [[2, 3]], "outputs": [5], "fn_name": "add"}'}, [1]),
    (DOUBLE, [["2", "4"], ["3", "7"]], [1, 0]),
    (DOUBLE, '[{"input": "2", "output": "4", "testtype": "stdin"}]', [1]),
    (DOUBLE, '{"inputs": ["2"], "outputs": ["4"]}', [1]),
]


@pytest.mark.parametrize(("completion", "tests", "passed"), IN_A_COLUMN)
def test_tests_are_read_in_every_shape_that_published_sets_have_them_in(completion, tests, passed):
    row = {"prompt": "p", "completion": completion, "tests": tests, "entry_point": "add"}
    assert signals.code.score([row]).framed.values.tolist() == passed


@pytest.mark.parametrize("prompt", ["Sum", "a = b", "import things", "add(2, 3)", "x: y"])
def test_a_prompt_of_words_that_parse_is_no_code(prompt):
    row = {"prompt": prompt, "completion": ADD, "tests": CHECK, "entry_point": "add"}
    assert signals.code.score([row]).framed.values.tolist() == [1]


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ("all of them", "neither JSON nor Python"),
        ('{"inputs": [', "can't be read"),
        ([], "no tests in []"),
        (7, "no tests in 7"),
        ([{"input": "1", "output": "2", "testtype": "functional"}], "entry_point, cases"),
        ({"input_output": '["1"]'}, "must hold inputs and outputs"),
    ],
)
def test_what_is_no_test_is_unknown_and_says_what_was_found(tests, why):
    scored = signals.code.mean().score([{"prompt": "p", "completion": ADD, "tests": tests}]).framed
    assert scored.known.tolist() == [False]
    assert why in scored.reason(0)


def test_no_tests_a_broken_test_and_our_own_failure_are_unknown(monkeypatch):
    rows = [{"prompt": "p", "completion": RIGHT}, {"prompt": "p", "completion": RIGHT, "entry_point": "add", "test": "def check(candidate):\n    assert (\n"}]  # fmt: skip  # noqa: E501
    scored = signals.code.mean().score(rows).framed
    assert scored.known.tolist() == [False, False]
    gone = Result("infrastructure", None, "", "", 0.0, reason="gone")
    monkeypatch.setattr("guerdon.backends.sandbox.zygote.Zygote.answer_calls", lambda *_: gone)
    assert signals.code.mean().score(_rows(RIGHT)).framed.known.tolist() == [False]


def test_an_endless_program_scores_zero_on_every_test():
    looping = {"entry_point": "add", "test": "def check(candidate):\n    for a in (1, 2):\n        assert candidate(a, a) == 2 * a\n    assert candidate(0, 0) == 0\n"}  # fmt: skip  # noqa: E501
    rows = [{"prompt": "p", "completion": "def add(a, b):\n    while True: pass", "tests": looping}]
    scored = signals.code(seconds=0.5).score(rows).framed
    assert scored.values.tolist() == [0, 0]
    assert scored.known.all()


def test_static_signals():
    rows = _rows(
        "```python\nimport os\ndef f(a):\n    return a\n```",
        "def f(:",
        "import numpy as np\nprint(np.pi)",
        answer="def g(b): return b",
    )
    assert signals.code_compiles.score(rows).values.tolist() == [1, 0, 1]
    allowed = signals.code_imports(allow=["stdlib"]).score(rows).framed
    assert (allowed.known.tolist(), allowed.values[[0, 2]].tolist()) == ([True, False, True], [1, 0])
    assert signals.code_imports(deny=["os"]).score(rows).framed.values[[0, 2]].tolist() == [0, 1]
    lint = signals.code_lint.score(rows).framed
    assert lint.values[[0, 2]].tolist() == [0.5, 1]
    similar = signals.code_similarity.score(rows).framed
    assert similar.known.tolist() == [True, False, True]
    assert similar.values[0] > 0.8 > similar.values[2]


def test_cost_is_relative_to_a_reference_that_passes():
    slow = "def add(a, b):\n    for _ in range(10**7): pass\n    return a + b"
    big = "def add(a, b):\n    x = bytearray(10**8)\n    return a + b"
    time = signals.code_time.score(_rows(slow, RIGHT, WRONG, answer=RIGHT))
    assert time.values[0] < 0.3
    assert time.values[1] > 0.3
    assert time.values[2] == 0
    memory = signals.code_memory.score(_rows(big, RIGHT, answer=RIGHT))
    assert memory.values[0] < 0.3 < memory.values[1]
    assert signals.code_time.score(_rows(RIGHT, answer=WRONG)).framed.known.tolist() == [False]


def test_tampering_is_a_signal_of_its_own():
    rows = _rows(RIGHT, "import os\nos._exit(0)")
    assert signals.code_untampered.score(rows).values.tolist() == [1, 0]
