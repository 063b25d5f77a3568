"""HERO: verifier and reward model fused, so that a right answer always beats a wrong one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from guerdon.core.interval import Interval
from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.methods._registry import method
from guerdon.shape import minmax
from guerdon.shape._groups import Groups


@method(
    "hero-hybrid-reward",
    family="shape",
    name="HERO: Hybrid Ensemble Reward Optimization",
    source="Tao et al. 2025, arXiv:2510.07242",
    evidence="secondary",
)
def hero(correct: Reward, quality: Reward, *, alpha: float = 0.05, beta: float = 0.05, weighted: bool = True) -> Reward:
    """Quality scores stratified by correctness, times a weight for how hard the prompt looks.

    Per prompt, ``quality`` (any scale) is mapped by min-max to ``[-alpha, alpha]`` among the wrong rollouts and to
    ``[1 - beta, 1 + beta]`` among the right ones (``correct``: 0/1, shape ``(rollouts,)``); then times
    ``w = w_min + (w_max - w_min) / (1 + exp(-k (sigma - sigma_bar)))``, `spread_weight`, unless ``weighted=False``.
    Published defaults: 0.05 where everything is verifiable, 0.1 for mixed tasks; w from 0.4 to 3, k = 6.

    Traps: a class with one member or equal scores takes the middle of its band, 0 or 1 (the printed formula gives its
    lower end; our choice). Dividing by the group's deviation afterwards cancels the weight and blows up the narrow band
    of all-wrong groups: use it with `credit.group_relative` and ``scale="none"``.
    """
    wrong = minmax(quality, low=-alpha, high=alpha, within=correct)
    right = minmax(quality, low=1 - beta, high=1 + beta, within=correct)
    banded = when(correct, right, wrong)
    return banded * spread_weight(quality) if weighted else banded


def _start(**_: object) -> Mapping[str, Any]:
    return {"mean": 0.0, "groups": 0}


@transform(
    "shape.spread_weight",
    version=1,
    groups=True,
    initial=_start,
    axis=lambda x, **_: "prompt",
    range=lambda x, low=0.4, high=3.0, **_: Interval(low, high),
)
def spread_weight(
    x: Scores,
    *,
    low: float = 0.4,
    high: float = 3.0,
    slope: float = 6.0,
    state: Mapping[str, Any] | None = None,
) -> tuple[Scores, Mapping[str, Any]]:
    """A weight per group that grows with its spread: ``low + (high - low) / (1 + exp(-slope (sigma - sigma_bar)))``.

    ``sigma`` is the population deviation of the group's known scores, ``sigma_bar`` its running mean over all groups
    seen, this batch included, kept in the state. On the prompt axis; a group without known scores is unknown.
    """
    groups = Groups.of(x)
    sigma, known = groups.std(), groups.members > 0
    seen = (state or _start())["groups"]
    count = seen + int(known.sum())
    mean = ((state or _start())["mean"] * seen + float(sigma[known].sum())) / max(count, 1)
    values = low + (high - low) / (1.0 + np.exp(-slope * (sigma - mean)))
    return Scores.of(x.axis.ancestor("prompt"), values, known, "no known score in the group"), {
        "mean": mean,
        "groups": count,
    }
