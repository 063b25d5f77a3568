"""HERO: verifier and reward model fused, so that a right answer always beats a wrong one."""

from __future__ import annotations

from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import spread_weight, stratify


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

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "ok": ok, "rm": rm} for ok, rm in ((1, 2.0), (1, 0.5), (0, 1.5), (0, -1.0))]
    >>> banded = gd.method("hero-hybrid-reward", gd.column("ok"), gd.column("rm"), weighted=False)
    >>> banded.score(rows).values.tolist()
    [1.05, 0.95, 0.05, -0.05]
    """
    banded = stratify(quality, by=correct, low=(-alpha, alpha), high=(1 - beta, 1 + beta))
    return banded * spread_weight(quality) if weighted else banded
