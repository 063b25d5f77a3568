"""A bare subprocess with limits: no isolation at all, only for programs you would run yourself."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import IO

from .inside import kernel
from .result import Limits, Result, State, reason_of
from .server import job_limits

# Waits for the first line of its input, then becomes the command: by then its limits are set, from outside. Setting
# them in a forked copy of this process (`preexec_fn`) could hang it when another thread held a lock at the fork.
_GATE = ("/bin/sh", "-c", 'read -r _ && exec "$@"', "sh")
_warned = False


class NotIsolatedWarning(UserWarning):
    """Code is run with the rights of this process."""


def run_program(program: str, stdin: bytes, limits: Limits) -> Result:
    """A Python program with the base interpreter; warns once that nothing encloses it."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "backend='subprocess' does not isolate: the program can read, write and connect to what you can",
            NotIsolatedWarning,
            stacklevel=3,
        )
    with tempfile.TemporaryDirectory(prefix="guerdon-run-") as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(program)
        return run_command([sys.executable, "-I", path], stdin, limits, folder)


def run_command(
    command: Sequence[str],
    stdin: bytes,
    limits: Limits,
    folder: str,
    *,
    groups: Sequence[str] = (),
    most_processes: int | None = None,
    descriptors: tuple[int, ...] = (),
) -> Result:
    """Any command with wall, CPU, memory, file and output limits; its whole process group is killed at the end.

    `groups`: folders of control groups the command runs in. `most_processes`: RLIMIT_NPROC, counted over all the user's
    processes. `descriptors`: kept open in the command.
    """
    started = time.monotonic()
    with subprocess.Popen(
        [*_GATE, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        start_new_session=True,
        pass_fds=descriptors,
    ) as process:
        try:
            _limit(process.pid, limits, groups, most_processes)
            outputs, killed = _exchange(process, b"\n" + stdin, limits, started + limits.seconds)
        finally:
            _kill_group(process)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = code = os.waitstatus_to_exitcode(status)
    texts = [output.decode("utf-8", "replace") for output in outputs]
    state: State = killed or _state(code, texts[1], usage.ru_utime + usage.ru_stime, limits)
    return Result(
        state,
        code if state in ("finished", "crash") else None,
        texts[0],
        texts[1],
        time.monotonic() - started,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * 1024,
        reason=reason_of(state, code, limits),
    )


def _limit(pid: int, limits: Limits, groups: Sequence[str], most_processes: int | None) -> None:
    """The limits of a process that waits at the gate."""
    for path in groups:
        with open(f"{path}/cgroup.procs", "w") as file:
            file.write(str(pid))
    if most_processes is not None:
        kernel.limit(pid, "RLIMIT_NPROC", most_processes)
    for name, value in job_limits(limits)["rlimits"].items():
        if name not in ("RLIMIT_NPROC", "RLIMIT_STACK"):  # counted per user: the caller's own processes would be hit
            kernel.limit(pid, name, value)


def _exchange(
    process: subprocess.Popen[bytes], stdin: bytes, limits: Limits, deadline: float
) -> tuple[list[bytes], State | None]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    outputs = {process.stdout: bytearray(), process.stderr: bytearray()}
    rest = memoryview(stdin)
    with selectors.DefaultSelector() as selector, process.stdin, process.stdout, process.stderr:
        for stream in outputs:
            selector.register(stream, selectors.EVENT_READ)
        os.set_blocking(process.stdin.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        while any(stream in selector.get_map() for stream in outputs):
            left = deadline - time.monotonic()
            if left <= 0:
                return [bytes(data) for data in outputs.values()], "timeout"
            for key, _ in selector.select(left):
                if key.fileobj is process.stdin:
                    rest = _feed(process.stdin.fileno(), rest)
                    if not rest:
                        selector.unregister(process.stdin)
                        process.stdin.close()
                    continue
                part = os.read(key.fd, 1 << 16)
                if not part:
                    selector.unregister(key.fileobj)
                outputs[key.fileobj] += part  # type: ignore[index]  # only the two streams are registered for reading
                if len(outputs[key.fileobj]) > limits.output_bytes:  # type: ignore[index]  # as above
                    return [bytes(data[: limits.output_bytes]) for data in outputs.values()], "output"
        return _wait(process, outputs, deadline)


def _feed(descriptor: int, rest: memoryview) -> memoryview:
    try:
        return rest[os.write(descriptor, rest[: 1 << 16]) :]
    except BrokenPipeError:
        return memoryview(b"")


def _wait(
    process: subprocess.Popen[bytes], outputs: Mapping[IO[bytes], bytearray], deadline: float
) -> tuple[list[bytes], State | None]:
    """Both streams are closed; the program may still run."""
    watched = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(watched, selectors.EVENT_READ)
            ended = selector.select(max(0.0, deadline - time.monotonic()))
    finally:
        os.close(watched)
    return [bytes(data) for data in outputs.values()], None if ended else "timeout"


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _state(code: int, stderr: str, cpu_seconds: float, limits: Limits) -> State:
    if code == 1 and stderr.rstrip().rpartition("\n")[2].startswith("MemoryError"):
        return "memory"
    if code == -signal.SIGKILL and cpu_seconds >= limits.seconds:
        return "timeout"
    return "finished" if code >= 0 else "crash"
