"""The service around the jobs: states, threads, event loops, broken servers replaced, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import guerdon.backends.sandbox as package
from guerdon.backends.sandbox import (
    Limits,
    Pool,
    ServerConfig,
    Zygote,
    arun_python,
    describe_isolation,
    run_python,
    run_python_many,
)
from guerdon.backends.sandbox.attacks import attacks, run_attack_suite
from guerdon.backends.sandbox.plain import NotIsolatedWarning
from guerdon.backends.sandbox.server import hidden_folders, readable_folders

pytestmark = pytest.mark.skipif(not describe_isolation().available, reason=describe_isolation().reason)


@pytest.mark.parametrize(
    ("program", "state", "exit_code"),
    [
        ("print('hi')", "finished", 0),
        ("raise SystemExit(7)", "finished", 7),
        ("1/0", "finished", 1),
        ("while True: pass", "timeout", None),
        ("import time; time.sleep(60)", "timeout", None),
        ("b = [0] * 10**10", "memory", 1),
        ("print('x' * 10**7)", "output", None),
        ("import ctypes; ctypes.string_at(0)", "crash", -11),
    ],
)
def test_each_way_to_end_has_its_own_state(program, state, exit_code):
    result = run_python(program, seconds=0.8)
    assert (result.state, result.exit_code) == (state, exit_code)
    assert result.seconds < 1.8


def test_input_output_and_errors_cross_whole():
    text = "grüß dich\n" * 20_000
    result = run_python(
        "import sys\ndata = sys.stdin.read()\nsys.stdout.write(data)\nprint('e', file=sys.stderr)", text, seconds=5
    )
    assert (result.stdout, result.stderr) == (text, "e\n")


def test_too_much_output_is_noticed_also_after_a_quick_end():
    result = run_python("print('x' * 5000)", output_bytes=1000)
    assert (result.state, len(result.stdout)) == ("output", 1000)


def test_a_program_ends_as_it_would_under_python():
    result = run_python(
        "import atexit, threading\natexit.register(print, 'bye')\n"
        "threading.Thread(target=print, args=('thread',)).start()"
    )
    assert result.stdout.splitlines() == ["thread", "bye"]
    assert run_python("import sys; sys.exit('no')").stderr == "no\n"
    trace = run_python("def f():\n    raise KeyError('k')\nf()").stderr
    assert trace.splitlines()[1:] == [
        '  File "program.py", line 3, in <module>',
        '  File "program.py", line 2, in f',
        "KeyError: 'k'",
    ]


def test_jobs_do_not_share_a_random_state():
    assert (
        run_python("import random; print(random.random())").stdout
        != run_python("import random; print(random.random())").stdout
    )


def test_limits_are_checked_by_name_and_sign():
    with pytest.raises(TypeError):
        run_python("", second=1)
    with pytest.raises(ValueError, match="seconds must be positive"):
        run_python("", seconds=0)


def test_many_threads_may_ask_at_once():
    with ThreadPoolExecutor(12) as threads:
        results = list(threads.map(lambda number: run_python(f"print({number} ** 2)", seconds=10).stdout, range(40)))
    assert results == [f"{number**2}\n" for number in range(40)]


def test_of_an_interpreter_in_a_home_folder_only_its_own_parts_are_shown(monkeypatch):
    monkeypatch.setattr(os.path, "lexists", lambda path: True)
    monkeypatch.setattr(Path, "resolve", lambda path: path)
    shown = set(readable_folders("/home/someone/bin/python3.11", ("/data/packages", "/usr/share")))
    assert shown - {"/usr", "/lib", "/lib64", "/lib32", "/data/packages"} == {
        f"/home/someone/{name}" for name in ("bin", "lib", "lib64", "share")
    }
    assert "/" not in readable_folders("/bin/python3.11", ())


def test_what_is_installed_is_hidden_until_it_is_named(tmp_path):
    installed = tmp_path / "lib" / "python3.11" / "site-packages"
    installed.mkdir(parents=True)
    python = str(tmp_path / "bin" / "python3.11")
    assert str(installed) in hidden_folders(python, ())
    assert str(installed) not in hidden_folders(python, (str(installed),))
    assert str(installed) not in hidden_folders(python, (f"{installed}/numpy",))


def test_a_named_folder_is_seen_and_one_that_can_not_be_is_refused():
    here = Path(__file__).resolve()
    program = f"print(open({str(here)!r}).read()[:3])"
    for folder, state in ((here.parent, "finished"), (Path("/tmp/packages"), "refused")):
        if folder == here.parent and here.is_relative_to("/tmp"):
            continue
        pool = Pool(ServerConfig(packages=(str(folder),)), slots=1)
        try:
            result = Zygote(candidates=pool).run_program(program, b"", Limits())
        finally:
            pool.close()
        assert (result.state, result.exit_code) == (state, 0 if state == "finished" else None), result
    assert "FileNotFoundError" in run_python(program).stderr


def test_a_running_event_loop_is_not_blocked():
    async def main():
        ticks = 0
        task = asyncio.create_task(arun_python("import time; time.sleep(0.4); print('done')"))
        while not task.done():
            await asyncio.sleep(0.02)
            ticks += 1
        return ticks, (await task).stdout

    ticks, text = asyncio.run(main())
    assert text == "done\n"
    assert ticks > 5


def test_a_batch_keeps_its_order():
    assert [one.stdout for one in run_python_many([(f"print({n})", "") for n in range(6)])] == [
        f"{n}\n" for n in range(6)
    ]


@pytest.fixture
def pool():
    pool = Pool(ServerConfig(), slots=1)
    yield pool
    pool.close()


def _server_processes(pool: Pool) -> tuple[int, int]:
    """(janitor, fork server) of the pool's only slot."""
    janitor = pool._slots[0].server._process.pid
    (server,) = Path(f"/proc/{janitor}/task/{janitor}/children").read_text().split()
    return janitor, int(server)


