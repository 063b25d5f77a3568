"""VPR: every turn graded by an oracle, and compared with the other candidates of its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from guerdon import credit, shape
from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.credit._kernels import positions
from guerdon.credit._rollouts import settled
from guerdon.methods._registry import method
from guerdon.shape._groups import Groups

Mode = Literal["group_whiten", "mean_then_batch_whiten", "turn"]


@method(
    "vpr",
    family="process",
    name="VPR: Verifiable Process Rewards",
    source="Yuan et al. 2026, arXiv:2605.10325",
    evidence="code-read",
)
def vpr(
    reward: Reward,
    success: Reward | None = None,
    *,
    mode: Mode = "group_whiten",
    outcome_scale: float = 1.0,
    least: int = 4,
    eps: float = 1e-8,
) -> Reward:
    """Advantages of turns from the oracle's grades; all tokens of a turn hold its advantage (`credit.spread`).

    In the first two modes a *rollout* is one candidate, and the candidates of one state are a group (K = 4):
    ``"group_whiten"`` (the code's default): ``c_k / (std + eps)``, ``c_k = r_k - mean``; ``"mean_then_batch_whiten"``:
    ``(c - mean_batch c) / std_batch c`` (no epsilon) over the rows of groups with spread. Groups without spread (``std
    <= 1e-8``) get 0, a lone candidate is unknown: neither trains. Population deviations. ``"turn"``: ``reward`` on the
    step axis, standardised over all rows of the batch at the same turn, or over the whole batch where fewer than
    ``least`` have it; no row is skipped. ``success`` 0/1: ``outcome_scale`` more on the last turn, before normalising;
    give 0 to a candidate that does not end the episode. `committed` picks the candidate that is played.

    Traps: padding rows must be left out, not scored 0; playing the best of K shifts the states that are visited; the
    oracle's errors become bias: keep its reliability on record.
    """
    if mode not in ("group_whiten", "mean_then_batch_whiten", "turn"):
        raise ValueError(f'mode={mode!r}: choose "group_whiten", "mean_then_batch_whiten" or "turn"')
    if success is not None:
        bonus = success * outcome_scale
        reward = reward + bonus if reward.axis == "rollout" else credit.pay_last(reward, bonus)
    if mode == "turn":
        return turn_relative(reward, least=least, eps=eps)
    centred, informative = shape.centre(reward), shape.group_statistic(reward, "std") > 1e-8
    if mode == "group_whiten":
        return when(informative, shape.zscore(reward, eps=eps), centred * 0.0)
    return when(informative, credit.batch_whiten(shape.only(centred, informative), ddof=0, eps=0.0), centred * 0.0)


@transform("methods.turn_relative", version=1, groups="batch")
def turn_relative(x: Scores, *, least: int = 4, eps: float = 1e-8) -> Scores:
    """``(x - mean) / (std + eps)`` over all rows of the batch at the same turn; of the whole batch below ``least``."""
    offsets = x.axis.offsets_over("rollout")
    turns = Groups(x.values, x.known, positions(offsets), int(np.diff(offsets).max(initial=0)))
    batch = Groups(x.values, x.known, np.zeros(len(x), dtype=np.int64), 1)
    enough = turns.members >= least
    with np.errstate(over="ignore", invalid="ignore"):
        flat = turns.at(np.where(enough, turns.flat, batch.flat)).astype(bool)
        width = turns.at(np.where(enough, turns.std(), batch.std())) + eps
        off = (x.values - turns.at(np.where(enough, turns.mean, batch.mean))) / np.where(flat, 1.0, width)
    return settled(x.axis, np.where(flat, 0.0, off), x.known, x.reasons)


def committed(grades: Sequence[float | None], rng: np.random.Generator) -> int | None:
    """Which candidate is played: the best graded, a random one of those that tie; ``None`` if none has a grade.

    >>> committed([0.0, 1.0, None], np.random.default_rng(0))
    1
    """
    known = [g for g in grades if g is not None]
    if not known:
        return None
    return int(rng.choice([i for i, g in enumerate(grades) if g == max(known)]))
