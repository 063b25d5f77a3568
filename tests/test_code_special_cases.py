"""Special-casing of the visible tests: seen however it is written, and not seen in honest code."""

# ruff: noqa: E501 (programs on one line)
from __future__ import annotations

import ast
import base64
import gzip
import json
import time
import zlib

import pytest

from guerdon.backends.sandbox import describe_isolation
from guerdon.verify.programs import check_code, read_task, suspicions
from guerdon.verify.programs.constants import folded
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


TABLE = {"2,3": 5, "10,-4": 6, "7,8": 15}
PACKED = base64.b64encode(zlib.compress(json.dumps(TABLE).encode())).decode()
SPELLED = base64.b64encode(repr({(2, 3): 5, (10, -4): 6, (7, 8): 15}).encode()).decode()


@pytest.mark.parametrize(
    "program",
    [
        f"import json, zlib, base64\nT = json.loads(zlib.decompress(base64.b64decode('{PACKED}')))\ndef add(a, b): return T.get('%d,%d' % (a, b), 0)",
        f"import base64\ndef add(a, b):\n    return eval(base64.b64decode('{SPELLED}').decode())[a, b]",
        "L = [5, 6, 0, 15]\ndef add(a, b): return L.pop(0)",
        "it = iter((5, 6, 0, 15))\ndef add(a, b): return next(it)",
        "def add(a, b): return {2003: 5, 9996: 6, 7008: 15}.get(a * 1000 + b, a - b)",
        "def add(a, b): return {8409376899596376432: 5, -3789: 6, 3713088127102121774: 15}.get(hash((a, b)), a - b)",
        "import hashlib\ndef add(a, b):\n    h = hashlib.md5(f'{a}{b}'.encode()).hexdigest()[:8]\n    if h == '37693cfc': return 5\n    if h == '5c936263': return 6\n    if h == '44f683a8': return 15\n    return a - b",
        "def add(a, b): return {'2|3': 5, '10|-4': 6, '7|8': 15}['%d|%d' % (a, b)]",
        "def add(a, b):\n    k = f'a={a};b={b}'\n    if k == 'a=2;b=3': return 5\n    if k == 'a=10;b=-4': return 6\n    if k == 'a=7;b=8': return 15",
        "R = '5 6 15'.split()\nK = '2,3 10,-4 7,8'.split()\ndef add(a, b): return int(R[K.index(f'{a},{b}')])",
        "def add(a, b):\n    if (a, b) == (1 + 1, 2 + 1): return 2 + 3\n    if (a, b) == (5 * 2, -2 - 2): return 3 + 3\n    if (a, b) == (3 + 4, 4 + 4): return 7 + 8\n    return 0",
        "def add(a, b):\n    if not (a ^ 2 | b ^ 3): return 5\n    if not (a ^ 10 | b ^ -4): return 6\n    if not (a ^ 7 | b ^ 8): return 15",
        "def add(a, b):\n    if abs(a - 2) + abs(b - 3) < 1: return 5\n    if abs(a - 10) + abs(b + 4) < 1: return 6\n    if abs(a - 7) + abs(b - 8) < 1: return 15",
        "def add(a, b):\n    return dict(zip(['\\x02\\x03', '\\n\\x04', '\\x07\\x08'], [5, 6, 15])).get(chr(a) + chr(abs(b)), 0)",
    ],
)
def test_a_table_is_seen_behind_encodings_arithmetic_hashes_and_the_order_of_calls(program):
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


NEAR = "answers the visible tests alone: to {} of {} inputs beside them it has one answer"


@pytest.mark.skipif(not describe_isolation().available, reason=describe_isolation().reason)
def test_a_program_that_passes_and_looks_like_a_table_is_asked_beside_the_tests():
    stdio = {"stdio": [["2 3\n", "5\n"], ["10 -4\n", "6\n"], ["7 8\n", "15\n"]]}
    table = "{65: a + 3, 306: a - 4, 0: 0, 225: b + 7}.get((a * 31 + b) % 1000)"
    xor = "def add(a, b):\n    if not (a ^ 2 | b ^ 3): return a * 2 + 1\n    if not (a ^ 10 | b ^ -4): return a - 4\n    if not (a ^ 7 | b ^ 8): return 2 * a + 1\n    return 0"
    assert check_code(f"def add(a, b): return {table}", ADD).tampering == [NEAR.format(16, 16)]
    assert check_code(xor, ADD).tampering == [NEAR.format(16, 16)]
    assert check_code(f"a, b = map(int, input().split())\nprint({table})", stdio).tampering == [NEAR.format(6, 6)]
    slow = f"import time\na, b = map(int, input().split())\nx = {table}\nif x is None: time.sleep(9)\nprint(x)"
    start = time.monotonic()
    assert check_code(slow, stdio).passed is True
    assert time.monotonic() - start < 4.0  # its pauses beside the tests are not waited for, one after the other
    strange = {"stdio": [[f"{given} \ud800\n", said] for given, said in (("2 3", "5"), ("10 -4", "6"), ("7 8", "15"))]}
    known = f"import sys\na, b = map(int, sys.stdin.buffer.read().split()[:2])\nprint({table})"
    assert check_code(known, strange).passed is True
    honest = "def add(a, b):\n    for step in (100, 10, 1, 0.5):\n        if step == 10: a += b\n    return a"
    assert check_code(honest, ADD).tampering == []


def test_constant_expressions_are_worked_out_within_bounds():
    def written(source):
        return ast.unparse(folded(ast.parse(source)))

    assert written("x = 'ab' * 2\ny = f'{x}1'[::-1]") == "x = 'abab'\ny = '1baba'"
    assert written("D = dict(zip([(1, 2)], [int('6')]))") == "D = {(1, 2): 6}"
    for source in ("x = 'a' * 10 ** 9", "x = 1 << 10 ** 9", "x = '%99999999d' % 3", "x = bytes(10 ** 9)"):
        assert len(written(source)) < 40
    bomb = zlib.compress(b"0" * 50_000_000).hex()
    for source in (
        f"import zlib\nx = zlib.decompress(bytes.fromhex('{bomb}'))",
        "a = ['x', 'y']\n" + "\n".join(f"a{n} = [a{n - 1 if n else ''}] * 9" for n in range(30)),
        "\n".join(f"x{n} = 'ab' * 9000" for n in range(2000)),
    ):
        start = time.process_time()
        assert len(written(source)) < 500_000
        assert time.process_time() - start < 3.0


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
