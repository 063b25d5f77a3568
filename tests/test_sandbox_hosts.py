"""Other hosts than this one, as far as one can be made of another: what is enclosed there, what is said to be weaker,
and that nothing runs where nothing encloses. `docs/sandbox.md` lists the whole machines that were tried."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from guerdon.backends.sandbox import (
    Bubblewrap,
    Infrastructure,
    Limits,
    Pool,
    ServerConfig,
    Zygote,
    cgroups,
    describe_isolation,
    run_python,
    server,
)
from guerdon.backends.sandbox.cgroups import Version1, Version2, make_slot
from guerdon.backends.sandbox.obstacles import obstacles

pytestmark = pytest.mark.skipif(not describe_isolation().available, reason=describe_isolation().reason)

_SEEN_FROM_INSIDE = """
import json, os, sys, warnings
from guerdon.backends.sandbox import Limits, Pool, ServerConfig, Zygote, run_python
from guerdon.verify.programs import check_code
pool = Pool(ServerConfig(cgroup="no cgroup" not in sys.argv), slots=1)
try:
    report = pool.report()
except Exception as error:
    report = {"enabled": [], "weaker": [], "reason": str(error)}
program = '''
import os, resource
def may(name):
    return resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1]
children = 0
try:
    while children < 40:
        if os.fork() == 0:
            __import__("time").sleep(60)
        children += 1
except OSError:
    pass
print([os.getuid(), children, may("NOFILE"), may("STACK")], flush=True)
os._exit(0)
'''
run = Zygote(candidates=pool).run_program(program, b"", Limits(seconds=10, processes=16))
named = run_python("open(input(), 'w').write('ran')", sys.argv[1])
verdict = check_code("def f(): return 1", {"entry_point": "f", "cases": [[[], 1]]})
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    plain = run_python("print('plain')", backend="subprocess", seconds=10)
report |= {"run": [run.state, run.stdout, run.reason], "named": named.state, "passed": verdict.passed,
           "plain": plain.stdout, "warned": [str(one.message) for one in warned]}
