"""The fork server: one warm, single-threaded interpreter behind walls, that forks one job at a time.

Started as `python -I -S -c "...; from inside.fork_server import main; main(fd)"`. Over the SEQPACKET socket `fd` it
gets one configuration message, answers with what it could enable, and then for each message `{"role", "limits"}` with
seven descriptors forks a job and answers with how it ended. Closing the socket ends it, and with it everything it
started: it is pid 1 of its own pid namespace. The process first started stays outside as the janitor, which removes
the cgroups afterwards.
"""

from __future__ import annotations

import _socket
import array
import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any, NoReturn

from . import jail, kernel
from .roles import load_roles

DESCRIPTORS = 7  # stdin, stdout, stderr, payload, reply, from the peer job, to the peer job


def main(control_descriptor: int) -> NoReturn:
    """Set up, report, serve; never returns."""
    control = _socket.socket(fileno=control_descriptor)
    _ready(control).serve()
    os._exit(0)


def _ready(control: _socket.socket) -> Server:
    """What is named here alone, and not in `main`, is out of the frames that a job can walk up to."""
    config: dict[str, Any] = json.loads(control.recv(1 << 20))
    report = jail.Report()
    try:
        return _start(control, config, report)
    except OSError as error:
        control.send(json.dumps({"error": str(error), "enabled": report.enabled}).encode())
        os._exit(3)


def _start(control: _socket.socket, config: dict[str, Any], report: jail.Report) -> Server:
    user = config["user"] if config["privileged"] and jail.may_become(config["user"]) else None
    counted = user is not None or not jail.is_root_of_the_host()
    if user is None or not (config["privileged"] and jail.may_mount()):
        jail.own_user_namespace(user)
        report.enabled.append("user namespace")
    kernel.unshare(kernel.CLONE_NEWPID)
    report.enabled.append("pid namespace")
    child = os.fork()
    if child:
        _janitor(child, control, config["cgroups"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    kernel.die_with_parent()
    answer = _join_cgroups(config["cgroups"], report)
    if not counted and (answer or not config["cgroups"]):
        report.weaker.append("the kernel does not count root's processes: a fork bomb ends only at the time limit")
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY)
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    _shield_from_oom(proc, report)
    os.umask(0o022)
    roles = load_roles(config["roles"])  # now: our own files are out of sight behind the walls
    jail.enclose(config["readable"], config["hidden"], report)
    report.enabled += ["seccomp allow-list", "no new privileges", "no capabilities", "rlimits", "pid namespace per job"]
    if user is None:
        report.weaker.append("jobs run under this process's user id: no second wall should one leave its namespaces")
    else:
        report.enabled.append(f"own user id ({user})")
    kernel.drop_bounding_set()
    sys.path[:] = [*(folder for folder in sys.path if folder != config["own_folder"]), *config["packages"]]
    for name in config["modules"]:
        importlib.import_module(name)
    server = Server(control, config, roles, own_pids, proc, user)
    gc.collect()
    gc.freeze()
    server.rehearse(config["rehearsal"])
    control.send(json.dumps({"enabled": report.enabled, "weaker": report.weaker, **answer}).encode())
    return server


def _janitor(child: int, control: _socket.socket, cgroups: list[str]) -> NoReturn:
    control.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.waitpid(child, 0)
    for folder in cgroups:
        for _ in range(50):
            try:
                os.rmdir(folder)
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.02)
    os._exit(0)


def _join_cgroups(cgroups: list[str], report: jail.Report) -> dict[str, str]:
    """Under "cgroup" why that failed, if it did: it is the supervisor's to say what this means."""
    try:
        for folder in cgroups:
            with open(f"{folder}/cgroup.procs", "w") as file:
                file.write("0")
    except OSError as error:
        return {"cgroup": f"{folder} can't be entered ({error.strerror})"}
    if cgroups:
        report.enabled.append("cgroup: " + ", ".join(cgroups))
    return {}


def _shield_from_oom(proc: int, report: jail.Report) -> None:
    """When the slot runs out of memory the job is to die, not the server."""
    try:
        _write_at(proc, "self/oom_score_adj", b"-1000")
    except OSError:
        report.weaker.append("the fork server itself may be what the kernel ends for lack of memory (oom_score_adj)")


def _write_at(folder: int, path: str, text: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY, dir_fd=folder)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)


