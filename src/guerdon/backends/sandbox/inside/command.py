"""A job that runs an installed program: compilers, other interpreters, and what a compiler made."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from .program import PAYLOAD, REPLY, TO_PEER, read_all


def pack(
    command: Sequence[str],
    files: Mapping[str, bytes],
    *,
    output: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """The payload of such a job, made on the other side; see `run`."""
    sizes = {name: len(content) for name, content in files.items()}
    order = {"command": list(command), "files": sizes, "output": output, "environment": dict(environment or {})}
    return b"\n".join((json.dumps(order).encode(), b"".join(files.values())))


def run(request: dict[str, Any]) -> NoReturn:
    """Put the payload's files into the job's /tmp and run the command there; needs a filter that allows exec.

    The payload is one line of JSON, `{"command": [...], "files": {name: size, ...}, "environment": {...}, "output":
    name or null}`, followed by the files' bytes. With an `output`, that file's content is sent as the reply once the
    command has ended well.
    """
    head, _, rest = read_all(PAYLOAD).partition(b"\n")
    order = json.loads(head)
    for name, size in order["files"].items():
        content, rest = rest[:size], rest[size:]
        _write_file(f"/tmp/{name}", content)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
    environment |= order["environment"]
    if order["output"] is None:
        os.closerange(REPLY, TO_PEER + 1)
        os.execve(order["command"][0], order["command"], environment)
    child = os.fork()
    if child == 0:
        os.closerange(REPLY, TO_PEER + 1)
        os.execve(order["command"][0], order["command"], environment)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 0:
        _send_file(f"/tmp/{order['output']}")
    os._exit(code if code >= 0 else 128 - code)


def _write_file(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700)
    while content:
        content = content[os.write(descriptor, content) :]
    os.close(descriptor)


def _send_file(path: str) -> None:
    with open(path, "rb") as file:
        content = file.read()
    while content:
        content = content[os.write(REPLY, content) :]
