"""Scoring in a fresh interpreter, as a worker on another machine would."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence

from guerdon.core.reward import Reward
from guerdon.core.rollout import Rollout
from guerdon.testing._subject import Outcome, outcomes

_START = 60.0
"""Seconds that starting an interpreter and importing the reward's modules may take on a busy machine."""


def in_fresh_interpreter(reward: Reward, rollouts: Sequence[Rollout], deadline: float) -> tuple[str, list[Outcome]]:
    """The reward's fingerprint and outcomes in a new process with another hash seed."""
    import cloudpickle

    seed = "1" if os.environ.get("PYTHONHASHSEED") == "2" else "2"
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", "from guerdon.testing._fresh import main; main()"]
    try:
        done = subprocess.run(
            command, input=cloudpickle.dumps((reward, list(rollouts))), capture_output=True, env=env,
            timeout=deadline + _START, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise AssertionError(f"still running after {deadline + _START:g} s in a fresh interpreter") from None
    if done.returncode:
        raise AssertionError("a fresh interpreter failed: " + done.stderr.decode(errors="replace").strip()[-500:])
    reply = json.loads(done.stdout.rsplit(b"\n", 1)[-1])
    return reply["fingerprint"], [tuple((v, r) for v, r in items) for items in reply["outcomes"]]


def main() -> None:
    """Read a pickled reward and rollouts from our own parent process, and write fingerprint and outcomes."""
    reward, rollouts = pickle.load(sys.stdin.buffer)
    reply = {"fingerprint": reward.fingerprint, "outcomes": outcomes(reward.score(rollouts), len(rollouts))}
    sys.stdout.write("\n" + json.dumps(reply))
