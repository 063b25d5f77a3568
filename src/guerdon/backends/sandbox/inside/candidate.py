"""The job that holds model-written code: it answers calls with values and never sees what they should be.

Everything in this process, this module included, is in the hands of the code under test. Nothing here is trusted by the
other side: a lie can only be a wrong value.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

from .observe import Observer
from .program import FROM_PEER, PAYLOAD, REPLY, TO_PEER, fresh_module, read_all
from .values import NotPlain, decode, encode

_MODULE = "solution"


def answer_calls(request: dict[str, Any]) -> NoReturn:
    """Role "calls": load the program, call the entry point with each input, write one reply line for each, in order."""
    task = json.loads(read_all(PAYLOAD))
    os.closerange(FROM_PEER, TO_PEER + 1)
    channel = _Channel(REPLY)
    observer = Observer(channel.note)
    try:
        target = _entry(_load(task["program"], observer), task["entry_point"])
    except BaseException as error:  # noqa: BLE001  # any failure of the candidate is an answer, not ours
        channel.send({"load": _failure(error)})
        leave()
    for number, call in enumerate(task["calls"]):
        channel.send({"id": number, **_outcome(partial(_apply, target, call))})
    observer.look()
    channel.send({"end": len(task["calls"])})
    leave()


def leave() -> NoReturn:
    """Everything is answered: no exit handler or thread of the candidate's is worth waiting for."""
    try:
        sys.stdout.flush()
    finally:
        os._exit(0)


def _apply(target: Callable[..., object], call: dict[str, Any]) -> dict[str, Any]:
    arguments = [decode(item) for item in call["args"]]
    result = target(*arguments, **{name: decode(item) for name, item in call.get("kwargs", {}).items()})
    return {"value": encode(arguments if call.get("in_place") else result)}


def _load(source: str, observer: Observer) -> dict[str, Any]:
    namespace = fresh_module(_MODULE).__dict__
    code = compile(source, "solution.py", "exec")
    observer.watch()
    exec(code, namespace)  # noqa: S102  # this *is* the sandboxed program
    return namespace


def _entry(namespace: dict[str, Any], path: str) -> Callable[..., object]:
    """`name`, `Class.method` (on a fresh instance), or a method of `Solution`."""
    name, _, method = path.partition(".")
    if name not in namespace and not method and isinstance(namespace.get("Solution"), type):
        name, method = "Solution", name
    if name not in namespace:
        raise NameError(f"{name} is not defined by the program")
    found = namespace[name]
    return getattr(found() if isinstance(found, type) else found, method) if method else found  # type: ignore[no-any-return]  # whatever the program bound


