"""Reward routing: common terms always, and those of the mode that is on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guerdon.core.reward import Reward, as_reward
from guerdon.methods._registry import method
from guerdon.shape import choose, weighted_sum

Terms = Mapping[str, Reward]


@method(
    "gait-conditioned-reward-routing",
    family="shape",
    name="Gait-conditioned RL with reward routing",
    source="Peng et al. 2025, arXiv:2505.20619",
    evidence="abstract-only",
)
def routed(
    mode: Reward,
    common: Terms,
    by_mode: Sequence[Terms],
    weights: Mapping[str, float] | None = None,
) -> Reward:
    """``r = sum_j w_j r_j + sum_k w_(g,k) r_(g,k)``, ``g`` the mode: an index into ``by_mode`` from 0.

    Terms of other modes are not asked, and neither their values nor their unknowns count; a mode with no terms of its
    own gets the common part. ``weights`` by term name, 1 where not given. Shape as the terms'. An index that is no
    mode is unknown. Our reading of the abstract.

    Traps: the reward jumps where the mode changes; modes on different scales bias a shared critic.

    >>> import guerdon as gd
    >>> modes = [{}, {"knee": gd.column("knee")}]
    >>> rows = [{"mode": 0, "up": 1.0}, {"mode": 1, "up": 1.0, "knee": 0.5}]
    >>> walk = gd.method("gait-conditioned-reward-routing", gd.column("mode"), {"up": gd.column("up")}, modes)
    >>> walk.score(rows).values.tolist()
    [1.0, 1.5]
    """
    given = weights or {}
    known = {name for terms in (common, *by_mode) for name in terms}
    if set(given) - known:
        raise ValueError(f"weights for {', '.join(sorted(set(given) - known))}, which are no terms")

    def total(terms: Terms) -> Reward:
        return weighted_sum(terms, {n: given.get(n, 1.0) for n in terms}) if terms else as_reward(0.0)

    return total(common) + choose(mode, [total(terms) for terms in by_mode])
