"""Discretised reward models: scores that the model itself can't tell apart become equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores, aligned
from guerdon.methods._registry import method
from guerdon.shape import ensemble_mean, ensemble_spread, group_statistic, merge_uncertain
from guerdon.shape._pairs import pairs


@method(
    "reward-discretization-mcdropout",
    family="shape",
    name="Discretizing reward models with Monte-Carlo dropout",
    source="Viswanathan et al. 2026, arXiv:2606.21795",
    evidence="secondary",
)
def discretised(
    passes: Reward, *, width: float = 1.0, values: Literal["index", "mean"] = "index", rescue: bool = False
) -> Reward:
    """Cluster number (or cluster mean) of each rollout in its group; clusters are scores that overlap in uncertainty.

    ``passes``: several stochastic scores of one rollout (a reward model with dropout on, about 8; or samples of a
    judge) on an axis under the rollout. ``m_i``, ``s_i``: their mean and population deviation. Sorted by ``m``, a new
    cluster starts where ``m_(i) - m_(i-1) > width sqrt(s_(i)^2 + s_(i-1)^2)``. Our reading: the paper's own clustering
    was not seen. Apply it before any group normalisation. `pair_agreement` measures what it gains.

    Traps: many close scores chain into one cluster, and the group loses its signal; ``rescue`` then keeps the means of
    such a group. Served models have dropout fused out, so that all passes agree and nothing merges: see
    `dropout_is_off`, and sample an API judge instead. A single pass merges only equal scores; an unknown pass leaves
    its rollout unknown.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "passes": [m - 0.1, m + 0.1]} for m in (1.0, 1.05, 2.0)]
    >>> gd.method("reward-discretization-mcdropout", gd.column("passes", axis="pass")).score(rows).values.tolist()
    [0.0, 0.0, 1.0]
    """
    mean, spread = ensemble_mean(passes), ensemble_spread(passes, ddof=0)
    clusters = merge_uncertain(mean, spread, width=width, values=values)
    return when(group_statistic(clusters, "std") > 0, clusters, mean) if rescue else clusters


def dropout_is_off(passes: Scores) -> bool:
    """Whether no rollout's passes differ although some have several: the model that gave them is not stochastic."""
    spread: Scores = ensemble_spread(passes, ddof=1)
    return bool(spread.known.any() and not spread.values[spread.known].any())


@dataclass(frozen=True)
class PairAgreement:
    """How a score treats pairs of one prompt: shares in [0, 1], ``None`` where there is no such pair."""

    discriminative: float | None
    """Share of pairs of different quality that are put in the right order; equal scores are not."""
    specificity: float | None
    """Share of pairs of equal quality that get equal scores; 1 less it is the oversensitivity."""


def pair_agreement(score: Scores, quality: Scores) -> PairAgreement:
    """Discriminative ability and specificity of ``score`` against true ``quality``, over all pairs within a prompt."""
    score, quality = aligned(score, quality)
    use = np.flatnonzero(score.known & quality.known)
    owner = score.axis.owner_in("prompt")[use]
    s, q = score.values[use], quality.values[use]
    right = different = same = equal = 0
    for i, j in pairs(np.searchsorted(owner, np.arange(score.axis.ancestor("prompt").size + 1))):
        better, level = q[i] > q[j], (q[i] == q[j]) & (i < j)
        different, right = different + int(better.sum()), right + int((better & (s[i] > s[j])).sum())
        equal, same = equal + int(level.sum()), same + int((level & (s[i] == s[j])).sum())
    return PairAgreement(right / different if different else None, same / equal if equal else None)
