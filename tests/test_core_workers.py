"""The worker pool: deadlines that hold, neighbours that are not harmed, nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from guerdon.core.workers import Outcome, WorkerPool, default_pool


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(2) as shared:
        shared.map(len, ["warm", "up"], timeout=5.0)
        yield shared


def catastrophic(index):
    if index == 7:
        return re.match(r"(a+)+$", "a" * 40 + "b") is None
    return index * index


def deaf_loop(_):
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(name, signal.SIG_IGN)
    while True:
        pass


def huge_power(_):
    return 9**9**9


def test_outcomes_come_in_the_order_of_the_items(pool):
    outcomes = pool.map(len, ["a" * n for n in range(50)], timeout=5.0)
    assert [o.value for o in outcomes] == list(range(50))
    assert {o.kind for o in outcomes} == {"ok"}
    assert all(0.0 <= o.seconds < 1.0 for o in outcomes)


def test_no_items_give_no_outcomes(pool):
    assert pool.map(len, [], timeout=1.0) == []


def test_one_hang_in_c_code_costs_one_deadline_and_only_its_own_item(pool):
    pool.map(catastrophic, [0] * 16, timeout=20.0)  # both workers import this module
    start = time.monotonic()
    outcomes = pool.map(catastrophic, range(100), timeout=0.5)
    assert time.monotonic() - start < 2.5
    assert outcomes[7].kind == "timeout"
    assert outcomes[7].error == "timed out after 0.5 s"
    assert [o.value for i, o in enumerate(outcomes) if i != 7] == [i * i for i in range(100) if i != 7]
    assert [o.value for o in pool.map(len, ["ab"], timeout=0.5)] == [2]


@pytest.mark.parametrize("hang", [deaf_loop, huge_power])
def test_work_that_ignores_signals_or_holds_the_interpreter_is_killed_on_time(pool, hang):
    start = time.monotonic()
    assert [o.kind for o in pool.map(hang, [0], timeout=0.3)] == ["timeout"]
    assert time.monotonic() - start < 3.0  # a fresh worker first imports this module


def test_eight_hangs_on_two_workers_take_about_four_deadlines(pool):
    start = time.monotonic()
    outcomes = pool.map(lambda i: time.sleep(60) if i % 5 == 0 else i, range(40), timeout=0.3)
    elapsed = time.monotonic() - start
    assert [i for i, o in enumerate(outcomes) if o.kind == "timeout"] == [0, 5, 10, 15, 20, 25, 30, 35]
    assert sum(o.kind == "ok" for o in outcomes) == 32
    assert 1.1 < elapsed < 3.5


def test_time_in_the_queue_does_not_count(pool):
    outcomes = pool.map(lambda _: time.sleep(0.1), range(12), timeout=0.4)
    assert {o.kind for o in outcomes} == {"ok"}


def test_a_small_job_does_not_wait_for_a_large_one(pool):
    large = pool.submit(lambda _: time.sleep(0.01), range(200), timeout=5.0)
    start = time.monotonic()
    assert pool.map(len, ["abc"], timeout=5.0)[0].value == 3
    assert time.monotonic() - start < 0.5
    assert not large.done()
    assert len(large.result()) == 200


def test_items_behind_a_slow_one_move_to_an_idle_worker(pool):
    pool.map(lambda i: i, range(64), timeout=5.0)

    def slow_first(i):
        return time.sleep(1.0 if i == 0 else 0.02)

    start = time.monotonic()
    assert {o.kind for o in pool.map(slow_first, range(40), timeout=5.0)} == {"ok"}
    assert time.monotonic() - start < 1.5


def test_an_exception_keeps_its_type_message_and_place(pool):
    def half(i):
        if i == 1:
            raise ValueError("one is odd")
        return i / 2

    outcomes = pool.map(half, [0, 1, 2], timeout=5.0)
    assert [o.kind for o in outcomes] == ["ok", "raised", "ok"]
    first, *places = outcomes[1].error.splitlines()
    assert first == "ValueError: one is odd"
    assert "in half" in places[-1]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_exit_exceptions_are_outcomes_and_the_worker_lives(error):
    def leave(item):
        if item:
            raise error("bye")
        return os.getpid()

    with WorkerPool(1) as pool:
        before, left, after = pool.map(leave, [0, 1, 0], timeout=5.0)
    assert left.kind == "raised"
    assert left.error.startswith(f"{error.__name__}: bye")
    assert before.value == after.value


def test_a_broken_exception_is_still_an_outcome(pool):
    class Broken(Exception):
        def __str__(self):
            raise RuntimeError

    def fail(_):
        raise Broken

    assert "Broken: (its message could not be read)" in pool.map(fail, [0], timeout=5.0)[0].error


def test_a_crash_is_tried_once_more_and_the_others_are_not_harmed(pool, tmp_path):
    def crash(i):
        if i == 3:
            with open(tmp_path / "tries", "a") as file:
                file.write("x")
            os._exit(5)
        return i

    outcomes = pool.map(crash, range(20), timeout=5.0)
    assert outcomes[3].kind == "died"
    assert outcomes[3].error == "worker died (exit status 5)"
    assert [o.value for i, o in enumerate(outcomes) if i != 3] == [i for i in range(20) if i != 3]
    assert (tmp_path / "tries").read_text() == "xx"


def test_a_crash_that_passes_is_forgiven(pool, tmp_path):
    def once(i):
        if i == 2 and not (tmp_path / "seen").exists():
            (tmp_path / "seen").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return i

    assert [o.value for o in pool.map(once, range(5), timeout=5.0)] == [0, 1, 2, 3, 4]


def test_a_segmentation_fault_names_its_signal(pool):
    assert pool.map(lambda _: ctypes.string_at(0), [0], timeout=5.0)[0].error == "worker died (signal 11)"


def test_finished_items_of_a_killed_chunk_are_not_run_again(pool, tmp_path):
    def count(i):
        fd = os.open(tmp_path / "runs", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, b"%d\n" % i)
        os.close(fd)
        if i == 60:
            time.sleep(60)

    pool.map(count, range(100), timeout=0.3)
    runs = (tmp_path / "runs").read_text().split()
    assert sorted(map(int, runs)) == list(range(100))


def test_results_that_cannot_be_pickled_say_what_to_return_instead(pool):
    outcome = pool.map(lambda _: threading.Lock(), [0], timeout=5.0)[0]
    assert outcome.kind == "raised"
    assert "a lock, cannot be sent back" in outcome.error


def test_items_that_cannot_be_pickled_are_outcomes_and_functions_an_error(pool):
    outcomes = pool.map(str, ["a", threading.Lock(), "b"], timeout=5.0)
    assert [o.kind for o in outcomes] == ["ok", "raised", "ok"]
    assert "item 1 cannot be sent" in outcomes[1].error
    lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot be sent to a worker process"):
        pool.submit(lambda _: lock, [0], timeout=1.0)


def test_a_function_that_cannot_be_loaded_says_so(pool, tmp_path, monkeypatch):
    (tmp_path / "vanishing_module.py").write_text("def f(x): return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    import vanishing_module

    function = vanishing_module.f
    (tmp_path / "vanishing_module.py").write_text("raise ImportError('gone')\n")
    os.utime(tmp_path / "vanishing_module.py", (1, 1))
    outcomes = pool.map(function, [1, 2], timeout=5.0)
    assert {o.kind for o in outcomes} == {"raised"}
    assert "could not be loaded in a worker process" in outcomes[0].error


def test_printing_and_writing_to_descriptor_1_do_not_reach_the_results(pool, capfd):
    def noisy(i):
        print("hello", i)
        os.write(1, b"raw bytes\n")
        return i

    assert [o.value for o in pool.map(noisy, range(10), timeout=5.0)] == list(range(10))
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("spoil", ["close", "write"])
def test_spoiling_all_descriptors_hurts_only_the_item_that_does_it(spoil):
    def hostile(i):
        if i != 5:
            return i
        for fd in range(3, 64):
            with contextlib.suppress(OSError):
                os.close(fd) if spoil == "close" else os.write(fd, b"\xff" * 64)
        return i

    with WorkerPool(2) as pool:
        outcomes = pool.map(hostile, range(12), timeout=5.0)
    assert outcomes[5].kind == "died" or spoil == "close"  # a finished result is saved from the shared page
    assert [o.value for i, o in enumerate(outcomes) if i != 5] == [i for i in range(12) if i != 5]


def test_a_function_that_forks_returns_once(pool):
    def twins(i):
        os.fork()
        return i

    assert [o.value for o in pool.map(twins, range(4), timeout=5.0)] == [0, 1, 2, 3]
    assert [o.value for o in pool.map(len, ["a"], timeout=5.0)] == [1]


def test_a_replacement_has_loaded_the_function_before_it_is_needed(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text(
        "import time\nLOADED = time.monotonic()\n"
        "def f(hang):\n    time.sleep(60 if hang else 0)\n    return time.monotonic() - LOADED\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import slow_to_import

    with WorkerPool(1) as pool:
        outcomes = pool.map(slow_to_import.f, [True, False] * 4, timeout=0.5)
    assert [o.kind for o in outcomes] == ["timeout", "ok"] * 4
    assert outcomes[1].value < 0.4  # the first replacement loads it when it is needed
    assert min(o.value for o in outcomes[3::2]) > 0.1


def test_what_a_killed_function_had_started_is_killed_too(pool, tmp_path):
    def start(_):
        child = subprocess.Popen(["sleep", "600"])
        (tmp_path / "pid").write_text(str(child.pid))
        time.sleep(60)

    assert pool.map(start, [0], timeout=0.5)[0].kind == "timeout"
    assert _gone(int((tmp_path / "pid").read_text()))


def test_killing_the_nursery_ends_nothing_but_its_workers(pool):
    def kill_parent(i):
        if i == 0:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        return i

    assert pool.map(kill_parent, [0], timeout=5.0)[0].kind == "died"
    assert [o.value for o in pool.map(len, ["a", "bb"], timeout=5.0)] == [1, 2]


def test_a_memory_cap_raises_in_the_item_and_the_worker_lives():
    with WorkerPool(1, memory_bytes=64 << 20) as pool:
        outcomes = pool.map(lambda n: len(b"x" * n), [10, 1 << 30, 1000], timeout=5.0)
    assert [o.kind for o in outcomes] == ["ok", "raised", "ok"]
    assert outcomes[1].error.startswith("MemoryError")


def test_huge_items_and_results_pass(pool):
    text = "x" * (30 << 20)
    outcomes = pool.map(lambda s: s[::-1], [text, "short", text], timeout=20.0)
    assert [len(o.value) for o in outcomes] == [len(text), 5, len(text)]


def test_a_thousand_trivial_items_cost_little_each(pool):
    pool.map(len, ["a"], timeout=5.0)
    best = min(_timed(lambda: pool.map(len, ["abc"] * 5000, timeout=5.0)) for _ in range(3))
    assert best / 5000 < 100e-6  # about 10 microseconds when the machine is idle


def test_many_threads_share_one_pool(pool):
    results: dict[int, list[Outcome]] = {}

    def work(n):
        results[n] = pool.map(lambda i: (n, i), range(30), timeout=5.0)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all([o.value for o in results[n]] == [(n, i) for i in range(30)] for n in range(8))


def test_it_works_inside_a_running_event_loop_without_blocking_it(pool):
    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticker = asyncio.create_task(tick())
        both = await asyncio.gather(
            pool.amap(lambda _: time.sleep(0.2), [0], timeout=5.0), pool.amap(len, ["abc"], timeout=5.0)
        )
        ticker.cancel()
        sync = pool.map(len, ["abcd"], timeout=5.0)
        return both[0][0].kind, both[1][0].value, sync[0].value, ticks > 5

    assert asyncio.run(main()) == ("ok", 3, 4, True)


def test_a_cancelled_call_drops_what_has_not_started(pool, tmp_path):
    def touch(i):
        time.sleep(0.05)
        (tmp_path / str(i)).touch()

    future = pool.submit(touch, range(200), timeout=5.0)
    time.sleep(0.3)
    assert future.cancel()
    start = time.monotonic()
    assert pool.map(len, ["a"], timeout=5.0)[0].value == 1
    assert time.monotonic() - start < 1.5
    time.sleep(0.3)
    assert len(os.listdir(tmp_path)) < 60


def test_values_and_classes_of_main_travel_without_a_main_guard(tmp_path):
    script = """
