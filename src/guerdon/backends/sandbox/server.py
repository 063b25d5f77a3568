"""One fork server seen from outside: start it, hand it a job with its descriptors, read how the job ended."""

from __future__ import annotations

import json
import math
import os
import platform
import socket
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from . import cgroups
from .obstacles import obstacles
from .result import MIB, Infrastructure, Limits, Refused
from .seccomp import job_filter

FIRST_USER: Final = 61_000
START_SECONDS: Final = 20.0
_WARM: Final = (
    "math", "json", "re", "collections", "itertools", "functools", "heapq", "bisect", "typing", "string", "random",
    "datetime", "copy", "operator",
)  # fmt: skip
_BOOT: Final = "import sys; sys.path.insert(0, {folder!r}); from inside.fork_server import main; main({descriptor})"
_STACK_BYTES: Final = 64 * MIB
_THREAD_STACK_BYTES: Final = 16 * MIB
_THREADS: Final = 12
# What a control group holds beside a job's own memory: the server; where jobs are programs of their own, the pages of
# their files too, which a job at its limit would otherwise read again and again until its time is up.
_SERVER_BYTES: Final = 64 * MIB
_RUNTIME_BYTES: Final = 192 * MIB
_SIGNALS: Final = 1024  # queued signals and POSIX timers


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How a fork server is built.

    `interpreter`: the Python that runs the jobs (default: the one below any virtual environment). `packages`: folders
    shown read-only and put on the jobs' path. `readable`: further folders shown read-only. `modules`: imported once,
    before the first fork. `roles`: the parts its jobs can play. `allow_exec`: jobs may start programs. `privileged`:
    use root's powers where the caller has them; False forces the user-namespace way.
    """

    interpreter: str = ""
    packages: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    modules: tuple[str, ...] = _WARM
    roles: tuple[str, ...] = ("program", "calls", "candidate")
    allow_exec: bool = False
    privileged: bool = True
    cgroup: bool = True


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended, as the fork server saw it."""

    status: int
    cpu_seconds: float
    peak_memory_bytes: int


