"""Rewards for generated process models: quality dimensions, and a stated value for the invalid ones."""

from __future__ import annotations

from collections.abc import Sequence

from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import gate, weighted_mean, weighted_sum


@method(
    "bpmn-reward-composition",
    family="shape",
    name="Reward function design for process-model (BPMN) generation",
    source="chlauer99/RL_for_process_modeling (released code)",
    evidence="code-read",
)
def bpmn(
    valid: Reward, parts: Sequence[Reward], weights: Sequence[float] | None = None, *, penalty: float = -1.0
) -> Reward:
    """Mean of the quality dimensions of a valid model, ``penalty`` for an invalid one; or a weighted sum of both.

    ``valid``: 0/1. ``parts``: syntactic, pragmatic and, where a reference exists, semantic quality, each in [0, 1].
    Without ``weights`` ``(syn + prag + sem) / 3``; with them separate functions ``sum_k w_k R_k`` (published: 1:1:1,
    3:1:1, 1:3:1, 1:1:3; equal was best), where an invalid model gets ``penalty`` from each: ``penalty sum_k w_k``.
    Shape ``(rollouts,)``.

    Differs from the released code, where an exception gives 0 and then every 0 becomes -1: here a valid model of
    quality 0 stays 0, and a failed metric is unknown. Traps: the penalty grows with the number of functions; the
    weights are not normalised, so they shift the balance with a KL term.

    >>> import guerdon as gd
    >>> rows = [{"ok": 1, "a": 0.75, "b": 0.25}, {"ok": 0}]
    >>> quality = [gd.column("a"), gd.column("b")]
    >>> gd.method("bpmn-reward-composition", gd.column("ok"), quality).score(rows).values.tolist()
    [0.5, -1.0]
    """
    quality = weighted_mean(parts) if weights is None else weighted_sum(parts, weights)
    total: Reward = gate(quality, valid, failed=penalty if weights is None else penalty * sum(weights))
    return total
