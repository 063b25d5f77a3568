"""What is done on the text of code alone: extraction, comparison, static evidence, the wire form."""

from __future__ import annotations

import ast
import collections
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guerdon.backends.sandbox.inside.values import NotPlain, decode, encode
from guerdon.verify.programs import (
    Tolerance,
    compiles,
    equal,
    extract_code,
    imports,
    lint,
    same_text,
    similarity,
    suspicions,
)
from guerdon.verify.programs.literal import Escalate, holds, plan
from guerdon.verify.programs.tasks import TestTask, read_task

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.fractions()
    | st.decimals(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.tuples(st.integers()), inner, max_size=4)
        | st.sets(st.integers() | st.text(max_size=2), max_size=4)
        | st.frozensets(st.integers(), max_size=3)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_plain_values_cross_unchanged(value):
    import json

    back = decode(json.loads(json.dumps(encode(value))))
    assert equal(value, back)
    assert type(back) is type(value)


class Sly(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


def test_a_subclass_crosses_as_what_it_holds():
    assert encode(Sly(7)) == 7
    assert type(decode(encode(Sly(7)))) is int


@pytest.mark.parametrize(
    "form",
    [
        {"tuple": 3},
        {"x": 1},
        {"int": "7"},
        {"set": [[1]]},
        {"dict": [1]},
        {"float": "1"},
        {"a": 1, "b": 2},
        {"Fraction": [1, 0]},
        {"handle": 1},
        {"timedelta": [10**10]},
        {"date": "x"},
    ],
)
def test_malformed_values_are_refused(form):
    with pytest.raises(NotPlain):
        decode(form)


@pytest.mark.parametrize(
    "form",
    [
        {"Fraction": [{"int": "0x" + "f" * 1_800_000}, {"int": "0x" + "e" * 1_800_001}]},
        {"set": [{"int": hex(number * (2**61 - 1))} for number in range(100_000)]},
        {"dict": [[{"complex": [1000003 * number, -number]}, 0] for number in range(60_000)]},
    ],
)
def test_values_made_to_keep_their_reader_busy_are_refused_in_time(form):
    start = time.thread_time()
    with pytest.raises(NotPlain):
        decode(form)
    assert time.thread_time() - start < 10.0


def test_large_containers_cross_unchanged():
    many = {(number, -number) for number in range(12_000)}
    for value in (many, frozenset(many), dict.fromkeys(many, 1), collections.Counter(many)):
        back = decode(encode(value))
        assert back == value
        assert type(back) is type(value)


def test_values_that_hold_themselves_are_refused():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(NotPlain):
        encode(loop)


@given(PLAIN)
def test_equality_is_reflexive(value):
    assert equal(value, value)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (1, 1.0, True),
        (2_000_000, 2_000_000.4, False),
        (2_000_000.0, 2_000_000.4, True),
        (10**30, 1.0000001e30, False),
        (1.0, 1.0 + 1e-8, True),
        (1.0, 1.001, False),
        (0.0, 1e-10, True),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (10**400, 1.0, False),
        (True, 1, False),
        ("1", 1, False),
        ([1, 2], [1, 2, 3], False),
        ({1: 2}, {1: 2.0}, True),
        ({1: 2}, {True: 2}, False),
        ({1, 2}, {2, 1}, True),
        ({1}, {True}, False),
        ({1}, {1, 2}, False),
        (1 + 2j, 1 + 2j, True),
        (None, 0, False),
        (b"a", "a", False),
    ],
)
def test_equality_by_example(first, second, same):
    assert equal(first, second) is same


def test_tolerances_are_the_callers():
    assert not equal(1.0, 1.01)
    assert equal(1.0, 1.01, Tolerance(relative=0.1))
    assert same_text("1.0", "1.01", "tokens", Tolerance(relative=0.1))
    assert not same_text("10", "10.0")
    assert same_text("a\nb\n", "a\nb", "exact")
    assert not same_text("nan", "5")
    assert not same_text("0.5", "\uff10.\uff15")
    assert not same_text("10.5", "1_0.5")
    assert not same_text("a b", "a\u2003b")
    assert not same_text("a b", "a\x1cb")
    assert same_text("a b", "a\tb\r\n\x0b")
    assert not same_text("a", "a\x85", "lines")


