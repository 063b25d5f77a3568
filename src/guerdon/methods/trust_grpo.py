"""SophiaVL-R1's Trust-GRPO: a thinking reward that counts only as far as it favours right answers."""

from __future__ import annotations

from guerdon.core.operators import minimum, when
from guerdon.core.reward import Reward, as_reward
from guerdon.methods._registry import method
from guerdon.shape import MIXED, anneal, exp, group_class, group_statistic


@method(
    "trust-grpo-thinking-reward",
    family="shape",
    name="SophiaVL-R1: thinking reward with Trust-GRPO",
    source="Fan et al. 2025, arXiv:2505.17018",
    evidence="code-read",
)
def trust_grpo(
    outcome: Reward, thinking: Reward, step: Reward | float = 0.0, *, alpha: float = 0.3, over: float = 500.0
) -> Reward:
    """``R = outcome + gamma alpha exp(-step / over) thinking``, with a trust ``gamma`` per group.

    ``outcome`` and ``thinking`` lie in [0, 1], shape ``(rollouts,)``; ``step`` is the training step (a column, a
    number or `shape.calls`). ``mu_c``, ``mu_w``: mean thinking of the group's rollouts with outcome >= 0.5, and of
    the others. ``gamma = 1`` if ``mu_c >= mu_w``, else ``exp(mu_c - mu_w)``; 1 where one of the two has no member.
    In groups that are all right (>= 0.9) or all wrong (<= 0.1) the thinking reward is neither added nor asked.

    Differs from the released code, which sets the thinking score of wrong rollouts to 0, so that ``gamma`` stays 1 for
    0/1 outcomes: here all are scored. There a judge reply that can't be parsed is 0; here it is unknown. Trap: with
    one rollout in a class its mean is noise.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "ok": ok, "think": t} for ok, t in ((1, 0.6), (1, 0.4), (0, 0.9), (0, 0.7))]
    >>> trusted = gd.method("trust-grpo-thinking-reward", gd.column("ok"), gd.column("think"))
    >>> trusted.score(rows).values.round(3).tolist()
    [1.133, 1.089, 0.2, 0.156]
    """
    right = outcome >= 0.5
    means = [group_statistic(thinking, where=side, empty=0.0) for side in (right, ~right)]
    counts = [group_statistic(thinking, "count", where=side) for side in (right, ~right)]
    gamma = when((counts[0] > 0) & (counts[1] > 0), exp(minimum(means[0] - means[1], as_reward(0.0))), as_reward(1.0))
    weight = anneal(as_reward(step), over=over, kind="exponential", start=alpha)
    mixed = group_class(outcome, fail=0.1, success=0.9) == MIXED
    return outcome + when(mixed, gamma * weight * thinking, as_reward(0.0))
