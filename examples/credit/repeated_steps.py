"""What repeating a good-looking step earns: everything under a sum, nothing under Clip or Delta.

python examples/credit/repeated_steps.py repetition.png
"""

from __future__ import annotations

from _softmax import save_curves

import guerdon as gd
from guerdon.methods.clip_delta import clip_delta

STEPS = gd.column("s", axis="step")
WAYS = {
    "sum": STEPS,
    "clip": clip_delta(STEPS, threshold=0.7, delta=False, weight=1.0),
    "delta": clip_delta(STEPS, weight=1.0),
    "clip, then delta": clip_delta(STEPS, threshold=0.7, weight=1.0),
}


def earned(way: str, *, most: int = 20) -> list[float]:
    """The total process reward with 0, 1, ..., ``most`` repetitions of a step of score 0.8."""
    rows = [{"s": [0.9, 0.4, 0.7, 0.8] + [0.8] * n} for n in range(most + 1)]
    return [float(total) for total in WAYS[way].sum().score(rows).values]


if __name__ == "__main__":
    curves = {way: earned(way) for way in WAYS}
    print(save_curves(curves, "repeated steps", "total process reward", "Repetition", "repeated_steps.png"))
