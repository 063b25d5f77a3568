"""Easy-to-hard generalisation: a step pays only when it lowers the worst score so far."""

from __future__ import annotations

from typing import Literal

import numpy as np

from guerdon import credit, shape
from guerdon.core.axis import FloatArray, IntArray
from guerdon.core.operators import minimum
from guerdon.core.reward import Reward, as_reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.credit._kernels import last_items, preceding
from guerdon.credit._rollouts import along
from guerdon.methods._registry import method

Scheme = Literal["min", "prod"]


@method(
    "easy-to-hard",
    family="process",
    name="Easy-to-hard generalisation with process evaluators",
    source="Sun et al. 2024, arXiv:2403.09472",
    evidence="code-read",
)
def easy_to_hard(
    process: Reward,
    outcome: Reward | None = None,
    tokens: Reward | None = None,
    *,
    scheme: Scheme = "min",
    start: float = 1.0,
    bonus: float = 0.25,
    scale: float = 1.0,
) -> Reward:
    """``scale * (n_j + bonus / (J + 1e-6))`` per step, half of it on each of two tokens; the outcome on the last token.

    ``process``: ``p_j`` in [0, 1], shape ``(steps,)``; take `shape.sigmoid` of raw scores first. ``n_j = m_j -
    m_{j-1}`` with ``m_0 = start`` and ``m_j = min(m_{j-1}, p_j)``, or, with ``scheme="prod"``, ``min(m_{j-1}, p_1 ...
    p_j)``; it is never positive and adds up to ``min(start, min p) - start``: good steps earn nothing, so adding them
    is no hack. The bonus adds up to ``bonus`` whatever ``J`` is. ``tokens``: any token score: the halves lie on a
    step's last token and the next one; beyond the response's end both stay on its last token (our reading). Without
    it, on steps. Published defaults. A rollout with an unknown step is unknown; one without steps has only its
    outcome.

    Differs from the released code, which assigns the halves, so that step ends on neighbouring tokens overwrite each
    other: here they add. Trap: ``start`` below 1 ignores small drops. Trades bias: a running minimum is not the
    outcome.
    """
    if scheme not in ("min", "prod"):
        raise ValueError(f'scheme={scheme!r}: choose "min" or "prod"')
    chance = process.within(0.0, 1.0)
    level = chance if scheme == "min" else shape.exp(credit.prefix_sum(shape.log(chance, floor=1e-300)))
    worst: Reward = minimum(credit.prefix_min(level), as_reward(start))
    reward: Reward = (shape.delta(worst, start=start) + bonus / (shape.items(process) + 1e-6)) * scale
    if tokens is not None:
        reward = over_two_tokens(credit.spread(reward, tokens, how="last"))
    if outcome is not None:
        reward = credit.pay_last(reward, outcome)
    return reward


@transform("methods.over_two_tokens", version=1, groups="rollout")
def over_two_tokens(x: Scores) -> Scores:
    """Half of each token's reward stays, half goes to the next token; the rollout's last token keeps both."""

    def split(values: FloatArray, offsets: IntArray) -> FloatArray:
        half = values / 2.0
        out = half + preceding(half, offsets)
        out[last_items(offsets)] += half[last_items(offsets)]
        return np.asarray(out)

    return along(x, split)
