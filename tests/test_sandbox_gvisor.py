"""gVisor: a kernel of its own for each job, with the limits, states and verdicts of the other back ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from guerdon.backends.sandbox import Gvisor, Limits, State, describe_isolation, run_python
from guerdon.backends.sandbox.attacks import Attack, attacks, run_attack_suite
from guerdon.verify.programs import TaskError, check_code
from guerdon.verify.programs.attacks import CHANNELS, fakes

works = pytest.mark.skipif(bool(Gvisor().refusal()), reason=Gvisor().refusal())


def run(program: str, stdin: str = "", **limits):
    return run_python(program, stdin, backend="gvisor", **{"seconds": 10.0, **limits})


@works
def test_a_program_reads_writes_and_ends_with_its_exit_code():
    result = run("import sys; print(input()[::-1]); print('x', file=sys.stderr); sys.exit(139)", "abc\n")
    assert (result.state, result.exit_code, result.stdout, result.stderr) == ("finished", 139, "cba\n", "x\n")
    assert 0 < result.cpu_seconds < 5
    assert 1 << 20 < result.peak_memory_bytes < 64 << 20


@works
def test_standard_streams_are_open_to_programs_that_name_them():
    program = "text = open('/dev/stdin').read(); open('/dev/stdout', 'w').write(text * 2)"
    assert run(program, "ab").stdout == "abab"
    large = "x" * 3_000_000
    assert run("import sys; print(len(sys.stdin.read()))", large).stdout == "3000000\n"


_SPIN = "import os\nfor _ in range(8): os.fork() or exec('while 1: pass')\nwhile 1: pass"
_MANY = """import os, time
for _ in range(8):
    if os.fork() == 0:
        block = bytearray(60 << 20)
        for place in range(0, len(block), 4096): block[place] = 1
        time.sleep(100)
