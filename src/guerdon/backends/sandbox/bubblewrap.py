"""A back end for hosts that prefer bubblewrap: one `bwrap` process for each run, limits by rlimit, any command.

Slower than the fork server (an interpreter start for each run), with the same system-call filter, control group and
limits; for programs that need an untouched start. Needs util-linux besides.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .cgroups import Slot, make_slot
from .inside.jail import DEVICES, HOST_NAME, INNER_USER, is_root_of_the_host, may_mount
from .plain import run_command
from .result import MIB, Limits, Refused, Result, reason_of
from .seccomp import job_filter
from .server import base_interpreter, hidden_folders, job_limits, readable_folders

_SHARED = (
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--disable-userns",
    "--unshare-user",
    "--cap-drop",
    "ALL",
    "--uid",
    str(INNER_USER),
    "--gid",
    str(INNER_USER),
    "--hostname",
    HOST_NAME,
    "--clearenv",
    "--setenv",
    "PATH",
    "/usr/bin:/bin",
    "--setenv",
    "HOME",
    "/tmp",
)
# What bwrap can't put up itself, in a mount namespace around it: a /tmp that counts its files, and devices that are
# read-only nodes (bwrap shows devices writable or not at all, and a job that root starts would own the host's).
_AROUND = ("--mount", "--propagation", "private", "--", "/bin/sh", "-c", 'mount -aT "$1" && shift && exec "$@"', "sh")


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """`binary`: the bwrap program (0.8 or newer); found on the path by default."""

    binary: str = ""

    def refusal(self) -> str:
        """Why nothing can be run here, in words; empty where it can. Tries a program."""
        result = self.run_program("", b"", Limits(seconds=10.0))
        return "" if result.ok else result.reason or f"a program with nothing in it ended as {result.state}"

    def run_program(self, program: str, stdin: bytes, limits: Limits) -> Result:
        """A Python program under the base interpreter."""
        command = [base_interpreter(), "-I", "-S", "-X", "utf8", "/tmp/program.py"]
        return self.run_command(command, {"program.py": program.encode("utf-8", "surrogatepass")}, stdin, limits)

    def run_command(self, command: Sequence[str], files: dict[str, bytes], stdin: bytes, limits: Limits) -> Result:
        """A command that finds `files` in its /tmp; sees the system's and the interpreter's folders read-only."""
        binary = self.binary or shutil.which("bwrap")
        if not binary:
            return _refused("bwrap is not installed (apt install bubblewrap)")
        try:
            shown = _walls()
        except Refused as error:
            return _refused(str(error))
        with tempfile.TemporaryDirectory(prefix="guerdon-bwrap-") as folder:
            walls = [*shown, "--bind", f"{folder}/tmp", "/tmp", "--chdir", "/tmp"]
            for name, content in files.items():
                path = os.path.join(folder, name)
                with open(path, "wb") as file:
                    file.write(content)
                os.chmod(path, 0o755)
                walls += ["--ro-bind", path, f"/tmp/{name}"]
            around = ["unshare", *([] if may_mount() else ["--user", "--map-root-user"]), *_AROUND]
            start = [*around, _mounts(folder, limits), binary, *walls, "--remount-ro", "/"]
            with _filter() as code, _status_pipe() as (reading, writing):
                whole = [*start, "--seccomp", str(code), "--json-status-fd", str(writing), "--", *command]
                return _bounded(whole, stdin, limits, folder, (code, writing), reading)


def _mounts(folder: str, limits: Limits) -> str:
    """A table for mount(8) of what is mounted around bwrap; one process for all of it.

    An ordinary user may not clear the flags that /dev commonly has.
    """
    os.mkdir(f"{folder}/tmp")
    lines = [f"/dev/{name} /dev/{name} none bind,ro,nosuid,noexec 0 0\n" for name in DEVICES]
    place = folder.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011").replace("\n", "\\012")
    lines.append(f"tmp {place}/tmp tmpfs mode=1777,{job_limits(limits)['tmp']} 0 0\n")
    with open(f"{folder}/mounts", "w") as file:
        file.writelines(lines)
    return f"{folder}/mounts"


def _refused(reason: str) -> Result:
    return Result("refused", None, "", "", 0.0, reason=reason)


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


@contextlib.contextmanager
def _status_pipe() -> Iterator[tuple[int, int]]:
    """Where bwrap says how the command ended; it says nothing of one that it could not start."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        yield reading, writing
    finally:
        os.close(reading)
        os.close(writing)


def _bounded(
    command: list[str], stdin: bytes, limits: Limits, folder: str, descriptors: tuple[int, ...], status: int
) -> Result:
    """With a bound on the number of processes, by control group or, for an ordinary user, by the user's count."""
    group, why = make_slot(limits.processes)
    if group is None and is_root_of_the_host():
        return _refused(f"nothing bounds the processes of a job that root starts: {why}")
    try:
        if group is None:
            most = _own_processes() + limits.processes
            result = run_command(command, stdin, limits, folder, most_processes=most, descriptors=descriptors)
        else:
            group.limit_memory(limits.memory_bytes + 64 * MIB)
            result = run_command(command, stdin, limits, folder, groups=group.folders, descriptors=descriptors)
        return _explained(result, _exit_code(status), group, limits)
    except OSError as error:
        return Result("infrastructure", None, "", "", 0.0, reason=f"bubblewrap could not be started: {error}")
    finally:
        if group is not None:
            group.remove()


def _exit_code(status: int) -> int | None:
    """What bwrap wrote about the command: one JSON object on each line, the last with its exit code."""
    with contextlib.suppress(BlockingIOError):
        for line in os.read(status, 1 << 16).decode().splitlines():
            if "exit-code" in (said := json.loads(line)):
                return int(said["exit-code"])
    return None


def _explained(result: Result, code: int | None, group: Slot | None, limits: Limits) -> Result:
    """bwrap ends with 128 and the signal where a signal has killed the command, and with 1 where it could not start it.

    A command that ends itself with such a number is taken for a killed one, as in a shell.
    """
    if result.state not in ("finished", "crash"):
        return result
    killed = signal.SIGKILL if result.state == "crash" else code - 128 if code and code > 128 else 0
    if killed == signal.SIGKILL and group is not None and group.oom_kills():
        return replace(result, state="memory", exit_code=None, reason=reason_of("memory", 0, limits))
    if result.state == "crash":
        return replace(result, state="infrastructure", exit_code=None, reason=f"bwrap was {result.reason}")
    if code is None:
        return _refused(f"bubblewrap can't enclose a program on this host: {result.stderr.strip()[-300:]}")
    if killed in signal.valid_signals():
        return replace(result, state="crash", exit_code=-killed, reason=reason_of("crash", -killed, limits))
    return result


def _own_processes() -> int:
    owned = 0
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            owned += entry.name.isdecimal() and entry.stat().st_uid == os.geteuid()
    return owned


def _walls() -> list[str]:
    walls = [*_SHARED]
    if "LD_LIBRARY_PATH" in os.environ:
        walls += ["--setenv", "LD_LIBRARY_PATH", os.environ["LD_LIBRARY_PATH"]]
    for path in readable_folders(base_interpreter(), ()):
        if os.path.islink(path):
            walls += ["--symlink", os.readlink(path), path]
        else:
            walls += ["--ro-bind", path, path]
    for path in hidden_folders(base_interpreter(), ()):
        walls += ["--tmpfs", path, "--remount-ro", path]
    for device in (f"/dev/{name}" for name in DEVICES):
        walls += ["--dev-bind", device, device]
    return walls
