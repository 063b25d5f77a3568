"""What a sandboxed run is given and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

State = Literal["finished", "timeout", "memory", "output", "crash", "refused", "infrastructure"]
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """The most a job may use. Time in seconds, sizes in bytes.

    `seconds` is wall time from the start of the job; CPU time is held to the same figure rounded up plus one second.
    `memory_bytes` is what a process may map beyond the interpreter itself, and (with a cgroup) what the whole job may
    use.
    """

    seconds: float = 3.0
    memory_bytes: int = 512 * MIB
    output_bytes: int = MIB
    processes: int = 32
    file_bytes: int = 16 * MIB
    files: int = 512
    open_files: int = 64

    def with_changes(self, **changes: Any) -> Limits:
        """A copy with some limits changed; TypeError names an unknown limit, ValueError one that is not positive."""
        changed = replace(self, **changes)
        for name in self.__slots__:
            if not getattr(changed, name) > 0:
                raise ValueError(f"limit {name} must be positive, not {getattr(changed, name)!r}")
        return changed


@dataclass(frozen=True, slots=True)
class Result:
    """How a program ended.

    `state`: "finished" (it ended by itself, whatever the exit code), "timeout", "memory", "output" (it wrote more
    than allowed), "crash" (killed by a signal), "refused" (no isolation available: it was not run), "infrastructure"
    (our failure; unknown, never a score). `exit_code` is None unless it ended by itself, and minus the signal number
    after a crash.
    """

    state: State
    exit_code: int | None
    stdout: str
    stderr: str
    seconds: float
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    reason: str = ""
    reply: bytes = b""

    @property
    def ok(self) -> bool:
        """It ended by itself with exit code 0."""
        return self.state == "finished" and self.exit_code == 0


def reason_of(state: State, status: int, limits: Limits) -> str:
    """In words, why a run with these limits ended in that state; `status` as exit code or minus the signal."""
    return {
        "timeout": f"timed out after {limits.seconds} s",
        "memory": f"used more than {limits.memory_bytes} bytes of memory",
        "output": f"wrote more than {limits.output_bytes} bytes",
        "crash": f"killed by signal {-status}",
    }.get(state, "")


class Refused(RuntimeError):
    """This host can't isolate untrusted code, and nobody said to run it anyway."""


class Infrastructure(RuntimeError):
    """The sandbox itself failed; says nothing about the program."""
