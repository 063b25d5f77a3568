"""BiRM: what has been right so far, plus how likely success is from here."""

from __future__ import annotations

from typing import Literal

from guerdon import shape
from guerdon.core.reward import Reward
from guerdon.methods._registry import method

Aggregate = Literal["mean", "min", "max", "last"]


@method(
    "birm",
    family="process",
    name="BiRM: bi-directional rewarding signals",
    source="Chen et al. 2025, arXiv:2503.04618",
    evidence="code-read",
)
def birm(process: Reward, value: Reward, *, beta: float = 1.0, agg: Aggregate = "mean") -> Reward:
    """Best-of-N score ``V(s_K) + beta agg_k r(s_k)``, one per rollout.

    ``process``: the process head's ``r(s_k)``, ``value``: the value head's ``V(s_k)``, both of shape ``(steps,)``.
    ``agg`` is mean (published), min, max or last. ``beta`` was tuned in {0.5, 0.67, 1, 1.5, 2}. In a step search the
    score of a prefix is `birm_step`. A rollout without steps, or with an unknown one that counts, is unknown; the
    released code takes index 0 where it finds no step, without a word.

    Trap: both heads are unbounded regressors, so that their scales drift apart: calibrate them (`shape.sigmoid`,
    `shape.running_zscore`) before mixing.
    """
    reducers = {"mean": process.mean, "min": process.min, "max": process.max, "last": process.last}
    if agg not in reducers:
        raise ValueError(f"agg={agg!r}: choose one of {', '.join(reducers)}")
    return value.last(to="rollout") + reducers[agg](to="rollout") * beta


def birm_step(process: Reward, value: Reward, *, beta: float = 1.0) -> Reward:
    """``f(s_k) = r(s_k) + beta V(s_k)``: the score of each prefix in a step search, shape ``(steps,)``."""
    return process + value * beta


def head_loss(score: Reward, label: Reward, *, ignore: float = -100.0) -> Reward:
    """``sum_k (s_k - l_k)^2`` of one head over a rollout's labelled steps; the batch loss is its mean over rollouts.

    A step without a label (unknown, or ``ignore``) is left out; a rollout without any is unknown. BiRM adds the losses
    of both heads and that of the language model.
    """
    gap = score - shape.only(label, where=label != ignore)
    return (gap * gap).sum(to="rollout", missing="skip")
