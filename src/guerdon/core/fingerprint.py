"""Stable hashes of what a node is and of what a rollout holds: together the cache key and the provenance of a score."""

from __future__ import annotations

import hashlib
import math
import types
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from guerdon.core.errors import SignalError

_PRIMITIVE = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis))


def digest(*parts: object) -> str:
    """A 128-bit hash, as 32 hex digits, that is the same in every process for equal ``parts``.

    Takes plain data, containers of it, functions, and objects with a ``fingerprint``; anything else is an error,
    since its text could change from run to run.

    >>> digest("a", 1) == digest("a", 1), digest("a", 1) == digest("a", 1.0)
    (True, False)
    """
    state = hashlib.blake2b(digest_size=16)
    _feed(state, parts, set())
    return state.hexdigest()


def _feed(state: hashlib.blake2b, value: object, seen: set[int]) -> None:
    """Write ``value`` to the hash with its type and length, so that no two values share their bytes."""
    if isinstance(value, _PRIMITIVE):
        text = repr(value) if not isinstance(value, float) or math.isfinite(value) else str(value)
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else text.encode()
        state.update(f"{type(value).__name__}{len(data)}:".encode())
        state.update(data)
    elif isinstance(found := getattr(value, "fingerprint", None), str):
        state.update(b"node:" + found.encode())
    elif isinstance(value, Mapping):
        state.update(f"map{len(value)}:".encode())
        for key in sorted(value, key=repr):
            _feed(state, key, seen)
            _feed(state, value[key], seen)
    elif isinstance(value, AbstractSet):
        state.update(f"set{len(value)}:".encode())
        for item in sorted(digest(v) for v in value):
            state.update(item.encode())
    elif isinstance(value, Sequence):
        state.update(f"seq{len(value)}:".encode())
        for item in value:
            _feed(state, item, seen)
    else:
        _feed_object(state, value, seen)


def _feed_object(state: hashlib.blake2b, value: object, seen: set[int]) -> None:
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        state.update(f"array{value.dtype}{getattr(value, 'shape', ())}:".encode())
        state.update(value.tobytes())
    elif isinstance(value, types.CodeType):
        names = value.co_names + value.co_varnames + value.co_freevars
        _feed(state, (value.co_code, names, value.co_consts, value.co_argcount, value.co_flags), seen)
    elif isinstance(value, type):
        state.update(f"type:{value.__module__}.{value.__qualname__}".encode())
    elif callable(value):
        _feed_function(state, value, seen)
    elif hasattr(value, "__dataclass_fields__"):
        _feed(state, (type(value), {k: getattr(value, k) for k in value.__dataclass_fields__}), seen)
    else:
        raise SignalError(
            f"can't take a stable fingerprint of {type(value).__name__} {value!r:.80}; "
            "pass plain data, or give the signal an explicit version="
        )


def _feed_function(state: hashlib.blake2b, fn: Callable[..., Any], seen: set[int]) -> None:
    """A function is its code, defaults, closure and the module-level values and functions that it names."""
    if id(fn) in seen:
        state.update(b"again")
        return
    seen.add(id(fn))
    state.update(f"fn:{getattr(fn, '__module__', '')}.{getattr(fn, '__qualname__', type(fn).__name__)}".encode())
    if isinstance(fn, types.MethodType):
        _feed(state, fn.__self__, seen)
        fn = fn.__func__
    if isinstance(fn, partial):
        _feed(state, (fn.func, fn.args, fn.keywords), seen)
        return
    code = getattr(fn, "__code__", None)
    if code is None:
        if not isinstance(fn, types.BuiltinFunctionType):
            _feed(state, dict(vars(fn)), seen)
        return
    cells = []
    for cell in fn.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # a name that is bound later, as in a recursive local function
            cells.append("unbound")
    _feed(state, (code, fn.__defaults__ or (), fn.__kwdefaults__ or {}, cells), seen)
    for name in code.co_names:
        used = fn.__globals__.get(name)
        if isinstance(used, (str, int, float, bool, tuple, frozenset, types.FunctionType)):
            _feed(state, (name, used), seen)
