"""What stands in the tests' process for names and objects of the candidate's.

A `Remote` never hands the test's plain values to the candidate for comparison or arithmetic: it equals no plain value,
is in no order with one, and does not add or subtract. Otherwise an object that claims to equal everything would decide
its own verdict. The one exception is an instance of a class that the test itself names and uses as a class
(`Money(5) == 5`): there the comparison is what is under test. An instance of a subclass of a plain type (a named
tuple, an IntEnum) is here the plain value it holds, whose further attributes are asked for.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from .failures import class_names, exception_type
from .kept import original_of, refresh

if TYPE_CHECKING:
    from .remote import Link

_CLASSES: Final = {
    kind.__name__: kind
    for kind in (types.GeneratorType, types.FunctionType, types.MethodType, types.CoroutineType, map, filter, zip)
}
# What inspect, dataclasses and the like read, and can't read here.
_INTROSPECTION: Final = ("__code__", "__signature__", "__annotations__")
_BOTH: Final = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
)  # fmt: skip
_ONE: Final = ("neg", "pos", "abs", "invert", "int", "float", "index", "reversed")


class Remote:
    """A name or an object of the candidate's process."""

    __slots__ = ("_link", "_made_by", "_on", "_type")

    def __init__(self, link: Link, on: object, kind: str) -> None:
        object.__setattr__(self, "_link", link)
        object.__setattr__(self, "_on", on)
        object.__setattr__(self, "_type", kind)
        object.__setattr__(self, "_made_by", "")

    @property  # type: ignore[misc]  # isinstance(x, GeneratorType) asks for it
    def __class__(self) -> type:
        return _CLASSES.get(self._type, type(self))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__name__", "__doc__", "__dict__"):
            if name in _INTROSPECTION:
                self._link.unsupported(f"the test reads {name} of an object of the program's")
            raise AttributeError(name)
        return self._link.ask("get", self._on, name)

    def __setattr__(self, name: str, value: object) -> None:
        self._link.ask("set", self._on, name, value)

    def __delattr__(self, name: str) -> None:
        self._link.ask("delete", self._on, name)

    def __getitem__(self, key: object) -> Any:
        return self._link.ask("item", self._on, key)

    def __setitem__(self, key: object, value: object) -> None:
        self._link.ask("set item", self._on, key, value)

    def __delitem__(self, key: object) -> None:
        self._link.ask("delete item", self._on, key)

    def __len__(self) -> int:
        return _whole_number(self._link.ask("len", self._on))

    def __iter__(self) -> Iterator[Any]:
        iterator = self._link.ask("iter", self._on)
        return iterator if isinstance(iterator, Remote) else iter(iterator)

    def __next__(self) -> Any:
        reply = self._link.exchange({"op": "next", "on": self._on})
        if "stop" in reply:
            raise StopIteration
        return self._link.decoded(reply["value"])

    def __aiter__(self) -> Any:
        return self._link.ask("aiter", self._on)

    async def __anext__(self) -> Any:
        reply = self._link.exchange({"op": "anext", "on": self._on})
        if "stop" in reply:
            raise StopAsyncIteration
        return self._link.decoded(reply["value"])

    def __await__(self) -> Generator[Any, None, Any]:
        yield from ()
        return self._link.ask("await", self._on)

    def __contains__(self, item: object) -> bool:
        if _plain(item) and not self._asked_as_class():
            return any(element == item for element in self)
        return self._link.ask("contains", self._on, item) is True

    def __str__(self) -> str:
        return _text(self._link.ask("str", self._on))

    def __repr__(self) -> str:
        return _text(self._link.ask("repr", self._on))

    def __bool__(self) -> bool:
        return self._link.ask("bool", self._on) is True

    def __enter__(self) -> Any:
        return self._link.ask("enter", self._on)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        told = [kind.__name__, str(error)] if kind is not None else []
        return self._link.ask("exit", self._on, *told) is True

    def __instancecheck__(self, value: object) -> bool:
        return held_by(value) is not None and self._link.ask("isinstance", self._on, value) is True

    def __subclasscheck__(self, kind: object) -> bool:
        return held_by(kind) is not None and self._link.ask("issubclass", self._on, kind) is True

    def __copy__(self) -> Any:
        return self._link.ask("copy", self._on)

    def __deepcopy__(self, _: object) -> Any:
        return self._link.ask("deepcopy", self._on)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if _plain(other) and not self._asked_as_class():
            self._link.compared_opaque = True
            return False
        return self._link.ask("same", self._on, other) is True

    def __hash__(self) -> int:
        return _whole_number(self._link.ask("hash", self._on))

    def _asked_as_class(self) -> bool:
        """Whether the test made this object of a class it names; unsupported where that can't be told."""
        if self._made_by and self._made_by in self._link.perhaps_classes:
            raise self._link.unsupported(f"the test may or may not mean {self._made_by} to be a class")
        return bool(self._made_by) and self._made_by in self._link.classes

    def _ordered(self, op: str, other: object) -> bool:
        if _plain(other) and not self._asked_as_class():
            self._link.compared_opaque = True
            raise TypeError(f"an opaque {self._type} has no order with {type(other).__name__}")
        return self._link.ask(op, self._on, other) is True

    def _computed(self, op: str, *others: object) -> Any:
        if any(map(_plain, others)) and not self._asked_as_class():
            raise TypeError(f"an opaque {self._type} does not compute with plain values")
        result = self._link.ask(op, self._on, *others)
        if isinstance(result, Remote):
            object.__setattr__(result, "_made_by", self._made_by)
        return result


