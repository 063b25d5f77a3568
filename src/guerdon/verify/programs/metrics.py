"""Sizes of a program, read from its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final, Literal

from .extract import parsed

Metric = Literal["nodes", "lines", "cyclomatic", "cognitive"]
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_CHOICES: Final = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.Assert,
    ast.comprehension,
)


def measure(code: str, metric: Metric) -> float | None:
    """One size of the code, 0 or more; None for code that does not parse, or nests too deep to be read.

    >>> code = "def f(x):\\n    'doc'\\n    return x if x else 0"
    >>> [measure(code, name) for name in ("lines", "cyclomatic", "cognitive")]
    [2.0, 2.0, 1.0]
    """
    tree = parsed(code)
    if tree is None:
        return None
    try:
        if metric == "nodes":
            return float(sum(1 for _ in ast.walk(tree)))
        if metric == "lines":
            return float(_lines(tree))
        score = {"cyclomatic": _cyclomatic, "cognitive": _cognitive}[metric]
        blocks: list[ast.AST] = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
        blocks = blocks or [tree]
        return sum(map(score, blocks)) / len(blocks)
    except (RecursionError, ValueError, SyntaxError):  # a number too long to be written is a ValueError
        return None


def _lines(tree: ast.Module) -> int:
    """Lines as Python itself writes the program: one for a statement, however many are crowded together."""
    text = ast.unparse(tree)
    documents: set[int] = set()
    for owner in ast.walk(ast.parse(text)):
        if isinstance(owner, (*_FUNCTIONS, ast.ClassDef, ast.Module)):
            for node in filter(_documents, owner.body[:1]):
                documents.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(bool(line.strip()) and number not in documents for number, line in enumerate(text.splitlines(), 1))


def _documents(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _cyclomatic(block: ast.AST) -> int:
    """McCabe: one, and one more for each decision."""
    total = 1
    for node in _own(block):
        if isinstance(node, _CHOICES):
            total += 1 + (len(node.ifs) if isinstance(node, ast.comprehension) else 0)
        elif isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        elif isinstance(node, ast.Match):
            total += sum(
                not (isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None) for case in node.cases
            )
    return total


def _own(block: ast.AST) -> Iterator[ast.AST]:
    """Everything in a block but the functions defined in it."""
    waiting = list(ast.iter_child_nodes(block))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _FUNCTIONS):
            waiting += ast.iter_child_nodes(node)


def _cognitive(block: ast.AST) -> int:
    """Campbell: one for each break in the flow, and one more for each level it is nested; sequences of like operators
    and a function's calls of itself count one."""
    name = getattr(block, "name", "")
    calls = (node.func for node in _own(block) if name and isinstance(node, ast.Call))
    waiting: list[tuple[ast.AST, int]] = [(node, 0) for node in ast.iter_child_nodes(block)]
    score = int(any(isinstance(called, ast.Name) and called.id == name for called in calls))
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            continue
        if isinstance(node, ast.If):
            score += 1 + depth
            score += _alternatives(node, depth, waiting)
            continue
        inner = depth
        if isinstance(node, (*_LOOPS, ast.ExceptHandler, ast.IfExp, ast.Match)):
            score += 1 + depth
            inner = depth + 1
        elif isinstance(node, ast.Lambda):
            inner = depth + 1
        elif isinstance(node, ast.BoolOp):
            score += 1
        if isinstance(node, _LOOPS) and node.orelse:
            score += 1
        waiting += [(child, inner) for child in ast.iter_child_nodes(node)]
    return score


def _alternatives(node: ast.If, depth: int, waiting: list[tuple[ast.AST, int]]) -> int:
    """One for each `elif` and `else` of a chain; what is in them waits, a level deeper."""
    score = 0
    while True:
        waiting += [(node.test, depth), *((child, depth + 1) for child in node.body)]
        if not node.orelse:
            return score
        score += 1
        if len(node.orelse) > 1 or not isinstance(node.orelse[0], ast.If):
            waiting += [(child, depth + 1) for child in node.orelse]
            return score
        node = node.orelse[0]
