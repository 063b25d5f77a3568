"""Pass@k advantages without sampling subsets: the closed form against all subsets, and where it puts its weight.

python examples/credit/best_of_k.py passk.png
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from _softmax import Array, save_curves

import guerdon as gd

N = 8


def analytic(right: int, k: int) -> Array:
    """Advantages of ``N`` rollouts of which ``right`` are right."""
    rows = [{"prompt": "p", "ok": float(i < right)} for i in range(N)]
    return gd.credit.pass_at_k_advantage(gd.column("ok"), k=k).score(rows).values


def brute(right: int, k: int) -> Array:
    """The same by listing every subset."""
    subsets = list(combinations(range(N), k))
    best = np.array([float(min(s) < right) for s in subsets])
    if best.min() == best.max():
        return np.zeros(N)
    own = [np.mean([b for s, b in zip(subsets, best, strict=True) if i in s]) for i in range(N)]
    return (np.array(own) - best.mean()) / (best.std() + 1e-6)


if __name__ == "__main__":
    curves = {f"k = {k}": [float(np.abs(analytic(c, k)).sum()) for c in range(N + 1)] for k in (1, 2, 4)}
    title = f"Pass@k turns to hard prompts (n = {N})"
    print(save_curves(curves, "right rollouts", "total |advantage|", title, "best_of_k.png"))
