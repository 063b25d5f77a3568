"""T-REG: token rewards from contrastive prompting, as a weak regulariser of DPO."""

from __future__ import annotations

from guerdon import shape
from guerdon.core.reward import Reward
from guerdon.methods._registry import method


@method(
    "t-reg",
    family="credit",
    name="T-REG: token-level reward regularisation",
    source="Zhou et al. 2024, arXiv:2412.02685",
    evidence="secondary",
)
def t_reg(better: Reward, worse: Reward) -> Reward:
    """Token rewards ``sigmoid(log pi(y_t | better) - log pi(y_t | worse)) - 1/2`` in [-0.5, 0.5], shape ``(tokens,)``.

    ``better``, ``worse``: log-probabilities of the same response tokens under a rewrite-to-be-better and a
    rewrite-to-be-worse prompt. `regulariser` and `pair_weight` are the parts of its loss,
    ``L_DPO + alpha w (L_reg(y_w) + L_reg(y_l))``.

    Traps: tokens must align between the scoring template and the training sequence; weak models give rewards near 0.
    """
    return shape.sigmoid(better - worse) - 0.5


def regulariser(token_reward: Reward, logp: Reward, *, beta: float = 0.1) -> Reward:
    """``-beta sum_t rhat_t log pi(y_t)`` per rollout. Clip ``logp`` in training: it can run to -inf."""
    return (token_reward * logp).sum(to="rollout") * -beta


def pair_weight(worse: Reward, better: Reward) -> Reward:
    """``sigmoid(r(y_l) - r(y_w))`` of DPO's implicit rewards: fades where the pair is already apart (no gradient)."""
    return shape.sigmoid(worse - better)
