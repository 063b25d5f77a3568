"""SCOPE-RL: credit for the longest right prefix of a scaffold, and for the quality of a right solution."""

from __future__ import annotations

from collections.abc import Sequence

from guerdon.core.operators import when
from guerdon.core.reward import Reward, as_reward
from guerdon.core.scores import Scores
from guerdon.methods._registry import method
from guerdon.shape import affine, group_statistic, items, log, until


@method(
    "scope-rl",
    family="verify",
    name="SCOPE-RL: prefix-decomposed scaffold rewards and quality-aware process rewards",
    source="Liu et al. 2026, arXiv:2607.11506 (a reproduction's notes)",
    evidence="secondary",
)
def scope_rl(sub: Reward, correct: Reward, *, share: float = 0.5) -> Reward:
    """``R_ASR = b (1/m) sum_i Pi_i + (1 - b) Pi_m 1[main right]``, ``Pi_i`` 1 while all sub-answers up to ``i`` are
    right.

    ``sub``: 0/1 per sub-question, in order, on an axis under the rollout; ``correct``: 0/1, the main answer, which
    counts only if the whole prefix is right. Without sub-questions ``correct`` alone (our reading). For groups that
    `needs_scaffold` picks; on the others, after this stage, `process_quality`. Shape ``(rollouts,)``, in [0, 1].

    Trap: a scaffold whose sub-answers stand in the prompt gives the answer away.
    """
    right = sub.within(0.0, 1.0)
    prefix = until(~right) * right
    whole = prefix.mean() * share + prefix.min() * correct * (1.0 - share)
    return when(items(sub) == 0.0, correct, whole)


def needs_scaffold(outcome: Reward, *, threshold: float = 0.5) -> Reward:
    """1 for groups whose mean outcome on the plain prompt lies below ``threshold``; exactly at it, 0."""
    return group_statistic(outcome) < threshold


def process_quality(
    correct: Reward, labels: Reward, *, penalties: Sequence[float] = (0.5, 0.5, 0.5, 0.5), alpha: float = 0.1
) -> Reward:
    """``R_QPR``: 0 if wrong, else ``S_u prod_k (1 - lam_k r_k) / (1 + alpha ln(N + 1))``.

    ``labels`` on the step axis: 0 useful, 1 mechanical, 2 redundant, 3 reversion, 4 error, asked of right solutions
    only. ``S_u`` and ``r_k`` are the shares of the ``N`` steps, ``penalties`` the ``lam_k`` of classes 1 to 4, below 1.
    No steps: 0; a label outside 0 to 4 is unknown. The constants were not published. Traps: the judge's splitting
    decides ``N``; the scale differs from a 0/1 outcome's.
    """
    if len(penalties) != 4 or not all(0 <= p < 1 for p in penalties):
        raise ValueError(f"process_quality needs four penalties in [0, 1), not {list(penalties)}")
    labels = labels.within(0.0, 4.0)
    quality = (labels == 0.0).mean()
    for kind, penalty in enumerate(penalties, start=1):
        quality = quality * affine((labels == float(kind)).mean(), -penalty, 1.0)
    soft = affine(log(items(labels) + 1.0), alpha, 1.0)
    return when(correct, when(items(labels) == 0.0, 0.0, quality / soft), as_reward(0.0))


def gradient_share(outcome: Scores) -> float | None:
    """Share of groups whose outcomes differ, which alone give a gradient; ``None`` without a known group."""
    spread: Scores = group_statistic(outcome, "std")
    return float((spread.values[spread.known] > 0).mean()) if spread.known.any() else None
