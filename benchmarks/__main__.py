"""Run all benchmarks, or those named: ``python -m benchmarks [engine answers ...]``."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def main(names: list[str]) -> int:
    there = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_"))
    wrong = set(names) - set(there)
    if wrong:
        print(f"no benchmark {', '.join(sorted(wrong))}; there are {', '.join(there)}", file=sys.stderr)
        return 2
    for name in names or there:
        module = importlib.import_module(f"benchmarks.{name}")
        if hasattr(module, "main"):
            print(f"\n== {name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
            sys.argv = [module.__name__]  # a benchmark's own options are for when it is run by itself
            module.main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
