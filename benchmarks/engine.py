"""Engine cost: a trivial signal against a bare call, numeric expressions over columns, scaling, memory of a stream."""

from __future__ import annotations

import subprocess
import sys

import guerdon as gd
from benchmarks._timing import best


@gd.signal(range=(0, 1))
def ends(rollout):
    return rollout.completion.endswith("42")


def rollouts(count):
    return [
        gd.Rollout(completion=f"It is {i}", prompt=f"p{i // 8}", extra={"a": i % 7 / 7, "b": i % 3 / 3, "c": i % 2})
        for i in range(count)
    ]


def numeric():
    """Five nodes: a column, a column, their weighted sum, and a gate by a third column."""
    a, b, c = gd.column("a"), gd.column("b"), gd.column("c", range=(0, 1))
    return gd.when(c, a + 0.5 * b, -1.0)


def trivial_signal():
    batch = rollouts(512)
    bare = best(lambda: [ends.function(r) for r in batch for _ in range(20)], 15) / 512 / 20
    engine = best(lambda: [ends.score(batch) for _ in range(20)], 15) / 512 / 20
    print(f"trivial signal, batches of 512: {engine * 1e6:.2f} us a rollout; bare call {bare * 1e6:.2f} us;", end=" ")
    print(f"overhead {(engine - bare) * 1e6:.2f} us, {engine / bare:.1f} x the call")


def scaling():
    expression, per = numeric(), {}
    for count in (10_000, 100_000, 1_000_000):
        frame = gd.Frame.of(rollouts(count))
        per[count] = best(lambda f=frame: expression.score(f), 3) / count
        del frame
    flat = max(per.values()) / min(per.values())
    for count, seconds in per.items():
        print(
            f"numeric expression, {count:>9,} rollouts: {seconds * 1e6:.2f} us a rollout, {1 / seconds:,.0f} a second"
        )
    print(f"dearest over cheapest of these sizes: {flat:.2f} x")


STREAM = """
import resource
import guerdon as gd
from benchmarks.engine import numeric, rollouts
done = sum(len(s) for s in numeric().stream(rollouts(8000) for _ in range(125)))
print(done, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def streaming():
    done, peak = subprocess.run(
        [sys.executable, "-c", STREAM], capture_output=True, text=True, check=True
    ).stdout.split()
    print(f"streamed {int(done):,} rollouts in batches of 8,000: peak memory {peak} MB")


def main():
    streaming()  # first: a child starts with its parent's peak
    trivial_signal()
    scaling()