def _outcome(action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return action()
    except BaseException as error:  # noqa: BLE001  # SystemExit and the rest are the candidate's answer to this call
        return {"raised": _failure(error)}


def _failure(error: BaseException) -> dict[str, Any]:
    try:
        text = str(error)[:500]
    except BaseException:  # noqa: BLE001  # an exception whose __str__ raises
        text = ""
    return {"types": [kind.__name__ for kind in type(error).__mro__[:-1]][:20], "text": text}


class _Channel:
    """One JSON line per message; the functions are bound early so that a patched module doesn't break honest
    replies."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._write = os.write
        self._dumps = json.JSONEncoder(separators=(",", ":")).encode

    def send(self, message: dict[str, Any]) -> None:
        line = (self._dumps(message) + "\n").encode()
        while line:
            line = line[self._write(self._descriptor, line) :]

    def note(self, text: str) -> None:
        self.send({"note": text[:200]})


def serve(request: dict[str, Any]) -> NoReturn:
    """Role "candidate": perform what the tester asks for until it hangs up; objects stay here behind numbers."""
    source = json.loads(read_all(PAYLOAD))["program"]
    observer = Observer(_Channel(REPLY).note)
    channel = _Channel(TO_PEER)
    try:
        workshop = _Workshop(_load(source, observer))
    except BaseException as error:  # noqa: BLE001  # any failure of the candidate is an answer, not ours
        channel.send({"load": _failure(error)})
        leave()
    for number, order in enumerate(_lines(FROM_PEER)):
        if number == 1:  # all that the loading of the program has done
            observer.look()
        channel.send({"id": number, **_outcome(partial(workshop.perform, order))})
    leave()


def _lines(descriptor: int) -> Iterator[dict[str, Any]]:
    rest = b""
    while part := os.read(descriptor, 1 << 16):
        rest += part
        while b"\n" in rest:
            line, _, rest = rest.partition(b"\n")
            yield json.loads(line)


class _Workshop:
    """Performs orders on the program's names and on the objects it has handed out."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._names = namespace
        self._objects: list[object] = []

    def perform(self, order: dict[str, Any]) -> dict[str, Any]:
        if order["op"] == "kinds":
            return {"value": [self._kind(name) for name in order["names"]]}
        if order["op"] == "next":
            return self._next(self._find(order["on"]))
        target = self._find(order["on"])
        arguments = [self._decode(item) for item in order.get("args", [])]
        before = [self._encode(item) if type(item) in _MUTABLE else None for item in arguments]
        named = {name: self._decode(item) for name, item in order.get("kwargs", {}).items()}
        reply: dict[str, Any] = {"value": self._encode(_OPERATIONS[order["op"]](target, *arguments, **named))}
        changed = {
            str(position): form
            for position, item in enumerate(arguments)
            if before[position] is not None and (form := self._encode(item)) != before[position]
        }
        return {**reply, "changed": changed} if changed else reply

    def _kind(self, name: str) -> object:
        if name not in self._names:
            return "missing"
        value = self._names[name]
        if isinstance(value, type):
            if issubclass(value, BaseException):
                return {"exception": [kind.__name__ for kind in value.__mro__[:-1]]}
            return "class"
        if not callable(value):
            return "value"
        asyncio_marker = getattr(getattr(value, "__code__", None), "co_flags", 0) & 0x80
        return "async" if asyncio_marker else "function"

    def _find(self, where: object) -> Any:
        return self._objects[where] if isinstance(where, int) else self._names[str(where)]

    def _next(self, iterator: Any) -> dict[str, Any]:
        try:
            return {"value": self._encode(next(iterator))}
        except StopIteration:
            return {"stop": True}

    def _decode(self, form: Any) -> Any:
        return decode(form, lambda number: self._find(number))

    def _encode(self, value: object) -> Any:
        return encode(value, self._keep)

    def _keep(self, value: object) -> Any:
        number = next((place for place, known in enumerate(self._objects) if known is value), len(self._objects))
        if number == len(self._objects):
            if number >= _MAX_OBJECTS:
                raise NotPlain(f"more than {_MAX_OBJECTS} objects handed out")
            self._objects.append(value)
        return {"handle": {"number": number, "type": type(value).__name__}}


_MAX_OBJECTS = 10_000
_MUTABLE = (list, dict, set, bytearray)


def _run_coroutine(target: Any, *arguments: Any, **named: Any) -> object:
    import asyncio

    return asyncio.run(target(*arguments, **named))


_OPERATIONS: dict[str, Callable[..., object]] = {
    "call": lambda target, *arguments, **named: target(*arguments, **named),
    "call async": _run_coroutine,
    "value": lambda target: target,
    "get": getattr,
    "set": setattr,
    "item": lambda target, key: target[key],
    "set item": lambda target, key, value: target.__setitem__(key, value),
    "iter": iter,
    "len": len,
    "str": str,
    "repr": repr,
    "bool": bool,
    "enter": lambda target: target.__enter__(),
    "exit": lambda target: target.__exit__(None, None, None),
    "isinstance": lambda target, value: isinstance(value, target),
    "same": lambda target, other: bool(target == other),
    "less": lambda target, other: bool(target < other),
}

sys.setrecursionlimit(max(sys.getrecursionlimit(), 3000))