class CallableRemote(Remote):
    """One that can be called."""

    __slots__ = ()

    def __call__(self, *arguments: object, **named: object) -> Any:
        result = self._link.ask("call", self._on, *arguments, **named)
        if isinstance(self._on, str) and isinstance(result, Remote):
            object.__setattr__(result, "_made_by", self._on)
        for value in (*arguments, *named.values()):
            refresh(value)
        return result


def _give_operators() -> None:
    """Operators are one question each."""

    def comparison(op: str) -> Callable[[Remote, object], bool]:
        return lambda self, other: self._ordered(op, other)

    def computation(op: str) -> Callable[..., Any]:
        return lambda self, *others: self._computed(op, *others)

    for name in ("lt", "le", "gt", "ge"):
        setattr(Remote, f"__{name}__", comparison(name))
    for name in (*_BOTH, *(f"r{name}" for name in _BOTH), *_ONE, "round"):
        setattr(Remote, f"__{name}__", computation(name))


_give_operators()


@lru_cache(maxsize=1024)
def _class_for(kind: str, callable_: bool) -> type[Remote]:
    base = CallableRemote if callable_ else Remote
    body = {"__slots__": (), "__doc__": property(lambda self: self._link.ask("get", self._on, "__doc__"))}
    return type(kind if kind.isidentifier() else base.__name__, (base,), body)


def remote(link: Link, on: object, kind: str, callable_: bool) -> Remote:
    """The handle for an object, of a class by the name of the object's; only one for a callable can be called, so that
    `callable(x)` says what it should."""
    return _class_for(kind, callable_)(link, on, kind)


def _plain(value: object) -> bool:
    return held_by(value) is None


def held_by(value: object) -> object:
    """What the candidate knows this by; None for a value of the tests' own."""
    kind = type(value)
    if issubclass(kind, Remote):
        return object.__getattribute__(value, "_on")
    original = original_of(value)
    return None if original is None else original._on


def _whole_number(value: object) -> int:
    if type(value) is not int:
        raise TypeError("not an int")
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        raise TypeError("not a str")
    return value


def bind(link: Link, name: str, kind: Any) -> Any:
    """What stands for the candidate's `name` in the test, given what the candidate says it is."""
    if type(kind) is dict:
        return exception_type(class_names(kind.get("exception")))
    if kind == "value":
        return link.ask("value", name)
    if kind == "async":
        return _async_call(link, name)
    return remote(link, name, kind[:20], callable_=True)


def _async_call(link: Link, name: str) -> Callable[..., Any]:
    async def call(*arguments: object, **named: object) -> Any:
        return link.ask("call async", name, *arguments, **named)

    return call
