"""A job that runs a whole program: source on descriptor 3, its own stdin, stdout and stderr."""

from __future__ import annotations

import atexit
import builtins
import gc
import os
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:  # see `roles`
    from typing import Any, NoReturn

PAYLOAD, REPLY, FROM_PEER, TO_PEER = 3, 4, 5, 6


def read_all(descriptor: int) -> bytes:
    """Everything up to end of file; closes the descriptor."""
    parts = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts)


def fresh_module(name: str) -> types.ModuleType:
    """An empty module registered under `name`, with its own random state."""
    module = types.ModuleType(name)
    module.__dict__["__builtins__"] = __builtins__
    sys.modules[name] = module
    if "random" in sys.modules:
        sys.modules["random"].seed()
    return module


class _Leave:
    """`exit` and `quit`, which an interpreter without the `site` module lacks."""

    def __call__(self, code: Any = None) -> NoReturn:
        raise SystemExit(code)

    def __repr__(self) -> str:
        return "Use exit() or Ctrl-D (i.e. EOF) to exit"


builtins.exit = builtins.quit = _Leave()  # type: ignore[assignment]  # as the `site` module does


# Listed before any fork: to look through `sys.modules` in a job would copy a page for each name in it.
_OURS = [
    __package__ or "",
    *(f"{__package__}.{file[:-3]}" for file in sorted(os.listdir(os.path.dirname(__file__))) if file.endswith(".py")),
]
_hidden: list[types.ModuleType | None] = []


def hide_ourselves() -> None:
    """What a program can import or list of this package is none of its business. (The modules stay alive.)"""
    for name in _OURS:
        _hidden.append(sys.modules.pop(name, None))


def run(request: dict[str, Any]) -> NoReturn:
    """Run the program as `__main__` and leave with the exit code Python would have given it."""
    source = read_all(PAYLOAD)
    os.closerange(REPLY, TO_PEER + 1)
    sys.argv = ["program.py"]
    space = fresh_module("__main__").__dict__
    hide_ourselves()
    finish(guarded(lambda: exec(compile(source, "program.py", "exec", dont_inherit=True), space)), space)  # noqa: S102  # this *is* the sandboxed program


def guarded(body: Any) -> int:
    """The exit code of `body()`, with the traceback of an uncaught exception on stderr."""
    try:
        body()
    except SystemExit as exit_request:
        code = exit_request.code
        if code is None or isinstance(code, int):
            return (code or 0) & 0xFF
        print(code, file=sys.stderr)  # noqa: T201  # what Python does with a text exit code
        return 1
    except BaseException as error:  # noqa: BLE001  # the interpreter's own last resort, restated: the job must end with code 1
        own = error.__traceback__ and error.__traceback__.tb_next  # without our own two frames
        error.__traceback__ = own and own.tb_next
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def finish(code: int, space: dict[str, Any]) -> NoReturn:
    """Threads, exit handlers, buffers and the program's own objects as at a normal exit, without tearing the
    interpreter down."""
    threading = sys.modules.get("threading")
    original = sys.__stdout__

    def last_steps() -> None:
        if threading is not None:
            threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (original, sys.stdout):
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        space.clear()
        if sys.stdout is not original:  # files that nobody closed are written when they go
            sys.stdout = original
            gc.collect()

    if guarded(last_steps) and not code:
        code = 120
    os._exit(code)
