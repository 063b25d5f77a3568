"""JSON Schema of the spec language, made from the signatures of what a spec can call."""

from __future__ import annotations

import dataclasses
import inspect
import os
import types
import typing
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, Union

from guerdon.core.rollout import FIELDS
from guerdon.spec._names import FOLDED, Callee, public
from guerdon.spec._read import MANNER, VERSION

_EXPRESSION = {"$ref": "#/$defs/expression"}
_NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of specs, for editors: every callable name with its parameters and documentation."""
    calls = {name: _call(what) for name, what in sorted(public().items())}
    call = {
        "type": "object", "minProperties": 1, "maxProperties": 1, "properties": calls, "additionalProperties": False,
        "patternProperties": {r"^code\.": {}, r"^(methods|\w+\.\w+)\.": {}},
    }  # fmt: skip
    columns = {f: {"type": "string"} for f in sorted(FIELDS - {"extra"})}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Guerdon reward spec",
        "type": "object",
        "required": ["reward"],
        "additionalProperties": False,
        "properties": {
            "guerdon": {"const": VERSION, "description": "version of the spec language"},
            "about": {"type": "string", "description": "what the reward is for"},
            "data": {"type": "object", "properties": columns, "additionalProperties": False,
                     "description": "from fields of a rollout to columns of the data"},
            "range": {**_NUMBERS, "description": "where the reward lies; proven by `guerdon spec check`"},
            "nodes": {"type": "object", "additionalProperties": _EXPRESSION,
                      "propertyNames": {"pattern": r"^[^\W\d]\w*$"}, "description": "named parts"},
            "reward": _EXPRESSION,
        },
        "$defs": {
            "expression": {"anyOf": [{"type": "number"}, {"type": "string", "description": "name of a node"}, call]},
            "manner": {"type": "object", "additionalProperties": False, "description": "how the signal is asked",
                       "properties": {k: _type(t) for k, t in MANNER.items()}},
        },
    }  # fmt: skip


def _call(what: Callee) -> dict[str, Any]:
    named: dict[str, Any] = {n: _parameter(what, n) for n in what.parameters}
    if not what.operands and "manner" not in named:
        named["manner"] = {"$ref": "#/$defs/manner"}
    arguments: dict[str, Any] = {"type": "object", "properties": named, "additionalProperties": False}
    ways = [arguments]
    if what.operands:
        ways.append(_EXPRESSION)
    elif not what.required:
        ways.append({"type": "null"})
    if what.name == "column":
        ways.append({"type": "string"})
    if what.positional:
        ways.append(_list(what))
    return {"description": what.summary, "anyOf": ways}


def _parameter(what: Callee, name: str) -> dict[str, Any]:
    default = what.parameters[name].default
    shown = {} if default is inspect.Parameter.empty or not _jsonable(default) else {"default": default}
    if name not in what.operands:
        return {**_type(what.hints.get(name)), **shown}
    kinds: list[dict[str, Any]] = [_EXPRESSION]
    if what.several(name) or what.name in FOLDED:
        kinds += [{"type": "array", "items": _EXPRESSION}, {"type": "object", "additionalProperties": _EXPRESSION}]
    return {"anyOf": [*kinds, {"type": "null"}] if default is None else kinds}


def _list(what: Callee) -> dict[str, Any]:
    if what.name in FOLDED or what.several(what.positional[0]):
        return {"type": "array", "items": _EXPRESSION}
    return {
        "type": "array",
        "prefixItems": [_parameter(what, n) for n in what.positional],
        "maxItems": len(what.positional),
    }


def _jsonable(value: Any) -> bool:
    return value is None or isinstance(value, (bool, str)) or (isinstance(value, (int, float)) and abs(value) < 1e308)


def _type(hint: Any) -> dict[str, Any]:
    """The schema of a declared type; anything for what is not understood."""
    origin, hints = typing.get_origin(hint) or hint, typing.get_args(hint)
    scalars: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_type(h) for h in hints]}
    if origin is Literal:
        return {"enum": list(hints)}
    if origin in scalars:
        return {"type": scalars[origin]}
    if not inspect.isclass(origin):
        return {}
    if issubclass(origin, os.PathLike):
        return {"type": "string"}
    if dataclasses.is_dataclass(origin):
        return {
            "type": "object",
            "properties": {f.name: {} for f in dataclasses.fields(origin)},
            "additionalProperties": False,
        }
    if issubclass(origin, Mapping):
        return {"type": "object", **({"additionalProperties": _type(hints[1])} if len(hints) > 1 else {})}
    if issubclass(origin, (Sequence, AbstractSet)):
        fixed = origin is tuple and hints and hints[-1] is not Ellipsis
        if fixed:
            return {
                "type": "array",
                "prefixItems": [_type(h) for h in hints],
                "minItems": len(hints),
                "maxItems": len(hints),
            }
        return {"type": "array", **({"items": _type(hints[0])} if hints else {})}
    return {}
