"""The tester's view of the candidate: names and objects that live in the other job, reached by messages.

A test compares in *its* process, on plain data that has crossed the border. An object that is not plain data stays in
the other job; here it is a `Remote`, which never hands the test's values to the candidate for comparison or
arithmetic: it equals no plain value, is in no order with one, and does not add or subtract. Otherwise an object that
claims to equal everything would decide its own verdict.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, Final

from .values import NotPlain, decode, encode

MAX_LINE: Final = 4 << 20
MAX_CALLS: Final = 20_000


class CandidateGone(BaseException):
    """The candidate's process ended, or sent something that is no reply."""


class Unsupported(BaseException):
    """The test needs something that can't cross the border, such as passing the candidate a function."""


class CandidateExit(Exception):
    """The candidate raised SystemExit or the like instead of returning."""


class Link:
    """Requests out, replies in: one line each, numbered from 0 on both sides."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._rest = b""
        self.calls = 0
        self.failures = 0
        self.changed_arguments = False
        self.compared_opaque = False
        self.gone: str | None = None

    def ask(self, op: str, on: object = None, *arguments: object, **named: object) -> Any:
        """The decoded answer; raises what the candidate raised, as the nearest built-in type."""
        order: dict[str, Any] = {"op": op, "on": on}
        try:
            if arguments:
                order["args"] = [encode(item, _to_wire) for item in arguments]
            if named:
                order["kwargs"] = {name: encode(item, _to_wire) for name, item in named.items()}
        except NotPlain as error:
            if "nested" in str(error):  # only what the candidate itself returned can be so deep
                raise self._hang_up(f"a value {error}") from error
            raise Unsupported(f"the test passes the candidate a value that can't cross: {error}") from error
        reply = self.exchange(order)
        changed = reply.get("changed", {})
        if type(changed) is not dict or not all(key.isdecimal() and int(key) < len(arguments) for key in changed):
            raise self._hang_up("a malformed reply")
        for position, form in changed.items():
            self.changed_arguments = True
            _assign(arguments[int(position)], self._decode(form))
        return self._decode(reply.get("value"))

    def kinds(self, names: list[str]) -> list[Any]:
        """What the candidate says each name is; the first question also waits for it to load."""
        try:
            kinds = self.exchange({"op": "kinds", "names": names}).get("value")
        except Exception as error:  # whatever the candidate's process claims to have raised
            raise self._hang_up(f"the program broke its own process: {type(error).__name__}") from error
        if type(kinds) is not list or len(kinds) != len(names):
            raise self._hang_up("a malformed reply")
        return [kind if type(kind) in (str, dict) else "missing" for kind in kinds]

    def exchange(self, order: dict[str, Any]) -> dict[str, Any]:
        """One request, one checked reply."""
        if self.gone:
            raise CandidateGone(self.gone)
        if self.calls >= MAX_CALLS:
            raise self._hang_up(f"more than {MAX_CALLS} calls")
        reply = self._transfer(json.dumps(order, separators=(",", ":")).encode() + b"\n")
        if "load" in reply:
            raise self._hang_up("the program did not load: " + _describe(reply["load"]))
        if reply.get("id") != self.calls:
            raise self._hang_up("a reply out of sequence")
        self.calls += 1
        if "raised" in reply:
            self.failures += 1
            raise mapped_exception(reply["raised"])
        if not ("value" in reply or "stop" in reply):
            raise self._hang_up("a malformed reply")
        return reply

    def _transfer(self, line: bytes) -> dict[str, Any]:
        try:
            with contextlib.suppress(BrokenPipeError):  # it has ended; what it said before that still counts
                while line:
                    line = line[os.write(self._outgoing, line) :]
            while b"\n" not in self._rest:
                part = os.read(self._incoming, 1 << 16)
                if not part:
                    raise self._hang_up("the candidate's process ended")
                self._rest += part
                if len(self._rest) > MAX_LINE:
                    raise self._hang_up(f"a reply longer than {MAX_LINE} bytes")
            answer, _, self._rest = self._rest.partition(b"\n")
            reply = json.loads(answer)
        except (OSError, ValueError, RecursionError) as error:
            raise self._hang_up(f"no reply: {type(error).__name__}") from error
        if type(reply) is not dict:
            raise self._hang_up("a malformed reply")
        return reply

    def _decode(self, form: Any) -> Any:
        try:
            return decode(form, self._remote)
        except (NotPlain, RecursionError) as error:
            raise self._hang_up(f"a malformed value: {error}") from error

    def _remote(self, parts: Any) -> Remote:
        if type(parts) is not dict or type(parts.get("number")) is not int or type(parts.get("type")) is not str:
            raise NotPlain("malformed handle")
        return Remote(self, parts["number"], parts["type"][:80])

    def _hang_up(self, why: str) -> CandidateGone:
        self.gone = why
        return CandidateGone(why)


def _assign(target: Any, value: Any) -> None:
    """Give the test's own list, dict, set or bytearray the content that the candidate left in its copy."""
    if type(target) is not type(value):
        return
    if isinstance(target, (list, bytearray)):
        target[:] = value
    elif isinstance(target, (dict, set)):
        target.clear()
        target.update(value)


