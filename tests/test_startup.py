"""Starting must stay fast: heavy parts are imported where they are used."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

HEAVY = [
    "numpy",
    "pyarrow",
    "rich",
    "typer",
    "yaml",
    "jinja2",
    "asyncio",
    "torch",
    "pandas",
    "httpx",
    "sympy",
    "flint",
    "re2",
    "orjson",
]


def cpu_seconds(*command):
    """CPU seconds of the fastest of seven runs: what a quiet machine would need."""
    times = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def test_import_loads_no_heavy_module():
    code = f"import sys, guerdon; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_starting_is_fast():
    assert cpu_seconds(sys.executable, "-c", "import guerdon") < 0.3
    assert cpu_seconds(sys.executable, "-m", "guerdon", "--help") < 0.5
