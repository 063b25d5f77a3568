"""What on this host is known to stand in the way of isolation, in words an operator can act on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_SWITCHES: Final = (
    ("user/max_user_namespaces", "0", "user namespaces are off: sysctl -w user.max_user_namespaces=10000"),
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "only root may make user namespaces: sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor takes the rights out of user namespaces: give this Python a profile with `userns`, or "
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
_SYS_ADMIN, _SETFCAP = 21, 31


def obstacles(proc: Path = Path("/proc"), user: int | None = None) -> list[str]:
    """One sentence for each: switches of the kernel, and for what a container's runtime has taken away.

    `proc` is where the process file system is mounted; `user` the effective user id, by default this process's.
    """
    user = os.geteuid() if user is None else user
    found = [advice for name, bad, advice in _SWITCHES if _read(proc / "sys" / name) == bad]
    status = dict(line.split(":", 1) for line in _read(proc / "self/status").splitlines())
    held = int(status.get("CapEff", "-1"), 16)
    if user == 0 and not held >> _SYS_ADMIN & 1:
        found.append("this root lacks CAP_SYS_ADMIN, as in a container: docker run --cap-add SYS_ADMIN")
        if not held >> _SETFCAP & 1:
            found.append("a root without CAP_SETFCAP can't be mapped into a user namespace: run as an ordinary user")
    if status.get("Seccomp", "0").strip() == "2":
        found.append("a system-call filter is in force already: docker run --security-opt seccomp=unconfined")
    profile = _read(proc / "self/attr/current").rstrip("\0")
    if profile.endswith("(enforce)"):
        found.append(f"AppArmor confines this process ({profile}): docker run --security-opt apparmor=unconfined")
    return found


def _read(path: Path) -> str:
    """The text of a file, or "" where this kernel has no such file or does not let us read it."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
