"""Running code that nobody vouches for.

`run_python` runs a program; `isolating_backend` gives the back end that graders use; `describe_isolation` says what
this host lets us enclose. Blocking functions may be called from any number of threads; each takes one slot for its
time.
"""

from __future__ import annotations

from .attacks import Attack, Defence, run_attack_suite
from .bubblewrap import Bubblewrap
from .gvisor import Gvisor
from .isolation import Isolation, describe_isolation
from .languages import Native
from .pool import Pool, slots_by_default
from .result import Infrastructure, Limits, Refused, Result, State
from .run import arun_python, isolating_backend, run_python, run_python_many
from .server import ServerConfig
from .zygote import Zygote

__all__ = [
    "Attack",
    "Bubblewrap",
    "Defence",
    "Gvisor",
    "Infrastructure",
    "Isolation",
    "Limits",
    "Native",
    "Pool",
    "Refused",
    "Result",
    "ServerConfig",
    "State",
    "Zygote",
    "arun_python",
    "describe_isolation",
    "isolating_backend",
    "run_attack_suite",
    "run_python",
    "run_python_many",
    "slots_by_default",
]
