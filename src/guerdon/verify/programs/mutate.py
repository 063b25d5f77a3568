"""Programs with one line changed: the changes come from the syntax tree, one statement at a time."""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from .extract import parsed

_OTHER: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or,
    ast.Or: ast.And,
}  # fmt: skip
_COMPOUND: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MAX_MUTATIONS: Final = 64
_COMMUTES: Final = (ast.Add, ast.Mult)
_DECLARATIONS: Final = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass)


@dataclass(frozen=True, slots=True)
class Unit:
    """A statement, or the head of a compound one (`if x:`), as lines ``first`` to ``last`` of the program, from 1."""

    first: int
    last: int
    text: str


def units(program: str) -> list[Unit]:
    """The program's statements in order: a statement over several lines is one unit, docstrings are none.

    Empty for a program that does not parse. Statements that share a line (`a = 1; b = 2`) are one unit.

    >>> [(unit.first, unit.last) for unit in units("def f(a):\\n    return (a +\\n            1)")]
    [(1, 1), (2, 3)]
    """
    tree = parsed(program)
    lines = program.splitlines()
    found: dict[int, Unit] = {}
    for node in _statements(tree) if tree else ():
        first, last = _span(node)
        before = found.get(first)
        last = max(last, before.last if before else 0)
        found[first] = Unit(first, last, "\n".join(lines[first - 1 : last]))
    return [found[first] for first in sorted(found)]


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node


def _span(node: ast.stmt) -> tuple[int, int]:
    """First and last line of a simple statement, or of a compound one's head."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not isinstance(body, list):
        return node.lineno, node.end_lineno or node.lineno
    start = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
    return node.lineno, max(node.lineno, start.lineno - 1)


def replaced(program: str, unit: Unit, replacement: str) -> str:
    """The program with the unit's lines replaced; the replacement is set to the unit's indentation.

    >>> program = "def f(a):\\n    return a\\n"
    >>> replaced(program, units(program)[1], "return -a")
    'def f(a):\\n    return -a\\n'
    """
    lines = program.splitlines()
    indent = unit.text[: len(unit.text) - len(unit.text.lstrip())]
    new = textwrap.indent(textwrap.dedent(replacement).strip("\n"), indent)
    return "\n".join([*lines[: unit.first - 1], *new.splitlines(), *lines[unit.last :]]) + "\n"


def mutations(unit: Unit) -> list[str]:
    """Other texts for a unit, each with one change that still parses: another operator or comparison, swapped operands
    or arguments, a number one higher, True for False, a negated condition, no result, the statement left out.

    >>> mutations(units("c = a + b")[0])
    ['c = a - b', 'c = b + a', 'pass']
    """
    source = textwrap.dedent(unit.text).strip()
    otherwise = source.startswith("elif ")
    source = source[2:] if otherwise else source
    head = parsed(source) is None
    source = f"{source}\n    pass" if head else source
    tree = parsed(source)
    found: dict[str, None] = {}
    for number in range(len(list(_changes(tree)))) if tree else ():
        changed = copy.deepcopy(tree)  # the parser's result is shared
        assert changed is not None
        list(_changes(changed))[number]()
        text = ast.unparse(changed)
        found[text.removesuffix("\n    pass") if head else text] = None
    if tree and not head and not any(isinstance(node, (*_DECLARATIONS, *_COMPOUND)) for node in tree.body):
        found["pass"] = None
    return [f"el{text}" if otherwise else text for text in found][:_MAX_MUTATIONS]


def _changes(tree: ast.Module) -> Iterator[Callable[[], None]]:
    """Each place where the tree can be changed, as what changes it there."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in _OTHER:
            yield partial(setattr, node, "op", _OTHER[type(node.op)]())
        if isinstance(node, ast.BinOp) and isinstance(node.op, _COMMUTES):
            yield partial(_swap, vars(node), "left", "right")
        elif isinstance(node, ast.Compare):
            for place, operator in enumerate(node.ops):
                yield partial(node.ops.__setitem__, place, cast(ast.cmpop, _OTHER[type(operator)]()))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield partial(setattr, node, "value", not node.value if isinstance(node.value, bool) else node.value + 1)
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield partial(setattr, node, "test", ast.UnaryOp(ast.Not(), node.test))
        elif isinstance(node, ast.Return) and node.value is not None:
            yield partial(setattr, node, "value", ast.Constant(None))
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            yield partial(_swap, node.args, 0, 1)


def _swap(holder: Any, first: Any, second: Any) -> None:
    holder[first], holder[second] = holder[second], holder[first]
