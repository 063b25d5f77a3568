"""Router-R1: answer quality, and what the called models cost, where the answer is worth something."""

from __future__ import annotations

from typing import Literal

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import affine, log, power, running_quantile_scale


@method(
    "router-r1",
    family="verify",
    name="Router-R1: rule reward with cost term for multi-LLM routing",
    source="Zhang et al. 2025, arXiv:2506.09033",
    evidence="code-read",
)
def router_r1(
    form: Reward, quality: Reward, cost: Reward, *, alpha: float = 0.0, measure: Literal["sqrt", "log", "raw"] = "sqrt"
) -> Reward:
    """-1 for a broken format, 0 for a worthless answer, else ``(1 - alpha) R_q + alpha R_cost``.

    ``form``: 0/1. ``quality``: best F1 or exact match over the references, in [0, 1]. ``cost``: sum over calls of
    price times output tokens. ``R_cost = 1 - clip((u - lo) / (hi - lo), 0, 1)``, ``u = sqrt(cost)`` (or ``ln(1 +
    0.01 cost)``, or itself), between the 5th and 95th percentile of the last 1,000 seen, this batch included; 0.5
    while all are equal. Shape ``(rollouts,)``. ``alpha`` 0 in the main runs, 0.6 to 0.9 in the cost studies. This is
    the released form; the paper adds the three terms without gating, so that a cheap wrong answer is paid.

    Traps: the buffer makes the reward move and depend on rank: keep the session's state with the checkpoint, one per
    run; the first samples get 0.5.
    """
    measures = {"sqrt": lambda: power(cost, 0.5), "log": lambda: log(affine(cost, 0.01, 1.0)), "raw": lambda: cost}
    if measure not in measures:
        raise ValueError(f"measure={measure!r}: choose one of {', '.join(measures)}")
    cheap = 1.0 - running_quantile_scale(measures[measure]())
    mixed = quality * (1.0 - alpha) + cheap * alpha
    return when(form, when(quality == 0.0, 0.0, mixed), -1.0)
