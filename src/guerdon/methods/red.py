"""RED: the score of an ordinary reward model, redistributed over the tokens."""

from __future__ import annotations

from guerdon import credit
from guerdon.core.reward import Reward
from guerdon.methods._registry import method


@method(
    "red-redistribution",
    family="credit",
    name="RED: reward redistribution from a holistic reward model",
    source="Li et al. 2024, arXiv:2411.08302",
    evidence="secondary",
)
def red(
    prefix: Reward, empty: Reward | float, *, share: float = 1.0, log_ratio: Reward | None = None, kl: float = 0.0
) -> Reward:
    """Token rewards ``share * (R(y_<=t) - R(y_<=t-1)) + (1 - share) * [t = T] R(y) - kl * log(pi / pi_ref)``.

    ``prefix``: the model's scalar head at every token, ``R(x, y_<=t)``, shape ``(tokens,)``, as the result;
    ``empty``: that of the empty response, per rollout. The differences add up to ``R(y) - R(empty)``, which no policy
    can move: it is potential-based shaping whose last potential is the sparse reward itself, so the best policy is
    kept. ``log_ratio``: per token.

    Traps: scores of prefixes are noisy in a model trained on whole answers; a baseline on the scale of sequences puts
    nearly the same constant on all tokens (a reproduction collapsed): use it with `credit.gae`, or centre per token. A
    token that the model's own tokenizer does not end on repeats the score before it, and gets 0; padding is no token.
    """
    spread = credit.potential_shaping(prefix, empty, absorb=False) * share
    if share != 1.0:
        spread = credit.pay_last(spread, prefix.last(to="rollout"), weight=1.0 - share)
    return spread if log_ratio is None else spread - log_ratio * kl
