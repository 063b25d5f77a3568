"""PPR's ReNorm: step scores whose sign agrees with the outcome."""

from __future__ import annotations

from guerdon import credit
from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import known


@method(
    "ppr-renorm",
    family="process",
    name="Principle Process Reward with ReNorm",
    source="Xu et al. 2025, arXiv:2509.25598",
    evidence="secondary",
)
def ppr(process: Reward, outcome: Reward) -> Reward:
    """``r_hat_t = r_p,t + r_o - 1`` on the step axis: at least 0 in a success, at most 0 in a failure.

    ``process`` in [0, 1] (a score outside is unknown, since it would break the sign: bring ratings to that scale
    first); ``outcome`` 0 or 1, or a fraction, which keeps ``r_hat`` in [-1, 1]. A step without a verdict stays
    unknown; no steps: none. `ppr_tokens` puts it on tokens. The expression comes from a secondary source.

    Traps: a perfect step of a failed run gets exactly 0; the sum over many steps dwarfs the outcome, so divide by their
    number or clip.
    """
    return process.within(0.0, 1.0) + outcome.within(0.0, 1.0) - 1.0


def ppr_tokens(process: Reward, outcome: Reward, tokens: Reward) -> Reward:
    """Token rewards: ``r_hat`` on each step's last token, plus the outcome on the rollout's last; else 0.

    A step without a score adds 0 here, by the method's definition; one whose score lies outside [0, 1] makes its
    rollout unknown. ``tokens``: any score on the token axis.
    """
    steps = credit.spread(when(known(process), ppr(process, outcome), 0.0), tokens, how="last")
    paid: Reward = credit.pay_last(steps, outcome.within(0.0, 1.0))
    return paid
