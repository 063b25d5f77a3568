"""Self-aligned reward: how much more probable the question makes the answer; and the length penalties beside it."""

from __future__ import annotations

from typing import Literal

from guerdon.core.operators import maximum, minimum, when
from guerdon.core.reward import Reward, as_reward
from guerdon.credit import place_relative
from guerdon.methods._registry import method
from guerdon.shape import anneal, clip, exp, group_statistic, log, only, sigmoid

Form = Literal["relative", "difference", "given"]


def perplexity(logprobs: Reward) -> Reward:
    """``exp(-mean_t log p_t)`` of a rollout's tokens; without any, or where it is too large for a float, unknown."""
    return exp(-logprobs.mean(to="rollout"))


@method(
    "self-aligned-reward",
    family="likelihood",
    name="SAR: self-aligned reward from conditional and unconditional perplexity",
    source="Han et al. 2025, arXiv:2509.05489 (released code)",
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
    rising: bool = False,
    form: Form = "relative",
    logs: bool = False,
    most: float | None = None,
) -> Reward:
    """``R = R_base + w SAR``, ``SAR = max((ppl(a) - ppl(a|q)) / (ppl(a) + 1e-9), -1)``, in [-1, 1).

    ``alone``, ``given``: perplexity of the response without the question in the context and with it (`perplexity` of
    the policy's own log-probabilities); keep the chat template and drop the user's turn. ``form="difference"`` is
    ``ppl(a) - ppl(a|q)``, which nothing floors, ``"given"`` is ``-ppl(a|q)``; ``logs`` takes the logarithm of both
    perplexities, ``most`` then caps each. With ``over``, the weight falls linearly to 0 at that training ``step``, or
    rises from 0 (``rising``). Short answers to this very question gain, padding loses. Shape ``(rollouts,)``.
    Published: weight 0.2, constant, none of the options. The source compares with `brevity` and `brevity_if_right`.

    Traps: quoting the question is rewarded; the first tokens dominate short answers; wrong but specific answers gain
    too, so keep the weight small; very improbable text overflows and is unknown.
    """
    if form not in ("relative", "difference", "given"):
        raise ValueError(f'form={form!r}: choose "relative", "difference" or "given"')
    alone, given = (_measured(x, logs, most) for x in (alone, given))
    gain: Reward = -given if form == "given" else alone - given
    if form == "relative":
        gain = maximum(gain / (alone + 1e-9), as_reward(-1.0))
    share = as_reward(1.0)
    if over is not None:
        share = anneal(as_reward(step), over=over, start=0.0 if rising else 1.0, end=1.0 if rising else 0.0)
    return base + gain * share * weight


def _measured(ppl: Reward, logs: bool, most: float | None) -> Reward:
    measure: Reward = log(ppl) if logs else ppl
    return measure if most is None else minimum(measure, as_reward(most))


def brevity(length: Reward) -> Reward:
    """``-clip((L - mean L) / L, -1, 1)`` against the group's mean length (as in O1-Pruner); 0 for a rollout alone.

    In [-1, 1]; takes the place of SAR. It pays a short wrong answer like a short right one. A length of 0 is unknown.
    """
    shorter: Reward = -clip((length - group_statistic(length)) / length, -1.0, 1.0)
    return shorter


def brevity_if_right(length: Reward, correct: Reward) -> Reward:
    """``1 - 2 sigmoid((L - mean) / (std + 1e-5))`` for right rollouts, 0 for wrong ones; in [-1, 1].

    Mean and population deviation are those of the group's right rollouts; 0 where one alone is right. Takes the place
    of SAR.
    """
    z = place_relative(only(length, where=correct), as_reward(0.0), eps=1e-5, least=1)
    return when(correct, 1.0 - sigmoid(z) * 2.0, 0.0)
