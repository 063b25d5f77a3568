"""Answer equivalence: Guerdon and math-verify on the same pairs in one run; accuracy, speed and their ratio.

    python -m benchmarks.answers [--peer PYTHON]

PYTHON is an interpreter with math-verify 0.9.0 (or set GUERDON_MATH_VERIFY_PYTHON); without one only Guerdon is
measured. Times are CPU seconds of one process; ``cold`` is the first pass of a fresh process, ``warm`` a second one
over the same pairs, in which Guerdon's memory of recent pairs counts. math-verify gets bare strings wrapped in
a box (it reads LaTeX only inside delimiters); Guerdon gets them as they are. Accuracy leaves out rows with options
or a disputed label.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("GUERDON_SHARED", ROOT.parent / "shared")) / "data"

PEER = r"""
import json, logging, sys, time
logging.disable(logging.CRITICAL)
from math_verify import parse, verify
box = lambda s: s if "$" in s or "\\boxed" in s else "\\boxed{" + s + "}"
rows, wrap, passes = json.load(sys.stdin)
out = {}
for name in passes:
    verdicts, spent = [], []
    for gold, answer, _ in rows:
        start = time.process_time()
        try:
            same = bool(verify(parse(box(gold)), parse(box(answer) if wrap else answer)))
        except BaseException:
            same = False
        spent.append(time.process_time() - start)
        verdicts.append(same)
    out[name] = [verdicts, spent]
json.dump(out, sys.stdout)
"""

OURS = r"""
import json, sys, time
from guerdon.verify.answers import check_answer
rows, wrap, passes = json.load(sys.stdin)
out = {}
for name in passes:
    verdicts, spent = [], []
    for gold, answer, _ in rows:
        start = time.process_time()
        verdict = check_answer(gold, answer)
        spent.append(time.process_time() - start)
        verdicts.append(verdict.equal)
    out[name] = [verdicts, spent]
json.dump(out, sys.stdout)
"""


def read(*parts: str) -> list[dict]:
    path = DATA.joinpath(*parts)
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as lines:
        return [json.loads(line) for line in lines]


def pairs() -> list[tuple]:
    rows = [r for r in read("answers", "answer_pairs.jsonl") if r["kind"] == "math"]
    return [
        (r["gold"], r["prediction"], None if r.get("params") or r.get("dispute") else bool(r["expected"])) for r in rows
    ]


def issues() -> list[tuple]:
    rows = read("answers", "answer_pairs_from_issues.jsonl")
    return [(r["gold"], r["prediction"], bool(r["expected"])) for r in rows if r["expected"] is not None]


def adversarial() -> list[tuple]:
    rows = [r for r in read("answers", "adversarial_pairs.jsonl") if r["cat"] in ("value", "extraction", "failopen")]
    return [(r["gold"], r["prediction"], bool(r["expected"])) for r in rows if r["expected"] is not None]


def gsm8k() -> list[tuple]:
    return [
        (r["gold"], r["solution"], bool(r["is_correct"])) for r in read("gsm8k", "model_solutions_labelled.jsonl.gz")
    ]


def best_of_8() -> list[tuple]:
    rows = read("qwen_bon100", "math_cot_100.jsonl.gz")
    return [(r["gt"], text, bool(ok)) for r in rows for text, ok in zip(r["code"], r["score"], strict=True)]


def golds() -> list[tuple]:
    rows = read("gold_answers", "golds.jsonl.gz")
    strings = [r["gold"] if isinstance(r["gold"], str) else repr(r["gold"]) for r in rows]
    return [(g, g, True) for g in strings]


# name -> (rows, whether the answers are bare strings, whether the peer runs it)
SETS = {
    "pairs": (pairs, True, True),
    "issues": (issues, True, True),
    "adversarial": (adversarial, True, True),
    "gsm8k": (gsm8k, False, True),
    "best_of_8": (best_of_8, False, True),
    "golds": (golds, True, False),
}


def measure(python: str, script: str, rows: list[tuple], wrap: bool) -> dict:
    task = json.dumps([rows, wrap, ["cold", "warm"]])
    done = subprocess.run([python, "-c", script], input=task, capture_output=True, text=True, timeout=3_000)
    if done.returncode:
        raise SystemExit(f"{python} failed: {done.stderr[-2_000:]}")
    return json.loads(done.stdout)


def summary(rows: list[tuple], result: dict) -> dict:
    tally = {"missed": 0, "false": 0, "unknown": 0, "judged": 0}
    for (_, _, expected), verdict in zip(rows, result["cold"][0], strict=True):
        if expected is None:
            continue
        tally["judged"] += 1
        tally["unknown"] += verdict is None
        tally["missed"] += expected and verdict is not True
        tally["false"] += verdict is True and not expected
    out = {**tally, "right": round(1 - (tally["missed"] + tally["false"]) / tally["judged"], 4)}
    for name in ("cold", "warm"):
        spent = sorted(result[name][1])
        out[name] = {"per_s": len(spent) / sum(spent), "p50_ms": spent[len(spent) // 2] * 1e3,
                     "p99_ms": spent[int(len(spent) * 0.99)] * 1e3, "max_ms": spent[-1] * 1e3}  # fmt: skip
    return out


def show(name: str, who: str, s: dict) -> None:
    print(f"{name:12s} {who:12s} right {s['right']:.4f} of {s['judged']}", end=" ")
    print(f"(missed {s['missed']}, false {s['false']}, unknown {s['unknown']})", end="")
    for k in ("cold", "warm"):
        t = s[k]
        print(f"  {k} {t['per_s']:.0f}/s p50 {t['p50_ms']:.3f} p99 {t['p99_ms']:.2f} max {t['max_ms']:.1f} ms", end="")
    print()


def main(argv: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--peer", default=os.environ.get("GUERDON_MATH_VERIFY_PYTHON", ""), help="a Python with math-verify"
    )
    options.add_argument("--only", nargs="*", choices=sorted(SETS), default=sorted(SETS))
    chosen = options.parse_args(argv)
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}; set GUERDON_SHARED")
    print(f"loads {os.getloadavg()}, {time.strftime('%Y-%m-%d')}")
    for name in chosen.only:
        make, wrap, with_peer = SETS[name]
        rows = make()
        ours = summary(rows, measure(sys.executable, OURS, rows, wrap))
        show(name, "guerdon", ours)
        if chosen.peer and with_peer:
            peer = summary(rows, measure(chosen.peer, PEER, rows, wrap))
            show(name, "math-verify", peer)
            ratios = {k: ours[k]["per_s"] / peer[k]["per_s"] for k in ("cold", "warm")}
            print(f"{name:12s} ratio        cold {ratios['cold']:.1f}x, warm {ratios['warm']:.1f}x")


if __name__ == "__main__":
    main()
