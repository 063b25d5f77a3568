"""Clip and Delta: process rewards whose total no repetition can raise."""

from __future__ import annotations

from guerdon import credit, shape
from guerdon.core.reward import Reward
from guerdon.methods._registry import method


@method(
    "clip-delta-process-reward",
    family="shape",
    name="Clip and Delta refinement of process rewards",
    source="Gao et al. 2024, arXiv:2410.15115",
    evidence="secondary",
)
def clip_delta(
    process: Reward,
    outcome: Reward | None = None,
    *,
    threshold: float | None = None,
    delta: bool = True,
    weight: float = 0.1,
) -> Reward:
    """Step rewards ``weight * refined``, plus ``outcome`` on the last step.

    Clip (with a ``threshold`` on the calibrated scale of ``process``): ``min(r_k - threshold, 0)``: good steps earn
    0, bad ones are punished. Delta: ``r_k - r_{k+1}`` for ``k < K - 1``, ``r_{K-1}`` for the last but one, 0 for the
    last, so that the undiscounted reward-to-go of step ``k`` is its own score ``r_k``, whatever follows; ``r_K`` is
    never used. Both: clip first (our reading). ``process``, result: shape ``(steps,)``; ``outcome``: one per rollout.

    Traps: with one step, delta gives 0; with no step there is nothing to pay the outcome on; clip rewards shortening;
    a discount below 1 breaks the telescoping. ``weight`` 0.1 is our choice. A rollout with an unknown step is unknown.

    >>> import guerdon as gd
    >>> process = gd.column("s", axis="step")
    >>> gd.method("clip-delta-process-reward", process, weight=1.0).score([{"s": [0.75, 0.25, 0.5]}]).values.tolist()
    [0.5, 0.25, 0.0]
    """
    refined = process if threshold is None else shape.clip(process - threshold, high=0.0)
    if delta:
        refined = credit.drop(refined, before_last=True)
    scaled = refined * weight
    return scaled if outcome is None else credit.pay_last(scaled, outcome)
