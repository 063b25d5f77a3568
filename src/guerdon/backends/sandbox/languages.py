"""Programs in C++, Rust and JavaScript: compiled inside the sandbox too, once per source, then run like any other
job."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

from .gvisor import Gvisor
from .inside.command import pack
from .pool import shared_pool
from .result import MIB, Infrastructure, Limits, Refused, Result
from .server import ServerConfig
from .zygote import run_job

Language = Literal["cpp", "rust", "javascript"]
NOT_COMPILED: Final = "did not compile"
COMPILE_LIMITS: Final = Limits(
    seconds=30.0,
    memory_bytes=2048 * MIB,
    output_bytes=MIB,
    processes=64,
    file_bytes=256 * MIB,
    files=2048,
    open_files=256,
)
_CACHE_BYTES: Final = 64 * MIB
_NODE_ADDRESS_SPACE: Final = (
    16 << 30
)  # V8 reserves address space it never touches; the cgroup and --max-old-space-size bound it


LANGUAGES: Final[tuple[Language, ...]] = ("cpp", "rust", "javascript")


class NotInstalled(Refused):
    """The compiler or interpreter of a language is not on this machine."""


class _Compiled:
    """A bounded, thread-safe store of executables and of how compilers failed, the least recently used leaving first.

    Failures too: a program that keeps a compiler busy to the limit would else do so once for each test case.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._items: OrderedDict[str, bytes | Result] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | Result | None:
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
            return self._items.get(key)

    def put(self, key: str, made: bytes | Result) -> None:
        with self._lock:
            self._size += _bytes_of(made) - _bytes_of(self._items.pop(key, b""))
            self._items[key] = made
            while self._size > self._limit:
                self._size -= _bytes_of(self._items.popitem(last=False)[1])


def _bytes_of(made: bytes | Result) -> int:
    return len(made) if isinstance(made, bytes) else 1024 + len(made.stdout) + len(made.stderr)


_compiled = _Compiled(_CACHE_BYTES)


@dataclass(frozen=True, slots=True)
class Native:
    """Runs whole programs of one language; the same `run_program` as for Python.

    A program that does not compile ends as "finished" with the compiler's exit code and messages, and `reason` says
    "did not compile". Compiled images and failures are kept in memory by the hash of language, flags and source.

    `backend`: "auto" or "zygote", or "gvisor"; what is compiled at one is compiled again for the other.
    """

    language: Language
    flags: tuple[str, ...] = ()
    backend: str = "auto"

    def run_program(self, program: str, stdin: bytes, limits: Limits) -> Result:
        """Compile if need be, then run with `stdin`."""
        try:
            if self.language == "javascript":
                return self._run_script(program, stdin, limits)
            image = self._image(program)
        except Refused as error:
            return Result("refused", None, "", "", 0.0, reason=str(error))
        except Infrastructure as error:
            return Result("infrastructure", None, "", "", 0.0, reason=str(error))
        if isinstance(image, Result):
            return image
        return self._job(["/tmp/program"], {"program": image}, stdin, limits)

    def _run_script(self, program: str, stdin: bytes, limits: Limits) -> Result:
        heap = max(16, limits.memory_bytes // MIB * 3 // 4)
        command = [_tool("node"), f"--max-old-space-size={heap}", *self.flags, "/tmp/main.js"]
        source = program.encode("utf-8", "replace")
        return self._job(command, {"main.js": source}, stdin, limits, address_space=_NODE_ADDRESS_SPACE)

    def _image(self, program: str) -> bytes | Result:
        """The executable, or how the compiler failed."""
        source = program.encode("utf-8", "replace")
        kind = json.dumps([self.language, self.flags, self.backend]).encode()
        key = hashlib.sha256(kind + b"\0" + source).hexdigest()
        found = _compiled.get(key)
        if found is None:
            command, name = _compile_command(self.language, self.flags)
            result = self._job(command, {name: source}, b"", COMPILE_LIMITS, output="program")
            if result.state == "infrastructure":
                raise Infrastructure(result.reason)
            if result.state == "refused":
                raise Refused(result.reason)
            made = result.ok and result.reply
            found = made or replace(result, reason=result.reason or NOT_COMPILED, reply=b"")
            _compiled.put(key, found)
        return found

    def _job(
        self,
        command: list[str],
        files: dict[str, bytes],
        stdin: bytes,
        limits: Limits,
        *,
        output: str | None = None,
        address_space: int | None = None,
    ) -> Result:
        payload = pack(command, files, output=output, environment=_environment(self.language))
        if self.backend == "gvisor":
            sandbox = Gvisor(readable=_toolchain(self.language))
            return sandbox.run_role("command", payload, limits, stdin, address_space=address_space)
        config = ServerConfig(roles=("command",), allow_exec=True, readable=_toolchain(self.language), modules=())
        return run_job(shared_pool(config), "command", payload, limits, stdin, address_space=address_space)


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotInstalled(f"{name} is not installed on this machine")
    return os.path.realpath(found)


def _compile_command(language: Language, flags: tuple[str, ...]) -> tuple[list[str], str]:
    if language == "cpp":
        return [_tool("g++"), "-O2", "-std=c++20", *flags, "-o", "/tmp/program", "/tmp/main.cpp"], "main.cpp"
    sysroot = _rust_sysroot()
    command = [os.path.join(sysroot, "bin", "rustc"), "--sysroot", sysroot, "-O", "--edition=2021", *flags]
    return [*command, "-C", f"linker={_tool('cc')}", "-o", "/tmp/program", "/tmp/main.rs"], "main.rs"


@lru_cache(maxsize=1)
def _rust_sysroot() -> str:
    """Where the compiler itself lives: `rustc` on the path may be a proxy that wants a home directory."""
    try:
        ran = subprocess.run(
            [_tool_as_named("rustc"), "--print", "sysroot"], capture_output=True, text=True, timeout=30
        )
    except subprocess.TimeoutExpired as error:
        raise NotInstalled("rustc does not answer") from error
    if ran.returncode != 0:
        raise NotInstalled(f"rustc does not work: {ran.stderr.strip()[:200]}")
    return os.path.realpath(ran.stdout.strip())


def _tool_as_named(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotInstalled(f"{name} is not installed on this machine")
    return found


def _environment(language: Language) -> dict[str, str]:
    """The loader finds a toolchain's own libraries through /proc, which jobs do not have."""
    return {"LD_LIBRARY_PATH": os.path.join(_rust_sysroot(), "lib")} if language == "rust" else {}


def _toolchain(language: Language) -> tuple[str, ...]:
    """Folders outside /usr that the tools need to see."""
    if language == "rust":
        return (_rust_sysroot(),)
    if language == "javascript":
        prefix = os.path.dirname(os.path.dirname(_tool("node")))
        return tuple(path for name in ("bin", "lib") if os.path.isdir(path := os.path.join(prefix, name)))
    return ()
