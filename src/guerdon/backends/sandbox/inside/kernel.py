"""The kernel calls that Python does not wrap, through ctypes: namespaces, mounts, capabilities, seccomp."""

from __future__ import annotations

import ctypes
import os
import resource

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
_SECCOMP_MODE_FILTER, _SIGKILL = 2, 9
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 40

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Give this process (for CLONE_NEWPID: its next children) namespaces of its own."""
    _checked(_libc.unshare(ctypes.c_int(flags)), f"unshare({flags:#x})")


def limit(process: int, name: str, most: int) -> None:
    """A resource limit (RLIMIT_...) for good, of a process or, with 0, of this one; no higher than what it may have."""
    kind = getattr(resource, name)
    _, before = resource.prlimit(process, kind)
    most = most if before == resource.RLIM_INFINITY else min(most, before)
    resource.prlimit(process, kind, (most, most))


def enter(namespace: int, kind: int) -> None:
    """setns(2): the next children live in the namespace behind this descriptor."""
    _checked(_libc.setns(namespace, kind), "setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """mount(2)."""
    coded = [None if text is None else text.encode() for text in (source, target, kind, options)]
    _checked(_libc.mount(coded[0], coded[1], coded[2], ctypes.c_ulong(flags), coded[3]), f"mount {target}")


def enter_root(folder: str) -> None:
    """Make `folder` (a mount point) the root, and drop the old root out of reach."""
    os.chdir(folder)
    number = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
    _checked(_libc.syscall(ctypes.c_long(number), b".", b"."), "pivot_root")
    _checked(_libc.umount2(b".", MNT_DETACH), "umount old root")
    os.chdir("/")


def die_with_parent() -> None:
    """SIGKILL for this process when the thread that started it ends."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(_SIGKILL), 0, 0, 0), "prctl PDEATHSIG")


def name_host(name: str) -> None:
    """sethostname(2), in a UTS namespace of our own."""
    _checked(_libc.sethostname(name.encode(), len(name.encode())), "sethostname")


def forbid_dumps() -> None:
    """No core of this process, whatever the host's core pattern starts for one; until an exec."""
    _checked(_libc.prctl(_PR_SET_DUMPABLE, ctypes.c_ulong(0), 0, 0, 0), "prctl DUMPABLE")


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


_no_capabilities = (ctypes.c_uint32 * 6)()
_capability_header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)


def drop_bounding_set() -> None:
    """No later exec can gain a capability; done once in the fork server, inherited by its jobs."""
    for capability in range(_LAST_CAPABILITY + 1):
        _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)


def drop_capabilities() -> None:
    """Effective, permitted and inheritable sets empty; no-new-privileges on."""
    _checked(_libc.capset(ctypes.byref(_capability_header), _no_capabilities), "capset")
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0), "prctl NO_NEW_PRIVS")


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class Filter:
    """A seccomp program held ready, so that a job only makes one call to load it."""

    def __init__(self, code: bytes) -> None:
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = _FilterProgram(len(code) // 8, ctypes.cast(self._code, ctypes.c_char_p))

    def load(self) -> None:
        """Confine this process and its children; needs no-new-privileges."""
        result = _libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(self._program), 0, 0)
        _checked(result, "prctl SECCOMP")
