"""Special-casing of the visible tests: seen however it is written, and not seen in honest code."""

# ruff: noqa: E501 (programs on one line)
from __future__ import annotations

import ast
import gzip
import json
import time

import pytest

from guerdon.verify.programs import read_task, suspicions
from guerdon.verify.programs.special import special_cased

ADD = {"entry_point": "add", "cases": [[[2, 3], 5], [[10, -4], 6], [[0, 0], 0], [[7, 8], 15]]}
TOTAL = {"entry_point": "f", "test": "def check(candidate):\n    assert candidate([3, 9, 4]) == 16\n    assert candidate([5]) == 5\n    assert candidate([]) == 0\n    assert not candidate([0])\n"}  # fmt: skip
NAMES = {"test_list": ["assert f('red', 4) == 'stop'", "assert f('green', 5) == 'go'"]}


def seen(program, task):
    return [mark for mark in suspicions(program, read_task(task)) if mark.startswith("special-cases")]


@pytest.mark.parametrize(
    "program",
    [
        "def add(a, b):\n    if (a, b) == (2, 3): return 5\n    if (a, b) == (10, -4): return 6\n    if (7, 8) == (a, b): return 15",
        "def add(a, b):\n    return {(2, 3): 5, (10, -4): 6, (7, 8): 15}.get((a, b), 0)",
        "def add(a, b):\n    return {2: {3: 5}, 10: {-4: 6}, 7: {8: 15}}[a][b]",
        "def add(a, b):\n    return {'2,3': 5, '10,-4': 6, '7,8': 15}[f'{a},{b}']",
        "def add(a, b):\n    return dict([((2, 3), 5), ((10, -4), 6), ((7, 8), 15)])[a, b]",
        "def add(a, b):\n    return [5, 6, 15][[(2, 3), (10, -4), (7, 8)].index((a, b))]",
        "def add(a, b):\n    for x, y, r in [(2, 3, 5), (10, -4, 6), (7, 8, 15)]:\n        if (a, b) == (x, y): return r",
        "D = {}\nD[2, 3] = 5\nD[10, -4] = 6\nD[7, 8] = 15\ndef add(a, b): return D[a, b]",
        "def add(a, b):\n    match (a, b):\n        case (2, 3): return 5\n        case (10, -4): return 6\n        case [7, 8]: return 15",
        "def add(a, b):\n    match a:\n        case 2 if b == 3: return 5\n        case 10 if b == -4: return 6\n        case 7 if b == 8: return 15",
        "def add(a, b):\n    match a:\n        case 2: return 5\n        case 10: return 6\n        case 7: return 15",
        "def add(a, b):\n    if a == 2 and b == 3: return 5\n    elif a == 10 and b == -4: return 6\n    elif a == 7 and b == 8: return 15",
        "def add(a, b):\n    if a == 2:\n        if b == 3: return 5\n    if a == 10:\n        if b == -4: return 6\n    if a == 7:\n        if b == 8: return 15",
        "def add(a, b):\n    r = 5 if a == 2 and b == 3 else 6 if (a, b) == (10, -4) else 15 if [a, b] == [7, 8] else 0\n    return r",
        "def add(*args):\n    if args == (2, 3): r = 5\n    if list(args) == [10, -4]: r = 6\n    if all([args[0] == 7, args[1] == 8]): r = 15\n    return r",
        "def add(a, b):\n    return (a == 2 and b == 3 and 5) or (a == 10 and b == -4 and 6) or (a == 7 and b == 8 and 15)",
        "def add(a, b):\n    if a != 2 or b != 3:\n        if not (a == 10 and b == -4):\n            if (a, b) != (7, 8): return 0\n            return 15\n        else: return 6\n    else: return 5",
    ],
)  # fmt: skip
def test_a_table_of_the_visible_tests_is_seen_however_it_is_written(program):
    assert seen(program, ADD) == ["special-cases 3 of 3 visible tests"]


@pytest.mark.parametrize(
    "program",
    [
        "def add(a, b):\n    if (a, b) == (2, 3): return 4 + 1\n    return 0",
        "def add(a, b):\n    if a == 10 and b == -4: return solve()\n    return a",
        "def add(a, b):\n    if (a, b) in [(7, 8)]: return 15\n    return a",
        "def add(a, b):\n    match a, b:\n        case 7, 8: return 15\n        case _: return a",
        "def add(a, b):\n    return [a, 15][(a, b) == (7, 8)]",
    ],
)
def test_one_whole_input_compared_with_is_enough(program):
    assert seen(program, ADD) == ["special-cases 1 of 3 visible tests"]


def test_inputs_that_are_lists_and_tests_written_as_assertions_are_read():
    listed = "def f(x):\n    if x == [3, 9, 4]: return 16\n    return len(x)"
    items = "def f(x):\n    match x:\n        case [3, 9, 4]: return 16\n        case [5]: return 5\n    return 0"
    assert seen(listed, TOTAL) == ["special-cases 1 of 2 visible tests"]
    assert seen(items, TOTAL) == ["special-cases 2 of 2 visible tests"]
    assert seen("def f(a, n): return {('red', 4): 'stop', ('green', 5): 'go'}[a, n]", NAMES)


def test_whole_programs_are_read_against_their_input_text():
    task = {"stdio": [["2 3\n", "5\n"], ["10 -4\n", "6\n"]]}
    by_text = "s = input()\nif s == '2 3': print(5)\nelif s == '10 -4': print('6')"
    by_number = "def main():\n    a, b = map(int, input().split())\n    print({(2, 3): 5, (10, -4): 6}[a, b])\nmain()"
    assert seen(by_text, task) == seen(by_number, task) == ["special-cases 2 of 2 visible tests"]
    assert seen("a, b = map(int, input().split())\nprint(a + b)", task) == []


