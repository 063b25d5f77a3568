"""The parts a job can play."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NoReturn

Role = Callable[[dict[str, Any]], NoReturn]

_ROLES = {
    "program": ("program", "run"),
    "command": ("command", "run"),
    "calls": ("candidate", "answer_calls"),
    "candidate": ("candidate", "serve"),
    "tester": ("tester", "run"),
}


def load_roles(names: list[str]) -> dict[str, Role]:
    """Only the named parts are imported, to keep what a job has to copy or load small."""
    found = {}
    for name in names:
        module, function = _ROLES[name]
        found[name] = getattr(importlib.import_module(f".{module}", __package__), function)
    return found
