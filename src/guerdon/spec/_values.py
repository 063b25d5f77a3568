"""Plain values of a spec against the type that a parameter declares."""

from __future__ import annotations

import dataclasses
import inspect
import os
import types
import typing
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, Union

from guerdon.spec._document import Item, nearest

_SCALARS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def value(item: Item, hint: Any = None) -> Any:
    """The plain value of ``item``, checked against ``hint``; an error at its place if it does not fit."""
    if not fits(item, hint):
        item.fail(f"expected {describe(hint)}, not {item.kind}{_near_choice(item, hint)}")
    return _made(item, hint)


def _near_choice(item: Item, hint: Any) -> str:
    found = list(_choices(hint))
    return nearest(str(item.value), found) if isinstance(item.value, str) else ""


def _choices(hint: Any) -> list[str]:
    if typing.get_origin(hint) is Literal:
        return [str(a) for a in typing.get_args(hint)]
    return [c for part in _options(hint) for c in _choices(part)] if _options(hint) else []


def _options(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else ()


def fits(item: Item, hint: Any) -> bool:
    """Whether ``item`` can be a value of the type ``hint``; what is not understood is left to the function itself."""
    found, origin = item.value, typing.get_origin(hint) or hint
    if options := _options(hint):
        return any(fits(item, o) for o in options)
    if origin is Literal:
        return any(found == a and type(found) is type(a) for a in typing.get_args(hint))
    if hint is None or hint is type(None):
        return found is None if hint is type(None) else True
    if origin in _SCALARS:
        kinds = (int, float) if origin is float else (origin,)
        return isinstance(found, kinds) and (origin is bool or not isinstance(found, bool))
    if origin is os.PathLike or (inspect.isclass(origin) and issubclass(origin, os.PathLike)):
        return isinstance(found, str)
    if dataclasses.is_dataclass(origin):
        return isinstance(found, dict) and set(found) <= {f.name for f in dataclasses.fields(origin)}
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        return isinstance(found, dict) and _all_fit(found.values(), typing.get_args(hint)[1:])
    if inspect.isclass(origin) and issubclass(origin, (Sequence, AbstractSet)) and not issubclass(origin, (str, bytes)):
        return isinstance(found, list) and _items_fit(found, origin, typing.get_args(hint))
    return True


def _all_fit(items: Any, hints: tuple[Any, ...]) -> bool:
    return not hints or all(fits(i, hints[0]) for i in items)


def _items_fit(items: list[Item], origin: Any, hints: tuple[Any, ...]) -> bool:
    if origin is tuple and hints and hints[-1] is not Ellipsis:
        return len(items) == len(hints) and all(fits(i, h) for i, h in zip(items, hints, strict=True))
    return _all_fit(items, hints)


def _made(item: Item, hint: Any) -> Any:
    """The plain value, in the container that the type asks for."""
    options = [o for o in _options(hint) if fits(item, o)]
    if options:
        return _made(item, options[0])
    origin, hints = typing.get_origin(hint) or hint, typing.get_args(hint)
    if isinstance(item.value, list):
        within = hints[:1] if origin is not tuple or (hints and hints[-1] is Ellipsis) else ()
        made = [_made(i, within[0] if within else None) for i in item.value]
        if inspect.isclass(origin) and issubclass(origin, AbstractSet):
            return frozenset(made)
        return tuple(made) if origin is tuple else made
    if isinstance(item.value, dict):
        if dataclasses.is_dataclass(origin) and isinstance(origin, type):
            types_of = typing.get_type_hints(origin)
            return origin(**{k: value(i, types_of.get(k)) for k, i in item.value.items()})
        return {k: _made(i, hints[1] if len(hints) > 1 else None) for k, i in item.value.items()}
    return item.value


def describe(hint: Any) -> str:
    """A type in words.

    >>> describe(Literal["sum", "mean"]), describe(float | None)
    ('"sum" or "mean"', 'a number or null')
    """
    if options := _options(hint):
        return " or ".join(describe(o) for o in options)
    origin, hints = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is Literal:
        return " or ".join(f'"{a}"' if isinstance(a, str) else str(a) for a in hints)
    if hint is type(None):
        return "null"
    if origin in _SCALARS:
        return _SCALARS[origin]
    if inspect.isclass(origin) and issubclass(origin, os.PathLike):
        return "a path"
    if dataclasses.is_dataclass(origin):
        return "a mapping with " + ", ".join(f.name for f in dataclasses.fields(origin))
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        return f"a mapping to {describe(hints[1])}" if len(hints) > 1 else "a mapping"
    if inspect.isclass(origin) and issubclass(origin, (Sequence, AbstractSet)):
        return _describe_list(origin, hints)
    return str(hint)


def _describe_list(origin: Any, hints: tuple[Any, ...]) -> str:
    if origin is tuple and hints and hints[-1] is not Ellipsis:
        return f"a list of {len(hints)}: " + ", ".join(describe(h) for h in hints)
    return f"a list, each {describe(hints[0])}" if hints else "a list"
