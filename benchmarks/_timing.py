"""Timing for benchmarks: the best of several repetitions of CPU time, which a busy neighbour disturbs least."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(work: Callable[[], object], repeat: int = 7, clock: Callable[[], float] = time.process_time) -> float:
    """Seconds of the fastest of ``repeat`` runs, after one warm-up."""
    work()
    times = []
    for _ in range(repeat):
        started = clock()
        work()
        times.append(clock() - started)
    return min(times)
