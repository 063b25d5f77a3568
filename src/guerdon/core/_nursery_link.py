"""The parent's end of the nursery: start it, have it fork and kill workers, hear which have ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence

from guerdon.core._pool_wire import COMMAND, REPORT

_ONE_THREAD = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "BLIS")

# `-c` with this process's own search path: nothing depends on `__main__`, and no file of the working
# directory takes the place of a module.
_BOOT = (
    "import sys, json; a = json.loads(sys.argv[1]); sys.path[:] = a['path']\n"
    "sys.stdout.reconfigure(line_buffering=True)\n"
    "from guerdon.core._worker_main import nursery\n"
    "nursery(a['control'], a['parent'], a['preload'], a['memory'])"
)


class NurseryLink:
    """A running nursery process. Only the thread that made it may use it (the kernel ties the two together)."""

    def __init__(self, preload: Sequence[str], memory_bytes: int | None) -> None:
        self.control, theirs = socket.socketpair()
        self._inbox = bytearray()
        settings = {
            "path": [p for p in sys.path if isinstance(p, str)],
            "control": theirs.fileno(),
            "parent": os.getpid(),
            "preload": list(preload),
            "memory": memory_bytes,
        }
        threads = {f"{library}_NUM_THREADS": "1" for library in _ONE_THREAD}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOT, json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=2 if _is_open(2) else subprocess.DEVNULL,  # what functions print goes to stderr
                env={**os.environ, **threads, "TOKENIZERS_PARALLELISM": "false"},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException:
            self.control.close()
            raise
        finally:
            theirs.close()

    def fork(self, number: int, channel: int, page: int) -> None:
        """Ask for worker ``number``; the two descriptors become its own."""
        with contextlib.suppress(OSError):  # a dead nursery shows when its reports are read
            socket.send_fds(self.control, [COMMAND.pack(b"F", number)], [channel, page])

    def kill(self, number: int) -> None:
        """Ask that worker ``number`` be killed."""
        with contextlib.suppress(OSError):
            self.control.send(COMMAND.pack(b"K", number))

    def ended(self) -> Iterator[tuple[int, int]]:
        """Read once: the numbers and wait statuses of workers that ended. Raises ``EOFError`` when it is gone."""
        try:
            data = self.control.recv(4096)
        except OSError:
            data = b""
        if not data:
            raise EOFError
        self._inbox += data
        while len(self._inbox) >= REPORT.size:
            kind, number, status = REPORT.unpack_from(self._inbox)
            del self._inbox[: REPORT.size]
            if kind == b"X":
                yield number, status

    def close(self, patience: float) -> str:
        """Close the socket, upon which it kills its workers and leaves; say how it ended."""
        self.control.close()
        try:
            code = self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit status {code}"

    def abandon(self) -> None:
        """In a forked child: the process is not ours, so close the copy of the socket and never wait for it."""
        self.control.close()
        self._process.returncode = 0


def how_it_ended(status: int, doomed: str) -> str:
    """A wait status in words; ``doomed`` is why the supervisor itself had it killed."""
    if status < 0:
        return "it could not be forked"
    if os.WIFEXITED(status):
        return f"exit status {os.WEXITSTATUS(status)}"
    number = os.WTERMSIG(status)
    return f"signal {number}, {doomed}" if doomed and number == signal.SIGKILL else f"signal {number}"


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
