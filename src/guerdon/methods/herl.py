"""HeRL: a response is worth a little more if its rewrite, told what it missed, is better."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from guerdon import credit, shape
from guerdon.core.interval import UNIT
from guerdon.core.operators import maximum, when
from guerdon.core.reward import Reward, as_reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.credit._kernels import accumulate
from guerdon.methods._registry import method
from guerdon.shape._groups import Groups

Who = Literal["best", "all"]


@method(
    "herl-hindsight-experience-rubrics",
    family="shape",
    name="HeRL: hindsight-experience guided RL with rubric rewards",
    source="Zhang et al. 2026, arXiv:2603.20046",
    evidence="code-read",
)
def herl(
    score: Reward,
    rewrites: Reward,
    tokens: Reward | None = None,
    *,
    alpha: float = 0.05,
    only_up: bool = False,
    who: Who = "best",
    threshold: float = 1.0,
) -> Reward:
    """``R' = R + alpha (max_j R(rewrite_j) - R)`` for responses that were rewritten, ``R`` for the others.

    ``score``: the rubric reward per rollout; ``rewrites``: that of each of its rewrites, on an axis of their own,
    asked of the `candidates` (``who``, ``threshold``) only; the policy writes them, at temperature 0.3, from the
    rubric items met and missed. With ``tokens`` (any token score) the bonus is spread evenly over the tokens and
    ``R`` paid on the last one; a bonus without a token is unknown. An unknown rewrite makes its rollout unknown.
    Published: alpha 0.05, groups of 8. The best rewrites join the group (`chosen_rewrites`, then
    `credit.group_relative`), their tokens weighted by `off_policy_weight`.

    Traps: worse rewrites lower the reward, as in the released code: ``only_up=True`` makes it a bonus; the maximum over
    rewrites grows with the judge's noise; rewrites must carry the group of their original; rubric text may leak into
    the rewritten answer.
    """
    gain = rewrites.max(to="rollout") - score
    if only_up:
        gain = maximum(gain, as_reward(0.0))
    rewritten = candidates(score, who=who, threshold=threshold)
    bonus = when(rewritten, when(shape.items(rewrites, to="rollout") == 0.0, 0.0, gain * alpha), 0.0)
    if tokens is None:
        return score + bonus
    paid: Reward = credit.pay_last(credit.spread(bonus, tokens, how="share"), score)
    return paid


@transform("methods.herl_candidates", version=1, groups=True, range=lambda score, **_: UNIT)
def candidates(score: Scores, *, who: Who = "best", threshold: float = 1.0, most: int = 16) -> Scores:
    """1 for the responses to be rewritten, else 0.

    ``"best"`` (released code): those tied at the best score of a prompt whose best is below ``threshold``; ``"all"``: a
    simpler reading of the text, every response below it. At most ``most`` per prompt, in order.
    """
    if who not in ("best", "all"):
        raise ValueError(f'who={who!r}: choose "best" or "all"')
    groups = Groups.of(score)
    chosen = score.known & (score.values < threshold)
    if who == "best":
        chosen &= score.values == groups.at(groups.high)
    place = accumulate(np.add, chosen.astype(np.float64), score.axis.offsets_over("prompt"))
    return Scores.of(score.axis, (chosen & (place <= most)) * 1.0, score.known, score)


@transform("methods.herl_chosen", version=1, groups=True, range=lambda rewrites, score, **_: UNIT)
def chosen_rewrites(rewrites: Scores, score: Scores, *, top: int = 1) -> Scores:
    """1 for the ``top`` best rewrites of a prompt that are at least as good as its best original, else 0.

    Shape of ``rewrites``; ties go to the earlier. They replace random members of the group; places left over are filled
    with copies of the best originals. ``score`` is that before the bonus. An unknown rewrite is not chosen.
    """
    best, owner = Groups.of(score), rewrites.axis.owner_in("prompt")
    good = rewrites.known & (best.members > 0)[owner] & (rewrites.values >= best.high[owner])
    order = np.lexsort((np.arange(len(rewrites)), -np.where(good, rewrites.values, -np.inf), owner))
    start = rewrites.axis.offsets_over("prompt")[:-1]
    place = np.empty(len(rewrites), dtype=np.int64)
    place[order] = np.arange(len(rewrites)) - start[owner]
    return Scores.of(rewrites.axis, (good & (place < top)) * 1.0)


def off_policy_weight(logp: Reward, logp_rewriter: Reward, *, gamma: float = 1.0) -> Reward:
    """``rho / (rho + gamma)``, ``rho = exp(clip(logp - logp_rewriter, -20, 20))``: the weight of a rewrite's token.

    Its loss is ``-A`` times that, in place of the clipped ratio. Log-probabilities per token, under the policy without
    the guidance and with it.
    """
    weight: Reward = shape.sigmoid(shape.clip(logp - logp_rewriter, -20.0, 20.0), centre=math.log(gamma))
    return weight
