"""SaFeR-Steer's trajectory-consistent reward: the worst turn so far counts beside the mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from guerdon import credit
from guerdon.core.axis import FloatArray
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores
from guerdon.methods._registry import method

Aggregate = Literal["min_mean", "mean", "last", "soft_linear", "harmonic"]


@method(
    "safer-steer-tcsr",
    family="shape",
    name="SaFeR-Steer: trajectory-consistent reward",
    source="Hu et al. 2026, arXiv:2604.16358 (Eq. 3-5, and released code)",
    evidence="paper-read",
)
def tcsr(turn: Reward, *, aggregate: Aggregate = "min_mean", alpha: float = 0.3) -> Reward:
    """A dialogue's reward from its turns' scores in [0, 1]: ``alpha min_t s_t + (1 - alpha) mean_t s_t``.

    ``turn``: shape ``(steps,)``; turns without a score are left out, never counted as 0, and a dialogue without a
    scored turn is unknown (the released code: 0). Others: ``"mean"``, ``"last"``, ``"soft_linear"`` (weights
    ``1 + 0.1 i``, ``i`` from 0 over valid turns), ``"harmonic"`` (``T / sum 1 / max(s, 0.01)``). Then
    `credit.group_relative` with ``eps=1e-6`` (our reading). `turn_rewards` gives the running form; its last value is
    ``"min_mean"``.

    Traps: the released docstring says 0.4 / 0.6, its code and the paper 0.3 / 0.7; the minimum is noisy with judge
    errors on long dialogues; weights 1..T overfit the last turn; one return for all turns blurs their credit.

    >>> import guerdon as gd
    >>> rows = [{"turns": [1.0, 0.75, 0.25]}, {"turns": [1.0, None]}]
    >>> gd.method("safer-steer-tcsr", gd.column("turns", axis="step")).score(rows).values.round(3).tolist()
    [0.542, 1.0]
    """
    skip: Mapping[str, str] = {"missing": "skip"}
    ways: Mapping[str, Callable[[], Reward]] = {
        "min_mean": lambda: turn.min(**skip) * alpha + turn.mean(**skip) * (1.0 - alpha),
        "mean": lambda: turn.mean(**skip),
        "last": lambda: turn.last(**skip),
        "soft_linear": lambda: credit.position_mean(turn, growth=0.1, missing="skip"),
        "harmonic": lambda: credit.harmonic_mean(turn, floor=0.01, missing="skip"),
    }
    if aggregate not in ways:
        raise ValueError(f"aggregate={aggregate!r}: choose one of {', '.join(ways)}")
    return ways[aggregate]()


def turn_rewards(turn: Reward, *, alpha: float = 0.3) -> Reward:
    """``r_t = alpha min_{j <= t} s_j + (1 - alpha) mean_{j <= t} s_j`` over valid turns; shape ``(steps,)``."""
    worst = credit.prefix_min(turn, missing="skip")
    return worst * alpha + credit.prefix_mean(turn, missing="skip") * (1.0 - alpha)


def survival(safe: Scores) -> FloatArray:
    """Share of dialogues without an unsafe turn up to ``t``, shape ``(longest,)``; ``safe``: 0/1 per turn.

    A dialogue that has ended keeps its last state (our reading); one with an unscored turn takes no part.
    """
    offsets = safe.axis.offsets_over("rollout")
    lengths = np.diff(offsets)
    alive: Scores = credit.prefix_min.function(safe)
    heard = lengths > 0
    heard[heard] = alive.known[offsets[:-1][heard]]
    if not heard.any():
        raise ValueError("no dialogue has scores for all its turns")
    turns = np.minimum(np.arange(int(lengths[heard].max()))[None, :], lengths[heard][:, None] - 1)
    return np.asarray((alive.values[offsets[:-1][heard][:, None] + turns] >= 1.0).mean(axis=0))
