"""TRACE: a tool call is worth the change in how predictable the answer is."""

from __future__ import annotations

import math

from guerdon import credit, shape
from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method


@method(
    "trace-turn-credit",
    family="credit",
    name="TRACE: Turn-level Reward Assignment via Credit Estimation",
    source="Tao et al. 2026, arXiv:2607.13988 (re-implementation notes)",
    evidence="secondary",
)
def trace(
    outcome: Reward,
    logp: Reward,
    logp_start: Reward,
    call: Reward | None = None,
    *,
    eps: float = 0.1,
    window: int = 3,
    gamma: float = 0.8,
    terminal: float = 2.0,
    outcome_weight: float = 1.0,
    turn_weight: float = 0.2,
) -> Reward:
    """Advantage of each turn: ``w_o A_out + w_t local_t``; the answer takes ``w_o A_out``.

    ``logp``: mean log-probability of the gold answer after each tool call, shape ``(steps,)``, at most 0;
    ``logp_start``: before the first. ``call``: 1 for the steps that are tool calls, 0 for those after the last of them
    (the answer), whose ``logp`` is not read; without it every step is a call. A call after a step that is none: the
    calls are unknown. ``V_t = log(d_0 / d_t)``, ``d = eps - logp``; ``delta_t = V_{t+1} - V_t``; ``local_t`` its mean
    over the next ``window`` calls with weights ``gamma^j``, plus ``terminal * gamma^(T-t) A_out`` where the window
    touches the end (index convention: our reading). ``A_out``: z-score of ``outcome``, population deviation, 0 without
    spread: the turn credit stays.

    Deltas add up to ``log(d_0 / d_T)``: a redundant call earns exactly 0. Traps: a logp above 0 makes the rollout
    unknown; ``eps`` exists for logp near 0; never put the gold answer in the policy's prompt. No tool call: only the
    answer term.
    """
    episode = shape.zscore(outcome)
    if call is None:
        ahead = credit.left(logp)
        local = credit.window_mean(turn_value_gain(logp, logp_start, eps=eps), width=window, gamma=gamma)
    else:
        call = shape.only(call, where=credit.prefix_min(call) == call)
        ahead = credit.returns(call)
        gain = turn_value_gain(when(call, logp, 0.0), logp_start, eps=eps) * call
        # Both means divide by the same weights, so what is left is the mean over the calls of the window.
        both = [credit.window_mean(x, width=window, gamma=gamma) for x in (gain, call)]
        local = both[0] / both[1]
    local = local + when(ahead <= float(window), shape.exp(ahead * _log(gamma)) * episode * terminal, 0.0)
    turn = episode * outcome_weight + local * turn_weight
    return turn if call is None else when(call, turn, episode * outcome_weight)


def turn_value_gain(logp: Reward, logp_start: Reward, *, eps: float = 0.1) -> Reward:
    """``delta_t = V_{t+1} - V_t``, ``V_t = log((eps - logp_0) / (eps - logp_t))``; shape ``(steps,)``. See `trace`."""
    value = _checked_log(eps, logp_start) - _checked_log(eps, logp)
    return credit.potential_shaping(value, 0.0, absorb=False)


def _checked_log(eps: float, logp: Reward) -> Reward:
    return shape.log(eps - logp.within(-1e12, 0.0))


def _log(gamma: float) -> float:
    if not 0.0 < gamma <= 1.0:
        raise ValueError(f"gamma={gamma!r} must lie in (0, 1]")
    return math.log(gamma)