def _describe(failure: Any) -> str:
    types, text = _parts(failure)
    return f"{types[0]}: {text}" if text else types[0]


def _parts(failure: Any) -> tuple[list[str], str]:
    if type(failure) is not dict:
        return ["Exception"], ""
    names = failure.get("types")
    types = _class_names(names)
    text = failure.get("text")
    return types, text[:500] if type(text) is str else ""


def _class_names(names: Any) -> list[str]:
    """At most 20 names that a class can have; `Exception` where there is none."""
    known = [name for name in names if type(name) is str and name.isidentifier()] if type(names) is list else []
    return known[:20] or ["Exception"]


_made: dict[tuple[str, ...], type[Exception]] = {}


def exception_type(names: list[str]) -> type[Exception]:
    """A built-in exception by its name, or a class of that name under the nearest built-in ancestor."""
    for position, name in enumerate(names):
        known = getattr(builtins, name, None)
        if isinstance(known, type) and issubclass(known, Exception):
            if position == 0:
                return known
            base: type[Exception] = known
            break
    else:
        return CandidateExit
    key = tuple(names)
    if key not in _made:
        parent = exception_type(names[1:]) if len(names) > 1 else base
        _made[key] = type(names[0], (parent,), {})
    return _made[key]


def mapped_exception(failure: Any) -> Exception:
    """What the test sees when the candidate raised."""
    types, text = _parts(failure)
    kind = exception_type(types)
    try:
        error = kind(text)
    except TypeError:  # UnicodeDecodeError and the like want five arguments
        error = ValueError(text) if issubclass(kind, ValueError) else Exception(text)
    error.__dict__["from_candidate"] = True
    return error


def _to_wire(value: object) -> Any:
    if type(value) is Remote:
        return {"handle": object.__getattribute__(value, "_on")}
    raise NotPlain(f"{type(value).__name__} is not plain data")


class Remote:
    """A name or an object of the candidate's process."""

    __slots__ = ("_link", "_on", "_type")

    def __init__(self, link: Link, on: object, kind: str) -> None:
        object.__setattr__(self, "_link", link)
        object.__setattr__(self, "_on", on)
        object.__setattr__(self, "_type", kind)

    def __call__(self, *arguments: object, **named: object) -> Any:
        return self._link.ask("call", self._on, *arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__name__", "__doc__", "__dict__"):
            raise AttributeError(name)
        return self._link.ask("get", self._on, name)

    def __setattr__(self, name: str, value: object) -> None:
        self._link.ask("set", self._on, name, value)

    def __getitem__(self, key: object) -> Any:
        return self._link.ask("item", self._on, key)

    def __setitem__(self, key: object, value: object) -> None:
        self._link.ask("set item", self._on, key, value)

    def __len__(self) -> int:
        return _plain_int(self._link.ask("len", self._on))

    def __iter__(self) -> Iterator[Any]:
        iterator = self._link.ask("iter", self._on)
        if type(iterator) is not Remote:
            return iter(iterator)
        return iterator

    def __next__(self) -> Any:
        reply = self._link.exchange({"op": "next", "on": self._on})
        if "stop" in reply:
            raise StopIteration
        return self._link._decode(reply["value"])

    def __contains__(self, item: object) -> bool:
        return any(element == item for element in self)

    def __str__(self) -> str:
        return _plain_str(self._link.ask("str", self._on))

    def __repr__(self) -> str:
        return _plain_str(self._link.ask("repr", self._on))

    def __bool__(self) -> bool:
        return self._link.ask("bool", self._on) is True

    def __enter__(self) -> Any:
        return self._link.ask("enter", self._on)

    def __exit__(self, *_: object) -> None:
        self._link.ask("exit", self._on)

    def __instancecheck__(self, value: object) -> bool:
        return type(value) is Remote and self._link.ask("isinstance", self._on, value) is True

    def __eq__(self, other: object) -> bool:
        if type(other) is not Remote:
            self._link.compared_opaque = True
            return False
        return bool(other._on == self._on) or self._link.ask("same", self._on, other) is True

    def __lt__(self, other: object) -> bool:
        if type(other) is not Remote:
            self._link.compared_opaque = True
            raise TypeError(f"an opaque {self._type} has no order with {type(other).__name__}")
        return self._link.ask("less", self._on, other) is True

    def __hash__(self) -> int:
        return hash(str(self._on))


def _plain_int(value: object) -> int:
    if type(value) is not int:
        raise TypeError("not an int")
    return value


def _plain_str(value: object) -> str:
    if type(value) is not str:
        raise TypeError("not a str")
    return value


def bind(link: Link, name: str, kind: Any) -> Any:
    """What stands for the candidate's `name` in the test, given what the candidate says it is."""
    if type(kind) is dict:
        return exception_type(_class_names(kind.get("exception")))
    if kind == "value":
        return link.ask("value", name)
    if kind == "async":
        return _async_call(link, name)
    return Remote(link, name, kind[:20])


def _async_call(link: Link, name: str) -> Callable[..., Any]:
    async def call(*arguments: object, **named: object) -> Any:
        return link.ask("call async", name, *arguments, **named)

    return call
