"""iStar: implicit step rewards from a trajectory-level preference model."""

from __future__ import annotations

from guerdon import credit, shape
from guerdon.core.reward import Reward
from guerdon.methods._registry import method


@method(
    "implicit-step-reward-istar",
    family="credit",
    name="iStar: implicit step rewards from trajectory DPO",
    source="Liu et al. 2025, arXiv:2509.19199",
    evidence="paper-read",
)
def istar(
    outcome: Reward, logp: Reward, logp_old: Reward, *, beta: float = 0.05, alpha: float = 1.0, loo: bool = False
) -> Reward:
    """``A = A_E + alpha A_S``: the z-score of outcomes plus that of step rewards ``r = beta (logp - logp_old)``.

    ``logp``, ``logp_old``: log-probability of each action, summed over its tokens, under the implicit process model and
    the old policy, shape ``(steps,)`` as the result; ``outcome``: one per rollout. ``A_S`` standardises over all steps
    of all the group's rollouts, each step counting once, so that ``beta`` cancels here: it scales `implicit_reward` and
    its loss. Population deviations, no epsilon, 0 without spread (our reading); ``loo`` takes leave-one-out for the
    episode part (WebShop, Sokoban).

    Traps: summed log-probabilities favour long actions; long rollouts weigh more in ``A_S``; all-right and all-wrong
    groups give no preference pair; both models must share a tokenizer. Trades bias.
    """
    episode = credit.leave_one_out(outcome) if loo else shape.zscore(outcome)
    return episode + shape.zscore(implicit_reward(logp, logp_old, beta=beta)) * alpha


def implicit_reward(logp: Reward, logp_old: Reward, *, beta: float = 0.05) -> Reward:
    """``beta (logp - logp_old)``, item by item; its sum over a rollout is the trajectory's implicit reward."""
    return (logp - logp_old) * beta


def preference_loss(better: Reward, worse: Reward) -> Reward:
    """The DPO loss ``-log sigmoid(better - worse)`` of two trajectories' implicit rewards, columns of the same row."""
    return -shape.log_sigmoid(better - worse)
