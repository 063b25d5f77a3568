"""Pass@k advantages without sampling subsets: the closed form against all subsets, and where it puts its weight.

Of 8 rollouts 0 to 8 are right. The closed form (lines) equals a walk over all ``C(8, k)`` subsets (dots). The total
weight of a prompt's advantages moves to hard prompts as ``k`` grows.

Measured: both agree to within 1e-9; for ``k = 4`` the total is greatest at two right rollouts (2.0889) and 0 from five
on, where every subset holds a right one.

    python examples/behaviour/best_of_k.py passk.png
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from _learning import Array, save_curves

import guerdon as gd

N = 8
SIZES = (1, 2, 4)


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
    return np.asarray((np.array(own) - best.mean()) / (best.std() + 1e-6))


if __name__ == "__main__":
    curves = {f"k = {k}": [float(np.abs(analytic(c, k)).sum()) for c in range(N + 1)] for k in SIZES}
    dots = {"by listing all subsets": [[float(np.abs(brute(c, k)).sum()) for c in range(N + 1)] for k in SIZES]}
    title = f"Pass@k training turns to hard prompts ({N} rollouts)"
    print(save_curves(curves, "right rollouts", "total |advantage|", title, "best_of_k.png", dots=dots))