@pytest.mark.parametrize("which", [0, 1], ids=["janitor", "fork server"])
def test_a_killed_server_is_replaced_and_the_job_done_again(pool, which):
    zygote = Zygote(candidates=pool)
    assert zygote.run_program("print(1)", b"", Limits()).stdout == "1\n"
    os.kill(_server_processes(pool)[which], signal.SIGKILL)
    assert zygote.run_program("print(2)", b"", Limits()).stdout == "2\n"


def test_two_failures_of_ours_in_a_row_are_infrastructure_not_a_score(pool, monkeypatch):
    zygote = Zygote(candidates=pool)
    zygote.run_program("print(1)", b"", Limits())

    def kill_first(self, *arguments, **named):
        os.kill(_server_processes(pool)[1], signal.SIGKILL)
        time.sleep(0.1)
        return original(self, *arguments, **named)

    server = type(pool._slots[0].server)
    original = server.submit
    monkeypatch.setattr(server, "submit", kill_first)
    result = zygote.run_program("print(1)", b"", Limits())
    assert result.state == "infrastructure"
    assert result.exit_code is None
    monkeypatch.undo()
    assert zygote.run_program("print(3)", b"", Limits()).stdout == "3\n"


def _open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _our_groups() -> list[Path]:
    return _groups_of(os.getpid())


def _groups_of(pid: int) -> list[Path]:
    """Control groups made by a process; walked so that one vanishing meanwhile is no error."""
    walk = os.walk("/sys/fs/cgroup")
    return [Path(folder) / name for folder, names, _ in walk for name in names if name.startswith(f"guerdon-{pid}-")]


def _children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