class Server:
    """Serves jobs one after another; everything a job needs is ready before the fork."""

    def __init__(
        self,
        control: _socket.socket,
        config: dict[str, Any],
        roles: dict[str, Any],
        own_pids: int,
        proc: int,
        user: int | None,
    ) -> None:
        self.control = control
        self.roles = roles
        self.own_pids = own_pids
        self.proc = proc
        self.user = user
        self.filter = kernel.Filter(bytes.fromhex(config["filter"]))
        self.tmp_options = config["tmp_options"]
        self.started = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.base_memory = _mapped_bytes(proc)

    def rehearse(self, limits: dict[str, Any]) -> None:
        """Confine a job that does nothing, so that a host where no job can be confined is refused, and says why."""
        reading, writing = os.pipe()
        self.roles["rehearsal"] = lambda request: os._exit(0)
        answer = self._run({"role": "rehearsal", "limits": limits}, [writing, *(os.dup(writing) for _ in range(6))])
        del self.roles["rehearsal"]
        with open(reading, "rb") as stream:
            said = stream.read().decode(errors="replace")
        if not answer or not answer.get("started"):
            raise OSError(f"a job could not be confined: {said or answer}")

    def serve(self) -> None:
        """Until the supervisor closes its end."""
        while True:
            message, descriptors = _receive(self.control)
            if not message:
                return
            if message == b"K":
                continue  # the order to kill a job that had already ended
            answer = self._run(json.loads(message), descriptors)
            if answer is None:
                return
            self.control.send(json.dumps(answer).encode())

    def _run(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any] | None:
        try:
            kernel.unshare(kernel.CLONE_NEWPID)
            child = os.fork()
        except OSError as error:
            for descriptor in descriptors:
                os.close(descriptor)
            kernel.enter(self.own_pids, kernel.CLONE_NEWPID)
            return {"infrastructure": f"could not start a job: {error}"}
        if child == 0:
            self._become_job(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        kernel.enter(self.own_pids, kernel.CLONE_NEWPID)
        if not self._wait(child):
            return None
        _, status, usage = os.wait4(child, 0)
        return {
            "status": os.waitstatus_to_exitcode(status),
            "started": self._had_started(),
            "cpu": usage.ru_utime + usage.ru_stime,
            "memory": usage.ru_maxrss * 1024,
        }

    def _wait(self, child: int) -> bool:
        """Until the job ends, killing it when told to; False when the supervisor is gone."""
        watched = os.pidfd_open(child)
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        poll.register(self.control, select.POLLIN)
        try:
            while True:
                ready = {descriptor for descriptor, _ in poll.poll()}
                if watched in ready:
                    return True
                order = self.control.recv(16)
                os.kill(child, signal.SIGKILL)
                if not order:
                    return False
                poll.unregister(self.control)
        finally:
            os.close(watched)

    def _had_started(self) -> bool:
        try:
            return os.eventfd_read(self.started) > 0
        except BlockingIOError:
            return False

    def _become_job(self, request: dict[str, Any], descriptors: list[int]) -> NoReturn:
        try:
            os.setsid()
            _place(descriptors, [self.started, self.proc])
            _write_at(_PROC, "self/oom_score_adj", b"1000")
            self._confine(request["limits"])
            os.eventfd_write(_STARTED, 1)
            os.closerange(_STARTED, _PROC + 1)
        except (OSError, ValueError, KeyError) as error:
            os.write(2, f"sandbox: {error}".encode())
            os._exit(70)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.roles[request["role"]](request)
        os._exit(71)

    def _confine(self, limits: dict[str, Any]) -> None:
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount("tmp", "/tmp", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, self.tmp_options + limits["tmp"])
        os.chdir("/tmp")
        for name, value in limits["rlimits"].items():
            if name == "RLIMIT_AS":
                value += self.base_memory
            if name == "RLIMIT_NPROC" and self.user is None:
                value += _OWN_PROCESSES
            kernel.limit(0, name, value)
        if self.user is not None:
            os.setgroups([])
            os.setresgid(self.user, self.user, self.user)
            os.setresuid(self.user, self.user, self.user)
        kernel.drop_capabilities()
        kernel.forbid_dumps()
        kernel.die_with_parent()
        self.filter.load()


_STARTED, _PROC = 7, 8
_OWN_PROCESSES = 2  # this server and its janitor, where they have the same user as the jobs
_SCM_RIGHTS = 1


def _receive(control: _socket.socket) -> tuple[bytes, list[int]]:
    message, attached, _, _ = control.recvmsg(1 << 16, _socket.CMSG_SPACE(4 * DESCRIPTORS))
    descriptors = array.array("i")
    for level, kind, data in attached:
        if level == _socket.SOL_SOCKET and kind == _SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) // 4 * 4])
    return message, list(descriptors)


def _place(descriptors: list[int], own: list[int]) -> None:
    """The job's descriptors at 0..6, ours at 7 and 8, nothing else open."""
    wanted = descriptors[:DESCRIPTORS] + own
    above = max(wanted) + 1
    highest = [os.dup2(descriptor, above + position) for position, descriptor in enumerate(wanted)]
    for position, descriptor in enumerate(highest):
        os.dup2(descriptor, position)
    os.closerange(len(wanted), 1024)


def _mapped_bytes(proc: int) -> int:
    descriptor = os.open("self/statm", os.O_RDONLY, dir_fd=proc)
    try:
        pages = int(os.read(descriptor, 100).split()[0])
    finally:
        os.close(descriptor)
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main(int(sys.argv[1]))
