"""What can be said about code without running it: does it parse, what does it import, what does it look like."""

from __future__ import annotations

import ast
import difflib
import itertools
import sys
from collections.abc import Iterator

from .extract import parsed
from .marks import called, marks
from .special import special_cased
from .tasks import Task


def compiles(code: str) -> bool:
    """Whether the code is Python that parses."""
    return parsed(code) is not None


def imports(code: str) -> frozenset[str] | None:
    """Top-level names of the modules the code imports by statement or by `__import__`/`import_module` of a literal.

    None for code that does not parse.

    >>> sorted(imports("import os.path\\nfrom math import pi"))
    ['math', 'os']
    """
    tree = parsed(code)
    if tree is None:
        return None
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0] or ".")
        elif isinstance(node, ast.Call) and called(node)[1] in ("__import__", "import_module") and node.args:
            name = node.args[0]
            found.add(str(name.value).partition(".")[0] if isinstance(name, ast.Constant) else "?")
    return frozenset(found)


def standard_library(name: str) -> bool:
    """Whether a module ships with Python."""
    return name in sys.stdlib_module_names


def similarity(code: str, reference: str) -> float | None:
    """How alike two programs are in [0, 1], by the sequence of their syntax nodes, names and layout aside; None if
    one does not parse.

    >>> similarity("def f(x): return x + 1", "def g(y):\\n    return y + 1")
    1.0
    """
    first, second = parsed(code), parsed(reference)
    if first is None or second is None:
        return None
    shapes = [[type(node).__name__ for node in ast.walk(tree)][:5000] for tree in (first, second)]
    return float(difflib.SequenceMatcher(None, shapes[0], shapes[1], autojunk=False).ratio())


def lint(code: str) -> list[str] | None:
    """Plain faults that need no configuration: unused imports, bare except, mutable defaults, names shadowing built-ins
    as arguments, comparison with None by ==, unreachable statements. None if the code does not parse."""
    tree = parsed(code)
    if tree is None:
        return None
    return sorted(set(_faults(tree)))


def _faults(tree: ast.Module) -> Iterator[str]:
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                name = (alias.asname or alias.name).partition(".")[0]
                if name not in used and name != "*":
                    yield f"line {node.lineno}: unused import {name}"
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            yield f"line {node.lineno}: bare except"
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if any(isinstance(value, (ast.List, ast.Dict, ast.Set)) for value in node.args.defaults):
                yield f"line {node.lineno}: mutable default argument"
        elif isinstance(node, ast.Compare) and any(
            isinstance(operator, (ast.Eq, ast.NotEq)) and isinstance(right, ast.Constant) and right.value is None
            for operator, right in zip(node.ops, node.comparators, strict=True)
        ):
            yield f"line {node.lineno}: compares with None by =="
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                for before, after in itertools.pairwise(block):
                    if isinstance(before, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
                        yield f"line {after.lineno}: unreachable"


def suspicions(code: str, task: Task | None = None) -> list[str]:
    """What in the code, honest or not, looks like work on the grader instead of the task; evidence, not a verdict."""
    tree = parsed(code)
    if tree is None:
        return []
    try:
        found = dict.fromkeys(marks(tree, task))
        hits, visible = special_cased(tree, task) if task is not None else (0, 0)
    except (RecursionError, ValueError):
        return ["is nested too deeply, or holds numbers too long, to be read"]
    if hits:
        found[f"special-cases {hits} of {visible} visible tests"] = None
    return list(found)
