"""gVisor: whatever ends a job or its owner, nothing is left; and where it can't run, it says why."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from guerdon.backends.sandbox import Gvisor, Limits, describe_isolation, run_python
from guerdon.backends.sandbox.bundle import PREFIX, remove_left_behind
from guerdon.verify.programs import check_code
from guerdon.verify.programs.attacks import CHANNELS

works = pytest.mark.skipif(bool(Gvisor().refusal()), reason=Gvisor().refusal())
_ADD = "def add(a, b):\n    return a + b"
_FORKS = "import os\nfor _ in range(8): os.fork() or exec('while 1: pass')\nwhile 1: pass"


def run(program: str, **limits):
    return run_python(program, backend="gvisor", **{"seconds": 10.0, **limits})


@pytest.fixture
def own_place(tmp_path, monkeypatch):
    """Bundles are made here, so that what others leave in the common place at the same time is not taken for ours."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _processes_of(place: Path) -> list[int]:
    """Every process of the host that was started with a path below `place`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                found += [int(entry.name)] if str(place).encode() in (entry / "cmdline").read_bytes() else []
            except OSError:
                continue  # it has ended
    return found


def _left(place: Path) -> dict[str, object]:
    return {
        "processes": _processes_of(place),
        "files": sorted(place.iterdir()),
        "mounts": [line for line in Path("/proc/mounts").read_text().splitlines() if PREFIX in line],
        "groups": [str(path) for path in Path("/sys/fs/cgroup").rglob(f"guerdon-{os.getpid()}-*")],
    }


@works
def test_nothing_is_left_whatever_the_end(own_place):
    before, descriptors = _left(own_place)["groups"], os.listdir("/proc/self/fd")
    for program in ("print(1)", "while 1: pass", "while 1: print('x' * 1000)", "import os; os.kill(-1, 9)", _FORKS):
        assert run(program, seconds=0.5).state != "infrastructure"
    check_code(_ADD, CHANNELS["tester"], backend="gvisor", seconds=5)
    assert _left(own_place) == {"processes": [], "files": [], "mounts": [], "groups": before}
    assert len(os.listdir("/proc/self/fd")) == len(descriptors)


@works
def test_a_sandbox_that_someone_kills_is_our_failure_and_leaves_nothing(own_place):
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.05):
            for process in _processes_of(own_place):
                try:
                    if b"runsc-sandbox" in Path(f"/proc/{process}/cmdline").read_bytes():
                        os.kill(process, signal.SIGKILL)
                except (ProcessLookupError, FileNotFoundError):
                    continue

    before = _left(own_place)["groups"]
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        result = run("import time; time.sleep(60)")
    finally:
        over.set()
        killer.join()
    assert result.state == "infrastructure", result
    assert "gVisor" in result.reason
    assert _left(own_place) == {"processes": [], "files": [], "mounts": [], "groups": before}


@works
def test_a_killed_owner_takes_its_jobs_along_and_the_next_one_clears_up(own_place):
    program = "from guerdon.backends.sandbox import run_python as r; r('while 1: pass', backend='gvisor', seconds=60)"
    owner = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(own_place)})
    deadline = time.monotonic() + 30
    while not list(own_place.glob(f"{PREFIX}*/state/*")) or len(_processes_of(own_place)) < 4:
        assert time.monotonic() < deadline, "it did not start"
        time.sleep(0.1)
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + 10
    while _processes_of(own_place):
        assert time.monotonic() < deadline, "its sandbox lives on"
        time.sleep(0.1)
    (folder,) = own_place.iterdir()
    groups = [Path(group) for group in (folder / "groups").read_text().split()]
    assert remove_left_behind() == []  # too young: its owner might be about to lock it
    while not remove_left_behind(time.time() + 3600):  # its control group may still be emptying
        assert time.monotonic() < deadline, "it is not cleared up"
        time.sleep(0.1)
    assert not folder.exists()
    assert not [group for group in groups if group.exists()]


@works
def test_a_folder_in_use_is_not_cleared_up(own_place):
    seen: list[object] = []
    job = threading.Thread(target=lambda: seen.append(run("import time; time.sleep(1); print('done')").stdout))
    job.start()
    while not list(own_place.glob(f"{PREFIX}*")):
        time.sleep(0.02)
    time.sleep(0.1)
    assert remove_left_behind(time.time() + 3600) == []
    job.join()
    assert seen == ["done\n"]


@works
def test_a_host_without_room_is_our_failure(own_place):
    (own_place / "gone").mkdir()
    tempfile.tempdir = str(own_place / "gone")
    (own_place / "gone").rmdir()
    result = run("print(1)")
    assert (result.state, "could not be run" in result.reason) == ("infrastructure", True), result
    verdict = check_code(_ADD, CHANNELS["tester"], backend="gvisor")
    assert (verdict.passed, verdict.state) == (None, "infrastructure")


def test_without_runsc_nothing_runs_and_the_reason_helps(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    result = run("print(1)")
    assert (result.state, result.stdout) == ("refused", "")
    assert "runsc is not installed (apt install runsc" in result.reason
    verdict = check_code(_ADD, CHANNELS["cases"], backend="gvisor")
    assert (verdict.passed, verdict.state) == (None, "refused")
    assert "runsc is not installed" in verdict.reason
    apart = check_code(_ADD, CHANNELS["tester"], backend="gvisor")
    assert (apart.passed, apart.state) == (None, "refused")
    assert any("runsc" in other or "apt install runsc" in other for other in describe_isolation().others)


def test_a_runsc_that_can_not_work_here_is_tried_once_and_quoted(tmp_path):
    broken = tmp_path / "runsc"
    broken.write_text(f"#!/bin/sh\necho once >> {tmp_path}/tries\necho 'no ptrace on this host' >&2\nexit 1\n")
    broken.chmod(0o755)
    sandbox = Gvisor(str(broken))
    assert "gVisor does not work on this host" in sandbox.refusal()
    if shutil.which("unshare") and os.geteuid() == 0:
        assert "no ptrace on this host" in sandbox.refusal()
        tries = (tmp_path / "tries").read_text()
        assert sandbox.run_program("print(1)", b"", Limits()).state == "refused"
        assert (tmp_path / "tries").read_text() == tries
