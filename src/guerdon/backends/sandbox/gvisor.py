"""The back end for code that is not to meet the host's kernel: a gVisor sandbox, a kernel in user space, for each job.

Needs the program `runsc` (Debian's package of that name) and util-linux. A job's system calls are answered by gVisor,
a program in a memory-safe language that is itself confined by namespaces and a system-call filter: a fault in Linux is
out of a job's reach unless gVisor has one too. Limits, filter and grading protocol are those of the fork server; a
short program costs some fifty times as much.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from .bundle import Build, build_for, make_pipe, open_both, own_folder, remove_left_behind
from .container import Container
from .drive import Job, drive
from .inside.command import pack
from .pool import slots_by_default, with_retry
from .result import Infrastructure, Limits, Refused, Result
from .zygote import drive_pair, settled

_PLATFORMS: Final = ("systrap", "ptrace")
_FLAGS: Final = ("--ignore-cgroups", "--network=none", "--host-fifo=open", "--file-access-mounts=exclusive")
_APART: Final = ("--pid", "--fork", "--kill-child", "--mount-proc")
_TRIAL: Final = Limits(seconds=10.0)
_turns = threading.BoundedSemaphore(slots_by_default())


@dataclass(frozen=True, slots=True)
class Gvisor:
    """Runs programs, commands, call cases and test pairs; all methods block and may be called from any thread.

    `binary`: the runsc program; found on the path by default. `packages`: folders shown read-only and put on the jobs'
    path. `readable`: further folders shown read-only.
    """

    binary: str = ""
    packages: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()

    def refusal(self) -> str:
        """Why nothing can be run here, in words; empty where it can. Tried once in a process."""
        try:
            _runtime(self.binary)
        except Refused as error:
            return str(error)
        return ""

    def run_program(self, program: str, stdin: bytes, limits: Limits) -> Result:
        """The program as `__main__`, with `stdin`."""
        return self.run_role("program", program.encode("utf-8", "surrogatepass"), limits, stdin)

    def run_command(self, command: Sequence[str], files: dict[str, bytes], stdin: bytes, limits: Limits) -> Result:
        """A command (its program by its whole path) that finds `files` in its /tmp."""
        return self.run_role("command", pack(command, files), limits, stdin)

    def answer_calls(self, payload: dict[str, Any], limits: Limits) -> Result:
        """Role "calls" (see `inside.candidate`); the replies are in `Result.reply`."""
        return self.run_role("calls", json.dumps(payload).encode(), limits)

    def run_role(
        self, role: str, payload: bytes, limits: Limits, stdin: bytes = b"", *, address_space: int | None = None
    ) -> Result:
        """One job; our own failures come back as states, never as exceptions."""

        def attempt() -> Result:
            build = self._build()
            with _turns, _host_trouble(), Container(build, role, limits, address_space=address_space) as container:
                return drive([Job(container, role, payload, limits, stdin=stdin)])[0]

        return settled(attempt)

    def examine(
        self, program: str, tests: dict[str, Any], limits: Limits, test_limits: Limits
    ) -> tuple[Result, Result]:
        """Tests in one sandbox against the program in another: (the tests' end, the program's end)."""

        def attempt() -> tuple[Result, Result]:
            build = self._build()
            with _turns, _host_trouble(), _joined(build, limits, test_limits) as (candidate, tester, peers):
                return drive_pair(candidate, tester, program, tests, limits, test_limits, peers)

        return with_retry(attempt)

    def _build(self) -> Build:
        return build_for(_runtime(self.binary), self.packages, self.readable)


@contextlib.contextmanager
def _host_trouble() -> Iterator[None]:
    """A full disk, no more processes, a process that does not die: nothing that says anything about the program."""
    try:
        yield
    except (OSError, subprocess.SubprocessError) as error:
        raise Infrastructure(f"gVisor could not be run: {error}") from error


@contextlib.contextmanager
def _joined(
    build: Build, limits: Limits, test_limits: Limits
) -> Iterator[tuple[Container, Container, tuple[int, int, int, int]]]:
    """Candidate and tester, starting together, and both ends of the two named pipes that will join them."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(own_folder())
        requests, replies = make_pipe(folder, "requests"), make_pipe(folder, "replies")
        peers = (*open_both(requests), *open_both(replies))
        try:
            candidate = stack.enter_context(Container(build, "candidate", limits, peer=(requests, replies)))
            tester = stack.enter_context(Container(build, "tester", test_limits, peer=(replies, requests)))
        except BaseException:
            for descriptor in peers:
                os.close(descriptor)
            raise
        yield candidate, tester, peers


def _runtime(binary: str) -> tuple[str, ...]:
    """The command line with which runsc works on this host; `Refused` says why none does."""
    programs = {
        "runsc": binary or shutil.which("runsc"),
        **{name: shutil.which(name) for name in ("unshare", "setpriv")},
    }
    for name, found in programs.items():
        if not found:
            source = "apt install runsc, or gvisor.dev" if name == "runsc" else "apt install util-linux"
            raise Refused(f"gVisor can't be used: {name} is not installed ({source})")
    working = _first_that_works(str(programs["runsc"]), str(programs["unshare"]))
    if isinstance(working, str):
        raise Refused(f"gVisor does not work on this host: {working}")
    return working


@lru_cache(maxsize=8)
def _first_that_works(runsc: str, unshare: str) -> tuple[str, ...] | str:
    """A command line that has run a program, or what went wrong with each."""
    remove_left_behind()
    failures = []
    for runtime in _command_lines(runsc, unshare):
        try:
            with _host_trouble(), Container(build_for(runtime), "program", _TRIAL) as container:
                result = drive([Job(container, "program", b"print(6 * 7)", _TRIAL)])[0]
        except Infrastructure as error:
            failures.append(f"{' '.join(runtime[-2:])}: {error}")
            continue
        if result.stdout == "42\n":
            return runtime
        failures.append(f"{' '.join(runtime[-2:])}: {result.state} {result.reason or result.stderr[-200:]}")
    return "; ".join(failures)


def _command_lines(runsc: str, unshare: str) -> Iterator[tuple[str, ...]]:
    """In a pid namespace of its own, that one kill ends all; an ordinary user needs a user namespace for that."""
    for platform in _PLATFORMS:
        flags = (*_FLAGS, f"--platform={platform}")
        if os.geteuid() == 0:
            yield (unshare, *_APART, runsc, *flags)
        yield (unshare, "--user", "--map-root-user", *_APART, runsc, "--rootless", *flags)


def _after_fork() -> None:
    """The threads that had taken a turn are not in the child."""
    global _turns
    _turns = threading.BoundedSemaphore(slots_by_default())


os.register_at_fork(after_in_child=_after_fork)
