"""AudioRubrics: a rubric that evolves with each group, kept to the criteria on which its rollouts differ."""

from __future__ import annotations

import math

from guerdon.core.operators import when
from guerdon.core.reward import Reward, as_reward
from guerdon.methods._registry import method
from guerdon.shape import clip, contrasting, fallback, group_statistic, known, weighted_items


@method(
    "audio-rubrics",
    family="judge",
    name="AudioRubrics: per-group evolving rubric reward",
    source="Yu et al. 2026, arXiv:2608.02831 (released code)",
    evidence="code-read",
)
def audio_rubrics(
    met: Reward,
    weights: Reward,
    outcome: Reward,
    think_tokens: Reward,
    *,
    negative: Reward | None = None,
    static: Reward | float | None = None,
    gamma: float = 0.5,
    delta: float = 0.15,
    limit: int = 256,
    top: int = 5,
) -> Reward:
    """``R = outcome + gamma rubric + delta (1 - |think| / limit)``, shape ``(rollouts,)``.

    ``met``: the judge's Yes/No, and ``weights``: its weights, on a criterion axis, static criteria first; ``rubric``:
    `evolving_rubric`, in [0, 1]. ``negative``: 1 for criteria that a good answer must not meet. ``outcome``:
    ``0.9 correct + 0.1 format``. The length term is linear and falls below 0 beyond ``limit``.

    ``static``: the static rubric's score; it stands in for the whole prompt where any rollout's rubric is unknown: a
    failed call, or no criterion with contrast. Without it those rollouts are unknown (the released code takes 0.5
    where there is no static rubric: ``static=0.5``). Published: gamma 0.5 (script 0.3), delta 0.15 (0.2), K = 5.

    Traps: criteria are kept because they separate this group, which can run against correctness: look at
    `shape.label_correlation`; new criteria can leak the answer; the judge is called twice per group.
    """
    good = met.within(0.0, 1.0)
    if negative is not None:
        good = when(negative, 1.0 - good, good)
    rubric = evolving_rubric(good, weights, top=top)
    if static is not None:
        complete = group_statistic(known(rubric), "min")
        rubric = when(complete, rubric, as_reward(static))
    brevity = 1.0 - think_tokens.within(0.0, math.inf) * (1.0 / limit)
    return outcome + rubric * gamma + brevity * delta


def evolving_rubric(good: Reward, weights: Reward, *, top: int = 5) -> Reward:
    """``sum_k w_k good_k / sum_k w_k`` over the ``top`` criteria of largest spread in the group; those without are out.

    Negative weights count as 0. Where the weights of the kept criteria are unknown or add up to 0, they are equal.
    Unknown where no criterion is kept, or a kept verdict is unknown.
    """
    kept = contrasting(good, top=top)
    given = when(kept, clip(weights, 0.0), 0.0)
    usable = fallback(given.sum(), 0.0) > 0.0
    return weighted_items(when(kept, good, 0.0), when(usable, given, kept))
