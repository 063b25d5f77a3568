"""What gVisor is given for a job: a folder of its own with the OCI bundle, gone afterwards whatever happens.

A folder is locked while its owner lives, so that the next process can tell what one that was killed has left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .inside.guest import PIPES
from .result import Limits
from .server import base_interpreter, hidden_folders, readable_folders

PREFIX: Final = "guerdon-gvisor-"
_GUEST: Final = "/guest"
_BOOT: Final = f"import sys; sys.path.insert(0, {_GUEST!r}); from inside.guest import main; main({{order!r}})"
_ENVIRONMENT: Final = ("PATH=/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "OMP_NUM_THREADS=1")
_POWERS: Final = ("CAP_SETUID", "CAP_SETGID")
_STALE_AFTER_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Build:
    """What all sandboxes of a configuration have in common.

    `runtime`: the command line of runsc with its flags. `folders`: shown read-only (links as links); `hidden`: folders
    below them shown empty. `packages`: put on the jobs' path.
    """

    runtime: tuple[str, ...]
    interpreter: str
    folders: tuple[str, ...]
    hidden: tuple[str, ...]
    packages: tuple[str, ...]


def build_for(runtime: tuple[str, ...], packages: tuple[str, ...] = (), readable: tuple[str, ...] = ()) -> Build:
    """With the base interpreter, `packages`, and `readable` folders."""
    interpreter, shown = base_interpreter(), packages + readable
    folders, hidden = readable_folders(interpreter, shown), hidden_folders(interpreter, shown)
    return Build(runtime, interpreter, folders, hidden, packages)


def write_bundle(
    folder: Path, build: Build, order: dict[str, object], pipes: Mapping[str, Path], limits: Limits
) -> None:
    """`config.json` and the root's skeleton; `order`: the argument of the guest; `pipes`: what it finds in `PIPES`."""
    root = folder / "rootfs"
    root.mkdir()
    mounts = [
        _tmpfs("/dev", "mode=755"),
        {"destination": "/proc", "type": "proc", "source": "proc"},
        _tmpfs("/tmp", "mode=1777", f"size={limits.file_bytes}"),
        _bind(_GUEST + "/inside", str(Path(__file__).parent / "inside"), "ro"),
        *(_bind(f"{PIPES}/{name}", str(path), "rw") for name, path in pipes.items()),
    ]
    for path in build.folders:
        if os.path.islink(path):
            link = root / path.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.readlink(path))
        else:
            mounts.append(_bind(path, path, "ro"))
    mounts += [_tmpfs(path, "ro", "size=4k") for path in build.hidden]
    config = {
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs", "readonly": True},
        "hostname": "sandbox",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": [build.interpreter, "-I", "-S", "-X", "utf8", "-c", _BOOT.format(order=order)],
            "env": list(_ENVIRONMENT),
            "cwd": "/",
            "noNewPrivileges": True,
            "capabilities": {kind: list(_POWERS) for kind in ("bounding", "effective", "permitted")},
        },
        "mounts": mounts,
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
    }
    (folder / "config.json").write_text(json.dumps(config))


def _tmpfs(place: str, *options: str) -> dict[str, Any]:
    return {"destination": place, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", *options]}


def _bind(place: str, source: str, access: str) -> dict[str, Any]:
    return {"destination": place, "type": "bind", "source": source, "options": ["rbind", "nosuid", "nodev", access]}


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A new folder that only this user can enter, removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder)
        os.close(lock)


def make_pipe(folder: Path, name: str, mode: int = 0o600) -> Path:
    """A named pipe in a folder of ours, which no other user of the host can enter: `mode` is for users inside."""
    path = folder / f"pipe-{name}"
    os.mkfifo(path)
    os.chmod(path, mode)
    return path


def open_both(path: Path) -> tuple[int, int]:
    """Reading and writing descriptor of a named pipe."""
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    return reading, os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def remember_groups(folder: Path, groups: list[str]) -> None:
    """For `remove_left_behind`: the control groups that go with this folder."""
    (folder / "groups").write_text("\n".join(groups))


def remove_left_behind(now: float | None = None) -> list[Path]:
    """Remove the folders and control groups of processes that were killed; returns the folders."""
    removed = []
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(FileNotFoundError):  # its owner removes it at this moment
            seen = folder.lstat()
            ours = stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid()
            old = (now or time.time()) - seen.st_mtime > _STALE_AFTER_SECONDS
            if ours and old and _nobody_holds(folder) and _groups_removed(folder / "groups"):
                shutil.rmtree(folder)
                removed.append(folder)
    return removed


def _nobody_holds(folder: Path) -> bool:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _groups_removed(listed: Path) -> bool:
    """Remove the listed groups; False where one still holds a dying process, for a later try."""
    for group in listed.read_text().split("\n") if listed.exists() else []:
        if Path(group).name.startswith("guerdon-"):
            try:
                os.rmdir(group)
            except FileNotFoundError:
                continue
            except OSError:
                return False
    return True
