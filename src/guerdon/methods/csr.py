"""CSR: agreement of meanings inside the group becomes a calibrated confidence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.core.segments import segment_ranks
from guerdon.methods._registry import method
from guerdon.shape import vote_share


@method(
    "csr-semantic-calibration",
    family="consensus",
    name="CSR: calibration with semantic reward",
    source="Yu et al. 2026, arXiv:2605.15588",
    evidence="abstract-only",
)
def csr(correct: Reward, cluster: Reward, *, weight: float = 0.5) -> Reward:
    """``1 + weight s_i`` if right, ``-weight s_i`` if wrong, ``s_i = (|cluster(i)| - 1) / (G - 1)``.

    ``correct``: 0/1; ``cluster``: the number of the answer's cluster of meaning within the group (from a normalised
    match, or `shape.mutual_clusters` of an entailment model's verdicts); one per rollout. ``G`` counts rollouts with a
    cluster; alone, ``s = 0``. In [-weight, 1 + weight]. At test time the confidence is `answer_confidence`. All
    *our reading*, ``weight`` too: the paper's formula was not seen.

    Traps: entailment is not transitive, so links may chain different answers together; clustering errors reward a
    paraphrase said often; where all are wrong, the rarest wrong answer is best, which may cost accuracy; a small group
    gives coarse confidence.
    """
    agreement = vote_share(cluster, others=True) * weight
    return when(correct, agreement + 1.0, -agreement)


def answer_confidence(cluster: Reward) -> Reward:
    """``|cluster(i)| / G``: the share of the group's answers that mean the same."""
    share: Reward = vote_share(cluster)
    return share


def calibration_error(confidence: npt.ArrayLike, correct: npt.ArrayLike, *, bins: int = 10) -> float:
    """Expected calibration error ``sum_b n_b / N |acc_b - conf_b|`` over ``bins`` equal bins ``(k/b, (k+1)/b]``.

    Both of shape ``(n,)``, ``confidence`` in [0, 1] (0 falls into the first bin). NaN without any.

    >>> round(calibration_error([0.5, 0.5, 1.0], [1, 0, 0]), 6)
    0.333333
    """
    c, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if len(c) == 0:
        return float("nan")
    at = np.searchsorted(np.arange(1, bins) / bins, c, side="left")
    return float(np.abs(np.bincount(at, weights=y - c, minlength=bins)).sum() / len(c))


def auroc(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """How often a right answer has more confidence than a wrong one, ties 1/2; NaN with one class only.

    >>> auroc([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0])
    0.875
    """
    c, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64) == 1.0
    right, wrong = int(y.sum()), int((~y).sum())
    if not right or not wrong:
        return float("nan")
    ranks = segment_ranks(c, np.zeros(len(c), dtype=np.int64))
    return float((ranks[y].sum() - right * (right - 1) / 2.0) / (right * wrong))
