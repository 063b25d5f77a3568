"""ORPS: programs scored by running them and by what they cost, and the search's ranking."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from guerdon.core.axis import BoolArray, FloatArray
from guerdon.core.interval import Interval
from guerdon.core.operators import itemwise
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import transform
from guerdon.methods._registry import method
from guerdon.verify.programs.signals import code, code_metric, code_nanoseconds

STATIC: Mapping[str, float] = {"nodes": 100.0, "cyclomatic": 1.0, "cognitive": 10.0, "lines": 50.0}
DYNAMIC: Mapping[str, float] = {"nanoseconds": 1e7, "instructions": 1e5, "branch_misses": 1e3, "page_faults": 100.0}
"""Each metric's scale: at this size its sub-score is one half."""


@method(
    "orps",
    family="search",
    name="ORPS: outcome-refining process supervision for code",
    source="Yu et al. 2024, arXiv:2412.15118",
    evidence="code-read",
)
def orps(
    success: Reward | None = None,
    static: Mapping[str, Reward] | None = None,
    dynamic: Mapping[str, Reward] | None = None,
    *,
    tests: str = "tests",
    seconds: float = 5.0,
) -> Reward:
    """``S = success (1 + 0.5 static + 0.5 dynamic)`` in [0, 2], `execution_score`; shape ``(rollouts,)``.

    By default from live runs: the share of tests passed, the four static sizes of the code, and CPU time over the
    passed tests. Our sandbox counts no instructions, branch misses or page faults; give them in ``dynamic`` where you
    measure them. A share of tests outside [0, 1] is unknown. The search keeps the best of `rank`, by the critic's score
    first.

    Traps: in the released code a missing metric counts as 0, which is its best value: here it is left out, as is a side
    without any. Shorter code scores higher: golfing pays, though only up to a factor of 2, and lines are counted as
    Python writes them. CPU time includes the process' start and is noisy.
    """
    sizes = static if static is not None else {name: code_metric(metric=name) for name in STATIC}
    costs = dynamic if dynamic is not None else {"nanoseconds": code_nanoseconds(tests=tests, seconds=seconds)}
    share = success if success is not None else code(tests=tests, seconds=seconds).mean()
    score: Reward = execution_score(share.within(0.0, 1.0), sizes, costs)
    return score


@transform("methods.execution_score", version=1, range=lambda success, *_: success * Interval(1.0, 2.0))
def execution_score(success: Scores, static: Mapping[str, Scores], dynamic: Mapping[str, Scores]) -> Scores:
    """``success (1 + mean(sides))``, a side being the mean of ``1 / (1 + metric / scale)`` over its known metrics.

    ``success`` in [0, 1]; ``static`` and ``dynamic``: metrics of at least 0 by name (`STATIC`, `DYNAMIC`). With both
    sides this is ``success (1 + 0.5 static + 0.5 dynamic)``; a side with no known metric is left out, and without any
    the score is ``success``. Only an unknown ``success`` makes the score unknown. Raises ``ValueError`` for a metric
    without a scale.

    >>> import guerdon as gd
    >>> row = {"ok": 0.8, "nodes": 100, "ns": 1e7}
    >>> s = execution_score(gd.column("ok"), {"nodes": gd.column("nodes")}, {"nanoseconds": gd.column("ns")})
    >>> s.score([row]).scores.values.tolist()
    [1.2000000000000002]
    """
    success, *metrics = aligned(success, *static.values(), *dynamic.values())
    static = dict(zip(static, metrics[: len(static)], strict=True))
    dynamic = dict(zip(dynamic, metrics[len(static) :], strict=True))
    sides = [_side(part, scales, len(success)) for part, scales in ((static, STATIC), (dynamic, DYNAMIC))]
    present = np.sum([known for _, known in sides], axis=0)
    quality = np.sum([np.where(known, value, 0.0) for value, known in sides], axis=0) / np.maximum(present, 1)
    return itemwise(lambda share: share * (1.0 + quality), success)


def _side(metrics: Mapping[str, Scores], scales: Mapping[str, float], size: int) -> tuple[FloatArray, BoolArray]:
    total, count = np.zeros(size), np.zeros(size)
    for name, metric in metrics.items():
        if name not in scales:
            raise ValueError(f"no scale for the metric {name!r}; known: {', '.join(scales)}")
        usable = metric.known & (metric.values >= 0)
        total += np.where(usable, 1.0 / (1.0 + np.where(usable, metric.values, 0.0) / scales[name]), 0.0)
        count += usable
    return total / np.maximum(count, 1), count > 0


@transform("methods.search_rank", version=1, groups=True, range=lambda *_, **__: Interval(0.0))
def rank(process: Scores, execution: Scores) -> Scores:
    """Each rollout's place among those of its prompt, from 0: by ``process`` (the critic's 1 to 5), then ``execution``.

    Both descending, unknown after every known, then in the order of creation. The search keeps ``rank(...) < 3``.
    Shape ``(rollouts,)``, always known.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "c": c, "s": s} for c, s in ((4, 0.2), (5, 0.1), (4, 1.1))]
    >>> rank(gd.column("c"), gd.column("s")).score(rows).scores.values.tolist()
    [2.0, 0.0, 1.0]
    """
    process, execution = aligned(process, execution)
    place = np.zeros(len(process))
    offsets = process.axis.offsets_over("prompt")
    keys = [np.where(part.known, -part.values, np.inf) for part in (execution, process)]
    for start, end in pairwise(offsets.tolist()):
        order = np.lexsort([np.arange(start, end), *(key[start:end] for key in keys)])
        place[start + order] = np.arange(end - start)
    return Scores.of(process.axis, place)
