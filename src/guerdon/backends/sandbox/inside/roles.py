"""The parts a job can play, by the name the supervisor asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

from . import binary, candidate, program, tester

ROLES: Final[dict[str, Callable[[dict[str, Any]], NoReturn]]] = {
    "program": program.run,
    "calls": candidate.answer_calls,
    "candidate": candidate.serve,
    "tester": tester.run,
    "binary": binary.run,
}
