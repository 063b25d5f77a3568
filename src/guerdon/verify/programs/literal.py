"""Assertions simple enough to judge in this process: calls with literal arguments, compared with literals.

Most tests of HumanEval and MBPP are of the form `assert candidate([1, 2]) == 3`. For those no second job is needed:
the arguments cross to the candidate, the values come back as plain data, and a small interpreter over the assertion's
syntax tree compares them here, with Python's own meaning of `==` on exact plain types. Nothing of the test is ever
executed, and a test outside this small language, or a value outside plain data, goes to a tester job instead
(`Escalate`).
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from guerdon.backends.sandbox.inside.instrument import source_of
from guerdon.backends.sandbox.inside.values import NotPlain, encode

from .asked import target
from .extract import parsed
from .tasks import TestTask

MAX_ITEMS: Final = 1_000_000


class Escalate(Exception):
    """Not a matter for this interpreter."""


class CallFailed(Exception):
    """The assertion needs the value of a call that raised."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """One assertion: its text, its tree, and which of the plan's calls it uses, by the identity of the call's node."""

    text: str
    test: ast.expr
    calls: dict[int, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """All assertions of a task and the calls they need, in the order they are written. `calls` is in the wire form."""

    entry_point: str
    assertions: tuple[Assertion, ...]
    calls: tuple[dict[str, Any], ...]


@lru_cache(maxsize=4096)
def plan(task: TestTask) -> Plan | None:
    """The plan for a task whose every assertion is simple; None for all others.

    >>> plan(TestTask("asserts", ("assert f(1) == 2",))).entry_point
    'f'
    """
    statements = _assertions(task)
    if not statements:
        return None
    entry_point = "candidate" if task.form == "check" else target([test for _, test in statements])
    if not entry_point:
        return None
    calls: list[dict[str, Any]] = []
    found = []
    try:
        for text, test in statements:
            found.append(Assertion(text, test, _collect(test, entry_point, calls)))
    except (Escalate, RecursionError):
        return None
    if not calls:
        return None
    return Plan(task.entry_point if task.form == "check" else entry_point, tuple(found), tuple(calls))


def _assertions(task: TestTask) -> list[tuple[str, ast.expr]]:
    if task.form == "asserts" and not _only_imports(task.setup):
        return []
    if task.form == "file":
        return []
    found: list[tuple[str, ast.expr]] = []
    for source in task.tests:
        tree = parsed(source)
        body = tree.body if tree else []
        if task.form == "check":
            body = _check_body(body)
        for node in body:
            if isinstance(node, ast.Assert):
                found.append((source_of(node, source.splitlines()), node.test))
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                return []
        if task.form == "asserts" and len(body) != 1:
            return []
    return found


def _only_imports(source: str) -> bool:
    tree = parsed(source)
    return tree is not None and all(isinstance(node, ast.Import) for node in tree.body)


def _check_body(module: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of `check`, when the module has nothing else of consequence; one impossible statement
    otherwise."""
    other: list[ast.stmt] = [ast.Pass()]
    functions = [node for node in module if isinstance(node, ast.FunctionDef)]
    rest = [node for node in module if not isinstance(node, (ast.FunctionDef, ast.Import))]
    harmless = all(
        isinstance(node, ast.Assign) and [ast.unparse(part) for part in node.targets] == ["METADATA"] for node in rest
    )
    if len(functions) != 1 or functions[0].name != "check" or not harmless:
        return other
    return functions[0].body if [part.arg for part in functions[0].args.args] == ["candidate"] else other


def _collect(test: ast.expr, entry_point: str, calls: list[dict[str, Any]]) -> dict[int, int]:
    used: dict[int, int] = {}

    def visit(node: ast.expr) -> None:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == entry_point:
            used[id(node)] = len(calls)
            calls.append(_wire_call(node))
        elif isinstance(node, ast.Call):
            if _helper(node) is None:
                raise Escalate
            for part in (*node.args, *(keyword.value for keyword in node.keywords)):
                visit(part)
        elif isinstance(node, ast.Compare):
            if any(type(item) not in _COMPARISONS for item in node.ops):
                raise Escalate
            visit(node.left)
            for part in node.comparators:
                visit(part)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
            visit(node.operand)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            visit(node.left)
            visit(node.right)
        elif isinstance(node, ast.BoolOp):
            for part in node.values:
                visit(part)
        else:
            _literal(node)

    visit(test)
    return used