time.sleep(100)"""


@works
@pytest.mark.parametrize(
    ("program", "limits", "state"),
    [
        ("import time; time.sleep(60)", {"seconds": 0.5}, "timeout"),
        ("import signal\nsignal.signal(15, signal.SIG_IGN)\nwhile 1: pass", {"seconds": 0.5}, "timeout"),
        (_SPIN, {"seconds": 0.5}, "timeout"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", {"seconds": 0.5}, "timeout"),
        ("x = bytearray(400 << 20)", {"memory_bytes": 256 << 20}, "memory"),
        (_MANY, {"memory_bytes": 128 << 20, "seconds": 20.0}, "memory"),
        ("while 1: print('x' * 1000)", {"output_bytes": 100_000}, "output"),
        ("import os\nwhile 1: os.write(2, b'x' * 1000)", {"output_bytes": 100_000}, "output"),
        ("import os; os.kill(os.getpid(), 11)", {}, "crash"),
        ("import sys; sys.exit('no')", {}, "finished"),
    ],
)
def test_each_end_has_its_state(program, limits, state: State):
    if program is _MANY and not any(word.startswith("cgroup") for word in describe_isolation().enabled):
        pytest.skip("no control group here: memory is limited for each process only")
    result = run(program, **limits)
    assert result.state == state, (result.reason, result.stderr[-300:])
    assert result.exit_code == {"crash": -11, "finished": 1}.get(state, 1 if "x =" in program else None)
    if state == "timeout":
        assert result.seconds < 1.5
    if state == "output":
        assert max(len(result.stdout), len(result.stderr)) == 100_000


@works
def test_a_killed_job_says_what_it_had_used():
    result = run("x = b'x' * (40 << 20)\nwhile 1: pass", seconds=1.5)
    assert result.state == "timeout"
    assert 0.02 < result.cpu_seconds < 5
    assert 40 << 20 < result.peak_memory_bytes < 200 << 20


@works
@pytest.mark.parametrize(
    ("program", "limits", "seen"),
    [
        ("import os\nn = 1\ntry:\n  while 1: os.fork() or os._exit(os.read(os.pipe()[0], 1) and 0); n += 1\n"
         "except OSError as e: print(n <= 9, e.errno)", {"processes": 8}, "True 11\n"),
        ("open('/tmp/a', 'wb').write(bytes(2 << 20))", {"file_bytes": 1 << 20}, "File too large"),
        ("for n in range(4): open(f'/tmp/{n}', 'wb').write(bytes(1 << 19))", {"file_bytes": 1 << 20}, "No space left"),
        ("f = [open('/dev/null') for _ in range(40)]", {"open_files": 32}, "Too many open files"),
        ("import resource as r; print(r.getrlimit(r.RLIMIT_CPU))", {"seconds": 4.0}, "(5, 5)\n"),
        ("import resource as r; r.setrlimit(r.RLIMIT_NPROC, (99, 99))", {}, "Error"),
        ("import os; print(os.getuid(), os.getgid(), os.getgroups(), os.listdir('/proc/self/fd'))", {},
         "60001 60001 [] ['0', '1', '2', '3']\n"),
    ],
)  # fmt: skip
def test_a_limit_is_felt_by_the_program_itself(program, limits, seen):
    result = run(program, **limits)
    assert result.state == "finished"
    assert seen in result.stdout + result.stderr


# Each tries another way out; the command line runs the whole corpus.
_WAYS = (
    "write beside the interpreter", "read the answer file", "walk up with ..", "remount root writable", "setns",
    "clone into a user namespace", "process_vm_readv", "gain privileges through a setuid program", "udp",
    "abstract socket", "kill everything", "daemon that outlives",
)  # fmt: skip


@works
def test_no_program_gets_out():
    corpus = [attack for attack in attacks("gvisor") if attack.name in _WAYS]
    corpus += [Attack("what runs here", "import os\nprint([p for p in os.listdir('/proc') if p.isdecimal()])")]
    assert len(corpus) == len(_WAYS) + 1
    limits = Limits(seconds=2.0, memory_bytes=256 << 20)
    seen = {defence.name: defence for defence in run_attack_suite(Gvisor().run_program, corpus, limits)}
    assert {name: defence.seen for name, defence in seen.items() if not defence.held} == {}
    assert seen["what runs here"].seen == "['1', '2']\n"


@works
def test_the_kernel_is_not_the_hosts():
    assert run("import os; print(os.uname().release)").stdout.strip() != os.uname().release


_ADD = "def add(a, b):\n    return a + b"


@works
@pytest.mark.parametrize("channel", CHANNELS)
def test_every_channel_tells_right_from_wrong_and_slow(channel):
    task = CHANNELS[channel]
    right = check_code(_ADD, task, backend="gvisor", seconds=10)
    assert (right.passed, right.tampering) == (True, []), right.reason
    assert check_code(_ADD.replace("+", "-"), task, backend="gvisor", seconds=10).passed is False
    slow = check_code("def add(a, b):\n    while 1: pass", task, backend="gvisor", seconds=0.7)
    assert (slow.passed, slow.state) == (False, "timeout")
    assert "timed out" in slow.reason


@works
@pytest.mark.parametrize(
    ("name", "channel"),
    [
        ("always equal object", "cases"),
        ("exit in the function", "pytest"),
        ("forged replies", "assertions"),
        ("forged report", "tester"),
        ("PASS on every descriptor", "tester"),
        ("answers from files", "cases"),
        ("patch the harness through sys.modules", "pytest"),
        ("die by a signal", "tester"),
    ],
)
def test_a_fake_fails(name, channel):
    (fake,) = [fake for fake in fakes() if fake.name == name]
    verdict = check_code(fake.program, CHANNELS[channel], backend="gvisor", seconds=5)
    assert verdict.passed is False, verdict


@works
def test_whole_programs_are_graded_in_python_and_compiled():
    task = {"stdio": [["2 3\n", "5\n"], ["10 -4\n", "6\n"]]}
    program = "a, b = map(int, input().split())\nprint(a + b)"
    assert check_code(program, task, backend="gvisor", seconds=10).passed is True
    assert check_code(program.replace("+", "-"), task, backend="gvisor", seconds=10).passed is False
    with pytest.raises(TaskError, match="unknown language"):
        check_code(program, {**task, "language": "cobol"}, backend="gvisor")


@works
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_a_compiled_program_never_leaves_gvisor():
    release = "#include <cstdio>\n#include <sys/utsname.h>\nint main() { utsname u; uname(&u); puts(u.release); }"
    task = {"language": "cpp", "stdio": [["", os.uname().release]]}
    elsewhere = check_code(release, task, seconds=20)
    assert elsewhere.passed is True, elsewhere.reason
    inside = check_code(release, task, backend="gvisor", seconds=20)
    assert (inside.passed, inside.state) == (False, "finished"), inside.reason


@works
def test_a_command_finds_its_files():
    result = Gvisor().run_command(["/usr/bin/sort", "/tmp/lines"], {"lines": b"b\na\n"}, b"", Limits(seconds=10))
    assert (result.state, result.stdout) == ("finished", "a\nb\n")


@works
def test_an_ordinary_user_gets_the_same(tmp_path):
    python = "/usr/bin/python3"
    if os.geteuid() != 0 or not shutil.which("setpriv") or not os.path.exists(python):
        pytest.skip("needs root, setpriv and a system Python to become an ordinary user")
    folder = Path(tempfile.mkdtemp(prefix="guerdon-test-"))
    try:
        shutil.copytree(Path(sys.modules["guerdon.backends.sandbox"].__file__).parent, folder / "sandbox")
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        code = (
            "from sandbox import Gvisor, Limits\n"
            "for program in ('print(open(\"/dev/stdin\").read())', 'while 1: pass', 'x = bytearray(1 << 30)'):\n"
            "    result = Gvisor().run_program(program, b'hm', Limits(seconds=3))\n"
            "    print(result.state, result.stdout.strip(), result.reason)\n"
        )
        ran = subprocess.run(
            ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", python, "-B", "-c", code],
            capture_output=True, text=True, timeout=60, cwd=folder,
            env={"PYTHONPATH": str(folder), "GUERDON_SANDBOX_PYTHON": python, "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        if "refused" in ran.stdout or "SyntaxError" in ran.stderr:
            pytest.skip(f"not for ordinary users here: {ran.stdout[:300]}{ran.stderr[-300:]}")
        assert [line.split()[0] for line in ran.stdout.splitlines()] == ["finished", "timeout", "memory"], ran
        assert ran.stdout.startswith("finished hm")
    finally:
        shutil.rmtree(folder)
