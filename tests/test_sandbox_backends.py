"""Bubblewrap, other languages, control groups of both versions, the system-call filter."""

from __future__ import annotations

import platform
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from guerdon.backends.sandbox import (
    Bubblewrap,
    Limits,
    Native,
    ServerConfig,
    describe_isolation,
    languages,
    run_python,
)
from guerdon.backends.sandbox.attacks import Attack, attacks, run_attack_suite
from guerdon.backends.sandbox.cgroups import make_slot
from guerdon.backends.sandbox.pool import shared_pool
from guerdon.backends.sandbox.seccomp import job_filter
from guerdon.backends.sandbox.syscalls import allowed_calls
from guerdon.verify.programs import check_code

isolated = pytest.mark.skipif(not describe_isolation().available, reason=describe_isolation().reason)
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap is not installed")


def needs(tool: str):
    return pytest.mark.skipif(shutil.which(tool) is None, reason=f"{tool} is not installed")


@needs_bwrap
def test_no_program_gets_out_of_bubblewrap(shared_data):
    import json

    rows = map(json.loads, (shared_data / "sandbox" / "programs.jsonl").read_text().splitlines())
    # A third of them here, those with a limit of their own and those on the host's devices among them.
    apart = {"memory over many processes", "stderr flood", "change what belongs to a device or file of the host"}
    apart |= {"many folders deep", "a folder of links, hard and soft, without end", "many files"}
    brief = [attack for attack in attacks() if not attack.states and attack.name not in apart]
    corpus = [*brief[::3], *(attack for attack in attacks() if attack.name in apart)]
    corpus += [attack for attack in attacks() if attack.states][::8]
    corpus += [Attack(row["name"], row["program"]) for row in rows if row["kind"] == "escape"]
    limits = Limits(seconds=0.8, memory_bytes=256 << 20)
    held = list(run_attack_suite(Bubblewrap().run_program, corpus, limits))
    assert {defence.name: defence.seen for defence in held if not defence.held} == {}


@needs_bwrap
def test_bubblewrap_is_asked_for_by_name():
    assert (
        run_python("import os; print(input(), os.getuid() >= 0)", "x\n", backend="bubblewrap", seconds=10).stdout
        == "x True\n"
    )
    missing = Bubblewrap("").run_program
    assert missing("print(1)", b"", Limits(seconds=10)).stdout == "1\n"


@needs_bwrap
@pytest.mark.parametrize(
    ("program", "state", "exit_code"),
    [
        ("import sys; sys.exit(3)", "finished", 3),
        ("import os; os.abort()", "crash", -6),
        ("import ctypes; ctypes.string_at(0)", "crash", -11),
        ("import os; os.kill(os.getpid(), 9)", "crash", -9),
        ("b = [0] * 10**10", "memory", None),
        ("while True: pass", "timeout", None),
    ],
)
def test_an_end_under_bubblewrap_is_told_as_under_the_fork_server(program, state, exit_code):
    result = Bubblewrap().run_program(program, b"", Limits(seconds=2.0))
    assert (result.state, result.exit_code) == (state, exit_code)


@needs_bwrap
def test_many_threads_may_run_commands_at_once():
    def run(number: int) -> str:
        return Bubblewrap().run_program(f"print({number}, input())", b"x" * number, Limits(seconds=20.0)).stdout

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(run, range(1, 17))) == [f"{number} {'x' * number}\n" for number in range(1, 17)]


OVER_THE_GROUP = """
import os, time
reading, writing = os.pipe()
for _ in range(16):
    if os.fork() == 0:
        os.close(writing)
        os.read(reading, 1)
        small = bytearray(b"x") * (15 << 20)
        time.sleep(9)
large = bytearray(b"x") * (200 << 20)
os.close(writing)
time.sleep(9)
"""


