"""Enough of pytest's and unittest's vocabulary to run a task's test file without either being installed in the sandbox.

Known: `test_*` functions, `Test*` classes (with setup_method), `unittest.TestCase`; `pytest.raises` (with match),
`approx`, `mark.parametrize`, `mark.skip`, `skip`, `fixture` (no scopes, no autouse). A file that needs more fails to
load, which is the test's problem and not the candidate's.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import unittest
from collections.abc import Callable, Iterator
from typing import Any

Test = tuple[str, Callable[[], object]]


class Skipped(Exception):
    """The test asked to be skipped: it is no entry."""


def install() -> None:
    """Make `import pytest` give this vocabulary."""
    module: Any = types.ModuleType("pytest")
    module.raises, module.approx, module.fixture, module.skip = raises, approx, fixture, _skip
    module.mark = _Marks()
    sys.modules["pytest"] = module


class raises:  # pytest's own name
    """`with raises(ValueError, match="..."):`, or raises(ValueError, function, *arguments)."""

    def __init__(self, kinds: Any, call: Any = None, *arguments: Any, match: str | None = None) -> None:
        self._kinds, self._match = kinds, match
        self.value: BaseException | None = None
        if call is not None:
            with self:
                call(*arguments)

    def __enter__(self) -> raises:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        record = sys.modules["tests"].__dict__["__guerdon_record__"]
        if kind is None:
            raise AssertionError("did not raise")
        if not issubclass(kind, self._kinds):
            return False
        if self._match is not None and not re.search(self._match, str(error)):
            raise AssertionError(f"the message does not match {self._match!r}")
        record.did(None)
        self.value = error
        return True


class approx:  # pytest's own name
    """Equal within rel * |expected| or abs, elementwise over lists, tuples and dicts."""

    def __init__(self, expected: Any, rel: float = 1e-6, abs: float = 1e-12) -> None:
        self._expected, self._rel, self._abs = expected, rel, abs

    def __eq__(self, actual: object) -> bool:
        return self._close(self._expected, actual)

    def __hash__(self) -> int:
        return 0

    def _close(self, expected: Any, actual: Any) -> bool:
        if isinstance(expected, (list, tuple)):
            return (
                type(actual) in (list, tuple)
                and len(actual) == len(expected)
                and all(map(self._close, expected, actual))
            )
        if isinstance(expected, dict):
            return (
                type(actual) is dict
                and actual.keys() == expected.keys()
                and all(self._close(value, actual[key]) for key, value in expected.items())
            )
        if type(actual) not in (int, float, complex):
            return bool(type(actual) is type(expected) and actual == expected)
        return bool(expected == actual) or abs(expected - actual) <= max(self._abs, self._rel * abs(expected))


def fixture(function: Any = None, **_: Any) -> Any:
    """Mark a function whose result tests may take as an argument of its name."""
    if function is None:
        return fixture
    function.guerdon_fixture = True
    return function


def _skip(reason: str = "") -> None:
    raise Skipped(reason)


class _Marks:
    def parametrize(self, names: str | list[str] | tuple[str, ...], values: Any, **_: Any) -> Any:
        labels = [part.strip() for part in names.split(",")] if isinstance(names, str) else list(names)

        def mark(function: Any) -> Any:
            rows = [dict(zip(labels, row if len(labels) > 1 else [row], strict=True)) for row in values]
            before = getattr(function, "guerdon_rows", [{}])
            function.guerdon_rows = [{**first, **second} for first in rows for second in before]
            return function

        return mark

    def skip(self, *_: Any, **__: Any) -> Any:
        return lambda function: _skipper

    def __getattr__(self, name: str) -> Any:
        def mark(*arguments: Any, **_: Any) -> Any:
            return arguments[0] if arguments and callable(arguments[0]) else lambda function: function

        return mark


def _skipper() -> None:
    _skip()


def collect(space: dict[str, Any]) -> list[Test]:
    """Every test of the file in the order written, ready to call."""
    fixtures = {name: value for name, value in space.items() if getattr(value, "guerdon_fixture", False)}
    found: list[Test] = []
    for name, value in list(space.items()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase):
            found += _cases(value)
        elif isinstance(value, type) and name.startswith("Test"):
            for method in [item for item in vars(value) if item.startswith("test")]:
                found += _rows(f"{name}::{method}", vars(value)[method], fixtures, value)
        elif isinstance(value, types.FunctionType) and name.startswith("test"):
            found += _rows(name, value, fixtures, None)
    return found


def _rows(name: str, function: Any, fixtures: dict[str, Any], owner: type | None) -> Iterator[Test]:
    rows = getattr(function, "guerdon_rows", [{}])
    for number, row in enumerate(rows):
        label = f"{name}[{number}]" if len(rows) > 1 else name
        yield label, lambda row=row: _call(function, row, fixtures, owner)  # type: ignore[misc]  # bound early on purpose


def _call(function: Any, row: dict[str, Any], fixtures: dict[str, Any], owner: type | None) -> None:
    wanted = list(inspect.signature(function).parameters)
    instance = []
    if owner is not None:
        instance = [owner()]
        wanted = wanted[1:]
        if hasattr(instance[0], "setup_method"):
            instance[0].setup_method()
    finish: list[Any] = []
    given = {name: row[name] if name in row else _provide(name, fixtures, finish) for name in wanted}
    try:
        function(*instance, **given)
    finally:
        for generator in finish:
            next(generator, None)


def _provide(name: str, fixtures: dict[str, Any], finish: list[Any]) -> Any:
    if name not in fixtures:
        raise NameError(f"no fixture {name}")
    function = fixtures[name]
    value = function(**{part: _provide(part, fixtures, finish) for part in inspect.signature(function).parameters})
    if inspect.isgenerator(value):
        finish.append(value)
        return next(value)
    return value


def _cases(kind: type[unittest.TestCase]) -> Iterator[Test]:
    for method in unittest.TestLoader().getTestCaseNames(kind):
        yield f"{kind.__name__}::{method}", lambda method=method: _run_case(kind(method))  # type: ignore[misc]  # bound early on purpose


def _run_case(case: unittest.TestCase) -> None:
    result = unittest.TestResult()
    case.run(result)
    if result.skipped:
        raise Skipped
    for _, text in [*result.failures, *result.errors]:
        raise AssertionError(text.strip().splitlines()[-1])
