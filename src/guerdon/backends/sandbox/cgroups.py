"""A control group for each slot, on version 1 and on version 2, where this process may make one.

Version 1 has one tree per controller; version 2 one tree in which a group that hands controllers to its children may
hold no process itself. A slot's group holds the fork server and its job, so that a memory bomb spread over many
processes still ends at the slot's limit.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_counter = itertools.count()


class Slot(Protocol):
    """The group of one slot."""

    @property
    def folders(self) -> list[str]:
        """Where the fork server writes itself in, and what the janitor removes."""

    def limit_memory(self, limit: int) -> None:
        """Bytes for server and job together."""

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
        swap = self.memory / "memory.memsw.limit_in_bytes"
        order = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] if swap.exists() else ["memory.limit_in_bytes"]
        for _ in range(2):  # memsw may not be below memory: whichever order, the second round settles both
            for name in order:
                with contextlib.suppress(OSError):
                    (self.memory / name).write_text(str(limit))

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
        with contextlib.suppress(OSError):
            (self.group / "memory.swap.max").write_text("0")

    def oom_kills(self) -> int:
        return _field(self.group / "memory.events", "oom_kill")

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            (self.group / "cgroup.kill").write_text("1")
        _remove(self.group)


def make_slot(processes: int, root: Path = Path("/sys/fs/cgroup")) -> tuple[Slot | None, str]:
    """A new group with room for `processes`, or None and the reason in words.

    `root` is where the control-group file systems are mounted.
    """
    name = f"guerdon-{os.getpid()}-{next(_counter)}"
    reasons = []
    for make in (_make_version1, _make_version2):
        try:
            return make(root, name, processes), ""
        except OSError as error:
            reasons.append(f"{make.__name__.removeprefix('_make_')}: {error}")
    return None, "; ".join(reasons)


def _make_version1(root: Path, name: str, processes: int) -> Slot:
    memory, pids = (_version1_parent(root, controller) / name for controller in ("memory", "pids"))
    slot = Version1(memory, pids)
    with _removed_on_error(slot):
        memory.mkdir()
        pids.mkdir()
        (pids / "pids.max").write_text(str(processes + 4))
    return slot


def _version1_parent(root: Path, controller: str) -> Path:
    """Our own group, so that limits set around us keep holding; else the top of the tree."""
    own = root / controller / _own_group(controller).lstrip("/")
    for tree in (own, root / controller):
        if (tree / "cgroup.procs").exists():
            return tree
    raise FileNotFoundError(f"no {controller} controller under {root}")


def _make_version2(root: Path, name: str, processes: int) -> Slot:
    parent = next((tree for tree in _version2_parents(root) if _delegates(tree)), None)
    if parent is None:
        raise FileNotFoundError("no group that hands memory and pids to children and that this process may write")
    slot = Version2(parent / name)
    with _removed_on_error(slot):
        slot.group.mkdir()
        (slot.group / "pids.max").write_text(str(processes + 4))
    return slot


def _version2_parents(root: Path) -> Iterator[Path]:
    """The root of the tree, then the parent of our own group (a delegated service has its processes in a leaf)."""
    for tree in (root, root / "unified"):
        if (tree / "cgroup.controllers").exists():
            yield tree
            if own := _own_group("").lstrip("/"):
                yield (tree / own).parent
                yield tree / own


def _own_group(controller: str) -> str:
    """The path of this process's group for a version 1 controller, or for version 2 with the empty name."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                return path
    return ""


def _delegates(tree: Path) -> bool:
    try:
        handed = (tree / "cgroup.subtree_control").read_text().split()
        for controller in ("memory", "pids"):
            if controller not in handed:
                (tree / "cgroup.subtree_control").write_text(f"+{controller}")
    except OSError:
        return False
    return os.access(tree, os.W_OK)


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
