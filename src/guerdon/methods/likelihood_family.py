"""Likelihood rewards: how probable the reference answer is after the chain of thought."""

from __future__ import annotations

import math
from typing import Literal

from guerdon import credit
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import exp, group_log_mean

Kind = Literal["prob", "avgprob", "logprob", "avglogprob", "inv_ppl", "jepo"]


@method(
    "likelihood-reward-family",
    family="likelihood",
    name="Likelihood-based reward designs (log-prob reward)",
    source="Kwiatkowski et al. 2026, arXiv:2602.03979",
    evidence="secondary",
)
def likelihood_reward(logprobs: Reward, *, kind: Kind = "logprob") -> Reward:
    """A reward from the log-probabilities ``log p_t`` of the reference answer's tokens, teacher-forced after the chain.

    ``logprobs`` lie on an axis under the rollout, natural logarithm; one above 0 makes its chain unknown. ``logprob``:
    their sum, the only one that works for short and for long answers; ``avglogprob``: mean; ``prob``: ``exp`` of the
    sum (VeriFree); ``avgprob``: mean of ``p_t`` (RLPR); ``inv_ppl``: ``exp`` of the mean (NOVER); ``jepo``: ``log (1/G)
    sum_i exp(sum log p)``, one value per group. No tokens: unknown. Advantage: `likelihood_advantage`.

    Traps: a probability of many tokens vanishes; the answer's tokens must be split as they were trained; long-form
    chains collapse to a few tokens; the answer's tokens take no part in the policy gradient, and the reward's own
    gradient is a second term of the loss.
    """
    logprobs = logprobs.within(-math.inf, 0.0)
    kinds = {
        "logprob": lambda: logprobs.sum(to="rollout"),
        "avglogprob": lambda: logprobs.mean(to="rollout"),
        "prob": lambda: exp(logprobs.sum(to="rollout")),
        "avgprob": lambda: exp(logprobs).mean(to="rollout"),
        "inv_ppl": lambda: exp(logprobs.mean(to="rollout")),
        "jepo": lambda: group_log_mean(logprobs.sum(to="rollout")),
    }
    if kind not in kinds:
        raise ValueError(f"kind={kind!r}: choose one of {', '.join(kinds)}")
    return kinds[kind]()


def likelihood_advantage(logprobs: Reward, *, kind: Kind = "logprob") -> Reward:
    """``A_i = R_i - mean_{j != i} R_j``, leave-one-out; a group of one is unknown, and ``jepo`` gives 0."""
    reward = likelihood_reward(logprobs, kind=kind)
    return credit.leave_one_out(reward if kind != "jepo" else reward + logprobs.sum(to="rollout") * 0.0)
