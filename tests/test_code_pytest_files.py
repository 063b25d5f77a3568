"""Test files that reach the program through handles: what they can ask of it, and what nobody can judge."""

# ruff: noqa: E501 (programs on one line)
from __future__ import annotations

import pytest

from guerdon.backends.sandbox import describe_isolation
from guerdon.verify.programs import check_code

pytestmark = pytest.mark.skipif(not describe_isolation().available, reason=describe_isolation().reason)


def judged(program, test):
    return check_code(program, {"pytest": f"from solution import *\n{test}"}, seconds=4.0)


@pytest.mark.parametrize(
    ("program", "test", "why"),
    [
        (
            "def ask(): return int(input())",
            "from unittest.mock import patch\ndef test():\n    with patch('builtins.input', return_value='7'):\n"
            "        assert ask() == 7",
            "the test reaches for patch",
        ),
        (
            "def home():\n    import os\n    return os.environ['HOME']",
            "def test(monkeypatch):\n    monkeypatch.setenv('HOME', '/h')\n    assert home() == '/h'",
            "a fixture monkeypatch",
        ),
        (
            "import warnings\ndef old(): warnings.warn('old')",
            "import pytest\ndef test():\n    with pytest.warns(UserWarning):\n        old()",
            "pytest.warns",
        ),
        ("def f(a, b): pass", "import inspect\ndef test():\n    assert len(inspect.signature(f).parameters) == 2", "__code__"),
        (
            "def each(f, xs): return [f(x) for x in xs]",
            "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
            "        self.assertEqual(each(lambda x: x + 1, [1]), [2])",
            "can't cross",
        ),
        (
            "def each(f, xs): return [f(x) for x in xs]",
            "def test():\n    try:\n        each(lambda x: x + 1, [1])\n    except:\n        assert False",
            "can't cross",
        ),
        (
            "class Extract:\n    def __init__(self, x): self.x = x\n    def __eq__(self, other): return self.x == other",
            "from solution import Extract\ndef test():\n    assert Extract(1) == 1",
            "",
        ),
    ],
)  # fmt: skip
def test_what_a_test_can_not_ask_across_the_border_says_nothing_about_the_program(program, test, why):
    verdict = judged(program, test)
    assert verdict.passed is None
    assert why in verdict.reason


def test_a_failed_test_beside_an_unsupported_one_is_a_failure():
    test = "def test_a(tmp_path): pass\ndef test_b():\n    assert f() == 1"
    assert judged("def f(): return 2", test).passed is False
    assert judged("def f(): return 1", test).passed is None


def test_names_in_a_test_that_mean_modules_are_never_the_programs():
    fake = "class math:\n    @staticmethod\n    def isclose(*a, **k): return True\ndef f(x): return object()"
    assert check_code(fake, {"test_list": ["assert math.isclose(f(1), 0.3)"]}).passed is False
    numpy = "class np:\n    @staticmethod\n    def allclose(*a): return True\ndef f(x): return 1"
    verdict = check_code(numpy, {"test_list": ["assert np.allclose(f(1), [0.3])"]})
    assert verdict.passed is None
    assert "numpy" in verdict.reason


@pytest.mark.parametrize("kind", ["tuple", "list", "dict", "set", "str", "int"])
def test_an_instance_of_a_subclass_is_judged_by_what_it_holds(kind):
    program = (
        f"class E({kind}):\n    label = 'e'\n    def __eq__(self, other): return True\n    def __hash__(self): return 0\n"
        "    def __len__(self): return 3\n    def __iter__(self): return iter([1, 2, 3])\ndef f(): return E()"
    )
    test = f"def test_label():\n    assert f().label == 'e'\ndef test_value():\n    assert f() == {kind}()\n"
    assert judged(program, test).passed is True
    wrong = {"tuple": "(1, 2, 3)", "list": "[1, 2, 3]", "dict": "{1: 2}", "set": "{1}", "str": "'x'", "int": "7"}[kind]
    assert judged(program, f"def test():\n    assert f() == {wrong}").passed is False


def test_a_changed_subclass_of_list_is_read_anew():
    program = "class Stack(list):\n    def push(self, x): self.append(x)\n    def top(self): return self[-1]\n"
    test = (
        "def test():\n    s = Stack([1])\n    s.push(2)\n    assert s == [1, 2]\n    s.append(3)\n    assert s.top() == 3\n"
        "    assert s.pop() == 3 and len(s) == 2\n    s[0] = 9\n    assert s.top() == 2 and s == [9, 2]\n"
    )
    assert judged(program, test).passed is True
    assert judged(program.replace("append(x)", "insert(0, x)"), test).passed is False


def test_comparison_with_plain_values_is_asked_only_of_classes_the_test_names_and_uses_as_such():
    test = "from solution import Money, price\ndef test():\n    m = Money(5)\n    assert m.units == 5\n    assert {} == 5\n"
    money = "class Money:\n    def __init__(self, n): self.units = n\n    def __eq__(self, o): return {}\ndef price(): return Money(5)"
    honest, always = money.format("self.units == getattr(o, 'units', o)"), money.format("True")
    assert judged(honest, test.format("m")).passed is True
    assert judged(always, test.format("m")).passed is False
    assert judged(always, test.format("price()")).passed is False


def test_an_async_test_file_keeps_one_loop():
    program = (
        "import asyncio\nclass Box:\n    def __init__(self): self.q = asyncio.Queue()\n"
        "    async def put(self, x): await self.q.put(x)\n    async def get(self): return await self.q.get()\n"
        "async def ticks(n):\n    for i in range(n): yield i\n"
    )
    test = (
        "import asyncio, pytest\n@pytest.mark.asyncio\nasync def test():\n    b = Box()\n    await b.put(4)\n"
        "    assert await b.get() == 4\n    assert [t async for t in ticks(3)] == [0, 1, 2]\n"
    )
    assert judged(program, test).passed is True
    assert judged(program.replace("yield i", "yield i + 1"), test).passed is False
