"""What a task's tests ask for: the names they take from the program, and their own texts."""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache
from typing import Final

from guerdon.backends.sandbox.inside.instrument import source_of

from .extract import parsed
from .tasks import CallTask, StdioTask, Task, TestTask

_BUILT_IN: Final = frozenset(dir(builtins))


def target(tests: list[ast.expr]) -> str:
    """The name that all assertions call and that is not one of the helpers known here; "" when that is not one name.

    A task may ask for a function that has the name of a built-in (`sum`): then it is the outermost call on the left of
    every assertion, and no other name is called.
    """
    called = {
        node.func.id
        for test in tests
        for node in ast.walk(test)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    own = called - _BUILT_IN
    if own:
        return own.pop() if len(own) == 1 else ""
    outermost = {_outermost(test) for test in tests}
    return outermost.pop() if len(outermost) == 1 else ""


def called_name(task: TestTask) -> str:
    """For bare asserts: the one function they test, which may bear the name of a built-in."""
    trees = [parsed(source) for source in task.tests] if task.form == "asserts" else []
    return target([node.test for tree in trees if tree for node in tree.body if isinstance(node, ast.Assert)])


def names_asked(task: Task) -> tuple[str, ...]:
    """The names that a task's tests take from the program."""
    if isinstance(task, StdioTask):
        return ()
    if task.entry_point or isinstance(task, CallTask):
        return (task.entry_point,)
    return _imported(task) if task.form == "file" else (called_name(task),)


@lru_cache(maxsize=4096)
def _imported(task: TestTask) -> tuple[str, ...]:
    tree = parsed(task.tests[0])
    nodes = list(ast.walk(tree)) if tree else []
    imported = [
        alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == task.module
        for alias in node.names
    ]
    read = [
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == task.module
    ]
    return tuple(dict.fromkeys([*imported, *read]))


def assertion_texts(task: TestTask) -> list[str]:
    """The texts of a task's assertions in the order written, whether or not they ran; empty for a test file."""
    if task.form != "check":
        return [source.strip()[:200] for source in task.tests] if task.form == "asserts" else []
    tree = parsed(task.tests[0])
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)] if tree else []
    lines = task.tests[0].splitlines()
    return [source_of(node, lines) for node in sorted(asserts, key=lambda node: (node.lineno, node.col_offset))]


def _outermost(test: ast.expr) -> str:
    left = test.left if isinstance(test, ast.Compare) else test
    return left.func.id if isinstance(left, ast.Call) and isinstance(left.func, ast.Name) else ""
