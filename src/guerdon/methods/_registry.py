"""The register of published reward methods: what `guerdon methods` lists and shows."""

from __future__ import annotations

import dis
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal, TypeVar

from guerdon.core.errors import SpecError
from guerdon.core.parameters import signature_of
from guerdon.core.signal import Signal
from guerdon.core.transform import Transform

Level = Literal["code-read", "paper-read", "secondary", "abstract-only"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Method:
    """A published method: its builder, where it comes from, and how sure we are of its formula.

    ``evidence`` is ``code-read`` (released code), ``paper-read``, ``secondary`` (summaries) or ``abstract-only``.
    """

    key: str
    family: str
    name: str
    source: str
    evidence: Level
    build: Callable[..., Any]

    @property
    def usage(self) -> str:
        """The builder's call: its place and its parameters with their defaults."""
        home = f"{self.build.__module__.replace('._', '.')}.{self.build.__name__}"
        return f"{home}{signature_of(self.build)}"

    @property
    def text(self) -> str:
        """Formula, shapes, defaults and traps: the builder's documentation."""
        return inspect.getdoc(self.build) or ""

    @property
    def parts(self) -> tuple[str, ...]:
        """The shared functions and signals that the method is made of."""
        return tuple(sorted(set(_parts(self.build, set()))))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        shown = {k: getattr(self, k) for k in ("key", "family", "name", "source", "evidence", "usage")}
        return {**shown, "status": "implemented", "parts": list(self.parts)}


_METHODS: dict[str, Method] = {}


def method(key: str, *, family: str, name: str, source: str, evidence: Level) -> Callable[[F], F]:
    """Register a builder (or a shape or credit function) as the published method ``key`` of the catalogue."""

    def register(build: F) -> F:
        if key in _METHODS and _METHODS[key].build is not build:
            raise ValueError(f"two methods are called {key!r}")
        _METHODS[key] = Method(key, family, name, source, evidence, build)
        return build

    return register


def all_methods() -> list[Method]:
    """Every registered method, by key."""
    package = importlib.import_module("guerdon.methods")
    for found in pkgutil.walk_packages(package.__path__, "guerdon.methods."):
        importlib.import_module(found.name)
    return sorted(_METHODS.values(), key=lambda m: m.key)


def find(key: str) -> Method:
    """The method ``key``; an error that names the nearest keys if there is none.

    Only modules whose source holds the key are imported, all of them only where that does not find it.
    """
    for module in () if key in _METHODS else _modules_with(key):
        importlib.import_module(module)
    if key not in _METHODS:
        all_methods()
    if key not in _METHODS:
        raise SpecError(f"there is no method {key!r}{_hint(key)}")
    return _METHODS[key]


def _modules_with(key: str) -> list[str]:
    package = importlib.import_module("guerdon.methods")
    mark = f'"{key}"'.encode()
    files = [f for place in package.__path__ for f in sorted(Path(place).glob("*.py"))]
    return [f"guerdon.methods.{f.stem}" for f in files if not f.stem.startswith("_") and mark in f.read_bytes()]


def _hint(key: str) -> str:
    near = [k for k in sorted(_METHODS) if key and key in k] or get_close_matches(key, _METHODS, n=3)
    return f"; did you mean {' or '.join(near[:3])}?" if near else "; see: guerdon methods list"


def build(key: str, *args: Any, **params: Any) -> Any:
    """``gd.method("key")`` gives the method's builder; with arguments, what it builds."""
    builder = find(key).build
    return builder(*args, **params) if args or params else builder


def _parts(function: Any, seen: set[int]) -> Iterator[str]:
    """Keys of the transforms and signals that a function's code names, through our own functions and rooms."""
    if isinstance(function, Transform | Signal):
        yield _key(function)
    inner = function.function if isinstance(function, (Transform, Signal)) else function
    if not isinstance(inner, FunctionType) or id(inner) in seen or not inner.__module__.startswith("guerdon."):
        return
    seen.add(id(inner))
    for used in _used(inner.__code__, inner.__globals__):
        if isinstance(used, Transform | Signal) and not used.__module__.startswith("guerdon.methods"):
            yield _key(used)
        else:
            yield from _parts(used, seen)


def _key(part: Transform | Signal) -> str:
    return part.traits.key if isinstance(part, Transform) else part.key


def _used(code: CodeType, scope: Mapping[str, Any]) -> Iterator[Any]:
    """What code refers to: globals, and attributes of our rooms; in its lambdas and comprehensions too."""
    room: Any = None
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL" and step.argval in scope:
            found = scope[step.argval]
            room = found if isinstance(found, ModuleType) and found.__name__.startswith("guerdon.") else None
            if room is None:
                yield found
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and room is not None:
            yield getattr(room, step.argval, None)
            room = None
        elif isinstance(step.argval, CodeType):
            yield from _used(step.argval, scope)
