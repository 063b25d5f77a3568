"""One gVisor sandbox for one job, seen from outside: its named pipes, its processes, its end.

It has the face of a fork server, so that `drive` feeds and reads its job with the same caps and deadlines.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from .bundle import Build, make_pipe, open_both, own_folder, remember_groups, write_bundle
from .cgroups import Slot, make_slot
from .inside.guest import REPORT, STARTED
from .inside.jail import INNER_USER
from .result import MIB, Infrastructure, Limits
from .seccomp import job_filter
from .server import Ended, job_limits

_LIMITED: Final = (
    "RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_NPROC", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_STACK", "RLIMIT_CORE",
    "RLIMIT_MEMLOCK",
)  # fmt: skip
"""Those that gVisor has; it refuses to set others."""
_MODES: Final = {"1": 0o602, "2": 0o602, "3": 0o600, "4": 0o600, REPORT: 0o600}
"""The named pipes; the job, another user in its sandbox, may open standard output and error again."""
_OWN_MEMORY: Final = 128 * MIB
_OWN_THREADS: Final = 128
_THREADS_PER_PROCESS: Final = 64
_START_SECONDS: Final = 20.0
_LAST_WORDS_SECONDS: Final = 0.2
_END_SECONDS: Final = 10.0


class Container:
    """Already starting when made; `submit` waits until its job runs. Used as a context, which ends it whole."""

    def __init__(
        self,
        build: Build,
        role: str,
        limits: Limits,
        *,
        address_space: int | None = None,
        peer: tuple[Path, Path] | None = None,
    ) -> None:
        """`peer`: the named pipes on which the job hears from, and writes to, the job of another container."""
        self._next = iter(_MODES)
        self._killed = False
        self._used = (0.0, 0)
        with contextlib.ExitStack() as stack:
            self.folder = stack.enter_context(own_folder())
            self._stdin = [*_pipe_to_open_again()]
            stack.callback(self._close_stdin)
            self._pipes = {name: make_pipe(self.folder, name, mode) for name, mode in _MODES.items()}
            if peer:
                self._pipes |= {"5": peer[0], "6": peer[1]}
            self._held = stack.enter_context(_held_open(self._pipes.values()))
            reading = os.open(self._pipes[REPORT], os.O_RDONLY | os.O_CLOEXEC)
            self.control = stack.enter_context(open(reading, "rb", buffering=0))
            self._group, _ = make_slot(limits.processes * _THREADS_PER_PROCESS + _OWN_THREADS)
            if self._group is not None:
                stack.callback(self._group.remove)
                self._group.limit_memory(limits.memory_bytes + _OWN_MEMORY)
            remember_groups(self.folder, self._group.folders if self._group else [])
            write_bundle(self.folder, build, self._order(build, role, limits, address_space), self._pipes, limits)
            self._process = _start(build, self.folder, self._group, self._stdin[0])
            stack.callback(self._end)
            self._open = stack.pop_all()

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _order(self, build: Build, role: str, limits: Limits, address_space: int | None) -> dict[str, object]:
        kernel_limits = job_limits(limits, address_space)["rlimits"]
        return {
            "role": role,
            "user": INNER_USER,
            "rlimits": {name: kernel_limits[name] for name in _LIMITED},
            "packages": build.packages,
            "pipes": len(self._pipes) - 1,
            "filter": job_filter(allow_exec=role == "command").hex(),
        }

    def pipe(self) -> tuple[int, int]:
        """Both ends, reading and writing, of the job's next descriptor from 0 up."""
        if self._stdin:
            return self._stdin.pop(0), self._stdin.pop(0)
        return open_both(self._pipes[next(self._next)])

    def submit(self, role: str, limits: Limits, descriptors: list[int], address_space: int | None = None) -> None:
        """Wait until the job that was ordered at the start runs; it has then opened its pipes itself."""
        with _end_of(self._process) as end:
            ready = _ready([self.control.fileno(), end], _START_SECONDS)
        line = self.control.readline() if self.control.fileno() in ready else b""
        if line != STARTED:
            raise Infrastructure(f"the gVisor sandbox did not start: {line.decode()}{self._last_words()}")
        self._held.close()

    def ended(self) -> Ended:
        """What the guest reports, or that the sandbox was killed; `Infrastructure` when it ended otherwise."""
        line = self.control.readline()
        if line:
            self._kill()  # what the job has left running; its peer now reads the end of the file
            report = json.loads(line)
            return Ended(report["status"], report["cpu"], report["memory"])
        if not self._killed:
            self._used = self._wait()
        if not (self._killed or self.killed_for_memory()):
            raise Infrastructure(f"the gVisor sandbox ended by itself: {self._last_words()}")
        return Ended(-signal.SIGKILL, *self._used)

    def kill_job(self) -> None:
        """SIGKILL for the whole sandbox, once what it has used has been read.

        A job that has lost its peer is ending, or has ended already: it gets a moment to say so.
        """
        if "5" in self._pipes and _ready([self.control.fileno()], _LAST_WORDS_SECONDS):
            return
        self._used = _used_by_jobs(self._processes())
        self._killed = True
        self._kill()

    def killed_for_memory(self) -> bool:
        """Whether the kernel has killed something of the sandbox for lack of memory."""
        return self._group is not None and self._group.oom_kills() > 0

    def _processes(self) -> Iterable[int]:
        """Everything that runs for the sandbox."""
        if self._group is None:
            return _family(self._process.pid)
        return map(int, Path(self._group.folders[0], "cgroup.procs").read_text().split())

    def _close_stdin(self) -> None:
        for end in self._stdin:
            os.close(end)

    def _kill(self) -> None:
        """End the first process of the pid namespace, and with it all others. Unshare, outside, ends once it has been
        told; killed itself, it would leave the dead to whoever adopts them."""
        if self._process.returncode is not None:
            return  # its number may be somebody else's by now
        number = self._process.pid
        try:
            first = Path(f"/proc/{number}/task/{number}/children").read_text().split()
        except (ProcessLookupError, FileNotFoundError):
            first = []
        for process in first or [str(number)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)

    def _wait(self) -> tuple[float, int]:
        """Until runsc has followed its sandbox; CPU seconds and peak memory, gVisor's own included."""
        with _end_of(self._process) as end:
            if not _ready([end], _END_SECONDS):
                self._kill()
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024

    def _end(self) -> None:
        self._kill()
        self._process.wait(_END_SECONDS)

    def _last_words(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-500:] or "runsc said nothing"


