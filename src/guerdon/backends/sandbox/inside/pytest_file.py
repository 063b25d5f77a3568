"""Enough of pytest's and unittest's vocabulary to run a task's test file without either being installed in the sandbox.

Known: `test_*` functions, `Test*` classes, `unittest.TestCase`, each with their set-up and tear-down; async tests;
`pytest.raises` (with match), `approx`, `mark.parametrize` (with `param`), `mark.skip`, `mark.skipif`, `mark.xfail`,
`skip`, `fail`, `fixture` (autouse too, but no scopes). A test that needs more is no test of the candidate: unknown.
"""

from __future__ import annotations

import re
import sys
import types
import unittest
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .approximation import approx
from .instrument import RECORDER
from .pytest_fixtures import UnknownFixture, fixture, fixtures_of, optional, with_fixtures


@dataclass(frozen=True)
class Test:
    """One test, ready to call; `asserts`: there is an assertion of some kind in its text; `reaches`: what it does to
    the process it runs in, which is not the candidate's (see `reached`)."""

    __test__ = False

    name: str
    call: Callable[[], object]
    asserts: bool
    reaches: str = ""


class Skipped(Exception):
    """The test asked to be skipped: it is no entry."""


_unsupported: Callable[[str], BaseException] = Skipped


def install(unsupported: Callable[[str], BaseException]) -> None:
    """Make `import pytest` give this vocabulary; `unsupported` makes what is raised for the rest of pytest's."""
    global _unsupported
    _unsupported = unsupported
    module: Any = types.ModuleType("pytest")
    module.raises, module.approx, module.fixture, module.skip, module.fail = raises, approx, fixture, _skip, _fail
    module.param, module.mark, module.__getattr__ = _Param, _Marks(), _missing
    sys.modules["pytest"] = module


