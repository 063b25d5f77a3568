"""RLR^3: additional criteria count only where all essential ones are met."""

from __future__ import annotations

from guerdon.core.operators import when
from guerdon.core.reward import Reward, as_reward
from guerdon.credit import place_relative
from guerdon.methods._registry import method
from guerdon.shape import weighted_items, zscore


@method(
    "rlr3",
    family="judge",
    name="RLR^3: robust rubric rewards with routing and minimal exposure",
    source="Yu et al. 2026, arXiv:2605.30244",
    evidence="secondary",
)
def rlr3(hits: Reward, essential: Reward, weights: Reward | float = 1.0, *, bonus: float = 0.5) -> Reward:
    """``R = e`` where an essential criterion is missed, else ``1 + bonus a``; in ``[0, 1 + bonus]``, one per rollout.

    ``hits`` in [0, 1] and ``essential`` 0/1, on a criterion axis; ``e``: plain mean of the essential hits, 1 where
    there is none; ``a``: mean of the additional ones by ``weights``, 0 where there is none. The hierarchy is
    published, this form and ``bonus`` are *our reading* (at most 1, else additional credit outbids essential). An
    unknown hit that the value depends on, or no criterion at all: unknown; whether a failed extraction is a miss is
    for the source of the hits to say, with a flag.

    Traps: the reward jumps where the last essential criterion is met; a judge that can't see the image can't grade
    perception; whoever extracts a value must not see the gold one. `rlr3_advantage` is the decoupled form.
    """
    _checked(bonus)
    e, complete = essential_share(hits, essential)
    return when(complete, 1.0 + additional_share(hits, essential, weights) * bonus, e)


def rlr3_advantage(hits: Reward, essential: Reward, weights: Reward | float = 1.0, *, bonus: float = 0.5) -> Reward:
    """``A = z(e) + bonus m z_m(a)``: ``e`` standardised in the group, ``a`` among the ``m`` = 1 rollouts that meet all
    essential criteria, so that neither saturates the other.

    ``z = (x - mean) / (std + 1e-6)``, population deviation, 0 without spread; ``z_m`` is 0 for a lone member. Our
    reading. Trap: a rollout that meets all essential criteria and no additional one can get a negative advantage.
    """
    _checked(bonus)
    e, complete = essential_share(hits, essential)
    extra = when(complete, additional_share(hits, essential, weights), 0.0)
    among = place_relative(extra, complete, eps=1e-6, least=1)
    return zscore(e, eps=1e-6) + when(complete, among, 0.0) * bonus


def essential_share(hits: Reward, essential: Reward) -> tuple[Reward, Reward]:
    """The mean of the essential hits, and whether all of them are met (decided hit by hit, not from the mean)."""
    checked = hits.within(0.0, 1.0)
    share = weighted_items(when(essential, checked, 0.0), essential)
    return when(essential.max() > 0.0, share, 1.0), when(essential, checked, 1.0).min() >= 1.0


def additional_share(hits: Reward, essential: Reward, weights: Reward | float = 1.0) -> Reward:
    """The weighted mean of the hits that are not essential; 0 where none has weight."""
    extra = when(essential, 0.0, as_reward(weights))
    mean = weighted_items(when(essential, 0.0, hits.within(0.0, 1.0)), extra)
    return when(extra.max() > 0.0, mean, 0.0)


def _checked(bonus: float) -> None:
    if not 0.0 <= bonus <= 1.0:
        raise ValueError(f"bonus={bonus!r} must lie in [0, 1], else additional criteria outbid essential ones")
