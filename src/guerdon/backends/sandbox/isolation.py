"""What this host lets us enclose, in words an operator can act on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from .pool import shared_pool
from .result import Infrastructure, Refused
from .server import ServerConfig


@dataclass(frozen=True, slots=True)
class Isolation:
    """`available`: untrusted code can be run. `enabled`: the walls that stand; `weaker`: what is missing and what it
    means; `reason`: why nothing can be run, when not available. `others`: back ends besides the default, with their
    state."""

    available: bool
    enabled: tuple[str, ...] = ()
    weaker: tuple[str, ...] = ()
    reason: str = ""
    others: tuple[str, ...] = ()


def describe_isolation(config: ServerConfig | None = None) -> Isolation:
    """Start (or find) a fork server and report what it could put up."""
    others = (
        "bubblewrap: " + (shutil.which("bwrap") or "not installed (apt install bubblewrap)"),
        "gvisor: " + (shutil.which("runsc") or "not installed (apt install runsc)"),
    )
    try:
        report = shared_pool(config or ServerConfig()).report()
    except (Refused, Infrastructure) as error:
        return Isolation(False, reason=str(error), others=others)
    return Isolation(True, tuple(report["enabled"]), tuple(report["weaker"]), others=others)