@pytest.mark.parametrize(
    ("text", "code", "how"),
    [
        ("x = 1\n", "x = 1\n", "whole text"),
        ("```python\nx = 1\n```", "x = 1\n", "tagged block, the only one"),
        ("```\nx = 1\n```", "x = 1\n", "untagged block, the only one"),
        ("```py\na = 1\n```\nthen\n```py\nb = 2\n```", "b = 2\n", "tagged block, the last"),
        (
            "```py\ndef f(): return 1\n```\nRun:\n```py\nprint(f())\n```",
            "def f(): return 1\n",
            "tagged block, the last that defines f",
        ),
        ("```bash\nls\n```\n```py\nx = 1\n```", "x = 1\n", "tagged block, the only one"),
        ("~~~python\nx = 1\n~~~", "x = 1\n", "tagged block, the only one"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n", "tagged block, the only one"),
        ("cut off:\n```python\nx = 1", "x = 1", "tagged block, the only one"),
        (
            "Here it is:\ndef f():\n    return 1\nI hope it helps!",
            "def f():\n    return 1\n",
            "lines 2 to 3 of unfenced text",
        ),
        ("    return a + b\n", "    return a + b\n", "whole text"),
        (
            "1. So:\n\n    ```python\n    def f():\n        return 1\n    ```\n",
            "def f():\n    return 1\n",
            "tagged block, the only one",
        ),
        (
            "```py\ndef f():\n    '''\n    ```\n    f()\n    ```\n    '''\n```",
            "def f():\n    '''\n    ```\n    f()\n    ```\n    '''\n",
            "tagged block, the only one",
        ),
        ("s = '''\n```python\nx = 1\n```\n'''\n", "s = '''\n```python\nx = 1\n```\n'''\n", "whole text"),
        (
            "```py\ndef g(): return 1\n```\n```py\ndef f(): return g()\n```",
            "def g(): return 1\n\n\ndef f(): return g()\n",
            "tagged block, the last that defines f, after 1 that it builds on",
        ),
        ("", "", "whole text"),
    ],
)
def test_code_is_found_in_chat_text(text, code, how):
    found = extract_code(text, entry_point="f")
    assert (found.code, found.how) == (code, how)


def test_the_policy_picks_among_blocks():
    text = "```py\naaaa = 1\n```\n```py\nb = 2\n```\n```py\nc = 3\n```"
    assert [extract_code(text, policy=policy).code for policy in ("first", "last", "longest")] == [
        "aaaa = 1\n",
        "c = 3\n",
        "aaaa = 1\n",
    ]


def test_code_is_described_without_being_run():
    assert compiles("x = 1")
    assert not compiles("x = ")
    assert not compiles("(" * 5000)
    assert imports("import os.path as p, json\nfrom a.b import c\n__import__('re')\n__import__(x)") == {
        "os",
        "json",
        "a",
        "re",
        "?",
    }
    assert imports("x =") is None
    assert similarity("def f(a):\n    return a", "def g(b): return b") == 1.0
    assert similarity("x = 1", "for i in range(3): print(i)") < 0.5
    assert lint("import os\ndef f(x=[]):\n    return 1\n    x = None == x\n") == [
        "line 1: unused import os",
        "line 2: mutable default argument",
        "line 4: unreachable",
    ]


def test_special_casing_needs_arguments_and_results_of_several_cases():
    task = read_task({"entry_point": "f", "cases": [[[17], 34], [[21], 42], [[1], 2], [[0], 0]]})
    assert suspicions("def f(n):\n    return {17: 34, 21: 42}.get(n, 0)", task) == [
        "special-cases 2 of 2 visible tests"
    ]
    assert suspicions("def f(n):\n    if n == 0: return 0\n    if n == 1: return 2\n    return 2 * n", task) == []


def _holds(source: str, *values: object) -> bool:
    made = plan(TestTask("asserts", (source,)))
    assert made is not None
    (assertion,) = made.assertions
    return holds(assertion, dict(enumerate(values)))


@pytest.mark.parametrize(
    ("source", "values", "truth"),
    [
        ("assert f(1) == 2", [2], True),
        ("assert f(1) == 2", [3], False),
        ("assert f(1)", [0], False),
        ("assert not f(1)", [0], True),
        ("assert f(1) is None", [None], True),
        ("assert abs(f(1) - 0.5) < 1e-6", [0.5], True),
        ("assert math.isclose(f(1), 0.3, rel_tol=1e-3)", [0.30001], True),
        ("assert f(1) == f(2)", [4, 4], True),
        ("assert set(f(1)) == {1, 2}", [(2, 1)], True),
        ("assert sorted(f([3, 1])) == [1, 3] and len(f(2)) == 1", [[3, 1], "x"], True),
        ("assert 1 < f(1) <= 3", [3], True),
        ("assert f(1) in (1, 2)", [2], True),
        ("assert tuple(f(1)) == (1, 2)", [[1, 2]], True),
        ("assert -f(1) == 3", [-3], True),
    ],
)
def test_simple_assertions_mean_what_python_means(source, values, truth):
    assert _holds(source, *values) is truth
    names = iter(values)
    space = {"f": lambda *_: next(names), "math": math}
    assert bool(eval(compile(ast.Expression(ast.parse(source).body[0].test), "t", "eval"), space)) is truth  # noqa: S307


@pytest.mark.parametrize(
    "source",
    [
        "assert f(x) == 1",
        "assert f(1) == g(1)",
        "assert f(*[1]) == 1",
        "assert f(1).x == 2",
        "assert [f(1)] == [2]",
        "assert f(f(1)) == 2",
        "x = f(1)",
        "assert f(lambda: 1) == 2",
        "assert (y := f(1)) == 2",
        "assert f('a' * 9) == 2",
    ],
)
def test_what_is_not_simple_is_left_to_the_tester(source):
    assert plan(TestTask("asserts", (source,))) is None


def test_values_that_could_run_away_here_are_left_to_the_tester():
    with pytest.raises(Escalate):
        _holds("assert sorted(f(1)) == [1]", range(10**12))
    with pytest.raises(Escalate):
        _holds("assert round(f(1)) == 1", __import__("decimal").Decimal("1e999999"))
