"""Instances of the candidate's subclasses of plain types, in the tests' process: the plain value they hold, with their
further attributes asked for over there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .values import BASES


def assign(target: Any, value: Any) -> None:
    """Give the test's own list, dict, set or bytearray the content that the candidate left in its copy."""
    if type(target) is not type(value):
        return
    if isinstance(target, (list, bytearray)):
        target[:] = value
    elif isinstance(target, (dict, set)):
        target.clear()
        target.update(value)


# What changes a list, dict, set or bytearray, and is done over there.
_CHANGING: Final = (
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add",
    "discard", "__setitem__", "__delitem__", "__iadd__", "__ior__",
)  # fmt: skip


def _made_kept(base: Any) -> Any:
    """A subclass of a plain type: compared and read as what it holds, changed and asked for more over there."""

    def ask_for(self: Any, name: str) -> Any:
        found = getattr(self.__dict__["_remote"], name)
        return _then_refresh(self, found) if callable(found) else found

    def change(name: str) -> Callable[..., Any]:
        def changed(self: Any, *arguments: object, **named: object) -> Any:
            method = self.__dict__["_remote"]._link.ask("get", self.__dict__["_remote"]._on, name)
            result = _then_refresh(self, method)(*arguments, **named)
            return self if name.startswith("__i") else result

        return changed

    body: dict[str, Any] = {name: change(name) for name in _CHANGING if name in vars(base)}
    if base in (list, dict, set, bytearray):
        body["__hash__"] = None
    return type(base.__name__, (base,), {**body, "__getattr__": ask_for})


def _then_refresh(value: Any, method: Any) -> Callable[..., Any]:
    def call(*arguments: object, **named: object) -> Any:
        result = method(*arguments, **named)
        refresh(value)
        return result

    return call


_KEPT: Final[dict[type, Any]] = {base: _made_kept(base) for base in BASES}
_KEPT_KINDS: Final = frozenset(_KEPT.values())


def kept(original: Any, plain: Any) -> Any:
    """The plain value, whose further attributes are the original's."""
    if type(plain) not in _KEPT:
        return original
    made = _KEPT[type(plain)](plain)
    made.__dict__["_remote"] = original
    return made


def original_of(value: object) -> Any:
    """The handle behind a kept value; None for any other value."""
    return object.__getattribute__(value, "__dict__")["_remote"] if type(value) in _KEPT_KINDS else None


def refresh(value: Any) -> None:
    """Read the content of a kept list, dict or set anew."""
    base: Any = type(value).__mro__[1] if type(value) in _KEPT_KINDS else None
    if base in (list, dict, set, bytearray):
        original = value.__dict__["_remote"]
        content: Any = original._link.ask("plain", original._on)
        if type(content) is not base:
            raise TypeError("its content has another type now")
        if base in (list, bytearray):
            base.__setitem__(value, slice(None), content)
        else:
            base.clear(value)
            base.update(value, content)