import json, threading
from dataclasses import dataclass
from guerdon.core.workers import WorkerPool, default_pool

@dataclass
class Point:
    x: int

OFFSET = 10
def shift(p): return Point(p.x + OFFSET)

result = default_pool().map(shift, [Point(1), Point(2)], timeout=5.0)
assert all(type(o.value) is Point for o in result), result
print(json.dumps([o.value.x for o in result]))
"""
    for command, text in (([sys.executable, "-"], script), ([sys.executable, str(tmp_path / "s.py")], "")):
        (tmp_path / "s.py").write_text(script)
        run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=False)
        assert (run.returncode, run.stderr) == (0, "")
        assert json.loads(run.stdout) == [11, 12]


def test_a_module_in_the_working_directory_does_not_shadow_the_standard_library(tmp_path):
    (tmp_path / "struct.py").write_text("raise RuntimeError('shadowed')\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "s.py").write_text(
        "from guerdon.core.workers import WorkerPool\n"
        "with WorkerPool(1) as p: print(p.map(len, ['abc'], timeout=5)[0].value)\n"
    )
    run = subprocess.run(
        [sys.executable, "sub/s.py"], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
    )
    assert (run.stdout, run.stderr) == ("3\n", "")


def test_a_forked_child_gets_a_pool_of_its_own_and_leaves_the_parents_alone():
    pool = default_pool()
    parents = {o.value for o in pool.map(lambda _: os.getpid(), range(4), timeout=5.0)}
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            fresh = {o.value for o in default_pool().map(lambda _: os.getpid(), range(4), timeout=5.0)}
            old = {o.value for o in pool.map(lambda _: os.getpid(), range(4), timeout=5.0)}
            os.write(write, json.dumps(sorted(fresh | old)).encode())
            default_pool().close()
            pool.close()
        finally:
            os._exit(0)
    os.close(write)
    childrens = set(json.loads(os.read(read, 4096)))
    os.close(read)
    os.waitpid(child, 0)
    assert childrens
    assert not childrens & parents
    assert {o.value for o in pool.map(lambda _: os.getpid(), range(4), timeout=5.0)} <= parents
    pool.close()
    assert default_pool() is not pool


def test_closing_leaves_no_process_no_descriptor_and_no_thread():
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    pool = WorkerPool(3)
    pids = {o.value for o in pool.map(lambda _: (time.sleep(0.02), os.getpid())[1], range(30), timeout=5.0)}
    running = pool.submit(lambda _: time.sleep(60), range(5), timeout=60.0)
    time.sleep(0.1)
    pool.close()
    pool.close()
    assert isinstance(running.exception(1.0), RuntimeError)
    with pytest.raises(RuntimeError, match="closed"):
        pool.map(len, ["a"], timeout=1.0)
    assert all(_gone(pid) for pid in pids)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert threading.active_count() == threads


PARENT = """
import os, sys, time
from guerdon.core.workers import WorkerPool
pool = WorkerPool(2)
print(*{o.value for o in pool.map(lambda _: (time.sleep(0.05), os.getpid())[1], range(8), timeout=5)}, flush=True)
pool.map(lambda _: time.sleep(600), range(4), timeout=600)
"""


def test_when_the_parent_is_killed_the_workers_end():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    pids = [int(p) for p in parent.stdout.readline().split()]
    time.sleep(0.2)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert pids
    assert all(_gone(pid) for pid in pids)


def test_ctrl_c_in_the_parent_shows_one_traceback_only():
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    pids = [int(p) for p in parent.stdout.readline().split()]
    time.sleep(0.2)
    os.killpg(parent.pid, signal.SIGINT)
    _, errors = parent.communicate(timeout=10)
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert all(_gone(pid) for pid in pids)


def test_workers_use_one_thread_for_linear_algebra_and_share_preloaded_modules():
    with WorkerPool(1, preload=["colorsys", "no_such_module_here"]) as pool:
        found = pool.map(
            lambda _: (
                os.environ["OMP_NUM_THREADS"],
                os.environ["OPENBLAS_NUM_THREADS"],
                "colorsys" in sys.modules,
            ),
            [0],
            timeout=5.0,
        )[0].value
    assert found == ("1", "1", True)


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_a_timeout_that_is_not_positive_is_refused(pool, timeout):
    with pytest.raises(ValueError, match="positive"):
        pool.map(len, ["a"], timeout=timeout)


def test_workers_that_cannot_start_are_an_outcome_not_an_endless_loop(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with WorkerPool(2) as pool:
        outcomes = pool.map(len, ["a", "b", "c"], timeout=1.0)
    assert {o.kind for o in outcomes} == {"died"}
    assert "the process that forks workers ended: exit status 1" in outcomes[0].error


def _timed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _gone(pid: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False
