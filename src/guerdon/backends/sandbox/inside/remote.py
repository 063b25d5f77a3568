"""The tester's line to the candidate in the other job: questions out, answers in, nothing believed beyond its form.

A test compares in *its* process, on plain data that has crossed the border. What is not plain data stays in the other
job; here it is a `Remote` (see `handles`).
"""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import sys
from typing import Any, Final

from . import failures
from .handles import Remote, held_by, remote
from .kept import assign, kept
from .values import NotPlain, decode, encode

MAX_LINE: Final = 4 << 20
MAX_CALLS: Final = 100_000


class CandidateGone(BaseException):
    """The candidate's process ended, or sent something that is no reply."""


class Unsupported(BaseException):
    """The test needs something that can't cross the border, such as passing the candidate a function."""


class Link:
    """Requests out, replies in: one line each, numbered on both sides from a number that the candidate can't guess.

    `withhold`: what the candidate does to its arguments is not done to the test's own. `capture`: what it prints is
    printed here.
    """

    def __init__(self, incoming: int, outgoing: int, first: int = 0, *, withhold: bool = False) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._rest = b""
        self._next = first
        self._withhold = withhold
        self._remotes: dict[object, Remote] = {}
        self.calls = 0
        self.orders = 0
        self.changed_arguments = False
        self.compared_opaque = False
        self.exits = False
        self.classes: frozenset[str] = frozenset()
        self.perhaps_classes: frozenset[str] = frozenset()
        self.capture = False
        self.gone: str | None = None
        self.lacking: str | None = None

    def ask(self, op: str, on: object = None, *arguments: object, **named: object) -> Any:
        """The decoded answer; raises what the candidate raised, as the nearest built-in type."""
        order: dict[str, Any] = {"op": op, "on": on}
        try:
            if arguments:
                order["args"] = [encode(item, self._to_wire) for item in arguments]
            if named:
                order["kwargs"] = {name: encode(item, self._to_wire) for name, item in named.items()}
        except NotPlain as error:
            if "nested" in str(error):  # only what the candidate itself returned can be so deep
                raise self._hang_up(f"a value {error}") from error
            raise self.unsupported(f"the test passes the candidate a value that can't cross: {error}") from error
        self.orders += 1
        reply = self.exchange(order)
        changed = reply.get("changed", {})
        if type(changed) is not dict or not all(key.isdecimal() and int(key) < len(arguments) for key in changed):
            raise self._hang_up("a malformed reply")
        for position, form in changed.items():
            self.changed_arguments = True
            content = self.decoded(form)
            if not self._withhold:
                assign(arguments[int(position)], content)
        same = reply.get("same")
        if type(same) is int and 0 <= same < len(arguments) and not self._withhold:
            return arguments[same]
        return self.decoded(reply.get("value"))

    def unsupported(self, why: str) -> Unsupported:
        """To be raised; remembered, because a test may catch everything."""
        self.lacking = why
        return Unsupported(why)

    def forgive(self) -> None:
        """Another test begins, which may do without what the last one lacked."""
        self.lacking = None

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
        order["id"] = self._next
        if self.capture:
            order["capture"] = True
        reply = self._transfer(json.dumps(order, separators=(",", ":")).encode() + b"\n")
        if "load" in reply:
            raise self._hang_up("the program did not load: " + _described(reply["load"]))
        if type(reply.get("id")) is not int or reply["id"] != self._next:
            raise self._hang_up("a reply out of sequence")
        self._next += 1
        self.calls += 1
        if self.capture and type(reply.get("printed")) is str:
            sys.stdout.write(reply["printed"])
        if "raised" in reply:
            raise self._mapped(reply["raised"], reply.get("error"))
        if not ("value" in reply or "stop" in reply):
            raise self._hang_up("a malformed reply")
        return reply

    def _mapped(self, failure: Any, handle: Any) -> Exception:
        form = failures.parts(failure)[2]
        arguments = self.decoded(form) if form is not None else None
        original = self._remote(handle) if type(handle) is dict else None
        error = failures.mapped(failure, arguments if type(arguments) is list else None, original)
        self.exits = self.exits or isinstance(error, failures.CandidateExit)
        return error

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

    def decoded(self, form: Any) -> Any:
        """The value of a form that the candidate sent."""
        try:
            return decode(form, self._remote)
        except (NotPlain, RecursionError) as error:
            raise self._hang_up(f"a malformed value: {error}") from error

    def _remote(self, told: Any) -> Any:
        """What stands for an object that stays over there: always the same for the same object."""
        if type(told) is not dict or type(told.get("number")) is not int or type(told.get("type")) is not str:
            raise NotPlain("malformed handle")
        number = told["number"]
        if number not in self._remotes:
            self._remotes[number] = remote(self, number, told["type"][:80], told.get("callable") is True)
        return kept(self._remotes[number], self.decoded(told["plain"])) if "plain" in told else self._remotes[number]

    def _to_wire(self, value: object, form: Any) -> Any:
        held = held_by(value)
        if held is not None:
            return {"handle": held}
        name = getattr(value, "__name__", None)
        if type(name) is str and vars(builtins).get(name) is value:  # `apply(str, xs)`
            return {"handle": {"builtin": name}}
        if form is None:
            raise NotPlain(f"{type(value).__name__} is not plain data")
        return form

    def _hang_up(self, why: str) -> CandidateGone:
        self.gone = why
        return CandidateGone(why)


def _described(failure: Any) -> str:
    names, text, _ = failures.parts(failure)
    name = names[0].rpartition(".")[2]
    return f"{name}: {text}" if text else name
