"""VeRPO: partial success counts by how hard each unit test is for the policy now."""

from __future__ import annotations

import math

import numpy as np

from guerdon import shape
from guerdon.core.interval import UNIT
from guerdon.core.operators import times, when
from guerdon.core.reward import Reward, as_reward
from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import transform
from guerdon.methods._registry import method
from guerdon.shape._groups import Groups, cells, labels
from guerdon.shape._pairs import pairs


@method(
    "verpo-dense-test-reward",
    family="verify",
    name="VeRPO: verifiable dense reward policy optimisation",
    source="Wang et al. 2026, arXiv:2601.03525",
    evidence="secondary",
)
def verpo(
    passed: Reward,
    test: Reward | None = None,
    turn: Reward | None = None,
    turns: Reward | None = None,
    *,
    rates: Reward | None = None,
    counts: Reward | None = None,
    alpha: float = 1.0,
    sigma: float = 0.1,
    beta: float = 0.5,
    gamma: float = 0.9,
    delta: float = 1e-6,
) -> Reward:
    """``A = A_traj + beta A_turn``: all tests passed, and the sum of the weights of the tests passed, both centred.

    ``passed``: 0/1 per test, shape ``(tests,)`` (`verify.code` per test); ``test``: which test an item is, by
    default its place. ``A_turn = sum_j w_j p_j - mean``, `density_weights`, over all turns of all rollouts of the
    prompt; ``A_traj = 1[all pass at the last turn] gamma^turns - mean`` over its rollouts (our reading: one turn
    already costs ``gamma``). No division. One turn per rollout: result per rollout. Several: ``turn`` is the turn
    of each test item, from 0, ``turns`` any score on the step axis with one item per turn; result per turn.
    ``rates``: `shape.live_rate` in place of this batch's rates; ``counts``: `shape.ever_positive`; 0 takes a test
    out of both rewards. ``alpha``, ``sigma``, ``beta``, ``gamma`` were not seen: those here are the
    worked example's. A rollout with an unknown test is unknown, as is one alone.

    Traps: weights move, so rewards of different steps can't be compared; tests that nobody passes weigh most, and may
    be broken; a test that times out must be a reported fail (0); flaky tests look hard. Trades bias.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "passed": p} for p in ([1, 1], [1, 0])]
    >>> dense = gd.method("verpo-dense-test-reward", gd.column("passed", axis="test"))
    >>> dense.score(rows).values.round(3).tolist()
    [0.602, -0.602]
    """
    if not 0.0 < gamma <= 1.0:
        raise ValueError(f"gamma={gamma} must lie in (0, 1]")
    passed = passed.within(0.0, 1.0)
    rho = shape.label_statistic(passed) if test is None else pass_rate(passed, test)
    rate = (rho if rates is None else rates).within(0.0, 1.0)
    weight = density_weights(rate, test, counts, alpha=alpha, sigma=sigma, delta=delta)
    # Not the lazy product and "or": what keeps a state behind them must see every batch.
    dense: Reward = times(passed, weight)
    whole: Reward = passed if counts is None else when(as_reward(counts), passed, 1.0)
    if turn is None or turns is None:
        solved, dense, length = whole.min(to="rollout"), dense.sum(to="rollout"), as_reward(1.0)
    else:
        solved = shape.pooled(whole, turn, turns, pool="min").last(to="rollout")
        dense, length = shape.pooled(dense, turn, turns, pool="sum"), shape.items(turns)
    trajectory = when(solved, shape.exp(length * math.log(gamma)), 0.0)
    return shape.centre(trajectory) + shape.centre(dense) * beta


@transform("methods.pass_rate", version=1, groups=True, range=lambda passed, test: passed)
def pass_rate(passed: Scores, test: Scores) -> Scores:
    """Mean over the prompt's items that are the same ``test``, same shape as ``passed``; unknown items take no part."""
    groups = Groups.of(passed, within=test)
    rate = np.clip(groups.mean, groups.low, np.maximum(groups.low, groups.high))
    known = groups.at(groups.members > 0).astype(bool) & test.known
    return Scores.of(passed.axis, np.where(known, groups.at(rate), 0.0), known, (passed, test))


@transform("methods.density_weights", version=1, groups=True, range=lambda rate, *_, **__: UNIT)
def density_weights(
    rate: Scores,
    test: Scores | None = None,
    counts: Scores | None = None,
    *,
    alpha: float = 1.0,
    sigma: float = 0.1,
    delta: float = 1e-6,
) -> Scores:
    """``w_j = exp(-alpha rho_j) / (N_j + delta)``: high for hard tests, shared by tests of like difficulty; in [0, 1].

    ``N_j = sum_j' exp(-(rho_j - rho_j')^2 / (2 sigma^2))`` over the different tests of the prompt, without which many
    easy tests outweigh the few hard ones; ``sigma=0``: ``N_j = 1``, the paper's first version. ``rate``: ``rho``, in
    [0, 1], shape ``(tests,)`` as the result. A test with ``counts`` 0 weighs nothing and is in no ``N``.
    """
    if alpha < 0 or sigma < 0 or delta < 0:
        raise ValueError(f"density_weights needs alpha, sigma, delta of at least 0, not {alpha}, {sigma}, {delta}")
    parts = aligned(*[p for p in (rate, test, counts) if p is not None])
    axis, known = parts[0].axis, np.logical_and.reduce([p.known for p in parts])
    name = labels(axis) if test is None else np.where(known, parts[1].values, 0.0)
    cell, count, prompt = cells(axis.owner_in("prompt"), name)
    use = known & (parts[-1].values == 1.0) if counts is not None else known
    rho, used = np.zeros(count), np.zeros(count, dtype=np.bool_)
    rho[cell[use]], used[cell[use]] = parts[0].values[use], True
    crowd = np.ones(count)
    if sigma > 0:
        crowd = np.zeros(count)
        offsets = np.searchsorted(prompt, np.arange(axis.ancestor("prompt").size + 1))
        for i, j in pairs(offsets):
            near = used[j] * np.exp(-(((rho[i] - rho[j]) / sigma) ** 2) / 2.0)
            crowd += np.bincount(i, weights=near, minlength=count)
    weight = np.where(used, np.exp(-alpha * rho) / (np.maximum(crowd, 1.0) + delta), 0.0)
    return Scores.of(axis, np.where(known, weight[cell], 0.0), known, parts)
