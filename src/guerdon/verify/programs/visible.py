"""The tests that a candidate may have seen, as the values of their inputs and expected outcomes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from .branches import literal
from .extract import parsed
from .tasks import StdioTask, Task, TestTask

PLAIN: Final = {"None", "True", "False", "''", "b''", "()", "0", "1", "2", "-1"}
"""What honest code mentions anyway."""
_BLOCKS: Final = ("handlers", "finalbody", "orelse", "body")
Atoms = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A visible test: the values of its input, in each form code may meet them in, and its expected outcome's forms."""

    readings: tuple[Atoms, ...]
    outcomes: frozenset[Atoms]

    @property
    def telling(self) -> bool:
        """Not so plain that honest code mentions it anyway."""
        first = self.readings[0] if self.readings else ()
        return not all(atom in PLAIN for atom in (*first, *min(self.outcomes, default=())))


def visible_cases(task: Task) -> list[Case]:
    """The tests that a candidate may have seen: cases, stdio pairs, `f(literals) == literal` and `f(literals)`."""
    if isinstance(task, StdioTask):
        return [_text_case(given.strip(), expected.strip()) for given, expected in task.pairs]
    if isinstance(task, TestTask):
        return [case for source in task.tests for case in _source_cases(source)]
    return [_call_case((*case.arguments, *case.named.values()), case.expected) for case in task.cases]


def _call_case(arguments: tuple[Any, ...], expected: Any) -> Case:
    joined = [glue.join(map(str, arguments)) for glue in (",", ", ", " ", "_", "-", ":", "|")]
    texts = (repr(arguments), repr(list(arguments)), repr(arguments[0]), *joined) if arguments else ()
    readings = (atoms(arguments), *dict.fromkeys((repr(text),) for text in texts))
    return Case(readings, frozenset([atoms(expected)]))


def _text_case(given: str, expected: str) -> Case:
    tokens = tuple(repr(number(word)) for word in given.split())
    readings = dict.fromkeys(
        [(repr(given),), tokens, tuple(map(repr, given.split())), tuple(map(repr, given.split("\n")))]
    )
    return Case(tuple(readings), frozenset([(repr(expected),), (repr(number(expected)),)]))


def number(word: str) -> Any:
    """The number that a word is, else the word."""
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


@lru_cache(maxsize=256)  # the completions of one prompt share their tests
def _source_cases(source: str) -> tuple[Case, ...]:
    return tuple(_call_case(*pair) for pair in _asserted(source))


def _asserted(source: str) -> Iterator[tuple[tuple[Any, ...], Any]]:
    tree = parsed(source)
    waiting: list[ast.AST] = [tree] if tree else []
    while waiting:  # statements alone: a walk through all expressions takes four times as long
        node = waiting.pop()
        if not isinstance(node, ast.Assert):
            waiting += (inner for block in _BLOCKS for inner in reversed(getattr(node, block, None) or ()))
            continue
        test: ast.expr = node.test
        expected: ast.expr = ast.Constant(True)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, expected = test.operand, ast.Constant(False)
        elif isinstance(test, ast.Compare) and len(test.comparators) == 1:
            expected, test = test.comparators[0], test.left
        if isinstance(test, ast.Call):
            values = [literal(value) for value in (*test.args, *(one.value for one in test.keywords), expected)]
            if None not in values:
                *arguments, outcome = (value[0] for value in values if value)
                yield tuple(arguments), outcome


def atoms(value: Any) -> Atoms:
    """The scalars of a value in order, as text; empty containers count as one."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += [list(pair) for pair in reversed(one.items())] or [()]
        elif isinstance(one, (set, frozenset)) and one:
            waiting += sorted(one, key=repr, reverse=True)
        elif isinstance(one, (list, tuple)) and one:
            waiting += reversed(one)
        elif isinstance(one, (list, tuple, set, frozenset, dict)):
            found.append("()")
        else:
            found.append(repr(int(one) if isinstance(one, float) and one.is_integer() else one))
    return tuple(found)
