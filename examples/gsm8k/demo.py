"""What `make demo` runs: the main job on a bundled real excerpt, through the command line that users have."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = Path("out") / "demo"
DATA = HERE / "solutions.jsonl"


def guerdon(*arguments: str | Path, quiet: bool = False) -> str:
    """Run the command line, show the command and what it said, and give its output."""
    words = [os.path.relpath(a) if isinstance(a, Path) else a for a in arguments]
    print("\n$ guerdon " + " ".join(words), flush=True)
    program = Path(sys.executable).with_name("guerdon")
    paths = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
    run = subprocess.run(
        [program, *words], stdout=subprocess.PIPE, text=True, check=False, env={**os.environ, "PYTHONPATH": paths}
    )
    if run.returncode:
        sys.exit(f"guerdon ended with code {run.returncode}\n{run.stdout}")
    if not quiet:
        print(run.stdout, end="")
    return run.stdout


def asked(spec: str, cache: str) -> tuple[int, int, float]:
    """How often the slow leaf was asked and answered from the cache, and the seconds the run took."""
    words = ["score", DATA, "--spec", HERE / spec, "--allow-code", "slow_judge", "--cache", OUT / cache, "--json"]
    found = json.loads(guerdon(*words, quiet=True))
    tally = found["signals"]["careful"]
    return int(tally["asked"]), int(tally["cached"]), found["seconds"]


def main() -> None:
    """Score, explain, show the laziness, report."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    scored, page = OUT / "scored.parquet", OUT / "report.html"
    print("1. Score 200 published solutions of 50 grade-school problems, four models each.")
    guerdon("spec", "check", HERE / "reward.yaml")
    guerdon("score", DATA, "--spec", HERE / "reward.yaml", "-o", scored)
    print("\n2. Why did this one get its reward?")
    guerdon("explain", scored, "--row", "20", "--no-text")
    print("\n3. A slow leaf (20 ms a call, as a judge model would be) is asked only where the reward depends on it.")
    full, _, slow = asked("careful_everywhere.yaml", "full.sqlite")
    lazy, _, fast = asked("careful_where_correct.yaml", "lazy.sqlite")
    again, cached, fastest = asked("careful_where_correct.yaml", "lazy.sqlite")
    print(f"   asked about everything: {full} calls ({slow:.2f} s)")
    print(f"   behind `when: correct`: {lazy} calls ({fast:.2f} s), {full / lazy:.1f} times fewer")
    print(f"   the same run again:     {again} calls, {cached} from the cache ({fastest:.2f} s)")
    print("\n4. The report: distributions, groups, agreement with the label, every rollout with its evidence.")
    guerdon("report", scored, "--label", "is_correct", "--by", "model", "--title", "GSM8K excerpt", "-o", page)
    print(f"\nOpen the report in a browser: {page.resolve()}")


if __name__ == "__main__":
    main()
