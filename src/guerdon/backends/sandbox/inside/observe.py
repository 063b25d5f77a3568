"""What a candidate does that honest code has no reason to do, noted as it happens through the interpreter's audit
events.

The notes are evidence, not protection: code that fights the interpreter can suppress them, and gains nothing by it.
"""

from __future__ import annotations

import builtins
import json
import math
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_MAX_NOTES = 32
_NOTED = {
    "os.system": "ran a shell command",
    "os.exec": "tried to start a program",
    "os.posix_spawn": "tried to start a program",
    "subprocess.Popen": "tried to start a program",
    "os.fork": "forked",
    "os.kill": "sent a signal",
    "os.killpg": "sent a signal",
    "signal.pthread_kill": "sent a signal",
    "socket.connect": "opened a connection",
    "ctypes.dlopen": "loaded a shared library",
    "gc.get_objects": "walked the interpreter's objects (gc.get_objects)",
    "gc.get_referrers": "walked the interpreter's objects (gc.get_referrers)",
    "gc.get_referents": "walked the interpreter's objects (gc.get_referents)",
    "sys.settrace": "installed a trace function",
    "sys.setprofile": "installed a profile function",
    "sys.addaudithook": "installed an audit hook",
    "resource.setrlimit": "tried to change its resource limits",
    "resource.prlimit": "tried to change its resource limits",
}
_QUIET_FOLDERS = (sys.prefix, sys.base_prefix, sys.exec_prefix, "/usr/", "/dev/null", "/dev/urandom", "/tmp/")
_SOURCE = "solution.py"
_JUDGES = (
    "abs", "all", "any", "isinstance", "len", "sorted", "sum", "min", "max", "round", "open", "print", "type", "repr",
    "hash", "__import__", "AssertionError",
)  # fmt: skip
# Few on purpose: to look at an object is to copy its page in a forked process.
_LIKELY = (
    (builtins, _JUDGES),
    (math, ("isclose", "fabs")),
    (json, ("dumps", "loads")),
    (os, ("write", "_exit")),
)


def _asked_by_candidate() -> bool:
    """Whether the code that is running is the candidate's own, not a library's (namedtuple looks at frames too)."""
    try:
        raise LookupError
    except LookupError as error:  # the way to our own frame that raises no audit event of the kind we are in
        frame = error.__traceback__.tb_frame if error.__traceback__ else None
    for _ in range(2):  # out of this function, out of the hook
        frame = frame.f_back if frame else None
    return frame is not None and frame.f_code.co_filename == _SOURCE


class Observer:
    """Watches one candidate; each distinct observation is passed to `note` once."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._seen: set[str] = set()
        self._originals: list[tuple[ModuleType, str, object]] = []

    def watch(self) -> None:
        """From here on; the hook can't be taken out again."""
        self._originals = [(module, name, getattr(module, name)) for module, names in _LIKELY for name in names]
        sys.addaudithook(self._audit)

    def look(self) -> None:
        """Note those functions that graders rely on and that have been replaced since `watch`."""
        for module, name, original in self._originals:
            if vars(module).get(name) is not original:
                self._add(f"replaced {module.__name__}.{name}")

    def _add(self, text: str) -> None:
        if text not in self._seen and len(self._seen) < _MAX_NOTES:
            self._seen.add(text)
            self._note(text)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _NOTED:
            self._add(_NOTED[event])
        elif event == "open":
            self._opened(arguments[0])
        elif event == "sys._getframe" and _asked_by_candidate():
            self._add("looked at stack frames (sys._getframe)")

    def _opened(self, path: object) -> None:
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if isinstance(path, str) and path.startswith("/") and not path.startswith(_QUIET_FOLDERS):
            self._add(f"opened {path}")
