"""B-Coder: rewards of four levels from unit tests, and rewards recovered from Q where there are no tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from guerdon.core.axis import FloatArray
from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import transform
from guerdon.credit._kernels import last_items, unit_interval
from guerdon.methods._registry import method
from guerdon.verify.programs.signals import code_level

R_MAX = 1.0


@method(
    "b-coder",
    family="verify",
    name="B-Coder: value-based reinforcement learning for program synthesis",
    source="Yu et al. 2023, arXiv:2310.03173",
    evidence="paper-read",
)
def b_coder(
    level: Reward | None = None,
    *,
    rewards: Sequence[float] = (-1.0, -0.6, -0.3, 1.0),
    tests: str = "tests",
    seconds: float = 5.0,
) -> Reward:
    """``r(W)`` = 1 all tests pass, -0.3 one fails, -0.6 runtime error, -1 compile error.

    ``level``: 0 to 3, by default live `verify.code_level`; ``rewards`` by level, from compile error to all passed.
    Given at the last token, 0 elsewhere (`credit.pay_last`); shape ``(rollouts,)``. Without tests:
    `recovered_reward` inverts the Bellman operator of a trained Q, and its sum ranks candidates. Training of Q itself
    is not here; `q_values` and `conservative_target` are its two formulas.

    Traps: the sandbox must tell compiling from running (here: what does not parse, or what its compiler refuses); an
    endless loop is a runtime error; a runtime error in any test outweighs wrong results in others (our reading); a
    sandbox that failed is unknown, not -0.6.

    >>> import guerdon as gd
    >>> gd.method("b-coder", gd.column("level")).score([{"level": n} for n in (0, 1, 2, 3)]).values.tolist()
    [-1.0, -0.6, -0.3, 1.0]
    """
    got = level if level is not None else code_level(tests=tests, seconds=seconds)
    compile_error, runtime_error, failed, passed = rewards
    return when(got >= 3.0, passed, when(got >= 2.0, failed, when(got >= 1.0, runtime_error, compile_error)))


@transform("methods.recovered_reward", version=1, groups="rollout")
def recovered_reward(
    gap: Scores, value: Scores, greedy_gap: Scores | None = None, *, alpha: float = 1.0, gamma: float = 1.0
) -> Scores:
    """``r_t = Q(s_t, a_t) - gamma Q(s_{t+1}, a'_{t+1})``, with ``Q = alpha gap + value``; shape ``(tokens,)``.

    ``gap``: the token's logit less the largest, at most 0; ``value``: ``V(s_t)``, both on the token axis;
    ``greedy_gap``: the same gap of the token ``a'`` that the frozen pre-trained policy would choose there; without it
    ``a'`` is the policy's own best and ``Q(s', a') = V(s')``. After the last token there is no second term. ``alpha``,
    ``gamma``: not recovered from the paper; here 1. ``.sum()`` ranks candidates. Unknown where the
    token or the next one is.

    Traps: with ``gamma < 1`` the sum depends on the length, since the terms only telescope at 1; a value counted at the
    terminal state shifts every program's sum. Raises ``ValueError`` for ``alpha <= 0`` or a ``gamma`` outside [0, 1].

    >>> import guerdon as gd
    >>> gap, value = (gd.column(name, axis="token") for name in ("gap", "v"))
    >>> rows = [{"tokens": [7, 8], "gap": [0.0, 0.0], "v": [0.5, 0.7]}]
    >>> recovered_reward(gap, value, gamma=0.99).score(rows).scores.values.round(3).tolist()
    [-0.193, 0.7]
    """
    if not alpha > 0:
        raise ValueError(f"recovered_reward needs alpha above 0, not {alpha}")
    unit_interval(gamma=gamma)
    gaps, states, *prior = aligned(*[part for part in (gap, value, greedy_gap) if part is not None])
    axis, following = gaps.axis, states.values
    known = gaps.known & states.known
    next_known = states.known & prior[0].known if prior else states.known
    with np.errstate(over="ignore", invalid="ignore"):
        if prior:
            following = alpha * prior[0].values + following
        last = np.zeros(axis.size, dtype=np.bool_)
        last[last_items(axis.offsets_over("rollout"))] = True
        after = np.where(last, 0.0, np.append(following[1:], 0.0))
        values = alpha * gaps.values + states.values - gamma * after
    known &= (last | np.append(next_known[1:], True)) & np.isfinite(values)
    return Scores.of(axis, np.where(known, values, 0.0), known, "no finite gap or value here or at the next token")


def q_values(logits: FloatArray, value: float | FloatArray, *, alpha: float = 1.0) -> FloatArray:
    """``Q(s, .) = alpha (l - max l) + V``, shape of ``logits`` (last dimension: vocabulary), capped at 1.

    The softmax of ``Q / alpha`` is the model's own policy, wherever the cap does not bind.

    >>> q_values(np.array([2.0, 1.0, 0.0]), 0.5).tolist()
    [0.5, -0.5, -1.5]
    """
    advantage = alpha * (logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(np.minimum(advantage + np.expand_dims(np.asarray(value), -1), R_MAX))


def conservative_target(
    reward: float | FloatArray, next_q: FloatArray, next_prior: FloatArray, *, terminal: bool, gamma: float
) -> FloatArray:
    """``r + gamma Q(s', a')`` with ``a' = argmax_b q(b | s')``: the action the frozen policy would take, not Q's best.

    ``next_q``, ``next_prior``: over the vocabulary at ``s'``; ties go to the lowest token. At a terminal ``s'``: ``r``.

    >>> float(conservative_target(0.0, np.array([0.4, -0.5]), np.array([0.1, 0.9]), terminal=False, gamma=0.99))
    -0.495
    """
    if terminal:
        return np.asarray(reward, dtype=np.float64)
    return np.asarray(reward + gamma * next_q[..., int(np.argmax(next_prior))])
