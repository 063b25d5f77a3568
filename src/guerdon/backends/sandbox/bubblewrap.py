"""A back end for hosts that prefer bubblewrap: one `bwrap` process for each run, limits by rlimit, any command.

Slower than the fork server (an interpreter start for each run), with the same system-call filter and control group, but
without a limit on the number of files in /tmp; for programs that need an untouched start.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .cgroups import make_slot
from .plain import run_command
from .result import MIB, Limits, Result
from .seccomp import job_filter
from .server import readable_folders

_SHARED = (
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--disable-userns",
    "--unshare-user",
    "--cap-drop",
    "ALL",
    "--uid",
    "60001",
    "--gid",
    "60001",
)


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """`binary`: the bwrap program; found on the path by default."""

    binary: str = ""

    def run_program(self, program: str, stdin: bytes, limits: Limits) -> Result:
        """A Python program under the base interpreter."""
        interpreter = getattr(sys, "_base_executable", "") or sys.executable
        command = [interpreter, "-I", "-S", "-X", "utf8", "/tmp/program.py"]
        return self.run_command(command, {"program.py": program.encode("utf-8", "surrogatepass")}, stdin, limits)

    def run_command(self, command: Sequence[str], files: dict[str, bytes], stdin: bytes, limits: Limits) -> Result:
        """A command that finds `files` in its /tmp; sees the system's and the interpreter's folders read-only."""
        binary = self.binary or shutil.which("bwrap")
        if not binary:
            return Result("refused", None, "", "", 0.0, reason="bwrap is not installed (apt install bubblewrap)")
        with tempfile.TemporaryDirectory(prefix="guerdon-bwrap-") as folder:
            mounts: list[str] = []
            for name, content in files.items():
                path = os.path.join(folder, name)
                with open(path, "wb") as file:
                    file.write(content)
                os.chmod(path, 0o755)
                mounts += ["--ro-bind", path, f"/tmp/{name}"]
            with _filter() as code:
                walls = [*_walls(limits), *mounts, "--seccomp", str(code)]
                return _bounded([binary, *walls, "--", *command], stdin, limits, folder, (code,))


@contextlib.contextmanager
def _filter() -> Iterator[int]:
    """A descriptor from which bwrap reads the system-call filter that fork-server jobs have, with exec allowed."""
    reading, writing = os.pipe()
    try:
        os.write(writing, job_filter(allow_exec=True))
        os.close(writing)
        yield reading
    finally:
        os.close(reading)


def _bounded(command: list[str], stdin: bytes, limits: Limits, folder: str, descriptors: tuple[int, ...]) -> Result:
    """With a bound on the number of processes, by control group or, for an ordinary user, by the user's count."""
    group, why = make_slot(limits.processes)
    if group is None and os.geteuid() == 0:
        reason = f"nothing bounds the processes of a job that root starts: {why}"
        return Result("refused", None, "", "", 0.0, reason=reason)
    try:
        if group is not None:
            group.limit_memory(limits.memory_bytes + 64 * MIB)
            return run_command(command, stdin, limits, folder, group=group, descriptors=descriptors)
        most = _own_processes() + limits.processes
        return run_command(command, stdin, limits, folder, most_processes=most, descriptors=descriptors)
    finally:
        if group is not None:
            group.remove()


def _own_processes() -> int:
    owned = 0
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            owned += entry.name.isdecimal() and entry.stat().st_uid == os.geteuid()
    return owned


def _walls(limits: Limits) -> list[str]:
    walls = [*_SHARED, "--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp", "--dev", "/dev"]
    interpreter = getattr(sys, "_base_executable", "") or sys.executable
    for path in readable_folders(interpreter, ()):
        if os.path.islink(path):
            walls += ["--symlink", os.readlink(path), path]
        else:
            walls += ["--ro-bind", path, path]
    return [*walls, "--size", str(limits.file_bytes), "--tmpfs", "/tmp", "--chdir", "/tmp", "--remount-ro", "/"]
