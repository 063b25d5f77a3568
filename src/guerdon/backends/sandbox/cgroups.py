"""A control group for each slot, on version 1 and on version 2, where this process may make one.

Version 1 has one tree per controller; version 2 one tree in which a group that hands controllers to its children may
hold no process itself (but for the top of the whole tree). A slot's group holds the fork server and its job, so that a
memory bomb spread over many processes still ends at the slot's limit.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

_counter = itertools.count()
_OWN_PROCESSES: Final = 4
"""Room in each group for the fork server, or for what else encloses a job."""


class Slot(Protocol):
    """The group of one slot."""

    @property
    def folders(self) -> list[str]:
        """Where the fork server writes itself in, and what the janitor removes."""

    def limit_memory(self, limit: int) -> None:
        """Bytes for server and job together."""

    def limit_processes(self, limit: int) -> None:
        """Processes and threads of the job; the server has room besides."""

    def oom_kills(self) -> int:
        """How many processes the kernel has killed here for lack of memory."""

    def remove(self) -> None:
        """Delete the group, waiting shortly for its processes to be gone."""


@dataclass
class Version1:
    """memory and pids trees."""

    memory: Path
    pids: Path

    @property
    def folders(self) -> list[str]:
        return [str(self.memory), str(self.pids)]

    def limit_memory(self, limit: int) -> None:
        names = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
        files = [file for name in names if (file := self.memory / name).exists()]
        for file in files:  # memsw may not be below memory: whichever order, the second round settles both
            with contextlib.suppress(OSError):
                file.write_text(str(limit))
        for file in files:
            file.write_text(str(limit))

    def limit_processes(self, limit: int) -> None:
        (self.pids / "pids.max").write_text(str(limit + _OWN_PROCESSES))

    def oom_kills(self) -> int:
        return _field(self.memory / "memory.oom_control", "oom_kill")

    def remove(self) -> None:
        _remove(self.memory)
        _remove(self.pids)


@dataclass
class Version2:
    """One group."""

    group: Path

    @property
    def folders(self) -> list[str]:
        return [str(self.group)]

    def limit_memory(self, limit: int) -> None:
        (self.group / "memory.max").write_text(str(limit))
        with contextlib.suppress(FileNotFoundError, PermissionError):  # a kernel without swap has no such file
            (self.group / "memory.swap.max").write_text("0")

    def limit_processes(self, limit: int) -> None:
        (self.group / "pids.max").write_text(str(limit + _OWN_PROCESSES))

    def oom_kills(self) -> int:
        return _field(self.group / "memory.events", "oom_kill")

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            (self.group / "cgroup.kill").write_text("1")
        _remove(self.group)


def make_slot(processes: int, root: Path = Path("/sys/fs/cgroup")) -> tuple[Slot | None, str]:
    """A new group with room for `processes`, and in words what is weaker with it; or None and the reason.

    `root` is where the control-group file systems are mounted.
    """
    name = f"guerdon-{os.getpid()}-{next(_counter)}"
    absent, reasons = [], []
    for make in (_make_version1, _make_version2):
        try:
            return make(root, name, processes)
        except FileNotFoundError as error:
            absent.append(str(error))
        except OSError as error:
            reasons.append(str(error))
    return None, "; ".join(reasons or absent)


def _make_version1(root: Path, name: str, processes: int) -> tuple[Slot, str]:
    parents = [_version1_parent(root, controller) for controller in ("memory", "pids")]
    for parent in parents:
        if not _writable(parent):
            raise PermissionError(f"{parent} {_barred(parent)}")
    slot = Version1(*(parent / name for parent in parents))
    with _removed_on_error(slot):
        slot.memory.mkdir()
        slot.pids.mkdir()
        slot.limit_processes(processes)
    return slot, ""


def _version1_parent(root: Path, controller: str) -> Path:
    """Our own group, so that limits set around us keep holding; else the top of what is mounted."""
    own = root / controller / _own_group(controller).lstrip("/")
    for tree in (own, root / controller):
        if (tree / "cgroup.procs").exists():
            return tree
    raise FileNotFoundError(f"no {controller} controller of version 1 under {root}")


def _make_version2(root: Path, name: str, processes: int) -> tuple[Slot, str]:
    obstacles: dict[str, Path] = {}
    passed: list[Path] = []
    for parent in _version2_parents(root):
        obstacle = _obstacle(parent)
        if not obstacle:
            slot = Version2(parent / name)
            with _removed_on_error(slot):
                slot.group.mkdir()
                slot.limit_processes(processes)
            return slot, _limits_left_behind(passed, parent)
        obstacles.setdefault(obstacle, parent)
        passed.append(parent)
    if not obstacles:
        raise FileNotFoundError(f"no control groups of version 2 under {root}")
    raise OSError("; ".join(f"{parent} {obstacle}" for obstacle, parent in obstacles.items()))


def _version2_parents(root: Path) -> Iterator[Path]:
    """Our own group and those above it, the nearest first, so that limits set around us keep holding."""
    for tree in (root, root / "unified"):
        if (tree / "cgroup.controllers").exists():
            own = tree / _own_group("").lstrip("/")
            inside = ".." not in own.parts and own.is_dir()
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(tree)) if inside else (tree,)


def _own_group(controller: str) -> str:
    """The path of this process's group for a version 1 controller, or for version 2 with the empty name."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                return path
    return ""


def _obstacle(parent: Path) -> str:
    """Why no slot can be made below this version 2 group, or "" when one can; hands it the controllers if need be."""
    controllers = (parent / "cgroup.controllers").read_text().split()
    if missing := [name for name in ("memory", "pids") if name not in controllers]:
        return f"has no {' and no '.join(missing)} controller"
    if not _writable(parent) or not _writable(parent / "cgroup.procs"):  # whose right it takes to move a process below
        return _barred(parent)
    handed = parent / "cgroup.subtree_control"
    wanted = [f"+{name}" for name in ("memory", "pids") if name not in handed.read_text().split()]
    try:
        if wanted:
            handed.write_text(" ".join(wanted))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return "holds processes itself, so that it can hand no controllers to groups below it"
        return f"hands no memory and pids controllers to groups below it ({error.strerror})"
    return ""


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=True)


def _barred(group: Path) -> str:
    read_only = os.statvfs(group).f_flag & os.ST_RDONLY
    return "is mounted read-only" if read_only else f"may not be changed by user {os.geteuid()}"


def _limits_left_behind(passed: list[Path], parent: Path) -> str:
    """Limits on our own group that jobs beside it escape."""
    for group in passed:
        for name in ("memory.max", "memory.high"):  # processes are few in each slot, whatever pids.max says here
            with contextlib.suppress(FileNotFoundError):  # the top of the whole tree has none
                value = (group / name).read_text().strip()
                if value != "max":
                    return f"the {name} of {group} ({value}) does not hold for jobs: their groups are made in {parent}"
    return ""


def _field(file: Path, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in file.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0


@contextlib.contextmanager
def _removed_on_error(slot: Slot) -> Iterator[None]:
    try:
        yield
    except OSError:
        slot.remove()
        raise


def _remove(folder: Path) -> None:
    for _ in range(50):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
        else:
            return