class ForkServer:
    """A running fork server; one job at a time, one thread at a time."""

    def __init__(self, config: ServerConfig, number: int) -> None:
        """Start it; raises `Refused` when this host does not let it put up its walls, `Infrastructure` when a host
        short of time or memory can't start it now."""
        if platform.system() != "Linux":
            raise Refused(f"the zygote back end needs Linux, this is {platform.system()}")
        try:
            code = job_filter(allow_exec=config.allow_exec)
        except NotImplementedError as error:
            raise Refused(str(error)) from error
        self._beside = _RUNTIME_BYTES if config.allow_exec else _SERVER_BYTES
        self._group, note = cgroups.make_slot(Limits().processes) if config.cgroup else (None, "not asked for")
        self._group_limits = (0, Limits().processes)
        self._oom_kills = 0
        self.owner = os.getpid()
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self._process = _spawn(config, theirs.fileno())
            self.report = self._handshake(config, code, number)
        except Refused:
            self.close()
            raise
        except OSError as error:
            self.close()
            if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
                hint = "GUERDON_SANDBOX_PYTHON can name another Python, which this user can run"
                raise Refused(f"can't start the fork server: {error}; {hint}") from error
            raise Infrastructure(f"can't start the fork server: {error}") from error
        if "cgroup" in self.report:
            self._group, note = None, self.report["cgroup"]
        if self._group is None:
            note = f"no cgroup, so memory is limited for each process and not for the job as a whole: {note}"
        if note:
            self.report["weaker"].append(note)

    def _handshake(self, config: ServerConfig, code: bytes, number: int) -> dict[str, Any]:
        self.control.settimeout(START_SECONDS)
        self.control.send(json.dumps(self._setup(config, code, number)).encode())
        answer = self.control.recv(1 << 16)
        if not answer:
            raise Refused(f"the fork server ended while starting: {self._last_words()}")
        report: dict[str, Any] = json.loads(answer)
        if "error" in report:
            raise Refused("; ".join([f"no isolation on this host: {report['error']}", *obstacles()]))
        return report

    def _setup(self, config: ServerConfig, code: bytes, number: int) -> dict[str, Any]:
        return {
            "privileged": config.privileged,
            "readable": list(
                readable_folders(config.interpreter or base_interpreter(), config.packages + config.readable)
            ),
            "hidden": list(hidden_folders(config.interpreter or base_interpreter(), config.packages + config.readable)),
            "packages": list(config.packages),
            "modules": list(config.modules),
            "roles": list(config.roles),
            "own_folder": str(Path(__file__).parent),
            "filter": code.hex(),
            "user": FIRST_USER + number,
            "tmp_options": "mode=1777,",
            "cgroups": self._group.folders if self._group else [],
            "rehearsal": job_limits(Limits()),
        }

    def pipe(self) -> tuple[int, int]:
        """A pipe to or from a job: its reading and its writing end."""
        return os.pipe2(os.O_CLOEXEC)

    def submit(self, role: str, limits: Limits, descriptors: list[int], address_space: int | None = None) -> None:
        """Start a job with these seven descriptors (the caller keeps and closes its own copies)."""
        self._limit_group(limits)
        request = {"role": role, "limits": job_limits(limits, address_space)}
        try:
            socket.send_fds(self.control, [json.dumps(request).encode()], descriptors)
        except OSError as error:
            raise Infrastructure(f"the fork server is gone: {error}") from error

    def ended(self) -> Ended:
        """Read the answer about the running job; raises `Infrastructure` when the job never properly started."""
        try:
            answer = self.control.recv(1 << 16)
        except OSError as error:
            raise Infrastructure(f"the fork server does not answer: {error}") from error
        if not answer:
            raise Infrastructure(f"the fork server ended: {self._last_words()}")
        report = json.loads(answer)
        if "infrastructure" in report:
            raise Infrastructure(report["infrastructure"])
        if not report["started"]:
            raise Infrastructure(f"the job could not be confined (status {report['status']})")
        return Ended(report["status"], report["cpu"], report["memory"])

    def kill_job(self) -> None:
        """SIGKILL for the job's pid 1, and so for everything in the job; harmless when it has already ended."""
        try:
            self.control.send(b"K")
        except OSError as error:
            raise Infrastructure(f"the fork server is gone: {error}") from error

    def killed_for_memory(self) -> bool:
        """Whether the kernel has killed something in this slot for lack of memory since the last question."""
        before, self._oom_kills = self._oom_kills, self._group.oom_kills() if self._group else 0
        return self._oom_kills > before

    def _limit_group(self, limits: Limits) -> None:
        wanted = (limits.memory_bytes, limits.processes)
        if self._group is None or wanted == self._group_limits:
            return
        try:
            self._group.limit_memory(limits.memory_bytes + self._beside)
            self._group.limit_processes(limits.processes)
        except OSError as error:
            raise Infrastructure(f"the limits of the job's control group can't be set: {error}") from error
        self._group_limits = wanted

    def _last_words(self) -> str:
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "no message"
        return (self._process.stderr.read() if self._process.stderr else b"").decode(errors="replace")[-500:]

    def close(self) -> None:
        """End the server, its jobs, its groups; safe to call twice."""
        self.control.close()
        process = getattr(self, "_process", None)
        if process is not None:
            try:
                process.wait(3.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stderr:
                process.stderr.close()
        if self._group is not None:
            self._group.remove()

    def abandon(self) -> None:
        """After a fork, in the child: let go of the parent's server without ending it."""
        self.control.close()


def _spawn(config: ServerConfig, descriptor: int) -> subprocess.Popen[bytes]:
    boot = _BOOT.format(folder=str(Path(__file__).parent), descriptor=descriptor)
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    return subprocess.Popen(
        [config.interpreter or base_interpreter(), "-I", "-S", "-X", "utf8", "-c", boot],
        pass_fds=(descriptor,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        cwd="/",
        start_new_session=True,
    )


def base_interpreter() -> str:
    """The Python below any virtual environment, or the one that $GUERDON_SANDBOX_PYTHON names."""
    return os.environ.get("GUERDON_SANDBOX_PYTHON") or getattr(sys, "_base_executable", "") or sys.executable


@lru_cache(maxsize=16)
def readable_folders(interpreter: str, packages: tuple[str, ...]) -> tuple[str, ...]:
    """What jobs may read: the system's programs and libraries, the interpreter's own, and `packages`.

    Of the interpreter's prefix only what it needs: it may be a home folder, or hold other environments. Raises
    `Refused` for a folder that can't be shown.
    """
    prefix = Path(interpreter).resolve().parent.parent
    own = (str(prefix / name) for name in ("bin", "lib", "lib64", "share"))
    wanted = ["/usr", "/lib", "/lib64", "/lib32", *own, *(str(Path(folder).resolve()) for folder in packages)]
    kept: list[str] = []
    for path in wanted:
        if path.startswith("/tmp/"):
            raise Refused(f"{path} can't be shown to jobs, which have a /tmp of their own")
        if os.path.lexists(path) and not any(path == other or path.startswith(other + "/") for other in kept):
            kept.append(path)
    return tuple(kept)


@lru_cache(maxsize=16)
def hidden_folders(interpreter: str, packages: tuple[str, ...]) -> tuple[str, ...]:
    """The folders of installed packages below the readable ones: what is installed beside the standard library, a
    benchmark with its answers perhaps, is not for jobs, unless `packages` names it."""
    wanted = [Path(folder).resolve() for folder in packages]
    roots = (Path(interpreter).resolve().parent.parent, Path("/usr"), Path("/usr/local"))
    found = {
        folder.resolve()
        for root in roots
        for folder in root.glob("lib*/python3*/*-packages")
        if folder.name in ("site-packages", "dist-packages")
    }
    return tuple(sorted(str(folder) for folder in found if not any(one.is_relative_to(folder) for one in wanted)))


def job_limits(limits: Limits, address_space: int | None = None) -> dict[str, Any]:
    """The limits in the terms of the kernel; `address_space` where what is mapped is no measure of what is used.

    There the bound is on private memory that can be written, with room for the stacks of the threads that such a
    runtime starts: as large as the main one, they count before they are used.
    """
    stack = min(_STACK_BYTES, limits.memory_bytes)
    mapped = {"RLIMIT_AS": limits.memory_bytes, "RLIMIT_STACK": stack}
    if address_space:
        stack = min(_THREAD_STACK_BYTES, stack)
        room = limits.memory_bytes + _THREADS * stack
        mapped = {"RLIMIT_AS": address_space, "RLIMIT_STACK": stack, "RLIMIT_DATA": room}
    return {
        "tmp": f"size={limits.file_bytes},nr_inodes={limits.files}",
        "rlimits": {
            **mapped,
            "RLIMIT_CPU": math.ceil(limits.seconds) + 1,
            "RLIMIT_NPROC": limits.processes,
            "RLIMIT_FSIZE": limits.file_bytes,
            "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_CORE": 1,  # unlike 0, this also keeps a host's dump program from being started
            "RLIMIT_SIGPENDING": _SIGNALS,
            "RLIMIT_MEMLOCK": 0,
            "RLIMIT_MSGQUEUE": 0,
            "RLIMIT_NICE": 0,
            "RLIMIT_RTPRIO": 0,
        },
    }