def _wire_call(node: ast.Call) -> dict[str, Any]:
    try:
        return {
            "args": [encode(_literal(part)) for part in node.args],
            "kwargs": {_name(part): encode(_literal(part.value)) for part in node.keywords},
        }
    except NotPlain as error:
        raise Escalate from error


def _name(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise Escalate
    return keyword.arg


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise Escalate from error


def holds(assertion: Assertion, values: dict[int, Any]) -> bool:
    """Whether the assertion is true; `values` maps a call's number to its value. `CallFailed`, `Escalate`, or what
    Python itself would raise for the comparison (`TypeError`…)."""
    return bool(_value(assertion.test, assertion, values))


def _value(node: ast.expr, assertion: Assertion, values: dict[int, Any]) -> Any:
    def value(part: ast.expr) -> Any:
        return _value(part, assertion, values)

    if id(node) in assertion.calls:
        number = assertion.calls[id(node)]
        if number not in values:
            raise CallFailed(str(number))
        return values[number]
    if isinstance(node, ast.Call):
        helper = _helper(node)
        if helper is None:
            raise Escalate
        return helper(*map(value, node.args), **{_name(part): value(part.value) for part in node.keywords})
    if isinstance(node, ast.Compare):
        return _compare(value(node.left), node, value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not value(node.operand)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(value(node.operand))
    if isinstance(node, ast.BinOp):
        return _number(value(node.left)) - _number(value(node.right))
    if isinstance(node, ast.BoolOp):
        last: Any = None
        for part in node.values:
            last = value(part)
            if bool(last) is isinstance(node.op, ast.Or):
                break
        return last
    return _literal(node)


def _compare(left: Any, node: ast.Compare, value: Callable[[ast.expr], Any]) -> bool:
    for comparison, part in zip(node.ops, node.comparators, strict=True):
        right = value(part)
        if not _COMPARISONS[type(comparison)](left, right):
            return False
        left = right
    return True


def _number(value: Any) -> Any:
    if type(value) not in (int, float, complex, bool):
        raise Escalate
    return value


def _sized(value: Any) -> Any:
    """A container small enough to walk here; anything else is for the tester job."""
    if type(value) not in (list, tuple, set, frozenset, dict, str, bytes, range) or len(value) > MAX_ITEMS:
        raise Escalate
    return value


def _rounded(value: Any, digits: int | None = None) -> Any:
    return round(_number(value), digits)


def _float(value: Any) -> float:
    if type(value) not in (int, float, bool, str) or (type(value) is str and len(value) > 100):
        raise Escalate
    return float(value)


def _is_close(first: Any, second: Any, **tolerances: float) -> bool:
    return math.isclose(_number(first), _number(second), **tolerances)


_HELPERS: Final[dict[str, Callable[..., Any]]] = {
    "abs": lambda value: abs(_number(value)),
    "round": _rounded,
    "float": _float,
    "len": lambda value: len(_sized(value)),
    "list": lambda value: list(_sized(value)),
    "tuple": lambda value: tuple(_sized(value)),
    "set": lambda value: set(_sized(value)),
    "sorted": lambda value: sorted(_sized(value)),
    "min": lambda value: min(_sized(value)),
    "max": lambda value: max(_sized(value)),
}
_METHODS: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    ("math", "isclose"): _is_close,
    ("math", "fabs"): lambda value: math.fabs(_number(value)),
}
_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, holder: item in _sized(holder),
    ast.NotIn: lambda item, holder: item not in _sized(holder),
}


def _helper(node: ast.Call) -> Callable[..., Any] | None:
    if isinstance(node.func, ast.Name):
        return _HELPERS.get(node.func.id)
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        return _METHODS.get((node.func.value.id, node.func.attr))
    return None
