"""SearchLLM's gated aggregation: a soft floor of bottom-line criteria times a weighted mean of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import soft_and, weighted_mean


@method(
    "gated-aggregation",
    family="shape",
    name="SearchLLM: two-layer reward with Gated Aggregation",
    source="Wu et al. 2026, arXiv:2603.10473",
    evidence="paper-read",
)
def gated_aggregation(
    floor: Sequence[Reward],
    behaviour: Mapping[str, Reward] | Sequence[Reward],
    weights: Mapping[str, float] | Sequence[float] | None = None,
    *,
    delta: float = 0.01,
) -> Reward:
    """``R = B U``, ``B = exp(mean_i log((s_i + delta) / (1 + delta)))``, ``U = sum_i w_i s'_i / sum_i w_i``, in [0, 1].

    ``floor``: bottom-line criteria ``s`` (grounding, format); ``behaviour``: criteria ``s'`` between which
    trade-offs are fine. All in [0, 1]: a value outside is unknown. One failed bottom line collapses the reward
    (three criteria: 0.21); the slope of ``log B`` stays below ``1 / (m delta)``. No bottom line: ``B = 1``; no
    behaviour, or weights that add up to 0, is an error. A missing verdict makes the reward unknown. Evidence: the
    weakest bottom line.

    Traps: the more bottom lines, the less one failure hurts (10: 0.63), so use a hard `shape.gate` there, or a smaller
    delta; the product shrinks the spread of bad groups.

    >>> import guerdon as gd
    >>> floor = [gd.column(n, range=(0, 1)) for n in ("grounded", "format")]
    >>> rows = [{"grounded": 1, "format": 1, "rich": 0.8}, {"grounded": 0, "format": 1, "rich": 0.8}]
    >>> gd.method("gated-aggregation", floor, [gd.column("rich")]).score(rows).values.round(3).tolist()
    [0.8, 0.08]
    """
    utility: Reward
    if isinstance(behaviour, Mapping):
        utility = weighted_mean({name: r.within(0, 1) for name, r in behaviour.items()}, weights)
    else:
        utility = weighted_mean([r.within(0, 1) for r in behaviour], weights)
    return soft_and(list(floor), delta=delta) * utility if floor else utility
