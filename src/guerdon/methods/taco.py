"""TACO: what a tool call did to the answer, and the outcome only where it belongs."""

from __future__ import annotations

from guerdon import credit, shape
from guerdon.core.operators import when
from guerdon.core.reward import Reward, constant
from guerdon.methods._registry import method


@method(
    "taco-dapr-ogar",
    family="credit",
    name="TACO: differential answer probes and outcome-gated routing",
    source="Feng et al. 2026, arXiv:2606.30251 (paper summary)",
    evidence="secondary",
)
def taco(
    correct: Reward,
    before: Reward,
    after: Reward,
    call: Reward | None = None,
    *,
    weight: float = 1.0,
    eps: float = 1e-6,
) -> Reward:
    """Advantage of each call's tokens: ``m A_out + weight A_tool``; the answer takes ``A_out`` itself.

    ``before``, ``after``: is the answer that the policy commits to right, just before and after the call? (0/1, shape
    ``(steps,)``); ``d = after - before``: 1 useful, -1 misleading, 0 redundant or failed. ``call``: 1 for the steps
    that are calls, 0 for the others (the answer), which have no probes; without it every step is one. ``A_tool``:
    z-score of ``d`` over all calls of the group's rollouts. ``A_out``: group z-score of ``correct``. ``m`` is 1 for
    useful calls of right rollouts and for misleading calls of wrong ones, else 0: the branch goes by ``correct``, not
    by the sign of ``A_out``. Population deviations; ``eps``, ``weight`` 1 and the table's failed calls are our reading.
    Equal ``d`` everywhere: the tool part is 0.

    Traps: greedy probes hide partial gains; probes must not enter the training context; the last call always looks
    useful if the answer is copied from it; parallel calls share their probes. Trades bias.
    """
    gain = after - before
    if call is not None:
        gain = shape.only(gain, where=call)
    routed = when(correct, gain == 1.0, gain == -1.0)
    tool = credit.place_relative(gain, constant(0.0), eps=eps, least=1)
    outcome = credit.group_relative(correct, eps=eps)
    advantage = routed * outcome + tool * weight
    return advantage if call is None else when(call, advantage, outcome)