@needs_bwrap
def test_a_program_that_the_kernel_kills_for_memory_says_so_under_bubblewrap():
    group, reason = make_slot(8)
    if group is None:
        pytest.skip(reason)
    group.remove()
    limits = Limits(seconds=5.0, memory_bytes=256 << 20)
    assert Bubblewrap().run_program(OVER_THE_GROUP, b"", limits).state == "memory"


@needs_bwrap
def test_a_bubblewrap_that_encloses_nothing_is_a_refusal_and_not_a_wrong_answer(tmp_path):
    for text in ("exit 0", "echo no namespaces >&2; exit 1", "kill -9 $$"):
        broken = tmp_path / "bwrap"
        broken.write_text(f"#!/bin/sh\n{text}\n")
        broken.chmod(0o755)
        result = Bubblewrap(str(broken)).run_program("print(1)", b"", Limits())
        assert result.state == ("infrastructure" if "kill" in text else "refused")
    assert Bubblewrap(str(tmp_path / "none")).run_program("print(1)", b"", Limits()).state == "refused"


def test_a_missing_bubblewrap_is_a_refusal(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    result = Bubblewrap().run_program("print(1)", b"", Limits())
    assert (result.state, "not installed" in result.reason) == ("refused", True)


ADD_TWO = {
    "cpp": "#include <iostream>\nint main() { long a, b; std::cin >> a >> b; std::cout << a + b << std::endl; }",
    "rust": "use std::io;\nfn main() { let mut s = String::new(); io::stdin().read_line(&mut s).unwrap();\n"
    'let t: i64 = s.split_whitespace().map(|x| x.parse::<i64>().unwrap()).sum(); println!("{}", t); }',
    "javascript": "const [a, b] = require('fs').readFileSync(0, 'utf8').split(' ').map(Number); console.log(a + b)",
}


@isolated
@pytest.mark.parametrize("language", [pytest.param("cpp", marks=needs("g++")), pytest.param("rust", marks=needs("rustc")), pytest.param("javascript", marks=needs("node"))])  # fmt: skip  # noqa: E501
def test_programs_in_other_languages_are_graded(language):
    task = {"language": language, "stdio": [["2 3\n", "5\n"], ["10 -4\n", "6\n"]]}
    tag = {"cpp": "c++", "rust": "rs", "javascript": "js"}[language]
    right = check_code(f"Here:\n```{tag}\n{ADD_TWO[language]}\n```", task, seconds=10)
    assert right.passed is True, right
    wrong = check_code(ADD_TWO[language].replace("a + b", "a - b").replace(".sum()", ".product()"), task, seconds=10)
    assert wrong.passed is False
    assert check_code("this is no program (", task, seconds=10).passed is False


@isolated
@needs("g++")
def test_a_compiled_program_is_cached_confined_and_limited():
    cpp, limits = Native("cpp"), Limits(seconds=1.0, memory_bytes=128 << 20)
    assert cpp.run_program('#include "/etc/passwd"\nint main() {}', b"", limits).stderr.count("No such file") == 1
    assert cpp.run_program("int main() { volatile int x = 0; for (;;) x++; }", b"", limits).state == "timeout"
    hungry = "#include <cstring>\n#include <cstdlib>\n"
    hungry += "int main() { for (;;) { char *p = new char[1 << 20]; memset(p, 1, 1 << 20); } }"
    assert cpp.run_program(hungry, b"", limits).state == "memory"
    shell = '#include <cstdlib>\n#include <cstdio>\nint main() { printf("%d", system("cat /etc/passwd /root/*")); }'
    assert "root:" not in cpp.run_program(shell, b"", limits).stdout
    sock = '#include <sys/socket.h>\n#include <cstdio>\nint main() { printf("%d", socket(2, 1, 0)); }'
    assert cpp.run_program(sock, b"", limits).stdout == "-1"


@isolated
@needs("g++")
def test_what_does_not_compile_is_tried_once_and_not_for_each_test_case():
    cpp = Native("cpp")
    first = cpp.run_program('#include "/dev/zero"\nint main() {}', b"", Limits())
    assert first.reason.startswith("did not compile")
    assert cpp.run_program('#include "/dev/zero"\nint main() {}', b"", Limits()) is first


@isolated
@needs("node")
@pytest.mark.parametrize("cgroup", [True, False], ids=["cgroup", "no cgroup"])
def test_memory_outside_the_heap_of_javascript_is_bounded_too(cgroup, monkeypatch):
    without = ServerConfig(
        roles=("command",), allow_exec=True, readable=languages._toolchain("javascript"), modules=(), cgroup=cgroup
    )
    monkeypatch.setattr(languages, "shared_pool", lambda config: shared_pool(without))
    hungry = "const all = []; for (let i = 0; i < 30; i++) all.push(Buffer.alloc(100 << 20, 1)); console.log('ESCAPED')"
    result = Native("javascript").run_program(hungry, b"", Limits(seconds=20.0, memory_bytes=256 << 20))
    assert "ESCAPED" not in result.stdout
    assert (result.state, result.exit_code) in (("finished", 1), ("memory", None))
    threads = "require('zlib').gzip('x', () => console.log(6 * 7))"
    assert Native("javascript").run_program(threads, b"", Limits(seconds=20.0, memory_bytes=64 << 20)).stdout == "42\n"


def _verdict(code: bytes, number: int, arguments: tuple[int, ...] = (), arch: int = 0xC000003E) -> int:
    """A classic BPF interpreter, enough for our filter: the action for one call."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *(arguments + (0,) * 6)[:6])
    program = list(struct.iter_unpack("=HBBI", code))
    accumulator, place = 0, 0
    while True:
        operation, yes, no, value = program[place]
        place += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif operation == 0x06:
            return value
        else:
            taken = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[operation]
            place += yes if taken else no


ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000


def test_the_filter_allows_its_list_and_nothing_else():
    for machine, arch in (("x86_64", 0xC000003E), ("aarch64", 0xC00000B7)):
        code = job_filter(machine)
        allowed = set(allowed_calls(machine).values())
        special = {53, 157, 16, 72, 56, 435} if machine == "x86_64" else {199, 167, 29, 25, 220, 435}
        for number in range(600):
            if number not in special:
                assert _verdict(code, number, arch=arch) == (ALLOW if number in allowed else EPERM), (machine, number)


def test_the_filter_looks_at_the_arguments_that_matter():
    code = job_filter("x86_64")
    assert _verdict(code, 56, (17,)) == ALLOW
    assert _verdict(code, 56, (0x10000000 | 17,)) == EPERM
    assert _verdict(code, 435) == ENOSYS
    assert _verdict(code, 53, (1, 1)) == ALLOW
    assert _verdict(code, 53, (2, 1)) == EPERM
    assert [_verdict(code, 53, (1, kind | 0x80000)) for kind in (1, 2, 3, 5)] == [ALLOW, EPERM, EPERM, ALLOW]
    assert _verdict(code, 53, (1, 1 | 0x100000)) == EPERM
    assert [_verdict(code, 72, (3, command)) for command in (1030, 4, 6, 1024, 1026, 1031, 8)] == [ALLOW] * 3 + [
        EPERM
    ] * 4
    assert _verdict(code, 157, (15,)) == ALLOW
    assert _verdict(code, 157, (22,)) == EPERM
    assert _verdict(code, 16, (0, 0x5401)) == ALLOW
    assert _verdict(code, 16, (0, 0x5412)) == 0x00050019
    assert _verdict(code, 59) == EPERM
    assert _verdict(job_filter("x86_64", allow_exec=True), 59) == ALLOW
    assert _verdict(code, 0, arch=0x40000003) == KILL
    assert _verdict(code, 0x40000000 | 39) == EPERM


def test_an_unknown_architecture_is_named():
    with pytest.raises(NotImplementedError, match="no system-call table for riscv64"):
        job_filter("riscv64")
    assert platform.machine()
