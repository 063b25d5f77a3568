"""The job that holds model-written code: it answers calls with values and never sees what they should be.

Everything in this process, this module included, is in the hands of the code under test. Nothing here is trusted by the
other side: a lie can only be a wrong value.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

from .failures import describe
from .observe import Observer
from .program import FROM_PEER, PAYLOAD, REPLY, TO_PEER, fresh_module, hide_ourselves, read_all
from .values import decode, encode
from .workshop import Workshop

_MODULE = "solution"
_MAX_PRINTED = 1 << 20


def answer_calls(request: dict[str, Any]) -> NoReturn:
    """Role "calls": load the program, call the entry point with each input, write one reply line for each, in order."""
    task = json.loads(read_all(PAYLOAD))
    os.closerange(FROM_PEER, TO_PEER + 1)
    channel = _Channel(REPLY)
    observer = Observer(channel.note)
    try:
        target = _entry(_load(task["program"], observer), task["entry_point"])
    except BaseException as error:  # noqa: BLE001  # any failure of the candidate is an answer, not ours
        channel.send({"load": describe(error)})
        leave()
    for number, call in enumerate(task["calls"], task.get("first", 0)):
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
    code = compile(source, "solution.py", "exec", dont_inherit=True)
    hide_ourselves()
    observer.watch()
    exec(code, namespace)  # noqa: S102  # this *is* the sandboxed program
    return namespace


def _entry(namespace: dict[str, Any], path: str) -> Callable[..., object]:
    """`name`, `Class.method` (on a fresh instance for each call), or a method of `Solution`."""
    name, _, method = path.partition(".")
    if name not in namespace and not method and isinstance(namespace.get("Solution"), type):
        name, method = "Solution", name
    if name not in namespace:
        raise NameError(f"{name} is not defined by the program")
    found = namespace[name]
    if not method:
        return found  # type: ignore[no-any-return]  # whatever the program bound
    return lambda *arguments, **named: getattr(found() if isinstance(found, type) else found, method)(
        *arguments, **named
    )


def _outcome(action: Callable[[], dict[str, Any]], keep: Callable[[object], Any] | None = None) -> dict[str, Any]:
    try:
        return action()
    except BaseException as error:  # noqa: BLE001  # SystemExit and the rest are the candidate's answer to this call
        told: dict[str, Any] = {"raised": describe(error)}
        own = keep is not None and "." in told["raised"]["types"][0]
        return {**told, "error": keep(error)} if keep is not None and own else told


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
        workshop = Workshop(_load(source, observer))
    except BaseException as error:  # noqa: BLE001  # any failure of the candidate is an answer, not ours
        channel.send({"load": describe(error)})
        leave()
    for place, order in enumerate(_lines(FROM_PEER)):
        if place == 1:  # all that the loading of the program has done
            observer.look()
        number, printed = order.pop("id"), io.StringIO() if order.pop("capture", False) else None
        with contextlib.redirect_stdout(printed) if printed else contextlib.nullcontext():
            reply = _outcome(partial(workshop.perform, order), workshop.keep)
        if printed and (text := printed.getvalue()[:_MAX_PRINTED]):
            reply["printed"] = text
        channel.send({"id": number, **reply})
    leave()


def _lines(descriptor: int) -> Iterator[dict[str, Any]]:
    rest = b""
    while part := os.read(descriptor, 1 << 16):
        rest += part
        while b"\n" in rest:
            line, _, rest = rest.partition(b"\n")
            yield json.loads(line)


sys.setrecursionlimit(max(sys.getrecursionlimit(), 3000))
