"""Arena-T2I Hard: a checklist whose questions depend on each other, and a second reward on a scale of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from guerdon.core.reward import Reward
from guerdon.credit import batch_whiten
from guerdon.methods._registry import method
from guerdon.shape import dag_gate, normalised_sum, weighted_items


@method(
    "arena-t2i-hard-checklist",
    family="judge",
    name="Dependency-aware checklist reward with group-decoupled normalisation (Arena-T2I Hard)",
    source="Ban et al. 2026, arXiv:2606.31711; normalisation as released in NVIDIA-NeMo/RL",
    evidence="secondary",
)
def arena_t2i(
    faithful: Reward,
    others: Mapping[str, Reward],
    weights: Mapping[str, float] | None = None,
) -> Reward:
    """The advantage ``A``: each reward standardised in the group, summed with weights, whitened over the batch.

    ``A_k = (r_k - mean) / (std + 1e-6)``, sample deviation, 0 without spread; ``S = sum_k w_k A_k``; ``A = (S -
    mean) / std`` over all rollouts scored together, sample deviation. ``faithful`` is a `checklist`; ``others`` by
    name (aesthetics); weights by name, "faithful" among them. A group of one is unknown and stays out of the batch
    (our reading). Shape ``(rollouts,)``; do not normalise again.

    Traps: whitening couples the prompts of a batch; the released estimator can also subtract a leave-one-out baseline.
    """
    total = normalised_sum({"faithful": faithful, **others}, weights, ddof=1, eps=1e-6)
    advantage: Reward = batch_whiten(total, ddof=1, eps=0.0)
    return advantage


def checklist(
    answers: Reward,
    child: Reward | None = None,
    parent: Reward | None = None,
    *,
    parents: Sequence[Sequence[int]] | None = None,
    need: Literal["all", "any"] = "all",
    weights: Reward | None = None,
) -> Reward:
    """``R = (1/n) sum_i v_i``, ``v_i = a_i prod_p v_p``: no credit for the attribute of an object that is missing.

    ``answers`` (0/1) on the checklist's axis, dependencies as in `shape.dag_gate`: a question with several parents
    needs ``"all"`` of them, or ``"any"``. Trap: gating makes the reward sparse for an early policy.

    >>> import guerdon as gd
    >>> answers = gd.column("yes", axis="question")
    >>> checklist(answers, parents=[[], [0], [1], [2]]).score([{"yes": [1, 1, 0, 1]}]).values.tolist()
    [0.5]
    """
    gated = dag_gate(answers, child, parent, parents=parents, need=need)
    return gated.mean() if weights is None else weighted_items(gated, weights)
