"""Sweet Spot Learning: a verifier's verdict, plus closeness in a few tiers."""

from __future__ import annotations

from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import gaussian, power, quantise


@method(
    "ssl-tiered-reward",
    family="shape",
    name="Sweet Spot Learning (SSL): tiered proximity and progress rewards",
    source="arXiv:2601.22491 (2026)",
    evidence="secondary",
)
def ssl(correct: Reward, closeness: Reward, *, alpha: float = 0.5, tiers: int = 4, floor: float = 0.0) -> Reward:
    """``R = C + alpha S_hat``: verdict ``C`` (0/1) plus the mean closeness ``S`` rounded up to one of ``tiers`` tiers.

    ``closeness`` in [0, 1], per rollout or per step (then averaged; no steps: unknown): `click_closeness`, or the
    share of matched cells. ``S_hat = ceil(K S) / K``, 0 below ``floor`` (`shape.quantise`; our reading). 4 tiers
    were best, ``alpha`` was not published. Range ``[0, 1 + alpha]``, shape ``(rollouts,)``.

    Traps: with ``alpha >= 1`` a near miss can outrank a success, so it is refused; without a floor an absurdly distant
    answer still gets the first tier; cells that the task gives away must not count as matched.

    >>> import guerdon as gd
    >>> rows = [{"ok": 1, "near": 1.0}, {"ok": 0, "near": 0.6}, {"ok": 0, "near": 0.1}]
    >>> gd.method("ssl-tiered-reward", gd.column("ok"), gd.column("near")).score(rows).values.tolist()
    [1.5, 0.375, 0.125]
    """
    if not 0 <= alpha < 1:
        raise ValueError(f"ssl needs 0 <= alpha < 1, not {alpha}: a near miss must not outrank a success")
    mean = closeness if closeness.axis == "rollout" else closeness.mean(to="rollout")
    return correct + quantise(mean, levels=tiers, floor=floor) * alpha


def click_closeness(
    x: Reward, y: Reward, centre_x: Reward, centre_y: Reward, width: Reward, height: Reward, *, scale: float = 1.0
) -> Reward:
    """``exp(-d^2 / 2)``, ``d^2 = ((x - cx) / sx)^2 + ((y - cy) / sy)^2``, ``sx``, ``sy`` being ``scale`` times the
    box' sides."""
    across, down = (x - centre_x) / (width * scale), (y - centre_y) / (height * scale)
    return gaussian(power(across * across + down * down, 0.5))
