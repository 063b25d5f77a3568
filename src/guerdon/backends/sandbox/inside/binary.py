"""A job that becomes another program: an executable file sent as the payload, arguments in the request."""

from __future__ import annotations

import ctypes
import os
from typing import Any, NoReturn

from .program import PAYLOAD, REPLY, TO_PEER, read_all


def run(request: dict[str, Any]) -> NoReturn:
    """Write the payload to the job's own /tmp and execute it; needs a filter that allows exec."""
    image = read_all(PAYLOAD)
    path = "/tmp/program"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o700)
    os.write(descriptor, image)
    os.close(descriptor)
    os.closerange(REPLY, TO_PEER + 1)
    ctypes.set_errno(0)
    os.execve(path, [path, *request.get("arguments", [])], {"PATH": "/usr/bin:/bin", "HOME": "/tmp"})
