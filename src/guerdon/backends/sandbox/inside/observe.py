"""What a candidate does that honest code has no reason to do, noted as it happens through the interpreter's audit events.

The notes are evidence, not protection: code that fights the interpreter can suppress them, and gains nothing by it.
"""

from __future__ import annotations

import builtins
import json
import math
import os
import sys
from collections.abc import Callable
from types import FrameType
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
    "socket.__new__": "opened a socket",
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


class Observer:
    """Watches one candidate; each distinct observation is passed to `note` once."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._seen: set[str] = set()
        self._originals: list[tuple[Any, str, dict[str, Any]]] = []

    def watch(self) -> None:
        """From here on; the hook can't be taken out again."""
        self._originals = [(module, module.__name__, dict(vars(module))) for module in (builtins, math, json)]
        sys.addaudithook(self._audit)

    def look(self) -> None:
        """Note standard functions that have been replaced since `watch`."""
        for module, name, original in self._originals:
            current = vars(module)
            for key, value in original.items():
                if current.get(key) is not value and key != "_":
                    self._add(f"replaced {name}.{key}")

    def _add(self, text: str) -> None:
        if text not in self._seen and len(self._seen) < _MAX_NOTES:
            self._seen.add(text)
            self._note(text)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _NOTED:
            self._add(_NOTED[event])
        elif event == "open":
            self._opened(arguments[0])
        elif event == "sys._getframe" and arguments and isinstance(arguments[0], FrameType):
            if arguments[0].f_code.co_filename == _SOURCE:
                self._add("looked at stack frames (sys._getframe)")

    def _opened(self, path: object) -> None:
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if isinstance(path, str) and path.startswith("/") and not path.startswith(_QUIET_FOLDERS):
            self._add(f"opened {path}")
