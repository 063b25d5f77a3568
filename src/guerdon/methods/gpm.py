"""The general preference model: preference from embeddings, so that A > B > C > A has a score."""

from __future__ import annotations

from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import mean_over_others, sigmoid, skew_preference, win_rate


@method(
    "gpm-general-preference",
    family="learning",
    name="General preference model (GPM) and general preference optimisation (GPO)",
    source="Zhang et al. 2024, arXiv:2410.02197",
    evidence="code-read",
)
def gpm(
    embedding: Reward, strengths: Reward | None = None, *, temperature: float = 0.1, probability: bool = False
) -> Reward:
    """GPO's reward ``S(y) = mean_k s(y > y_k)`` over the other members ``y_k`` of the group, ``s`` from embeddings.

    ``embedding``: an even number of coordinates on an axis under the rollout; it is brought to length 1. ``s(a >
    b)`` is skew-symmetric, `shape.skew_preference`, with ``strengths`` per pair of coordinates (the prompt's gate;
    default 1). With ``probability``, the mean of ``P(y > y_k) = sigmoid(s / temperature)`` instead, in [0, 1]. A
    zero vector has no direction: unknown, and left out of the others' means. A group of one: unknown. Shape
    ``(rollouts,)``.

    Traps: scores are relative to the members compared with; unit length and temperature 0.1 saturate the sigmoid; two
    released forms of the gate differ by a factor d / 2; an odd d is invalid. That the mean leaves the rollout itself
    out is our reading.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "v": v} for v in ([1, 0], [0, 1], [-1, 0])]
    >>> gd.method("gpm-general-preference", gd.column("v", axis="dimension")).score(rows).values.tolist()
    [0.5, 0.0, -0.5]
    """
    scores = skew_preference(embedding, strengths)
    return win_rate(sigmoid(scores, 1.0 / temperature)) if probability else mean_over_others(scores)
