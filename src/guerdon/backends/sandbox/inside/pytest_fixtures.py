"""pytest's fixtures: what a test asks for by the names of its arguments."""

from __future__ import annotations

import importlib
import inspect
import io
import sys
import types
from typing import Any


class UnknownFixture(Exception):
    """No such fixture in the file, and none that is known here."""


def fixture(function: Any = None, *, autouse: bool = False, **options: Any) -> Any:
    """Mark a function whose result tests may take as an argument of its name."""
    if function is None:
        return lambda function: fixture(function, autouse=autouse, **options)
    function.guerdon_fixture = "params" if options.get("params") else "autouse" if autouse else "fixture"
    return function


def fixtures_of(space: dict[str, Any]) -> dict[str, Any]:
    """The fixtures among some names."""
    return {
        name: value
        for name, value in space.items()
        if isinstance(value, types.FunctionType) and hasattr(value, "guerdon_fixture")
    }


def optional(function: Any, *arguments: Any) -> None:
    """Call a set-up or tear-down with as many of the arguments as it takes."""
    if function is not None:
        function(*arguments[: len(inspect.signature(function).parameters)])


def with_fixtures(function: Any, row: dict[str, Any], fixtures: dict[str, Any], owner: Any) -> None:
    """Call a test with its parameters and fixtures, run it to its end if it is async, and tear the fixtures down."""
    finish: list[Any] = []
    provide = _Provider(row, fixtures, owner, finish)
    for name, value in fixtures.items():
        if value.guerdon_fixture == "autouse":
            provide(name)
    try:
        result = provide.call(function)
        if inspect.iscoroutine(result):
            asyncio = importlib.import_module("asyncio")
            asyncio.run(result)
    finally:
        for generator in reversed(finish):
            next(generator, None)


class _Capture:
    """`capsys`: what is printed from here on, to be put back like a generator's last step."""

    def __init__(self) -> None:
        self._before: Any = sys.stdout
        self._printed = sys.stdout = io.StringIO()

    def readouterr(self) -> Any:
        """What was printed since the last time."""
        text = self._printed.getvalue()
        self._printed = sys.stdout = io.StringIO()
        return types.SimpleNamespace(out=text, err="")

    def __next__(self) -> None:
        sys.stdout = self._before


class _Provider:
    """The values of a test's arguments: parameters and fixtures, each made once."""

    def __init__(self, row: dict[str, Any], fixtures: dict[str, Any], owner: Any, finish: list[Any]) -> None:
        self._known = dict(row)
        self._fixtures, self._owner, self._finish = fixtures, owner, finish

    def __call__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        if name == "capsys" and name not in self._fixtures:
            self._known[name] = _Capture()
            self._finish.append(self._known[name])
            return self._known[name]
        function = self._fixtures.get(name)
        if function is None or function.guerdon_fixture == "params":
            raise UnknownFixture(name)
        value = self.call(function)
        if inspect.isgenerator(value):
            self._finish.append(value)
            value = next(value)
        self._known[name] = value
        return value

    def call(self, function: Any) -> Any:
        """The function with what it asks for."""
        wanted = list(inspect.signature(function).parameters)
        own = [self._owner] if self._owner is not None and wanted[:1] == ["self"] else []
        return function(*own, **{name: self(name) for name in wanted[len(own) :]})