def _missing(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise _unsupported(f"the test uses pytest.{name}, which is not known here")


class raises:  # pytest's own name
    """`with raises(ValueError, match="..."):`, or raises(ValueError, function, *arguments)."""

    def __init__(self, kinds: Any, call: Any = None, *arguments: Any, match: str | None = None, **named: Any) -> None:
        self._kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        self._match = match
        self.value: Any = None
        self.type: Any = None
        if call is not None:
            with self:
                call(*arguments, **named)

    def __enter__(self) -> raises:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if kind is None or error is None:
            raise AssertionError("did not raise")
        names = getattr(error, "names", [])
        ends = [one.__name__ for one in self._kinds if one in (StopIteration, StopAsyncIteration)]
        if not issubclass(kind, self._kinds) and not any(name in names for name in ends):
            return False
        self.value, self.type = error, kind
        if self._match is not None:
            self.match(self._match)
        sys.modules["tests"].__dict__[RECORDER].executed += 1
        return True

    def match(self, pattern: str) -> bool:
        """Whether the message holds the pattern; AssertionError if not."""
        if not re.search(pattern, str(self.value)):
            raise AssertionError(f"the message does not match {pattern!r}")
        return True


def _skip(reason: str = "", **_: Any) -> None:
    raise Skipped(reason)


def _fail(reason: str = "", **_: Any) -> None:
    raise AssertionError(reason)


class _Param:
    """`pytest.param(...)`: one row of parameters."""

    def __init__(self, *values: Any, **_: Any) -> None:
        self.values = values


class _Marks:
    def parametrize(self, names: str | list[str] | tuple[str, ...], values: Any, **_: Any) -> Any:
        labels = [part.strip() for part in names.split(",")] if isinstance(names, str) else list(names)

        def mark(function: Any) -> Any:
            rows = [dict(zip(labels, _row(row, len(labels)), strict=True)) for row in values]
            before = getattr(function, "guerdon_rows", [{}])
            function.guerdon_rows = [{**first, **second} for first in rows for second in before]
            return function

        return mark

    def skip(self, *arguments: Any, **_: Any) -> Any:
        return _skipper if arguments and callable(arguments[0]) else lambda function: _skipper

    def skipif(self, condition: Any, **_: Any) -> Any:
        return lambda function: _skipper if condition else function

    def xfail(self, *arguments: Any, **_: Any) -> Any:
        return self.skip(*arguments)

    def __getattr__(self, name: str) -> Any:
        def mark(*arguments: Any, **_: Any) -> Any:
            return arguments[0] if arguments and callable(arguments[0]) else lambda function: function

        return mark


def _row(row: Any, width: int) -> Any:
    if isinstance(row, _Param):
        return row.values
    return row if width > 1 else [row]


def _skipper(*_: Any) -> None:
    _skip()


def collect(space: dict[str, Any]) -> Iterator[Test]:
    """Every test of the file in the order written."""
    fixtures = fixtures_of(space)
    setups = {name: space[name] for name in ("setup_module", "teardown_module", "setup_function") if name in space}
    optional(setups.get("setup_module"))
    for name, value in list(space.items()):
        if _is_class(value) and issubclass(value, unittest.TestCase):
            yield from _cases(value)
        elif _is_class(value) and name.startswith("Test"):
            yield from _methods(name, value, fixtures)
        elif isinstance(value, types.FunctionType) and name.startswith("test"):
            for label, row in _rows(name, value, {}):
                yield _test(label, _bound(_call_function, value, row, fixtures, setups), value)


def _is_class(value: object) -> bool:
    return type(value) is type or (type(type(value)) is type and issubclass(type(value), type))


def _bound(function: Callable[..., object], *arguments: Any) -> Callable[[], object]:
    return lambda: function(*arguments)


def _test(name: str, call: Callable[[], object], function: Any) -> Test:
    words = list(_words(function))
    asserts = any(word in (RECORDER, "raises", "fail") or word.startswith("assert") for word in words)
    return Test(name, call, asserts, reached(function))


_REACHING = ("patch", "catch_warnings", "warns", "stdin", "environ", "mock_open", "redirect_stderr", "stderr", "asdict",
    "astuple", "is_dataclass", "getsource",
)  # fmt: skip


def reached(function: Any) -> str:
    """What a test does to its own process in order to reach the candidate, such as patching `input`; "" for nothing."""
    return next((word for word in _words(function) if word in _REACHING), "")


def _words(function: Any) -> Iterator[str]:
    """The names in a compiled function and in those inside it."""
    waiting = [getattr(function, "__code__", None)]
    while waiting:
        code = waiting.pop()
        if code is not None:
            yield from code.co_names
            waiting += [part for part in code.co_consts if isinstance(part, types.CodeType)]


def _rows(name: str, function: Any, shared: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = [
        {**first, **second} for first in shared.get("rows", [{}]) for second in getattr(function, "guerdon_rows", [{}])
    ]
    for number, row in enumerate(rows):
        yield f"{name}[{number}]" if len(rows) > 1 else name, row


def _methods(name: str, kind: Any, fixtures: dict[str, Any]) -> Iterator[Test]:
    own = {**fixtures, **fixtures_of(vars(kind))}
    shared = {"rows": getattr(kind, "guerdon_rows", [{}])}
    for method in [item for item in vars(kind) if item.startswith("test")]:
        function = vars(kind)[method]
        for label, row in _rows(f"{name}::{method}", function, shared):
            yield _test(label, _bound(_call_method, kind, function, row, own), function)


def _call_function(function: Any, row: dict[str, Any], fixtures: dict[str, Any], setups: dict[str, Any]) -> None:
    optional(setups.get("setup_function"), function)
    _supplied(function, row, fixtures, None)


def _supplied(function: Any, row: dict[str, Any], fixtures: dict[str, Any], owner: Any) -> None:
    try:
        with_fixtures(function, row, fixtures, owner)
    except UnknownFixture as error:
        raise _unsupported(f"the test uses a fixture {error}, which is not known here") from error


def _call_method(kind: Any, function: Any, row: dict[str, Any], fixtures: dict[str, Any]) -> None:
    instance = kind()
    if "guerdon_set_up" not in vars(kind):
        kind.guerdon_set_up = True
        optional(getattr(kind, "setup_class", None))
    optional(getattr(instance, "setup_method", None) or getattr(instance, "setup", None), function)
    try:
        _supplied(function, row, fixtures, instance)
    finally:
        optional(getattr(instance, "teardown_method", None) or getattr(instance, "teardown", None), function)


def _cases(kind: type[unittest.TestCase]) -> Iterator[Test]:
    for method in unittest.TestLoader().getTestCaseNames(kind):
        yield _test(f"{kind.__name__}::{method}", _bound(_run_case, kind, method), getattr(kind, method))


def _run_case(kind: type[unittest.TestCase], method: str) -> None:
    result = unittest.TestResult()
    unittest.TestSuite([kind(method)]).run(result)
    for _, text in [*result.failures, *result.errors]:
        raise AssertionError(text.strip().splitlines()[-1])
    if result.unexpectedSuccesses:
        raise AssertionError("passed, though a failure was expected")
    if result.skipped:
        raise Skipped
