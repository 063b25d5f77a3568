"""What a program's branches know: for each, the literals its conditions compare with and the literal it answers."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

Facts = list[Any]
"""Literals that a condition wants to be equal to something; all of them."""
Ways = list[Facts]
"""Each of them enough for the condition to hold; a way without facts says nothing about literals."""
_MAX_WAYS: Final = 32
_MAX_FACTS: Final = 64
_MAX_DEPTH: Final = 24
_EQUAL: Final = (ast.Eq, ast.Is)
_UNEQUAL: Final = (ast.NotEq, ast.IsNot)
_BLOCKS: Final = ("body", "orelse", "finalbody")
_ENDS: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def literal(node: ast.AST) -> tuple[Any] | None:
    """The value of a literal expression, in a tuple of its own because it may be None; None for anything else."""
    if not isinstance(node, (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp)):
        return None
    try:
        return (ast.literal_eval(node),)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def branch_entries(tree: ast.Module) -> Iterator[tuple[Facts, tuple[Any] | None]]:
    """(facts, outcome) of each branch: the literals that lead there, and each literal returned, assigned, printed or
    given there; an outcome of None for what leads anywhere else."""
    waiting: list[tuple[Sequence[ast.stmt], Ways]] = [(tree.body, [[]])]
    while waiting:
        block, here = waiting.pop()
        for statement in block:
            yield from _statement_entries(statement, here)
            if isinstance(statement, ast.If):
                held, failed = _both(here, ways(statement.test)), _both(here, ways(statement.test, truth=False))
                waiting += [(statement.body, held), (statement.orelse, failed)]
                if statement.body and isinstance(statement.body[-1], _ENDS):
                    here = failed
            elif isinstance(statement, ast.Match):
                waiting += [(case.body, _both(here, _case_ways(case))) for case in statement.cases]
            else:
                inner = [getattr(statement, name, None) for name in _BLOCKS]
                inner += [handler.body for handler in getattr(statement, "handlers", ())]
                waiting += [(part, here) for part in inner if isinstance(part, list)]


def _statement_entries(statement: ast.stmt, here: Ways) -> Iterator[tuple[Facts, tuple[Any] | None]]:
    if isinstance(statement, ast.Assert):
        return
    outcome: tuple[Any] | None = None
    if isinstance(statement, (ast.Return, ast.Assign, ast.AnnAssign)) and statement.value is not None:
        outcome = literal(statement.value)
    elif isinstance(statement, ast.Expr):
        given = statement.value.args if isinstance(statement.value, ast.Call) else [statement.value]
        outcome = literal(given[0]) if len(given) == 1 else None
    yield from ((facts, outcome) for facts in here if facts)
    expressions = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr)]
    for expression in expressions:
        for node in ast.walk(expression):
            yield from _expression_entries(node, here)


def _expression_entries(node: ast.AST, here: Ways) -> Iterator[tuple[Facts, tuple[Any] | None]]:
    found: list[tuple[Ways, tuple[Any] | None]] = []
    if isinstance(node, ast.IfExp):
        found = [(ways(node.test), literal(node.body)), (ways(node.test, truth=False), literal(node.orelse))]
    elif isinstance(node, ast.BoolOp):
        truth = isinstance(node.op, ast.And)
        before = ast.BoolOp(node.op, node.values[:-1]) if len(node.values) > 2 else node.values[0]
        found = [(ways(before, truth=truth), literal(node.values[-1])), (ways(node), None)]
    elif isinstance(node, ast.Compare):
        found = [(ways(node), None)]
    for some, outcome in found:
        yield from ((facts, outcome) for facts in _both(here, some) if facts)


def _both(first: Ways, second: Ways) -> Ways:
    if len(first) * len(second) == 1:
        return [[*first[0], *second[0]][:_MAX_FACTS]]
    pairs = itertools.islice(itertools.product(first, second), _MAX_WAYS)
    return [[*one, *other][:_MAX_FACTS] for one, other in pairs]


def ways(test: ast.expr, *, truth: bool = True, depth: int = 0) -> Ways:
    """The ways in which a condition can be true (or false), as the literals they need."""
    if depth > _MAX_DEPTH:
        return [[]]
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return ways(test.operand, truth=not truth, depth=depth + 1)
    if isinstance(test, ast.BoolOp):
        return _joined(test.values, isinstance(test.op, ast.And) is truth, truth, depth)
    if isinstance(test, ast.Compare):
        return _compared(test, truth)
    if isinstance(test, ast.Call):
        name = test.func.attr if isinstance(test.func, ast.Attribute) else getattr(test.func, "id", "")
        listed = test.args[0] if len(test.args) == 1 else None
        if name in ("all", "any") and isinstance(listed, (ast.List, ast.Tuple)):
            return _joined(listed.elts, (name == "all") is truth, truth, depth)
        if name in ("eq", "__eq__", "isclose") and truth:
            return [[value[0] for value in map(literal, test.args) if value]]
    return [[]]


def _joined(parts: Sequence[ast.expr], every: bool, truth: bool, depth: int) -> Ways:
    each = [ways(part, truth=truth, depth=depth + 1) for part in parts]
    if not every:
        return [way for some in each for way in some][:_MAX_WAYS]
    found: Ways = [[]]
    for some in each:
        found = _both(found, some)
    return found


def _compared(test: ast.Compare, truth: bool) -> Ways:
    sides = [test.left, *test.comparators]
    if len(test.ops) == 1 and isinstance(test.ops[0], ast.In if truth else ast.NotIn):
        listed = literal(sides[1])
        several = bool(listed) and isinstance(listed[0], (list, tuple, set, dict)) if listed else False
        return [[one] for one in listed[0]][:_MAX_WAYS] if listed and several else [[]]
    if not all(isinstance(op, _EQUAL if truth else _UNEQUAL) for op in test.ops) or (len(test.ops) > 1 and not truth):
        return [[]]
    return [_paired(sides)]


def _paired(sides: list[ast.expr]) -> Facts:
    """The literals in a comparison; of two sequences written out, those of their items (`(a, 3) == (2, b)`)."""
    found: Facts = []
    for side in sides:
        parts = [side] if literal(side) or not isinstance(side, (ast.Tuple, ast.List)) else side.elts
        found += [value[0] for value in map(literal, parts) if value]
    return found


def _case_ways(case: ast.match_case) -> Ways:
    matched = _pattern_ways(case.pattern)
    return _both(matched, ways(case.guard)) if case.guard is not None else matched


def _pattern_ways(pattern: ast.pattern, depth: int = 0) -> Ways:
    if depth > _MAX_DEPTH:
        return [[]]
    if isinstance(pattern, ast.MatchValue):
        value = literal(pattern.value)
        return [[value[0]] if value else []]
    if isinstance(pattern, ast.MatchSingleton):
        return [[pattern.value]]
    if isinstance(pattern, ast.MatchOr):
        return [way for one in pattern.patterns for way in _pattern_ways(one, depth + 1)][:_MAX_WAYS]
    inner = [child for child in ast.iter_child_nodes(pattern) if isinstance(child, ast.pattern)]
    found: Ways = [[]]
    for one in inner:
        found = _both(found, _pattern_ways(one, depth + 1))
    return found