# The kinds of attack that leave something in the kernel, the host's memory or the next job where they can.
_SHARING = [
    attack.program
    for attack in attacks()
    if attack.name.startswith(("pass descriptors", "orphans of", "a daemon", "zombies", "pipes filled", "a hundred"))
]


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run_python("print(1)")
    descriptors, groups, children = _open_descriptors(), len(_our_groups()), _children()
    mounts = Path("/proc/self/mountinfo").read_text()
    pool = Pool(ServerConfig(), slots=1)
    zygote = Zygote(candidates=pool)
    for program in (
        "print(1)", "while 1: pass", "print('x' * 10**7)",
        "import os\nfor _ in range(9):\n  if os.fork() == 0: os.setsid(); __import__('time').sleep(99)",
        "open('/tmp/x', 'w').write('x')", "import os; os._exit(3)", *_SHARING,
    ) * 3:  # fmt: skip
        zygote.run_program(program, b"", Limits(seconds=0.2))
    janitor, server = _server_processes(pool)
    assert Path(f"/proc/{server}/task/{server}/children").read_text() == ""
    pool.close()
    assert _open_descriptors() == descriptors
    assert _children() == children
    assert len(_our_groups()) == groups
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert os.listdir(tmp_path) == []
    assert not Path(f"/proc/{janitor}").exists()
    assert not Path(f"/proc/{server}").exists()


def test_memory_and_descriptors_stay_flat_over_many_jobs(pool):
    zygote = Zygote(candidates=pool)
    zygote.run_program("print(1)", b"", Limits())
    _, server = _server_processes(pool)

    def state():
        pages = int(Path(f"/proc/{server}/statm").read_text().split()[1])
        return pages, len(os.listdir(f"/proc/{server}/fd")), _open_descriptors()

    for _ in range(50):
        zygote.run_program("print(1)", b"", Limits())
    before = state()
    for _ in range(200):
        zygote.run_program("print(1)", b"", Limits())
    after = state()
    assert after[1:] == before[1:]
    assert after[0] - before[0] < 50


_SUPERVISOR = """
import os, sys, threading
from guerdon.backends.sandbox import run_python, Zygote
threading.Thread(target=run_python, args=("import time; time.sleep(60)",), kwargs={"seconds": 60}, daemon=True).start()
import time
time.sleep(1.0)
print(os.getpid(), flush=True)
{end}
"""


