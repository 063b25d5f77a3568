"""The first process of a sandbox that has a kernel of its own (gVisor): starts one job and reports how it ended.

Started as `python -I -S -c "...; from inside.guest import main; main(order)"`. It hands on its standard input; the
job's other descriptors, and the report, are named pipes in `PIPES`, since nothing else can be handed into such a
sandbox. The report is "started", then one line of JSON. The job is another user than this process: it can neither
signal it nor open the pipes that are not its own.
"""

from __future__ import annotations

import os
import resource
import sys

from . import kernel
from .roles import load_roles

TYPE_CHECKING = False
if TYPE_CHECKING:  # see `roles`
    from typing import Any, NoReturn

    from .roles import Role

PIPES = "/pipes"
REPORT = "report"
STARTED = b"started\n"
_DIRECTIONS = (os.O_WRONLY, os.O_WRONLY, os.O_RDONLY, os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)
_REPORT_AT = 7


def main(order: dict[str, Any]) -> NoReturn:
    """Run the job; when this process ends, everything in the sandbox does."""
    report = os.open(f"{PIPES}/{REPORT}", os.O_WRONLY)
    role = load_roles([order["role"]])[order["role"]]
    sys.path[:] = [*sys.path[1:], *order["packages"]]
    base_memory = _mapped_bytes()
    child = os.fork()
    if child == 0:
        _become_job(order, role, report, base_memory)
    _, status, usage = os.wait4(child, 0)
    code, seconds, peak = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    os.write(report, f'{{"status": {code}, "cpu": {seconds}, "memory": {peak}}}\n'.encode())
    os._exit(0)


def _become_job(order: dict[str, Any], role: Role, report: int, base_memory: int) -> NoReturn:
    try:
        os.setsid()
        _place_pipes(order["pipes"], report)
        _confine(order, base_memory)
        os.write(_REPORT_AT, STARTED)
        os.close(_REPORT_AT)
    except (OSError, ValueError, KeyError) as error:
        os.write(_REPORT_AT, f"{type(error).__name__}: {error}\n".encode())
        os._exit(70)
    role(order)
    os._exit(71)


def _place_pipes(count: int, report: int) -> None:
    """Descriptors 1 and up opened, the report at 7, nothing else open."""
    os.dup2(report, 64)
    os.closerange(1, 64)
    for number, how in enumerate(_DIRECTIONS[:count], 1):
        os.set_inheritable(os.open(f"{PIPES}/{number}", how), True)  # opened at the lowest free number: this one
    os.dup2(64, _REPORT_AT)
    os.closerange(_REPORT_AT + 1, 1024)


def _confine(order: dict[str, Any], base_memory: int) -> None:
    os.umask(0o022)
    os.chdir("/tmp")
    for name, value in order["rlimits"].items():
        if name == "RLIMIT_AS":
            value += base_memory
        resource.setrlimit(getattr(resource, name), (value, value))
    os.setgroups([])
    os.setresgid(order["user"], order["user"], order["user"])
    os.setresuid(order["user"], order["user"], order["user"])
    kernel.drop_capabilities()
    kernel.Filter(bytes.fromhex(order["filter"])).load()


def _mapped_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
