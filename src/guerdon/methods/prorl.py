"""ProRL: step rewards centred by running statistics, and a baseline of each position."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from guerdon import credit
from guerdon.core.operators import itemwise
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores
from guerdon.core.transform import State, transform
from guerdon.methods._registry import method
from guerdon.shape import weighted_sum
from guerdon.shape._running import merged, start


@method(
    "prorl-stepwise-centering-position-baseline",
    family="credit",
    name="ProRL: stepwise reward centering and position-specific advantage",
    source="Hou et al. 2026, arXiv:2605.28293 (released code)",
    evidence="code-read",
)
def prorl(
    metrics: Mapping[str, Reward] | Sequence[Reward],
    ended: Reward | None = None,
    *,
    real: Reward | None = None,
    weights: Mapping[str, float] | Sequence[float] | None = None,
    gamma: float = 1.0,
    limit: int = 10,
    warmup: int = 1,
) -> tuple[Reward, Reward]:
    """Advantages of the items (step axis) and of ending (rollout axis), without division by a deviation.

    Each metric (raw step rewards) is standardised by running statistics over real items, ``z = (r - mu) / max(sigma,
    0.1)``, sample deviation, frozen after ``warmup`` batches; the weighted sum is the step reward. Then
    ``credit.position_advantage`` and `credit.end_advantage`: reward-to-go minus the mean of the rollouts that reach the
    position, where a rollout that ended itself (``ended``, 0/1) also reaches the next one, with return 0, below
    ``limit``. ``real`` (0/1 per step): neither hallucinated nor duplicate.

    Traps: positive step rewards favour long paths until they are centred; statistics that never freeze let the scale
    drift; a position that one rollout reaches has advantage 0; ``limit`` is the longest path *allowed*, not the longest
    of the group. The released code divides one metric by 10. Trades bias: the baseline holds the rollout itself.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "s": s} for s in ([1.0, 2.0], [0.0, 1.0, 2.0])]
    >>> items, ends = gd.method("prorl-stepwise-centering-position-baseline", [gd.column("s", axis="step")])
    >>> items.score(rows).values.round(3).tolist()
    [0.717, 0.12, -0.717, -0.12, 0.478]
    """
    parts = metrics if isinstance(metrics, Mapping) else dict(enumerate(metrics))
    scaled = {str(k): centred(m, real, warmup=warmup) for k, m in parts.items()}
    fused = weighted_sum(scaled, weights)
    return (
        credit.position_advantage(fused, ended, gamma=gamma, limit=limit),
        credit.end_advantage(fused, ended, gamma=gamma, limit=limit),
    )


def _start(**_: object) -> State:
    return {**start(), "batches": 0}


@transform("methods.prorl_centred", version=1, groups="batch", initial=_start)
def centred(
    x: Scores, real: Scores | None = None, *, floor: float = 0.1, warmup: int = 1, state: State | None = None
) -> tuple[Scores, State]:
    """``(x - mu) / max(sigma, floor)`` with running moments of real items, frozen after ``warmup`` batches.

    A batch is merged before it is normalised. ``sigma`` is the sample deviation; with fewer than two items it is
    ``floor``. Unknown items move nothing.
    """
    old = dict(state or _start())
    if old["batches"] < warmup:
        kept = x.known if real is None else x.known & real.known & (real.values == 1.0)
        old = {**merged(old, Scores.of(x.axis, np.where(kept, x.values, 0.0), kept)), "batches": old["batches"] + 1}
    sigma = math.sqrt(old["squares"] / (old["count"] - 1)) if old["count"] > 1 else 0.0
    return itemwise(lambda v: (v - old["mean"]) / max(sigma, floor), x), old
