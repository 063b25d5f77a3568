"""The short way in: one program, a named back end, limits as keywords."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from . import plain
from .bubblewrap import Bubblewrap
from .gvisor import Gvisor
from .pool import slots_by_default
from .result import Limits, Result
from .zygote import Zygote


def run_python(program: str, stdin: str = "", *, backend: str = "auto", **limits: Any) -> Result:
    """Run a Python program that nobody vouches for, and say how it ended.

    `backend`: "auto" or "zygote" (isolated, Linux), "bubblewrap" (isolated, needs the `bwrap` program), "gvisor" (a
    kernel of its own for each job, needs `runsc`), "subprocess" (not isolated at all: limits only, warns). `limits`:
    fields of `Limits`. Where the host can't isolate, the program is not run and the state is "refused".

    >>> run_python("print(input()[::-1])", "abc").stdout
    'cba\\n'
    """
    chosen = Limits().with_changes(**limits)
    data = stdin.encode("utf-8", "surrogatepass")
    if backend == "subprocess":
        return plain.run_program(program, data, chosen)
    if backend == "bubblewrap":
        return Bubblewrap().run_program(program, data, chosen)
    return isolating_backend(backend).run_program(program, data, chosen)


def run_python_many(programs: Iterable[tuple[str, str]], *, backend: str = "auto", **limits: Any) -> list[Result]:
    """`run_python` of each (program, stdin), in order, as many at a time as there are slots."""
    with ThreadPoolExecutor(slots_by_default()) as threads:
        return list(threads.map(lambda pair: run_python(pair[0], pair[1], backend=backend, **limits), programs))


async def arun_python(program: str, stdin: str = "", *, backend: str = "auto", **limits: Any) -> Result:
    """`run_python` without blocking the event loop."""
    return await asyncio.to_thread(run_python, program, stdin, backend=backend, **limits)


@lru_cache(maxsize=8)
def isolating_backend(name: str = "auto") -> Zygote | Gvisor:
    """The back end that graders use; ValueError for a name that is not one of theirs."""
    if name not in ("auto", "zygote", "gvisor"):
        raise ValueError(f"unknown isolating back end {name!r}; use 'auto', 'zygote' or 'gvisor'")
    return Gvisor() if name == "gvisor" else Zygote()
