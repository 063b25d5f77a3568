"""A signal's parameters against the types that its function declares: choices, numbers, texts and truth values."""

from __future__ import annotations

import inspect
import numbers
import types
import typing
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, Union

from guerdon.core.errors import SignalError

_KINDS: Mapping[Any, tuple[type | tuple[type, ...], str]] = {
    bool: (bool, "true or false"),
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
    str: (str, "a text"),
    type(None): (type(None), "None"),
}


def check_parameters(
    owner: str, function: Callable[..., Any], declared: Mapping[str, inspect.Parameter], given: Mapping[str, Any]
) -> None:
    """Refuse what ``function`` has no parameter for, or declares another type for; `SignalError` says what would fit.

    Types other than choices, numbers, texts, truth values and unions of them are left to the function itself.
    """
    hints = _hints(function)
    for name, value in given.items():
        if name not in declared:
            near = [f"; did you mean {n}?" for n in get_close_matches(name, declared, n=1) if len(declared) > 1]
            have = ", ".join(declared) or "none"
            raise SignalError(f"{owner} has no parameter {name!r}; it has {have}{''.join(near)}")
        if value is declared[name].default or name not in hints:
            continue
        wanted = _wanted(hints[name])
        if wanted and not any(_fits(value, one) for one in wanted):
            raise SignalError(f"{owner}: {name}={value!r:.60}, but it must be {' or '.join(map(_said, wanted))}")


def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError):  # names that exist for type checkers only: then nothing is checked
        return {}


def _wanted(hint: Any) -> list[Any]:
    """The kinds and choices that a type allows; none where it allows what is not understood here."""
    parts = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    flat = [a for p in parts for a in (typing.get_args(p) if typing.get_origin(p) is Literal else (p,))]
    simple = all(typing.get_origin(p) is Literal or p in _KINDS for p in parts if p.__hash__ is not None)
    return flat if simple else []


def _fits(value: object, one: Any) -> bool:
    if one not in _KINDS:
        return type(value) is type(one) and bool(value == one)
    return isinstance(value, _KINDS[one][0]) and (one is bool or not isinstance(value, bool))


def _said(one: Any) -> str:
    return _KINDS[one][1] if one in _KINDS else repr(one)


def signature_of(function: Callable[..., Any]) -> str:
    """The signature as one writes it: annotations that are text stand without quotes.

    >>> def brief(rollout: Rollout, *, limit: int = 10) -> float: ...  # kept as text: annotations are not evaluated
    >>> signature_of(brief)
    '(rollout: Rollout, *, limit: int = 10) -> float'
    """
    made = inspect.signature(function)
    parameters = [_bare_parameter(p) for p in made.parameters.values()]
    return str(made.replace(parameters=parameters, return_annotation=_bare(made.return_annotation)))


def parameter_text(parameter: inspect.Parameter) -> str:
    """One parameter as one writes it."""
    return str(_bare_parameter(parameter))


def _bare_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    return parameter.replace(annotation=_bare(parameter.annotation))


class _Bare(str):
    """Text that is its own representation."""

    __slots__ = ()
    __repr__ = str.__str__


def _bare(annotation: Any) -> Any:
    return _Bare(annotation) if isinstance(annotation, str) else annotation
