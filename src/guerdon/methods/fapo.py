"""FAPO: a right answer through a wrong step earns less."""

from __future__ import annotations

import math

import numpy as np

from guerdon.core.axis import FloatArray
from guerdon.core.operators import itemwise, when
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.methods._registry import method


@method(
    "fapo-flawed-positive-penalty",
    family="shape",
    name="FAPO: Flawed-Aware Policy Optimization",
    source="Ding et al. 2025, arXiv:2510.22543",
    evidence="code-read",
)
def fapo(correct: Reward, first_error: Reward, *, penalty: float = 1.0) -> Reward:
    """1 for right and clean, ``1 - penalty`` for right but flawed, -1 for wrong; shape ``(rollouts,)``.

    ``first_error``: a judge's index of the first wrong step, -1 for none; below that it is unknown, as is one that
    failed. It is asked only about right rollouts. With
    shares ``p`` clean and ``w`` wrong the mean is ``p - w``: a flawed positive is pushed up while ``p < w`` and down
    later, a schedule without a parameter. Use with `methods.baselines.grpo` (sample deviation, 1e-6).

    Traps: a judge that fails leaves a right rollout unknown, out of the group (the released code takes it for clean);
    step numbers must match the prompt's; read the index with ``int``, never ``eval``.

    >>> import guerdon as gd
    >>> rows = [{"ok": 1, "error": -1}, {"ok": 1, "error": 3}, {"ok": 0}]
    >>> gd.method("fapo-flawed-positive-penalty", gd.column("ok"), gd.column("error")).score(rows).values.tolist()
    [1.0, 0.0, -1.0]
    """
    return when(correct, when(first_error.within(-1.0, math.inf) == -1.0, 1.0, 1.0 - penalty), -1.0)


@transform("methods.fapo_judge", version=1)
def fapo_judge(predicted: Scores, gold: Scores, steps: Scores, *, invalid: float = -1.0) -> Scores:
    """The judge's own training reward, in [-1, 1].

    Gold -1: 1 if it says -1, else -1. Gold ``e``: ``1 - |pred - e| / n``, and -1 if it says -1.

    ``predicted`` unknown (unparsable) or outside ``[0, n)`` and not -1 gives ``invalid``, as published; ``gold`` and
    ``steps`` (``n``) must be known.
    """

    def compute(p: FloatArray, g: FloatArray, n: FloatArray) -> FloatArray:
        near = np.where(p == -1.0, -1.0, 1.0 - np.abs(p - g) / np.maximum(n, 1.0))
        out = np.where(g == -1.0, np.where(p == -1.0, 1.0, -1.0), near)
        legal = (p == -1.0) | ((p >= 0.0) & (p < n) & (p == np.floor(p)))
        return np.where(legal, out, invalid)

    said = Scores.of(predicted.axis, np.where(predicted.known, predicted.values, -2.0))
    return itemwise(compute, said, gold, steps)
