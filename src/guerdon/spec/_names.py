"""What a spec can call: operators, and the public names of Guerdon's rooms, found where they are defined."""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType
from typing import Any

from guerdon.core import operators
from guerdon.core.interval import Interval
from guerdon.core.reward import Bounded, Reward, column
from guerdon.core.signal import Signal
from guerdon.core.transform import Transform

ROOMS = (
    "verify", "likelihood", "judge", "process", "consensus", "models", "intrinsic", "automata", "shape", "credit",
)  # fmt: skip
"""The rooms whose public names a spec may call, where they exist."""

CODE = "code"


def within(x: Reward, *, range: tuple[float, float]) -> Reward:
    """``x`` with a declared range: a known value outside it becomes unknown and counts as a failure."""
    return Bounded(x, Interval(*range))


def greater(a: Any, b: Any) -> Any:
    """1 where ``a > b``, else 0."""
    return operators.less(b, a)


def greater_equal(a: Any, b: Any) -> Any:
    """1 where ``a >= b``, else 0."""
    return operators.less_equal(b, a)


def not_equal(a: Any, b: Any) -> Any:
    """1 where ``a != b``, else 0."""
    return operators.negation(operators.equal(a, b))


OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operators.add, "subtract": operators.subtract, "multiply": operators.multiply, "divide": operators.divide,
    "negate": operators.negate, "less": operators.less, "less_equal": operators.less_equal, "greater": greater,
    "greater_equal": greater_equal, "equal": operators.equal, "not_equal": not_equal, "not": operators.negation,
    "and": operators.both, "or": operators.either, "minimum": operators.minimum, "maximum": operators.maximum,
    "when": operators.when, "mean": operators.mean, "sum": operators.total, "min": operators.least,
    "max": operators.greatest, "product": operators.product, "last": operators.last, "column": column, "within": within,
    "scale": operators.times, "joint": operators.joint,
}  # fmt: skip
"""Names without a room. ``scale`` and ``joint`` are the two kinds of ``multiply``, where the choice must be stated."""

FOLDED = ("add", "multiply", "and", "or", "minimum", "maximum", "scale", "joint")
"""Operators of two operands that may be given more: ``add: [a, b, c]`` is ``(a + b) + c``."""

_BARE = ("multiply", "minimum", "maximum", "greater", "greater_equal", "not_equal")


@dataclass(frozen=True)
class Callee:
    """Something a spec can call, and how."""

    name: str
    target: Any
    positional: tuple[str, ...]
    """Parameters that may be given as a list, in order."""
    operands: frozenset[str]
    """Parameters that take rewards: one, a list or a mapping of them."""
    parameters: dict[str, inspect.Parameter]
    hints: dict[str, Any]

    @property
    def required(self) -> tuple[str, ...]:
        """Parameters without a default."""
        return tuple(n for n, p in self.parameters.items() if p.default is p.empty)

    def several(self, name: str) -> bool:
        """Whether operand ``name`` takes a list or mapping of rewards."""
        text = str(self.parameters[name].annotation)
        return any(word in text for word in ("Sequence[", "Mapping[", "list[", "tuple[", "dict[", "Iterable["))

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        text = inspect.getdoc(self.documented) or ""
        return " ".join(text.split("\n\n", 1)[0].split())

    @property
    def documented(self) -> Any:
        """The function that carries documentation and signature."""
        return self.target.function if isinstance(self.target, (Signal, Transform)) else self.target


def callee(name: str, target: Any) -> Callee:
    """How ``target`` (a signal, a transform, or a function that builds a reward) is called."""
    if isinstance(target, Signal):
        parameters = {n: p for n, p in target.parameters.items() if p.kind in _NAMED}
        return Callee(name, target, (), frozenset(), parameters, _hints(target.function))
    if name in _BARE:
        parameters = {n: p.replace(annotation="Scores") for n, p in inspect.signature(target).parameters.items()}
        return Callee(name, target, tuple(parameters), frozenset(parameters), parameters, {})
    function = target.function if isinstance(target, Transform) else target
    parameters = {n: p for n, p in inspect.signature(function).parameters.items() if p.kind in _NAMED and n != "state"}
    word = "Scores" if isinstance(target, Transform) else "Reward"
    operands = frozenset(n for n, p in parameters.items() if word in str(p.annotation))
    order = tuple(n for n, p in parameters.items() if p.kind is not p.KEYWORD_ONLY)
    return Callee(name, target, order, operands, parameters, _hints(function))


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _hints(function: Any) -> dict[str, Any]:
    """Resolved annotations; those that can't be resolved are left out, and then not checked."""
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        return {}


