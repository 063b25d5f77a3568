"""The system-call filter of a job, assembled here to classic BPF: no compiled extension, no libseccomp.

The program loads the architecture and the call's number, checks the arguments of the few conditional calls, and walks a
balanced decision tree over the sorted ranges of allowed numbers (about 40 instructions deep at most 8 comparisons).
"""

from __future__ import annotations

import platform
import struct
from typing import Final

from .syscalls import allowed_calls, conditional_calls

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH = 0, 4
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS, _ENOTTY = 0x00050001, 0x00050026, 0x00050019
_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS|NEWCGROUP|NEWUTS|NEWIPC|NEWUSER|NEWPID|NEWNET
_AF_UNIX = 1
# SOCK_STREAM and SOCK_SEQPACKET with any of SOCK_NONBLOCK and SOCK_CLOEXEC. A pair of datagram sockets could still send
# to an address: to whatever listens on a path that a job can see.
_PAIR_TYPES: Final = tuple(kind | flags for kind in (1, 5) for flags in (0, 0x800, 0x80000, 0x80800))
# F_DUPFD to F_SETLKW, F_OFD_GETLK to F_OFD_SETLKW, F_DUPFD_CLOEXEC, F_GETPIPE_SZ. Leases and notices on the host's
# files, larger pipes and signals on input: no.
_FCNTLS: Final = (*range(8), 36, 37, 38, 1030, 1032)
# FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, TCGETS, TIOCGWINSZ: what files and event loops ask. TIOCSTI and the rest: no.
_IOCTLS: Final = (0x541B, 0x5421, 0x5451, 0x5450, 0x5401, 0x5413)
# PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_GET_NO_NEW_PRIVS, PR_SET_VMA (malloc names its arenas), PR_CAPBSET_READ
_PRCTLS: Final = (3, 15, 16, 39, 0x53564D41, 23)

Instruction = tuple[int, int, int, int]


def job_filter(machine: str | None = None, *, allow_exec: bool = False) -> bytes:
    """The filter as the bytes of an array of `struct sock_filter`, for `machine` ("x86_64", "aarch64"; default this
    one).

    `allow_exec` lets a job start other programs (compiled languages); they inherit the filter.
    Raises `NotImplementedError` on an architecture without a table.

    >>> len(job_filter("x86_64")) % 8
    0
    """
    machine = machine or platform.machine()
    if machine not in _AUDIT_ARCH:
        raise NotImplementedError(f"no system-call table for {machine}; the sandbox knows {sorted(_AUDIT_ARCH)}")
    special = conditional_calls(machine)
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    program += _when(special["clone"], _unless_any_bit(0, _NEW_NAMESPACES))
    program += _when(special["clone3"], [(_RETURN, 0, 0, _ENOSYS)])  # arguments in memory: make libc fall back to clone
    program += _when(special["ioctl"], _only_values({1: _IOCTLS}, _ENOTTY))
    program += _when(special["fcntl"], _only_values({1: _FCNTLS}, _EPERM))
    program += _when(special["prctl"], _only_values({0: _PRCTLS}, _EPERM))
    program += _when(special["socketpair"], _only_values({0: (_AF_UNIX,), 1: _PAIR_TYPES}, _EPERM))
    numbers = set(allowed_calls(machine).values())
    if allow_exec:
        numbers |= {special["execve"], special["execveat"]}
    program += _tree(_ranges(numbers))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _when(number: int, body: list[Instruction]) -> list[Instruction]:
    return [(_JUMP_EQUAL, 0, len(body), number), *body]


def _argument(index: int) -> Instruction:
    return (_LOAD, 0, 0, 16 + 8 * index)  # low half, little-endian: every value tested fits in 32 bits


def _unless_any_bit(argument: int, bits: int) -> list[Instruction]:
    return [_argument(argument), (_JUMP_SET, 0, 1, bits), (_RETURN, 0, 0, _EPERM), (_RETURN, 0, 0, _ALLOW)]


def _only_values(allowed: dict[int, tuple[int, ...]], otherwise: int) -> list[Instruction]:
    """`allowed`: argument -> the values it may have, each of them for the call to be allowed."""
    body: list[Instruction] = []
    for argument, values in allowed.items():
        tests = [(_JUMP_EQUAL, len(values) - position, 0, value) for position, value in enumerate(values)]
        body += [_argument(argument), *tests, (_RETURN, 0, 0, otherwise)]
    return [*body, (_RETURN, 0, 0, _ALLOW)]


def _ranges(numbers: set[int]) -> list[tuple[int, int]]:
    """(first number, action) of each maximal run of equal treatment, from 0 up."""
    edges: list[tuple[int, int]] = []
    for number in range(max(numbers) + 2):
        action = _ALLOW if number in numbers else _EPERM
        if not edges or edges[-1][1] != action:
            edges.append((number, action))
    return edges


def _tree(edges: list[tuple[int, int]]) -> list[Instruction]:
    if len(edges) == 1:
        return [(_RETURN, 0, 0, edges[0][1])]
    middle = len(edges) // 2
    low, high = _tree(edges[:middle]), _tree(edges[middle:])
    if len(low) > 255:
        raise OverflowError("the filter outgrew a one-byte jump; merge ranges of system calls")
    return [(_JUMP_GREATER_EQUAL, len(low), 0, edges[middle][0]), *low, *high]
