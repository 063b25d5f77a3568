"""G-RA: rewards by priority, each counted only behind open gates."""

from __future__ import annotations

from collections.abc import Sequence

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.credit import pay_last
from guerdon.methods._registry import method
from guerdon.shape import gated_sum


@method(
    "gated-reward-accumulation",
    family="shape",
    name="G-RA: Gated Reward Accumulation",
    source="arXiv:2508.10548 (2025)",
    evidence="secondary",
)
def gated_accumulation(parts: Sequence[Reward], thresholds: Sequence[float] | float = 0.0) -> Reward:
    """``R = sum_i R_i prod_{j above i} 1[R_j > g_j]``: `shape.gated_sum`.

    ``parts`` by falling priority (outcome, format, steps); a level made of several step rewards enters as their sum
    (``steps.sum()``). ``thresholds``: one, or one for each part but the last. A shut gate masks everything below it,
    which is then not asked. Shape ``(rollouts,)``.

    Traps: the comparison is strict; with a gate that no rollout of the early policy passes the dense part is never
    used, so schedule it; the reward jumps at the gates.

    >>> import guerdon as gd
    >>> rows = [{"done": 1.0, "steps": 0.5}, {"done": -1.0, "steps": 0.5}]
    >>> gd.method("gated-reward-accumulation", [gd.column("done"), gd.column("steps")]).score(rows).values.tolist()
    [1.5, -1.0]
    """
    gates = [float(thresholds)] * (len(parts) - 1) if isinstance(thresholds, (int, float)) else list(thresholds)
    total: Reward = gated_sum(parts, gates)
    return total


def gated_steps(outcome: Reward, steps: Reward, *, threshold: float = 0.0) -> Reward:
    """The same on the step axis: step rewards where the gate is open, else 0, and the outcome paid on the last step."""
    return pay_last(when(outcome > threshold, steps, 0.0), outcome)