@contextlib.contextmanager
def _end_of(process: subprocess.Popen[bytes]) -> Iterator[int]:
    """A descriptor that is ready once the process has ended."""
    watched = os.pidfd_open(process.pid)
    try:
        yield watched
    finally:
        os.close(watched)


def _ready(descriptors: list[int], seconds: float) -> set[int]:
    """Those from which something, or the end of the file, can be read within the time."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(seconds * 1000)}


def _used_by_jobs(processes: Iterable[int]) -> tuple[float, int]:
    """CPU seconds of those that are traced, which are what gVisor runs for a job, without gVisor's own work; and the
    bytes that the job's processes and its /tmp hold, which gVisor keeps in one file in memory."""
    seconds, held = 0.0, 0
    for number in processes:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError, PermissionError):
            if "TracerPid:\t0" not in Path(f"/proc/{number}/status").read_text():
                times = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[11:15]
                seconds += sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
                held = held or _held_in_memory(number)
    return seconds, held


def _held_in_memory(process: int) -> int:
    for entry in Path(f"/proc/{process}/fd").iterdir():
        if os.readlink(entry).startswith("/memfd:runsc-memory"):
            return entry.stat().st_blocks * 512
    return 0


def _family(process: int) -> Iterator[int]:
    yield process
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            for child in listed.read_text().split():
                yield from _family(int(child))


def _held_open(pipes: Iterable[Path]) -> contextlib.ExitStack:
    """Both ends of these held open: until the job has opened its end too, whoever opens the other would wait, and what
    has been written would be lost with the writer."""
    held = contextlib.ExitStack()
    for path in pipes:
        held.callback(os.close, os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    return held


def _pipe_to_open_again() -> tuple[int, int]:
    """For standard input: unlike a named pipe, an unnamed one opened as /dev/stdin does not wait for a writer."""
    ends = os.pipe2(os.O_CLOEXEC)
    os.fchmod(ends[0], 0o604)  # the job is another user in its sandbox
    return ends


# Joins control groups and becomes the command that follows; in a forked copy of this process (`preexec_fn`) that could
# hang when another thread held a lock at the fork.
_ENTER = ("/bin/sh", "-c", 'while [ "$1" != -- ]; do echo 0 >"$1" || exit 1; shift; done; shift; exec "$@"', "sh")
_WITH_US = ("setpriv", "--pdeathsig", "KILL")


def _start(build: Build, folder: Path, group: Slot | None, stdin: int) -> subprocess.Popen[bytes]:
    entries = [f"{path}/cgroup.procs" for path in group.folders] if group else []
    runsc = [*build.runtime, "--root", str(folder / "state"), "run", "-bundle", str(folder), folder.name]
    with open(folder / "log", "wb") as log:
        return subprocess.Popen(
            [*_ENTER, *entries, "--", *_WITH_US, *runsc],
            stdin=stdin,
            stdout=log,
            stderr=log,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            cwd="/",
            start_new_session=True,
        )
