"""CAPO: a general model lists the wrong steps; their tokens pay."""

from __future__ import annotations

from typing import Literal

from guerdon import credit, shape
from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method

Vote = Literal["intersection", "majority", "union"]


@method(
    "capo",
    family="credit",
    name="CAPO: credit assignment with an LLM as process judge",
    source="Xie et al. 2025, arXiv:2508.02298",
    evidence="secondary",
)
def capo(
    correct: Reward,
    flags: Reward,
    tokens: Reward | None = None,
    *,
    critiques: int = 4,
    vote: Vote = "intersection",
    outcome_weight: float = 2.0,
    process_weight: float = 1.0,
) -> Reward:
    """Token rewards ``W_o r - W_p [step voted wrong]``, standardised over all tokens of the group.

    ``flags``: how many of the ``critiques`` list the step as wrong, shape ``(steps,)``, no more than there are;
    ``correct``: 0/1 per rollout. With weights (2, 1) the levels are 2, 1, 0, -1. ``tokens``: any token score; without
    it a step counts as one token. ``A = (R - mean) / (std + 1e-6)``, population deviation, 0 where all are equal (our
    reading). Small policies used the intersection, 7B the majority.

    Traps: one empty critique empties the intersection; if every step is flagged only the level falls; long wrong steps
    dominate the token mean; numbers in the critique must match the segmenter. Trades bias.
    """
    reward = (
        correct.within(0.0, 1.0) * outcome_weight - voted_wrong(flags, critiques=critiques, vote=vote) * process_weight
    )
    if tokens is not None:
        reward = credit.spread(reward, tokens)
    return shape.zscore(reward, eps=1e-6)


def voted_wrong(flags: Reward, *, critiques: int, vote: Vote = "intersection") -> Reward:
    """1 for steps that all (intersection), half or more (majority) or any (union) of the critiques list."""
    need = {"intersection": float(critiques), "majority": critiques / 2.0, "union": 1.0}
    if vote not in need or critiques < 1:
        raise ValueError(f"vote={vote!r} of {critiques}: choose one of {', '.join(need)}, and at least one critique")
    return when(flags.within(0.0, float(critiques)) >= max(need[vote], 1.0), 1.0, 0.0)
