"""Uncertainty-aware RLHF: an ensemble's mean, less what its disagreement makes doubtful."""

from __future__ import annotations

from collections.abc import Sequence

from guerdon.core.operators import maximum
from guerdon.core.reward import Reward, as_reward
from guerdon.methods._registry import method
from guerdon.shape import ensemble_mean, ensemble_spread, power


@method(
    "uncertainty-aware-rlhf",
    family="shape",
    name="Uncertainty-aware RLHF: variance-weighted conservative policy optimisation",
    source="Banerjee and Gopalan 2024, arXiv:2410.23726",
    evidence="secondary",
)
def uncertainty_aware(
    members: Reward | Sequence[Reward], log_ratio: Reward, *, beta: float = 0.1, only_above: bool = False
) -> Reward:
    """``R = mu - beta s2 ln(pi(y|x) / pi0(y|x))``: moving away from the reference costs more where the members
    disagree.

    ``members``: scores of several reward models (a sequence, or a column with a list per rollout), each brought to a
    common mean and deviation first; ``mu`` their mean, ``s2`` their sample variance. ``log_ratio``: of the whole
    response. One member: unknown. Without log-probabilities use `shape.ensemble_lower_bound` (``mu - k s``) or
    `shape.ensemble_min`.

    Traps: members share data, so they agree too much off distribution; two say little about a variance; where
    ``pi < pi0`` the penalty turns into a bonus, unless ``only_above`` cuts the ratio off at 0. The per-sample form
    comes from secondary sources.

    >>> import guerdon as gd
    >>> rows = [{"members": [1, 2, 3], "ratio": 0.5}]
    >>> members = gd.column("members", axis="member")
    >>> gd.method("uncertainty-aware-rlhf", members, gd.column("ratio")).score(rows).values.tolist()
    [1.95]
    """
    ratio = maximum(log_ratio, as_reward(0.0)) if only_above else log_ratio
    variance = power(ensemble_spread(members, ddof=1), 2.0)
    return ensemble_mean(members) - variance * ratio * beta
