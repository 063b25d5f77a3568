"""P2S: a step is worth what it adds to the likelihood of a self-made gold reasoning chain."""

from __future__ import annotations

from collections.abc import Sequence

from guerdon import credit, shape
from guerdon.core.operators import joint, when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method


@method(
    "p2s-path-faithfulness-reward",
    family="likelihood",
    name="P2S: Probabilistic Process Supervision (Path Faithfulness Reward)",
    source="Zhong et al. 2026, arXiv:2601.20649",
    evidence="secondary",
)
def p2s(correct: Reward, form: Reward, steps: Reward) -> Reward:
    """-1 if malformed; the outcome where any rollout of the group is right; else the path-faithfulness reward.

    ``correct``, ``form``: 0/1 per rollout; a malformed rollout does not count as right (our reading). ``steps``: the
    rewards of `faithful_steps`, shape ``(steps,)``, asked only in groups that the policy can't solve yet.
    ``R_PFR = sum_i w_i r_i / sum_i w_i``, ``w_i = sigmoid(i - m / 2)``, ``i`` from 1 to ``m``: that the weights are a
    rising sigmoid is published, its slope and centre are our reading. Result ``(rollouts,)``.

    Traps: ``R_PFR`` is in nats, not in [0, 1], so it must not be mixed with the outcome inside a group (here it never
    is); it costs ``O(K + m^2)`` forward passes per rollout; rewards pull the policy towards imitating one chain; steps
    of equal token length cut words.
    """
    solved = shape.group_statistic(joint(form.within(0.0, 1.0), correct.within(0.0, 1.0)), "max")
    return shape.gate(when(solved, correct, path_faithfulness(steps)), by=form, failed=-1.0)


def path_faithfulness(steps: Reward) -> Reward:
    """``R_PFR``: the mean of the step rewards, weighted by a rising sigmoid of the position; see `p2s`."""
    late = shape.sigmoid(credit.place(steps) + 1.0 - shape.items(steps) * 0.5)
    return shape.weighted_items(steps, late)


def faithful_steps(
    logp: Reward, masked: Reward, step: Reward, answer: Reward, like: Reward, *, length: Reward | None = None
) -> Reward:
    """``r_i = max_t [log pi(s_t | q, p_i) - log pi(s_t | q, masked p_i)]``; the last step gets ``log pi(y* | q, z)``.

    ``logp``, ``masked``: log-likelihood of each suffix ``s_t`` of the gold chain after the first ``i`` steps, and after
    the same prefix with its content masked (same length and positions), on an axis of their own under the rollout;
    ``step`` says to which step (from 0) a reading belongs; ``answer``: one per rollout; ``like``: any score on the
    step axis. With ``length`` (tokens of the suffix) the difference is per token: without it the maximum depends on
    suffix length. An empty prefix is its own mask, and gains exactly 0.
    """
    lift = logp - masked if length is None else (logp - masked) / length
    return when(credit.left(like) == 1.0, answer, shape.pooled(lift, step, like))


def gold_chain(likelihoods: Sequence[float | None]) -> int | None:
    """Which of K self-made chains becomes the gold one: greatest log-likelihood of the answer, the first on ties.

    Malformed chains are ``None``; without any other there is no gold chain.

    >>> gold_chain([-4.0, None, -1.5])
    2
    """
    usable = [(x, -i) for i, x in enumerate(likelihoods) if x is not None]
    return -max(usable)[1] if usable else None
