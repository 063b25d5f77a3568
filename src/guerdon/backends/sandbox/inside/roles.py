"""The parts a job can play."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # a job that is started, not forked, pays for every import: typing alone costs more than itself
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
        full = f"{__package__}.{module}"
        __import__(full)
        found[name] = getattr(sys.modules[full], function)
    return found
