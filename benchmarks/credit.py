"""Token-level credit on 4,096 ragged rollouts: time against plain numpy, memory against the result, peers beside.

The workload is the peers' (``shared/peers/inputs.py`` beside the checkout or in ``$GUERDON_SHARED``; an equal one is
made where that is missing). ``check`` must agree between rows of one method: the mean over rollouts of ``(i mod 97)``
times the rollout's first-token advantage. With ``$PEERS`` (a folder of virtual environments) verl and TRL run too.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks._timing import best
from guerdon import Axis, Scores, credit
from guerdon.credit import _kernels as kernels

GAMMA, LAM, WEIGHTS = 0.99, 0.95, (1.0, 0.5, 0.25)
SHARED = Path(os.environ.get("GUERDON_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "peers"


def workload():
    """Rewards (rollouts, 3) and lengths (rollouts,)."""
    if (SHARED / "inputs.py").exists():
        sys.path.insert(0, str(SHARED))
        import inputs

        return inputs.workload()
    rng = np.random.default_rng(20261130)
    lengths = np.clip(rng.lognormal(np.log(1500), 1.0, 4096), 16, 8192).astype(np.int64)
    return rng.random((4096, 3), dtype=np.float32), lengths


class Batch:
    """The workload as scores: three rewards and their weighted sum on rollouts, a critic's values on tokens."""

    def __init__(self):
        rewards, lengths = workload()
        self.lengths = lengths
        rollout = Axis.under(Axis("prompt", len(lengths) // 8), np.full(len(lengths) // 8, 8), "rollout")
        self.token = Axis.under(rollout, lengths, "token")
        data = rewards.astype(np.float64)
        self.parts = [Scores.of(rollout, data[:, i]) for i in range(3)]
        self.total = Scores.of(rollout, (rewards @ np.array(WEIGHTS, np.float32)).astype(np.float64))
        size = self.token.size
        # Only the axis of this one is read: a view of one zero.
        self.like = Scores(self.token, np.broadcast_to(0.0, size), np.broadcast_to(np.True_, size))
        self.value = Scores.of(self.token, self._values(lengths))

    @staticmethod
    def _values(lengths):
        padded = np.random.default_rng(1).random((len(lengths), 8192), dtype=np.float32)
        return padded[np.arange(8192) < lengths[:, None]].astype(np.float64)

    def gae(self):
        """Whitened advantages and the critic's targets, as PPO needs them."""
        advantage = credit.gae(self.total, self.value, gamma=GAMMA, lam=LAM)
        target = advantage.values + self.value.values
        return credit.batch_whiten(advantage), target


def methods(b):
    grpo = {"ddof": 1, "eps": 1e-6}
    return {
        "grpo": lambda: credit.spread(credit.group_relative(b.total, **grpo), b.like),
        "grpo-nostd": lambda: credit.spread(credit.group_relative(b.total, scale="none"), b.like),
        "rloo": lambda: credit.spread(credit.leave_one_out(b.total), b.like),
        "gdpo": lambda: credit.gdpo(b.parts, b.like, weights=WEIGHTS),
        "reinforce++": lambda: credit.reinforce_plus_plus(b.total, b.like),
        "reinforce++ gamma .99": lambda: credit.reinforce_plus_plus(b.total, b.like, gamma=GAMMA),
        "windowed td": lambda: credit.n_step(b.total, b.value, n=3, gamma=GAMMA),
        "suffix minima": lambda: credit.suffix_min(b.value),
        "gae": b.gae,
    }


FLOORS = {
    "grpo": 1.3, "grpo-nostd": 1.3, "rloo": 1.3, "gdpo": 15 / 4.9, "reinforce++": 50 / 4.9, "windowed td": 50 / 4.9,
    "suffix minima": 100 / 4.9, "gae": 100 / 4.9,
}  # fmt: skip
"""Allowed multiples of plain numpy's repeat: 1.3, or milliseconds on a machine that repeats (float32) in 4.9 ms."""


def peak_over(call, result_mb):
    """Peak resident memory that ``call`` adds, in multiples of its result."""

    def status(field):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) / 1024
        return float("nan")

    gc.collect()
    before = status("VmRSS")
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return float("nan")
    kept = call()
    added = status("VmHWM") - before
    del kept
    return added / result_mb


def plain_numpy():
    """The peers' own numpy references, in this process: milliseconds and check by method."""
    if not (SHARED / "credit.py").exists():
        return {}
    sys.path.insert(0, str(SHARED))
    spec = importlib.util.spec_from_file_location("peer_credit", SHARED / "credit.py")
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)
    cases = {m: f"credit.numpy-ragged.{m}" for m in ("grpo", "grpo-nostd", "rloo", "gdpo", "reinforce++")}
    cases["gae"] = "credit.numpy-padded.gae"
    return {m: (row["best"], row["check"]) for m, name in cases.items() if (row := peer.CASES[name][1]())}


def peers():
    """verl's and TRL's rows, where $PEERS holds their environments."""
    if not os.environ.get("PEERS") or not (SHARED / "credit.py").exists():
        print("peers: not run ($PEERS is not set); shared/peers/RESULTS.md holds their figures")
        return
    for only in ("credit.verl", "credit.trl"):
        done = subprocess.run(
            [sys.executable, str(SHARED / "credit.py"), "--only", only], capture_output=True, text=True, check=False
        )
        for line in done.stdout.splitlines():
            row = json.loads(line)
            print(f"  {row['case']:32s} {row.get('figure', row.get('skipped', row.get('failed')))} ms")


def main():
    b = Batch()
    values = b.total.values
    repeat64 = best(lambda: np.repeat(values, b.lengths), 7)
    small = values.astype(np.float32)
    repeat32 = best(lambda: np.repeat(small, b.lengths), 7)
    result_mb = 8 * b.token.size / 2**20
    print(f"{b.token.size:,} tokens; numpy repeat: {repeat64 * 1e3:.1f} ms, in float32 {repeat32 * 1e3:.1f} ms")
    reference = plain_numpy()
    compiled = kernels._numba() is not None
    print(f"compiled loops: {'numba' if compiled else 'not installed'}")
    print(f"{'method':24s} {'ms':>7s} {'x repeat':>9s} {'floor':>6s} {'numpy ms':>9s} {'memory x':>9s}  check")
    for name, call in methods(b).items():
        seconds = best(call, 5)
        unit = repeat64 if FLOORS.get(name) == 1.3 else repeat32
        outputs = 2 if name == "gae" else 1
        memory = peak_over(call, outputs * result_mb)
        out = call()
        first = (out[0] if name == "gae" else out).values[b.token.offsets[:-1]]
        check = float(np.mean(first * (np.arange(len(first)) % 97)))
        ours, theirs = reference.get(name, (float("nan"), float("nan")))
        floor = FLOORS.get(name, float("nan"))
        agrees = "" if np.isnan(theirs) else f" (numpy {theirs:.5g})"
        print(
            f"{name:24s} {seconds * 1e3:7.1f} {seconds / unit:9.2f} {floor:6.1f} {ours:9.1f} {memory:9.2f}  "
            f"{check:.5g}{agrees}"
        )
    edge = credit.group_relative(b.total, ddof=1, eps=1e-6)
    to_trainer = best(lambda: kernels.spread(edge.values, b.lengths, np.float32), 5)
    print(f"grpo straight into float32 at the edge: {to_trainer / repeat32:.2f} x plain repeat")
    peers()


if __name__ == "__main__":
    main()