def room(name: str) -> Any:
    """The module of a room, or ``None`` where there is no such room."""
    try:
        return importlib.import_module(f"guerdon.{name}")
    except ModuleNotFoundError as error:
        if error.name == f"guerdon.{name}":
            return None
        raise


@lru_cache(maxsize=1)
def public() -> dict[str, Callee]:
    """Everything a spec can call by name, user code apart: operators, rooms, published methods that build rewards."""
    from guerdon.methods import all_methods

    out = {name: callee(name, target) for name, target in OPERATORS.items()}
    for name in ROOMS:
        module = room(name)
        for key in getattr(module, "__all__", ()):
            target = getattr(module, key)
            if builds(target):
                out[f"{name}.{key}"] = callee(f"{name}.{key}", target)
    for entry in all_methods():
        if builds(entry.build):
            out[f"method.{entry.key}"] = callee(f"method.{entry.key}", entry.build)
    return out


def builds(target: Any) -> bool:
    """Whether calling ``target`` gives a reward: signals, transforms, and functions annotated to return one."""
    if isinstance(target, (Signal, Transform)):
        return True
    if not isinstance(target, FunctionType):
        return False
    made = str(target.__annotations__.get("return")).rsplit(".", 1)[-1].strip("'>")
    return made in ("Reward", "Signal", "Apply", "Column")


_known: dict[str, Callee] = {}


def find(name: str) -> Callee | None:
    """What ``name`` calls: a public name, or a signal or transform by its place, ``<module under guerdon>.<name>``."""
    found = _known.get(name) or _find(name)
    if found is not None:
        _known[name] = found
    return found


def _find(name: str) -> Callee | None:
    if name in OPERATORS:
        return callee(name, OPERATORS[name])
    head, _, tail = name.partition(".")
    if head in ROOMS and tail and "." not in tail and not tail.startswith("_"):
        module = room(head)
        target = getattr(module, tail, None) if tail in getattr(module, "__all__", ()) else None
        return callee(name, target) if builds(target) else None
    if head == "method":
        from guerdon.methods import find as find_method

        build = find_method(tail).build
        return callee(name, build) if builds(build) else None
    return _by_place(name)


def _by_place(name: str) -> Callee | None:
    module, _, attribute = name.rpartition(".")
    parts = module.split(".")
    if parts[0] not in (*ROOMS, "methods") or not all(p.isidentifier() for p in [*parts, attribute]):
        return None
    try:
        target = getattr(importlib.import_module(f"guerdon.{module}"), attribute, None)
    except ModuleNotFoundError:
        return None
    return callee(name, target) if isinstance(target, (Signal, Transform)) else None


def names_of(target: Signal | Transform) -> Iterator[str]:
    """Names under which a spec may find ``target``, the best first."""
    if isinstance(target, Transform):
        yield from (n for n, t in OPERATORS.items() if t is target)
    function = target.function
    module, qualname = getattr(function, "__module__", None) or "__main__", getattr(function, "__qualname__", "")
    if module.startswith("guerdon."):
        parts = module.split(".")
        for key in getattr(room(parts[1]) if parts[1] in ROOMS else None, "__all__", ()):
            found = getattr(room(parts[1]), key)
            if isinstance(found, (Signal, Transform)) and found.function is function:
                yield f"{parts[1]}.{key}"
        yield f"{module.removeprefix('guerdon.')}.{qualname}"
    elif module != "__main__" and "<" not in qualname:
        yield f"{CODE}.{module}.{qualname}"
