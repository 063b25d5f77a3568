"""Self-aligned reward: how much more probable the question makes the answer."""

from __future__ import annotations

from guerdon.core.operators import maximum
from guerdon.core.reward import Reward, as_reward
from guerdon.methods._registry import method
from guerdon.shape import anneal, exp


def perplexity(logprobs: Reward) -> Reward:
    """``exp(-mean_t log p_t)`` of a rollout's tokens; without any, or where it is too large for a float, unknown."""
    return exp(-logprobs.mean(to="rollout"))


@method(
    "self-aligned-reward",
    family="likelihood",
    name="SAR: self-aligned reward from conditional and unconditional perplexity",
    source="Han et al. 2025, arXiv:2509.05489",
    evidence="code-read",
)
def self_aligned(
    base: Reward,
    alone: Reward,
    given: Reward,
    step: Reward | float = 0.0,
    *,
    weight: float = 0.2,
    over: float | None = None,
    relative: bool = True,
) -> Reward:
    """``R = R_base + w SAR``, ``SAR = max((ppl(a) - ppl(a|q)) / (ppl(a) + 1e-9), -1)``, in [-1, 1).

    ``alone``, ``given``: perplexity of the response without the question in the context and with it (`perplexity` of
    the policy's own log-probabilities); keep the chat template and drop the user's turn. ``relative=False`` leaves the
    denominator out. With ``over``, the weight falls linearly to 0 at that training ``step``. Short answers to this very
    question gain, padding loses. Shape ``(rollouts,)``.

    Traps: quoting the question is rewarded; the first tokens dominate short answers; wrong but specific answers gain
    too, so keep the weight small; very improbable text overflows and is unknown.
    """
    gain = alone - given
    if relative:
        gain = gain / (alone + 1e-9)
    left = as_reward(1.0) if over is None else anneal(as_reward(step), over=over)
    floored: Reward = maximum(gain, as_reward(-1.0))
    return base + floored * left * weight
