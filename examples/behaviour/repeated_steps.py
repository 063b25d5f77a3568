"""What repeating a good-looking step earns: everything under a sum, nothing under Clip or Delta.

A step of score 0.8 is repeated behind the steps 0.9, 0.4, 0.7, 0.8, as in the method's catalogue entry.

Measured: ten repetitions take the sum from 2.8 to 10.8; Clip stays at -0.3, Delta at 0.9 (the score of the first
step), both chained at 0.

    python examples/behaviour/repeated_steps.py repetition.png
"""

from __future__ import annotations

from _learning import save_curves

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
    title = "Under Clip and Delta repetition earns nothing"
    print(save_curves(curves, "repetitions of a good step", "total process reward", title, "repeated_steps.png"))