print(json.dumps(report))
"""


def seen_from(*wrapper: str, cgroup: bool = True, tmp_path: Path) -> dict:
    """What the sandbox reports and does when started through these commands."""
    command = [*wrapper, sys.executable, "-c", _SEEN_FROM_INSIDE, str(tmp_path / "ran"), "" if cgroup else "no cgroup"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode != 0:
        if "guerdon" not in ran.stderr:
            pytest.skip(f"{wrapper[0]} may not do that here: {ran.stderr[-200:]}")
        raise AssertionError(ran.stderr[-2000:])
    assert not (tmp_path / "ran").exists()
    return json.loads(ran.stdout)


def assert_isolated(seen: dict) -> list[int]:
    """Jobs run, and are judged; gives what the job printed: user, children, open files, stack."""
    assert (seen["run"][0], seen["named"], seen["passed"]) == ("finished", "finished", True), seen
    assert {"read-only root", "seccomp allow-list", "pid namespace per job"} <= set(seen["enabled"])
    user, children, files, stack = json.loads(seen["run"][1])
    assert user != 0
    assert children < 32
    return [user, children, files, stack]


def assert_refused(seen: dict, *words: str) -> None:
    assert (seen["run"][0], seen["named"], seen["passed"]) == ("refused", "refused", None), seen
    assert seen["run"][2] == seen["reason"]
    for word in words:
        assert word in seen["reason"]
    assert seen["plain"] == "plain\n"
    assert "does not isolate" in seen["warned"][0]


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes root to take root's powers away")
_SETPRIV, _UNSHARE = shutil.which("setpriv") or "setpriv", shutil.which("unshare") or "unshare"


def without(*capabilities: str) -> tuple[str, ...]:
    listed = ",".join(f"-{name}" for name in capabilities)
    return (_SETPRIV, "--bounding-set", listed, "--inh-caps", listed)


def in_shell(script: str) -> tuple[str, ...]:
    return ("sh", "-e", "-c", f'{script}; exec "$@"', "sh")


def test_where_user_namespaces_are_off_nothing_runs_and_the_switch_is_named(tmp_path):
    off = in_shell("echo 0 > /proc/sys/user/max_user_namespaces")
    assert_refused(seen_from(_UNSHARE, "-Ur", *off, tmp_path=tmp_path), "unshare", "sysctl -w user.max_user_namespaces")


def test_root_of_a_user_namespace_that_knows_no_other_user_still_isolates(tmp_path):
    seen = seen_from(_UNSHARE, "-Ur", tmp_path=tmp_path)
    _, children, _, _ = assert_isolated(seen)
    if os.geteuid() != 0:  # whose processes the kernel would not count
        assert children == 15  # of 16 processes, the job itself is one
    assert "user namespace" in seen["enabled"]
    assert any("under this process's user id" in text for text in seen["weaker"])


@needs_root
@pytest.mark.parametrize("cgroup", [True, False])
def test_root_that_may_not_mount_gives_its_jobs_a_user_id_so_that_their_processes_are_counted(tmp_path, cgroup):
    seen = seen_from(*without("sys_admin", "sys_resource"), cgroup=cgroup, tmp_path=tmp_path)
    user, children, _, _ = assert_isolated(seen)
    assert "user namespace" in seen["enabled"]
    assert user >= server.FIRST_USER
    assert f"own user id ({user})" in seen["enabled"]
    assert children == 15
    assert not any("does not count" in text for text in seen["weaker"])


@needs_root
def test_root_that_may_not_become_another_user_still_isolates(tmp_path):
    seen = seen_from(*without("setuid", "setgid"), tmp_path=tmp_path)
    assert_isolated(seen)
    assert not any("own user id" in text for text in seen["enabled"])


@needs_root
def test_root_that_may_nothing_is_told_what_it_lacks(tmp_path):
    seen = seen_from(*without("all"), tmp_path=tmp_path)
    if seen["run"][0] == "finished":
        assert "user namespace" in seen["enabled"]  # kernels before 5.12 let it map itself
    else:
        assert_refused(seen, "lacks CAP_SYS_ADMIN", "run as an ordinary user")


@needs_root
def test_read_only_control_groups_are_named_and_each_process_is_limited(tmp_path):
    script = "for place in $(awk '$5 ~ \"^/sys/fs/cgroup\" {print $5}' /proc/self/mountinfo); do mount -o remount,bind,ro $place; done"  # noqa: E501
    seen = seen_from(_UNSHARE, "-m", *in_shell(script), tmp_path=tmp_path)
    _, children, _, _ = assert_isolated(seen)
    assert children == 15
    (said,) = [text for text in seen["weaker"] if "cgroup" in text]
    assert said.startswith("no cgroup, so memory is limited for each process and not for the job as a whole: /sys/fs/")
    assert "is mounted read-only" in said or "controller" in said


@needs_root
def test_a_host_without_control_groups_is_told_what_that_means(tmp_path):
    seen = seen_from(_UNSHARE, "-m", *in_shell("mount -t tmpfs none /sys/fs/cgroup"), tmp_path=tmp_path)
    assert assert_isolated(seen)[1] == 15
    (said,) = [text for text in seen["weaker"] if "cgroup" in text]
    assert "no control groups of version 2 under /sys/fs/cgroup" in said


@pytest.mark.parametrize("wrapper", [(), (_UNSHARE, "-Ur")], ids=["as we are", "as root of a user namespace"])
def test_limits_that_the_host_sets_lower_than_ours_stay_and_do_not_break_jobs(tmp_path, wrapper):
    tight = ("prlimit", "--nofile=40:40", "--stack=4194304:4194304", "--core=0:0", "--msgqueue=0:0", "--memlock=0:0")
    _, _, files, stack = assert_isolated(seen_from(*wrapper, *tight, tmp_path=tmp_path))
    assert (files, stack) == (40, 4194304)


_NO_FILTER = """
import ctypes, os, sys
libc, code = ctypes.CDLL(None), bytes.fromhex(sys.argv[1])
class Program(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("p", ctypes.c_char_p)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(code) // 8, code)), 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_a_kernel_without_system_call_filters_is_refused_before_any_job(tmp_path):
    number = {"x86_64": 157, "aarch64": 167}[os.uname().machine]
    rows = [
        (0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, 22),  # prctl(PR_SET_SECCOMP, ...)
        (0x06, 0, 0, 0x50016), (0x06, 0, 0, 0x7FFF0000),  # answers EINVAL, as a kernel without them does
    ]  # fmt: skip
    code = b"".join(struct.pack("=HBBI", *row) for row in rows).hex()
    seen = seen_from(sys.executable, "-c", _NO_FILTER, code, tmp_path=tmp_path)
    assert_refused(seen, "a job could not be confined", "SECCOMP")


def test_a_job_that_is_allowed_more_processes_than_usual_gets_them():
    program = """
import os
children = 0
for _ in range(60):
    if os.fork() == 0:
        __import__("time").sleep(60)
    children += 1
print(children, flush=True)
os._exit(0)
"""
    assert run_python(program, processes=100, seconds=10).stdout == "60\n"
    assert run_python(program, processes=40, seconds=10).stderr.endswith("Resource temporarily unavailable\n")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A plain folder with the files of a version 2 tree: three groups in one another, our own the innermost."""
    monkeypatch.setattr(cgroups, "_own_group", lambda controller: "/outer/inner")
    for folder in (tmp_path, tmp_path / "outer", tmp_path / "outer/inner"):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.controllers").write_text("cpu memory pids")
        (folder / "cgroup.subtree_control").write_text("memory pids")
        (folder / "cgroup.procs").write_text("")
        (folder / "memory.max").write_text("max\n")
    return tmp_path


def test_a_version_2_group_is_made_in_our_own_so_that_limits_around_us_hold(tree):
    slot, note = make_slot(32, tree)
    assert isinstance(slot, Version2)
    assert (slot.group.parent, note) == (tree / "outer/inner", "")
    slot.limit_memory(1000)
    slot.limit_processes(64)
    assert (slot.group / "memory.max").read_text() == "1000"
    assert (slot.group / "memory.swap.max").read_text() == "0"
    assert (slot.group / "pids.max").read_text() == "68"
    (slot.group / "memory.events").write_text("low 0\noom 2\noom_kill 3\n")
    assert slot.oom_kills() == 3


def test_a_group_beside_our_own_is_named_when_it_leaves_a_limit_behind(tree):
    (tree / "outer/inner/cgroup.controllers").write_text("cpu pids")
    slot, note = make_slot(32, tree)
    assert isinstance(slot, Version2)
    assert (slot.group.parent, note) == (tree / "outer", "")
    (tree / "outer/inner/memory.max").write_text("1000000\n")
    _, note = make_slot(32, tree)
    assert note.startswith(f"the memory.max of {tree}/outer/inner (1000000) does not hold for jobs")


def test_why_no_group_can_be_made_is_said_once_for_each_reason(tree):
    for folder in (tree, tree / "outer", tree / "outer/inner"):
        (folder / "cgroup.controllers").write_text("cpu pids")
    assert make_slot(32, tree) == (None, f"{tree}/outer/inner has no memory controller")


def test_a_group_path_that_is_not_under_the_mount_leads_to_its_top(tree, monkeypatch):
    for elsewhere in ("/../../other", "/gone (deleted)"):
        monkeypatch.setattr(cgroups, "_own_group", lambda controller, path=elsewhere: path)
        slot, _ = make_slot(32, tree)
        assert isinstance(slot, Version2)
        assert slot.group.parent == tree


def test_a_host_without_groups_says_why(tmp_path):
    slot, reason = make_slot(32, tmp_path)
    assert slot is None
    assert (
        reason == f"no memory controller of version 1 under {tmp_path}; no control groups of version 2 under {tmp_path}"
    )


def test_version_1_limits_are_both_set_whichever_is_larger(tmp_path):
    slot = Version1(tmp_path, tmp_path)
    files = [tmp_path / "memory.limit_in_bytes", tmp_path / "memory.memsw.limit_in_bytes"]
    for file in files:
        file.write_text("")
    slot.limit_memory(5)
    assert [file.read_text() for file in files] == ["5", "5"]
    files[0].unlink()
    files[0].mkdir()
    with pytest.raises(OSError, match="limit_in_bytes"):
        slot.limit_memory(6)


def test_a_group_that_can_not_be_entered_costs_the_group_and_not_the_isolation(tmp_path, monkeypatch):
    (tmp_path / "group/cgroup.procs").mkdir(parents=True)
    monkeypatch.setattr(cgroups, "make_slot", lambda processes: (Version2(tmp_path / "group"), ""))
    pool = Pool(ServerConfig(), slots=1)
    try:
        (said,) = [text for text in pool.report()["weaker"] if "cgroup" in text]
        assert said.endswith(f"not for the job as a whole: {tmp_path}/group can't be entered (Is a directory)")
        assert not any("cgroup" in text for text in pool.report()["enabled"])
        assert Zygote(candidates=pool).run_program("print(1)", b"", Limits()).stdout == "1\n"
    finally:
        pool.close()


def test_what_stands_in_the_way_is_said_in_words_with_the_command_that_changes_it(tmp_path):
    def proc(status: str, **switches: str) -> Path:
        for name, text in {"self/status": status, "self/attr/current": "unconfined\n", **switches}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    assert obstacles(proc("CapEff:\t000001ffffffffff\nSeccomp:\t0\n"), user=0) == []
    names = ("user/max_user_namespaces", "kernel/unprivileged_userns_clone", "kernel/apparmor_restrict_unprivileged_userns")  # fmt: skip  # noqa: E501
    switches = {f"sys/{name}": value for name, value in zip(names, ("0", "0", "1"), strict=True)}
    said = obstacles(proc("CapEff:\t0000000000000000\nSeccomp:\t0\n", **switches), user=1000)
    assert [text.split("sysctl -w ")[1] for text in said] == [
        "user.max_user_namespaces=10000",
        "kernel.unprivileged_userns_clone=1",
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ]
    for name in switches:
        (tmp_path / name).unlink()
    contained = proc("CapEff:\t00000000a80425fb\nSeccomp:\t2\n", **{"self/attr/current": "docker-default (enforce)\n"})
    assert [text.split("docker run ")[1] for text in obstacles(contained, user=0)] == [
        "--cap-add SYS_ADMIN", "--security-opt seccomp=unconfined", "--security-opt apparmor=unconfined"
    ]  # fmt: skip
    assert len(obstacles(contained, user=1000)) == 2


def test_a_start_that_takes_too_long_is_a_failure_of_ours_and_no_refusal(monkeypatch):
    pool = Pool(ServerConfig(), slots=1)
    monkeypatch.setattr(server, "START_SECONDS", 0.0001)
    with pytest.raises(Infrastructure, match="can't start the fork server: timed out"):
        pool.report()
    assert Zygote(candidates=pool).run_program("print(1)", b"", Limits()).state == "infrastructure"
    monkeypatch.undo()
    assert Zygote(candidates=pool).run_program("print(1)", b"", Limits()).stdout == "1\n"
    pool.close()


def test_an_interpreter_that_is_not_there_is_a_refusal():
    result = Zygote(ServerConfig(interpreter="/usr/bin/no-such-python")).run_program("", b"", Limits())
    assert (result.state, "no-such-python" in result.reason) == ("refused", True)
    assert "GUERDON_SANDBOX_PYTHON" in result.reason


_IN_BUBBLEWRAP = """
from guerdon.backends.sandbox import run_python
print(run_python("print(1)", backend="bubblewrap", seconds=10))
"""


@needs_root
@pytest.mark.skipif(Bubblewrap().refusal() != "", reason="bubblewrap can't be used here")
def test_bubblewrap_keeps_the_flags_that_a_user_may_not_take_from_the_devices():
    flags = in_shell("mount -o remount,bind,nosuid,noexec,noatime /dev")
    command = [_UNSHARE, "-m", *flags, _UNSHARE, "-Ur", sys.executable, "-c", _IN_BUBBLEWRAP]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "state='finished'" in ran.stdout, ran.stdout
