"""Self-paced GRPO: weight moves from easy reward terms to hard ones as the policy gets better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import self_paced


@method(
    "self-paced-grpo-reward-curriculum",
    family="shape",
    name="Self-Paced GRPO",
    source="arXiv:2511.19356 (2025)",
    evidence="secondary",
)
def self_paced_grpo(
    parts: Mapping[str, Reward] | Sequence[Reward], *, width: float = 0.25, rate: float = 0.1, floor: float = 0.0
) -> Reward:
    """``R = sum_j w_j(c) r_j`` with weights that follow a competence ``c``: `shape.self_paced`.

    ``parts`` in [0, 1], from easy to hard; ``g_j = exp(-(c - mu_j)^2 / (2 width^2))``, ``mu`` evenly from 0 to 1,
    ``w_j = floor + (1 - J floor) g_j / sum g``; ``c <- max(c, (1 - rate) c + rate x)`` after each batch, ``x`` the
    mean of the part with the largest weight. The transition functions were not published: our reading. Shape
    ``(rollouts,)``. The state, ``c``, lives in the session: keep it with the checkpoint.

    Traps: weights that move inside a group would move its scale, so they are frozen while a batch is scored; ``c`` that
    could fall would oscillate; a part that saturates below 1 stalls it.

    >>> import guerdon as gd
    >>> parts = {"easy": gd.column("a"), "middle": gd.column("b"), "hard": gd.column("c")}
    >>> rows = [{"a": 1.0, "b": 0.0, "c": 0.0}]
    >>> gd.method("self-paced-grpo-reward-curriculum", parts).score(rows).values.round(3).tolist()
    [0.881]
    """
    mixed: Reward = self_paced(parts, width=width, rate=rate, floor=floor)
    return mixed
