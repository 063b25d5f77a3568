"""VPPO: save the good prefix of a wrong rollout."""

from __future__ import annotations

import numpy as np

from guerdon import credit, shape
from guerdon.core.interval import UNIT
from guerdon.core.operators import maximum, when
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.credit._kernels import positions
from guerdon.methods._registry import method


@method(
    "vppo-prefix",
    family="credit",
    name="VPPO: Verifiable Prefix Policy Optimization",
    source="Liu et al. 2026, arXiv:2601.18984",
    evidence="secondary",
)
def vppo(
    correct: Reward,
    process: Reward,
    tokens: Reward,
    shorten: Reward | float,
    *,
    alpha: float = 0.5,
    below: float = 0.8,
    relu: bool = False,
) -> Reward:
    """Token advantages: 1 for right rollouts, ``alpha`` for the good prefix of wrong ones, minus the group's mean.

    ``a = 1`` if right; ``alpha`` on the first ``|RP| = max(0, e - c)`` tokens if wrong, else 0: ``e`` tokens stand
    before the first step with ``process`` below ``below``, ``c`` is ``shorten`` (published: the prompt's length). Then
    ``A = a - mean_j mean_t a_{j,t}``; no division. ``relu`` (for instruct models) keeps prefix advantages at 0 or more.
    ``correct``: 0/1 per rollout; ``process``: per step, asked only for wrong rollouts; ``tokens``: any token score.
    `prefix_rewards` is the paper's form as rewards, for a critic.

    A wrong rollout in which no step falls below has its last step taken as the wrong one (our reading). Traps:
    all-wrong groups still learn, all-right ones get 0; an error that the model finds too late pays the wrong steps
    before it (about 9 % at 0.8); ``alpha`` from 0.9 on degraded results (stable: 0.3 to 0.7). Trades bias.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "completion": "abcd", "steps": ["ab", "cd"], "step_tokens": [2, 2],
    ...          "tokens": [1, 2, 3, 4], "logprobs": [-1.0] * 4, "s": [0.9, 0.1], "ok": ok} for ok in (1, 0)]
    >>> step, token = gd.column("s", axis="step"), gd.column("logprobs", axis="token")
    >>> gd.method("vppo-prefix", gd.column("ok"), step, token, 0).score(rows).values.tolist()
    [0.375, 0.375, 0.375, 0.375, -0.125, -0.125, -0.625, -0.625]
    """
    prefix = good_prefix(process, tokens, shorten, below=below)
    earned = when(correct, 1.0, prefix * alpha)
    each = earned.mean(to="rollout")
    advantage = earned - (each - shape.centre(each))
    return when(correct, advantage, when(prefix, maximum(advantage, 0.0), advantage)) if relu else advantage


def prefix_rewards(
    correct: Reward,
    process: Reward,
    tokens: Reward,
    shorten: Reward | float,
    *,
    alpha: float = 0.5,
    below: float = 0.8,
) -> Reward:
    """1 on the last token of right rollouts, ``alpha`` on the last one of a wrong rollout's good prefix, else 0."""
    end = credit.drop(good_prefix(process, tokens, shorten, below=below))
    return when(correct, credit.spread(correct, tokens, how="last"), end * alpha)


@transform(
    "methods.good_prefix",
    version=1,
    groups="rollout",
    axis=lambda process, like, *_, **__: like,
    range=lambda *_, **__: UNIT,
)
def good_prefix(process: Scores, like: Scores, shorten: Scores, *, below: float = 0.8) -> Scores:
    """1 for the tokens before the first wrong step but the last ``shorten``, else 0; no wrong step: the last one."""
    steps = np.diff(process.axis.offsets_over("rollout"))
    first: Scores = credit.first_error.function(process, below=below)
    step = np.minimum(first.values.astype(np.int64), np.maximum(steps - 1, 0))
    rollout = process.axis.ancestor("rollout")
    cut = shorten if shorten.axis.name == "rollout" else shorten.broadcast(rollout)
    token_starts = np.append(like.axis.offsets_over("step")[:-1], like.axis.size)
    offsets = like.axis.offsets_over("rollout")
    before = token_starts[process.axis.offsets_over("rollout")[:-1] + step] - offsets[:-1]
    kept = np.where(steps > 0, np.maximum(before - cut.values, 0.0), 0.0)
    spared = Scores.of(rollout, np.where(first.known & cut.known, kept, 0.0), first.known & cut.known, (first, cut))
    down = spared.broadcast(like.axis)
    whole = positions(offsets) + 1 <= down.values
    return Scores(like.axis, whole.astype(np.float64), down.known, down.reasons)