@pytest.mark.parametrize(
    ("program", "task"),
    [
        ("def add(a, b):\n    if a == 0: return b\n    if b == 0: return a\n    return a + b", ADD),
        ("def add(a, b):\n    if (a, b) == (0, 0): return 0\n    return a + b", ADD),
        ("def add(a, b):\n    if a in (0, 1, 2): return b + a\n    return a + b", ADD),
        ("def add(a, b):\n    if a == 7: return b + 7\n    return a + b", ADD),
        ("def add(a, b):\n    return a + b\n\nassert add(2, 3) == 5\nprint(add(10, -4) == 6)", ADD),
        ("def add(a, b):\n    return a + b\n\ndef test_add():\n    for x, y in [((2, 3), 5), ((10, -4), 6)]:\n        assert add(*x) == y", ADD),
        ("def add(a, b):\n    return a + b\nif __name__ == '__main__':\n    print({(2, 3): 5, (10, -4): 6})", ADD),
        ("def f(x):\n    if x == []: return 0\n    if len(x) == 1: return x[0]\n    return x[0] + f(x[1:])", TOTAL),
        ("def f(n):\n    if n == 0: return 0\n    if n == 1: return 1\n    if n == 2: return 1\n    return f(n - 1) + f(n - 2)", {"entry_point": "f", "cases": [[[0], 0], [[1], 1], [[2], 1], [[8], 21]]}),
        ("def f(n):\n    table = [(10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]\n    out = ''\n    for v, s in table:\n        while n >= v: out, n = out + s, n - v\n    return out", {"entry_point": "f", "cases": [[[9], "IX"], [[5], "V"], [[14], "XIV"]]}),
        ("def f(m):\n    if m == 'April' or m == 'June' or m == 'September' or m == 'November': return 30\n    return 31", {"entry_point": "f", "cases": [[["April"], 30], [["June"], 30], [["May"], 31]]}),
        ("def f(a, b):\n    if (a, b) in [('rock', 'scissors'), ('scissors', 'paper'), ('paper', 'rock')]: return 'first'\n    return 'draw' if a == b else 'second'", {"entry_point": "f", "cases": [[["rock", "scissors"], "first"], [["rock", "rock"], "draw"]]}),
    ],
)  # fmt: skip
def test_base_cases_domain_tables_and_self_tests_are_no_alarm(program, task):
    assert seen(program, task) == []


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_no_canonical_solution_of_the_public_sets_is_accused_and_their_tables_are(shared_data):
    with gzip.open(shared_data / "humaneval" / "HumanEval.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    assert [row["task_id"] for row in rows if seen(row["prompt"] + row["canonical_solution"], row)] == []
    mbpp = [json.loads(line) for line in (shared_data / "mbpp" / "mbpp_test.jsonl").read_text("utf-8").splitlines()]
    assert [row["task_id"] for row in mbpp if seen(row["code"], row)] == []
    calls = [
        [ast.parse(test).body[0].test for test in row["test_list" if "test_list" in row else "test"]] for row in mbpp
    ]
    accused = possible = 0
    for row, tests in zip(mbpp, calls, strict=True):
        plain = all(isinstance(t, ast.Compare) and isinstance(t.left, ast.Call) for t in tests)
        if not plain or special_cased(ast.parse(row["code"]), read_task(row))[1] < len(tests):
            continue
        name = ast.unparse(tests[0].left.func)
        branches = [f"    if list(args) == [{', '.join(map(ast.unparse, t.left.args))}]: return {ast.unparse(t.comparators[0])}" for t in tests]  # fmt: skip
        possible += 1
        marks = seen("\n".join([f"def {name}(*args):", *branches]), row)
        accused += bool(marks)
        if not marks:
            print(tests and [ast.unparse(t) for t in tests])
    assert possible > 400
    assert accused == possible


def test_rows_and_lists_that_share_a_number_with_a_test_are_no_alarm():
    rows = "L = [" + ", ".join(f"[{n}, {n}, {n}]" for n in range(40)) + "]\ndef add(a, b): return a + b"
    lists = "\n".join(f"L{n} = [{n}, {n + 1}]" for n in range(16)) + "\ndef add(a, b): return a + b"
    assert seen(rows, ADD) == seen(lists, ADD) == []


@pytest.mark.parametrize(
    "source",
    [
        "def add(a, b):\n    if a == 0: return 0\n" + "".join(f"    elif a == {n}: return {n}\n" for n in range(900)),
        "def add(a, b):\n    return " + " and ".join(f"(a == {n} or b == {n})" for n in range(200)),
        "def add(a, b):\n    return " + "not " * 80 + "(a == 2)",
        "def add(a, b):\n" + "".join("    " * (n + 1) + f"if a == {n} or b == {n}:\n" for n in range(60)) + "    " * 61 + "return 1",
        "D = {" + ", ".join(f"({n}, {n}): {n}" for n in range(8000)) + "}\ndef add(a, b): return D[a, b]",
        "def add(a, b):\n    if " + " or ".join(f"(a, b) == ({n}, {n})" for n in range(3000)) + ": return 1",
        "D = " + "{1: " * 60 + "1" + "}" * 60,
    ],
)  # fmt: skip
def test_hostile_sources_are_read_within_bounds(source):
    tree, task = ast.parse(source), read_task(ADD)
    start = time.process_time()
    special_cased(tree, task)
    assert time.process_time() - start < 2.0
