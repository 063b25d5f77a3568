"""The candidate's side of a test: what the tester asks for is done here, on the program's names and objects."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

from .failures import names_of
from .values import BASES, NotPlain, decode, encode, plain_part

_MAX_OBJECTS = 10_000
_MUTABLE = (list, dict, set, bytearray)


class Workshop:
    """Performs orders on the program's names and on the objects it has handed out."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._names = namespace
        self._objects: list[object] = []
        self._numbers: dict[int, int] = {}

    def perform(self, order: dict[str, Any]) -> dict[str, Any]:
        """The reply to one order."""
        if order["op"] == "kinds":
            return {"value": [self._kind(name) for name in order["names"]]}
        if order["op"] == "bind":
            self._names[order["on"]] = self._decode(order["args"][0])
            return {"value": None}
        if order["op"] in ("next", "anext"):
            return self._next(self._find(order["on"]), next if order["op"] == "next" else _next_awaited)
        target = self._find(order["on"])
        arguments = [self._decode(item) for item in order.get("args", [])]
        before = [self._encode(item) if type(item) in _MUTABLE else None for item in arguments]
        named = {name: self._decode(item) for name, item in order.get("kwargs", {}).items()}
        result = _OPERATIONS[order["op"]](target, *arguments, **named)
        reply: dict[str, Any] = {"value": self._encode(result)}
        changed = {
            str(position): form
            for position, item in enumerate(arguments)
            if before[position] is not None and (form := self._encode(item)) != before[position]
        }
        if changed:
            reply["changed"] = changed
        if type(result) in _MUTABLE:
            same = next((position for position, item in enumerate(arguments) if item is result), None)
            reply |= {} if same is None else {"same": same}
        return reply

    def keep(self, value: object, form: Any = None) -> dict[str, Any]:
        """What the tester is told of an object that stays here; the same number each time."""
        number = self._numbers.get(id(value), len(self._objects))
        if number == len(self._objects):
            if number >= _MAX_OBJECTS:
                raise NotPlain(f"more than {_MAX_OBJECTS} objects handed out")
            self._objects.append(value)
            self._numbers[id(value)] = number
        told = {"number": number, "type": type(value).__name__, "callable": callable(value)}
        return told if form is None else {**told, "plain": form}

    def _kind(self, name: str) -> object:
        if name not in self._names:
            return "missing"
        value = self._names[name]
        if isinstance(value, type):
            if issubclass(value, BaseException):
                return {"exception": names_of(value)}
            return "class"
        if not callable(value):
            return "value"
        asyncio_marker = getattr(getattr(value, "__code__", None), "co_flags", 0) & 0x80
        return "async" if asyncio_marker else "function"

    def _find(self, where: object) -> Any:
        if isinstance(where, dict):
            return vars(builtins)[where["builtin"]]
        return self._objects[where] if isinstance(where, int) else self._names[str(where)]

    def _next(self, iterator: Any, step: Callable[[Any], object]) -> dict[str, Any]:
        try:
            return {"value": self._encode(step(iterator))}
        except (StopIteration, StopAsyncIteration):
            return {"stop": True}

    def _decode(self, form: Any) -> Any:
        return decode(form, self._find)

    def _encode(self, value: object) -> Any:
        return encode(value, lambda item, form: {"handle": self.keep(item, form)})


def _run_coroutine(target: Any, *arguments: Any, **named: Any) -> object:
    return _awaited(target(*arguments, **named))


def _next_awaited(iterator: Any) -> object:
    return _awaited(anext(iterator))


_loop: Any = None


def _awaited(waitable: Any) -> object:
    """In one loop for all: what one coroutine starts, the next may wait for."""
    global _loop
    import asyncio

    async def wait() -> object:
        return await waitable

    if _loop is None:
        _loop = asyncio.new_event_loop()
    return _loop.run_until_complete(wait())


def _same(target: Any, other: Any) -> bool:
    """Equal both ways round, and not to just anything."""
    if not bool(target == other) or _equals_all(target) or _equals_all(other):
        return False
    both = (_own_answer(target, other), _own_answer(other, target))
    return all(answer is NotImplemented or bool(answer) for answer in both)


def _own_answer(value: Any, other: Any) -> object:
    compare: Any = type(value).__eq__
    return compare(value, other)


def _equals_all(value: Any) -> bool:
    try:
        return bool(value == object())
    except Exception:  # noqa: BLE001  # a stranger can't be compared with it: as it should be
        return False


def _contains(target: Any, item: Any) -> bool:
    """Holds it, and not just anything."""
    if item not in target:
        return False
    try:
        return object() not in target
    except Exception:  # noqa: BLE001  # a stranger can't be compared with what it holds: as it should be
        return True


def _leave(target: Any, kind: str = "", text: str = "") -> object:
    if not kind:
        return target.__exit__(None, None, None)
    error = getattr(builtins, kind, Exception)(text)
    return bool(target.__exit__(type(error), error, None))


def _content(target: Any) -> object:
    return plain_part(target, next(base for base in BASES if isinstance(target, base)))


def _copied(target: Any) -> object:
    import copy

    return copy.copy(target)


def _deeply_copied(target: Any) -> object:
    import copy

    return copy.deepcopy(target)


def _reflected(operation: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
    return lambda target, other: operation(other, target)


_BINARY: dict[str, Callable[..., object]] = {
    name.strip("_"): getattr(operator, name)
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift",
    )
}  # fmt: skip
_OPERATIONS: dict[str, Callable[..., object]] = {
    "call": lambda target, *arguments, **named: target(*arguments, **named),
    "call async": _run_coroutine,
    "await": _awaited,
    "value": lambda target: target,
    "plain": _content,
    "get": getattr,
    "set": setattr,
    "delete": delattr,
    "item": operator.getitem,
    "set item": operator.setitem,
    "delete item": operator.delitem,
    "contains": _contains,
    "iter": iter,
    "aiter": aiter,
    "reversed": reversed,
    "len": len,
    "str": str,
    "repr": repr,
    "bool": bool,
    "hash": hash,
    "int": int,
    "float": float,
    "index": operator.index,
    "neg": operator.neg,
    "pos": operator.pos,
    "abs": abs,
    "invert": operator.invert,
    "round": round,
    "copy": _copied,
    "deepcopy": _deeply_copied,
    "enter": lambda target: target.__enter__(),
    "exit": _leave,
    "isinstance": lambda target, value: isinstance(value, target),
    "issubclass": lambda target, kind: issubclass(kind, target),
    "same": _same,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    **_BINARY,
    **{f"r{name}": _reflected(operation) for name, operation in _BINARY.items()},
}
