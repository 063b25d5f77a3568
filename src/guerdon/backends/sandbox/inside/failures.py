"""Exceptions across the border: what the candidate raised, told in words, and what the tests see of it."""

from __future__ import annotations

import builtins
import sys
from typing import Any

from .values import NotPlain, encode

_MAX_TYPES = 20
_MAX_TEXT = 2000
_EXITS = (SystemExit, KeyboardInterrupt, GeneratorExit)
_ENDS = ("StopIteration", "StopAsyncIteration")
_STEERING = ("unittest", "doctest")  # modules whose exceptions tell a test run what to do


def describe(error: BaseException) -> dict[str, Any]:
    """For the wire: the class and its ancestors by name, bare for built-in ones and for `NotPlain`, `module.name` for
    all others; the text; and the arguments where they are plain data."""
    try:
        text = str(error)[:_MAX_TEXT]
    except BaseException:  # noqa: BLE001  # an exception whose __str__ raises
        text = ""
    told: dict[str, Any] = {"types": names_of(type(error)), "text": text}
    try:
        form = encode(list(error.args))
    except BaseException:  # noqa: BLE001  # nothing of it is needed
        return told
    return {**told, "args": form} if len(str(form)) <= _MAX_TEXT else told


def names_of(kind: type) -> list[str]:
    """A class and its ancestors by name."""
    return [_name(one) for one in kind.__mro__[:-1]][:_MAX_TYPES]


def _name(kind: type) -> str:
    if kind is NotPlain or vars(builtins).get(kind.__name__) is kind:
        return kind.__name__
    return f"{kind.__module__}.{kind.__name__}"


def class_names(names: Any) -> list[str]:
    """At most 20 names that a class can have; `Exception` where there is none."""
    known = [
        name
        for name in (names if type(names) is list else [])
        if type(name) is str and len(name) < 200 and all(part.isidentifier() for part in name.split("."))
    ]
    return known[:_MAX_TYPES] or ["Exception"]


def parts(failure: Any) -> tuple[list[str], str, Any]:
    """(names, text, form of the arguments or None) of what claims to be a description."""
    if type(failure) is not dict:
        return ["Exception"], "", None
    text = failure.get("text")
    return class_names(failure.get("types")), text[:_MAX_TEXT] if type(text) is str else "", failure.get("args")


class CandidateExit(Exception):
    """The candidate raised SystemExit or the like instead of returning."""


class Raised(Exception):
    """Base of the classes that stand for exceptions of the candidate's own; attributes are asked of the original."""

    def __str__(self) -> str:
        return str(self.__dict__["told"]) if "told" in self.__dict__ else super().__str__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "original" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.__dict__["original"], name)


_made: dict[tuple[str, ...], type[Exception]] = {}


def exception_type(names: list[str]) -> type[Exception]:
    """The class the tests see for a class with these ancestors: a built-in one, one of a module of the standard
    library that the tests have imported, or one made here under the nearest of those."""
    key = tuple(names)
    if key not in _made:
        _made[key] = _known(names[0]) or _make(names)
    return _made[key]


def _make(names: list[str]) -> type[Exception]:
    short = names[0].rpartition(".")[2]
    if short == names[0] and short in _ENDS:  # the tests' own loops would take it for the end of their iteration
        return type(short, (Raised,), {})
    exits = [kind for kind in _EXITS if kind.__name__ in names]
    if exits:  # an `except SystemExit` of the tests sees it, and so does an `except Exception`
        return type(short, (exits[0], CandidateExit), {})
    parent = exception_type(names[1:]) if len(names) > 1 else CandidateExit
    bases = (parent,) if issubclass(parent, Raised) else (Raised, parent) if parent is not Exception else (Raised,)
    return type(short, bases, {})


def _known(name: str) -> type[Exception] | None:
    module, _, short = name.rpartition(".")
    if name in _ENDS or module.partition(".")[0] in _STEERING:
        return None
    if module and module.partition(".")[0] not in sys.stdlib_module_names:
        return None
    found = vars(sys.modules[module]).get(short) if module in sys.modules else None
    found = found if module else vars(builtins).get(short)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def mapped(failure: Any, arguments: list[Any] | None, original: object) -> Exception:
    """What the test sees when the candidate raised; `original`: a handle to the exception itself, or None."""
    names, text, _ = parts(failure)
    kind = exception_type(names)
    error = _instance(kind, arguments if arguments is not None else [text], text)
    error.__dict__.update(from_candidate=True, names=[name.rpartition(".")[2] for name in names])
    if isinstance(error, Raised):
        error.__dict__.update(told=text, original=original)
    return error


def _instance(kind: type[Exception], arguments: list[Any], text: str) -> Exception:
    """An exception whose class may want other arguments than it keeps."""
    try:
        return kind(*arguments)
    except Exception:  # noqa: BLE001  # whatever a constructor does not like
        pass
    try:
        error = kind.__new__(kind)
    except TypeError:  # an exception group
        return Exception(text)
    error.args = tuple(arguments)
    return error
