"""PURE: a rollout is worth its worst step."""

from __future__ import annotations

from guerdon import credit
from guerdon.core.reward import Reward
from guerdon.methods._registry import method


@method(
    "pure-min-form",
    family="credit",
    name="PURE: min-form credit assignment for process rewards",
    source="Cheng et al. 2025, arXiv:2504.15275",
    evidence="code-read",
)
def pure(
    process: Reward,
    outcome: Reward | None = None,
    tokens: Reward | None = None,
    *,
    strict: bool = False,
    temperature: float = 0.1,
    outcome_weight: float = 1.0,
    width: int | None = None,
    whiten: bool = True,
) -> Reward:
    """Return from a step on = the least process reward from there on, minus a leave-one-out baseline per token.

    ``process``: ``p(correct) - p(wrong)`` in [-1, 1], shape ``(steps,)``. Soft form: rewards ``w_j r_j``,
    ``w = softmax(-r / temperature)``, plus ``outcome_weight * outcome`` (0/1 per rollout) on the last step *after* the
    weighting, and their sum from ``t`` on. ``strict``: the exact suffix minimum, the outcome added to the last step's
    own reward first. Then `credit.token_leave_one_out` (``tokens``: any score on the token axis; without it a step
    counts as one token) and whitening over the batch.

    Traps: only step ends carry rewards here, so the zeros between them, which make a naive suffix minimum
    ``min(., 0)``, do not exist. The baseline depends on the padded ``width``. One rollout per prompt: unknown. A
    splitter on blank lines can be gamed. Trades bias: the min-form return is not the expected outcome. Observed
    hacks: few, huge steps; one-step greetings; repetition.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "s": s} for s in ([0.75, -0.75], [0.25, 0.25])]
    >>> least = gd.method("pure-min-form", gd.column("s", axis="step"), strict=True, whiten=False)
    >>> least.score(rows).values.tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """
    got = pure_returns(process, outcome, strict=strict, temperature=temperature, outcome_weight=outcome_weight)
    advantage = credit.token_leave_one_out(got, tokens, width=width)
    return credit.batch_whiten(advantage) if whiten else advantage


def pure_returns(
    process: Reward,
    outcome: Reward | None = None,
    *,
    strict: bool = False,
    temperature: float = 0.1,
    outcome_weight: float = 1.0,
) -> Reward:
    """The min-form return of each step; see `pure`."""
    rewards = process if strict else credit.soft_min(process, temperature=temperature)
    if outcome is not None:
        rewards = credit.pay_last(rewards, outcome, weight=outcome_weight)
    return credit.suffix_min(rewards) if strict else credit.returns(rewards)