def _gone(pid: int, seconds: float = 5.0) -> bool:
    """No process of that supervisor's, and no control group."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not _groups_of(pid) and str(pid) not in _parents():
            return True
        time.sleep(0.05)
    return False


def _parents() -> set[str]:
    found = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            stat = (path.parent / "stat").read_text()
        except OSError:
            continue
        found.add(stat.rpartition(")")[2].split()[1])
    return found


@pytest.mark.parametrize(
    "end", ["os.kill(os.getpid(), 9)", "os._exit(0)", "pass"], ids=["killed", "left at once", "ended"]
)
def test_everything_goes_when_the_supervisor_does(end):
    ran = subprocess.run(
        [sys.executable, "-c", _SUPERVISOR.replace("{end}", end)], capture_output=True, text=True, timeout=60
    )
    assert _gone(int(ran.stdout.split()[0]))


def test_a_forked_copy_of_this_process_starts_servers_of_its_own():
    run_python("print(1)")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, run_python("print(2)").stdout.encode())
        finally:
            for one in list(package.pool._pools):
                one.close()
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        assert stream.read() == "2\n"
    os.waitpid(child, 0)
    assert run_python("print(3)").stdout == "3\n"


def test_the_user_namespace_way_holds_too():
    pool = Pool(ServerConfig(privileged=False), slots=1)
    try:
        assert "user namespace" in pool.report()["enabled"]
        run = Zygote(candidates=pool).run_program
        corpus = [attack for attack in attacks() if not attack.states]
        assert [defence for defence in run_attack_suite(run, corpus, Limits(seconds=0.7)) if not defence.held] == []
    finally:
        pool.close()


_AS_NOBODY = """
import json, os, sys
from sandbox import Zygote, describe_isolation
from sandbox.attacks import run_attack_suite
from sandbox.result import Limits
seen = describe_isolation()
limits = Limits(seconds=0.7, memory_bytes=256 << 20)
faults = [d.name + ': ' + d.seen for d in run_attack_suite(Zygote().run_program, limits=limits) if not d.held]
said = {"uid": os.getuid(), "available": seen.available, "reason": seen.reason, "weaker": seen.weaker, "faults": faults}
print(json.dumps(said))
"""


def test_an_ordinary_user_is_isolated_as_well_and_told_what_is_weaker():
    python = "/usr/bin/python3"
    if os.geteuid() != 0 or not shutil.which("setpriv") or not os.path.exists(python):
        pytest.skip("needs root, setpriv and a system Python to become an ordinary user")
    version = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True, text=True
    )
    if version.stdout.strip() != "True":
        pytest.skip("the system Python is older than 3.11")
    folder = Path(tempfile.mkdtemp(prefix="guerdon-test-"))
    try:
        folder.chmod(0o755)
        shutil.copytree(Path(package.__file__).parent, folder / "sandbox")
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        ran = subprocess.run(
            ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", python, "-B", "-c", _AS_NOBODY],
            capture_output=True, text=True, timeout=120, cwd=folder,
            env={"PYTHONPATH": str(folder), "GUERDON_SANDBOX_PYTHON": python, "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-2000:]
        import json

        seen = json.loads(ran.stdout)
        if not seen["available"]:
            pytest.skip(seen["reason"])
        assert seen["uid"] == 65534
        assert any("cgroup" in text for text in seen["weaker"])
        assert seen["faults"] == []
    finally:
        shutil.rmtree(folder)


_NO_NAMESPACES = """
import ctypes, sys
# A filter that refuses unshare(2), as container runtimes install it.
libc = ctypes.CDLL(None, use_errno=True)
code = bytes.fromhex("{code}")
class Program(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("p", ctypes.c_char_p)]
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(Program(len(code) // 8, code)), 0, 0) == 0
from guerdon.backends.sandbox import describe_isolation, run_python
from guerdon.verify.programs import check_code
seen = describe_isolation()
result = run_python("open('/tmp/guerdon-ran', 'w')")
verdict = check_code("def f(): return 1", {{"entry_point": "f", "cases": [[[], 1]]}})
print(seen.available, result.state, verdict.passed, verdict.state, "|", seen.reason)
"""


def test_a_host_without_namespaces_is_refused_and_nothing_runs():
    import platform
    import struct

    number = {"x86_64": 272, "aarch64": 97}[platform.machine()]
    code = b"".join(
        struct.pack("=HBBI", *row)
        for row in [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
    )
    ran = subprocess.run(
        [sys.executable, "-c", _NO_NAMESPACES.format(code=code.hex())], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.startswith("False refused None refused | no isolation on this host:"), ran.stderr
    assert "unshare" in ran.stdout
    assert not os.path.exists("/tmp/guerdon-ran")


def test_the_plain_back_end_runs_only_when_named_and_warns():
    package.plain._warned = False
    with pytest.warns(NotIsolatedWarning):
        result = run_python("print(input())", "x\n", backend="subprocess", seconds=10)
    assert result.stdout == "x\n"
    assert run_python("while True: pass", backend="subprocess", seconds=0.5).state == "timeout"
    assert run_python("print('x' * 10**7)", backend="subprocess", seconds=10).state == "output"
    assert run_python("b = [0] * 10**10", backend="subprocess", seconds=10).state == "memory"
    with pytest.raises(ValueError, match="unknown isolating back end"):
        run_python("", backend="docker")


def test_code_that_may_not_be_trusted_with_a_shell_gets_none():
    program = textwrap.dedent("""
        import subprocess
        print(subprocess.run(["/bin/sh", "-c", "id"], capture_output=True, text=True).stdout)
    """)
    assert "uid=" not in run_python(program).stdout
