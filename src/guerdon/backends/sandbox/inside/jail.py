"""The fork server's own walls: namespaces and a read-only root. Runs once, before any job."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from . import kernel

_MOUNT_POINTS = ("/tmp", "/mnt", "/srv", "/media", "/run", "/var/tmp", "/opt")
DEVICES = ("null", "zero", "full", "random", "urandom")
HOST_NAME = "sandbox"
INNER_USER = 60001
_EMPTY = kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
_SETGID, _SETUID, _SYS_ADMIN = 6, 7, 21


@dataclass
class Report:
    """What was enabled; `weaker` says in words what could not be."""

    enabled: list[str] = field(default_factory=list)
    weaker: list[str] = field(default_factory=list)


def may_mount() -> bool:
    """Whether this process has CAP_SYS_ADMIN here (root in a container often has not)."""
    return _holds(_SYS_ADMIN)


def may_become(user: int) -> bool:
    """Whether a job can be given this user's id: who is root of a user namespace may know few ids but its own."""
    known = _outside("uid_map", user) is not None and _outside("gid_map", user) is not None
    with open("/proc/self/setgroups") as file:
        return known and _holds(_SETGID) and _holds(_SETUID) and file.read().strip() == "allow"


def is_root_of_the_host() -> bool:
    """As whom the kernel lets anyone start any number of processes."""
    return os.geteuid() == 0 and _outside("uid_map", 0) == 0


def _holds(capability: int) -> bool:
    with open("/proc/self/status") as file:
        effective = next(line.split()[1] for line in file if line.startswith("CapEff"))
    return bool(int(effective, 16) >> capability & 1)


def _outside(map_name: str, number: int) -> int | None:
    """What this process's user (or group) `number` is called one user namespace further out."""
    with open(f"/proc/self/{map_name}") as file:
        for line in file:
            first, outside, count = map(int, line.split())
            if first <= number < first + count:
                return outside + number - first
    return None


def own_user_namespace(job_user: int | None) -> None:
    """Become a user with every capability in a new user namespace, and with none outside.

    `job_user`: a second user and group that the namespace knows, for its jobs. Such a map can be written only from
    outside, by a process that may become that user.
    """
    user, group = os.geteuid(), os.getegid()
    if job_user is None:
        kernel.unshare(kernel.CLONE_NEWUSER)
        maps = {"setgroups": "deny", "uid_map": f"{INNER_USER} {user} 1", "gid_map": f"{INNER_USER} {group} 1"}
        _write_maps("self", maps)
        return
    waits, goes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(goes)
        second = f"\n{job_user} {job_user} 1"
        maps = {"uid_map": f"{INNER_USER} {user} 1{second}", "gid_map": f"{INNER_USER} {group} 1{second}"}
        try:
            if os.read(waits, 1):
                _write_maps(str(os.getppid()), maps)
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    kernel.unshare(kernel.CLONE_NEWUSER)
    os.write(goes, b"!")
    os.close(goes)
    os.close(waits)
    if number := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise OSError(number, f"maps of the user namespace: {os.strerror(number)}")


def _write_maps(process: str, maps: dict[str, str]) -> None:
    for name, text in maps.items():
        try:
            with open(f"/proc/{process}/{name}", "w") as file:
                file.write(text)
        except OSError as error:
            raise OSError(error.errno, f"{name} of the user namespace: {error.strerror}") from error


def enclose(readable: list[str], hidden: list[str], report: Report) -> None:
    """Mount, network, IPC and UTS namespaces, then a root that holds only `readable`, /dev and an empty /tmp.

    `hidden`: folders below the readable ones that are shown empty.
    """
    kernel.unshare(kernel.CLONE_NEWNS)
    report.enabled.append("mount namespace")
    for flag, name in (
        (kernel.CLONE_NEWNET, "network namespace without interfaces"),
        (kernel.CLONE_NEWIPC, "IPC namespace"),
        (kernel.CLONE_NEWUTS, "UTS namespace"),
    ):
        kernel.unshare(flag)
        report.enabled.append(name)
    kernel.name_host(HOST_NAME)
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    root = _empty_root(readable)
    for path in readable:
        _show(path, root)
    for path in hidden:
        kernel.mount("hidden", root + path, "tmpfs", _EMPTY, "mode=755,size=4k")
    _make_devices(root)
    os.mkdir(f"{root}/tmp", 0o1777)
    kernel.enter_root(root)
    _remount_read_only("/", kernel.MS_NOSUID | kernel.MS_NODEV)
    report.enabled.append("read-only root")


def _empty_root(readable: list[str]) -> str:
    """A tmpfs over a folder of the host that holds nothing we need; the host itself sees no change."""
    for point in _MOUNT_POINTS:
        if os.path.isdir(point) and not any(path == point or path.startswith(point + "/") for path in readable):
            kernel.mount("sandbox", point, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=1m")
            return point
    raise OSError(f"no free mount point among {_MOUNT_POINTS}")


def _show(path: str, root: str) -> None:
    target = root + path
    if os.path.islink(path):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.readlink(path), target)
        return
    os.makedirs(target, exist_ok=True)
    kernel.mount(path, target, None, kernel.MS_BIND | kernel.MS_REC)
    for mounted in _mounts_under(target):
        _remount_read_only(mounted, kernel.MS_NOSUID | kernel.MS_NODEV)


def _mounts_under(folder: str) -> list[str]:
    with open("/proc/self/mountinfo") as file:
        points = [line.split()[4].encode().decode("unicode_escape") for line in file]
    return [point for point in points if point == folder or point.startswith(folder + "/")]


def _remount_read_only(point: str, flags: int) -> None:
    """Keep the flags a mount already has: an ordinary user's namespace may not clear them."""
    kept = os.statvfs(point).f_flag & (kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC | 0x1C00)
    times = ((kept & 0x1C00) >> 10) and {0x400: 1 << 10, 0x800: 1 << 11, 0x1000: 1 << 21}
    atime = sum(flag for bit, flag in times.items() if kept & bit) if times else 0
    kernel.mount(
        None,
        point,
        None,
        kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | flags | (kept & 0xF) | atime,
    )


def _make_devices(root: str) -> None:
    os.mkdir(f"{root}/dev")
    for name in DEVICES:
        with open(f"{root}/dev/{name}", "w"):
            pass
        kernel.mount(f"/dev/{name}", f"{root}/dev/{name}", None, kernel.MS_BIND)
        _remount_read_only(f"{root}/dev/{name}", kernel.MS_NOSUID)  # mode, owner and times are the host's own
