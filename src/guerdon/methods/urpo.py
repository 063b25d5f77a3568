"""URPO: one model plays and referees, and its verdicts on others train the verdicts on itself."""

from __future__ import annotations

from typing import Literal

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import affine, choose, kendall


@method(
    "urpo-player-referee",
    family="judge",
    name="URPO: Unified Reward and Policy Optimization",
    source="Lu et al. 2025, arXiv:2507.17515",
    evidence="secondary",
)
def urpo(kind: Reward, correct: Reward, agreement: Reward, self_score: Reward) -> Reward:
    """The reward of a rollout by the kind of its record: 0 verifiable, 1 preference data, 2 open-ended.

    ``correct``: 0/1 (plus format). ``agreement``: `referee_agreement`, of the model's scores of several answers with
    the gold order. ``self_score``: what the model as referee gave its own answer. Only the one that counts is asked.
    Each kind forms groups of its own; advantage: `credit.group_relative` with ``eps=1e-6`` (population deviation:
    our reading), 0 where all are equal. Shape ``(rollouts,)``.

    Traps: without enough preference data the self-score drifts; the referee sees the order of the answers, so shuffle
    it; player and referee can collude in style.
    """
    rewards: Reward = choose(kind, [correct, agreement, self_score])
    return rewards


def referee_agreement(
    said: Reward, gold: Reward, parsed: Reward | None = None, *, ties: Literal["neither", "discordant"] = "neither"
) -> Reward:
    """``(tau + 1) / 2``, Kendall's tau-a between the scores that a rollout gives several answers and the gold ones.

    In [0, 1]; for two answers 0 or 1. Where ``parsed`` (0/1) is 0 the rollout gave no scores, which is worth 0 in
    the source; without it such a rollout is unknown. With tau-a a referee that scores everything alike earns 0.5:
    count its ties as ``"discordant"`` if that spreads.
    """
    share = affine(kendall(said, gold, ties=ties), 0.5, 0.5)
    return share if parsed is None else when(parsed, share, 0.0)
