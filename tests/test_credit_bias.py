"""Does credit keep the optimum? Expected policy gradients by full enumeration against the exact ones.

The decision process: two steps, two actions each, a tabular softmax policy with one logit vector per state (start,
after action 0, after action 1), and a reward for each of the four paths. A group is a tuple of paths; every possible
group is one prompt of the data, weighted by its chance.
"""

from itertools import product

import numpy as np
import pytest

import guerdon as gd
from guerdon import credit
from guerdon.methods.pure import pure_returns
from guerdon.methods.red import red

LOGITS = np.array([[0.3, -0.4], [-0.2, 0.5], [0.8, 0.1]])  # start, after 0, after 1
POLICY = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
PATHS = list(product((0, 1), repeat=2))
STEP_REWARD = {(0, 0): (0.2, 1.0), (0, 1): (0.2, -0.5), (1, 0): (0.7, 0.0), (1, 1): (0.7, 0.4)}
POTENTIAL = {(0, 0): (0.9, 0.3), (0, 1): (0.9, -0.6), (1, 0): (-0.7, 0.2), (1, 1): (-0.7, 1.1)}
SCORE = {path: sum(r) for path, r in STEP_REWARD.items()}
SUCCESS = {path: float(score > 0.8) for path, score in SCORE.items()}


def chance(path):
    return POLICY[0, path[0]] * POLICY[1 + path[0], path[1]]


def score_function(path, step):
    """Gradient of the log-probability of one action by all logits, shape (3, 2)."""
    out = np.zeros((3, 2))
    state = 0 if step == 0 else 1 + path[0]
    out[state] = -POLICY[state]
    out[state, path[step]] += 1.0
    return out


def exact_gradient(gamma=1.0):
    total = np.zeros((3, 2))
    for path in PATHS:
        value = STEP_REWARD[path][0] + gamma * STEP_REWARD[path][1]
        total += chance(path) * value * (score_function(path, 0) + score_function(path, 1))
    return total


def expected_gradient(reward, size=1, gamma=1.0, **columns):
    """Expectation, over groups of ``size`` paths, of the members' mean of ``sum_t gamma^t A_t grad log pi``."""
    groups = list(product(PATHS, repeat=size))
    data = [
        {"prompt": str(g), "s": list(STEP_REWARD[p]), "phi": list(POTENTIAL[p]), "r": SCORE[p], "ok": SUCCESS[p]}
        | {name: table[p] for name, table in columns.items()}
        for g, group in enumerate(groups)
        for p in group
    ]
    scored = reward.score(data).framed
    assert scored.known.all()
    advantage = scored.values.reshape(len(groups), size, -1)
    if advantage.shape[2] == 1:
        advantage = np.repeat(advantage, 2, axis=2)
    total = np.zeros((3, 2))
    for g, group in enumerate(groups):
        weight = np.prod([chance(p) for p in group]) / size
        for i, path in enumerate(group):
            total += weight * sum(gamma**t * advantage[g, i, t] * score_function(path, t) for t in (0, 1))
    return total


S, PHI, R, OK = gd.column("s", axis="step"), gd.column("phi", axis="step"), gd.column("r"), gd.column("ok")


def parallel(a, b):
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_reward_to_go_gives_the_exact_gradient(gamma):
    assert expected_gradient(credit.returns(S, gamma=gamma), gamma=gamma) == pytest.approx(exact_gradient(gamma))


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_potential_based_shaping_keeps_the_gradient(gamma):
    shaped = credit.returns(S + credit.potential_shaping(PHI, 0.35, gamma=gamma), gamma=gamma)
    assert expected_gradient(shaped, gamma=gamma) == pytest.approx(exact_gradient(gamma))


def test_shaping_that_keeps_its_last_potential_does_not():
    shaped = credit.returns(S + credit.potential_shaping(PHI, 0.35, absorb=False))
    assert expected_gradient(shaped) != pytest.approx(exact_gradient(), abs=0.01)


def test_red_keeps_the_gradient_of_its_reward_model():
    table = {path: (0.4, SCORE[path]) for path in PATHS}
    prefix = gd.column("q", axis="step")
    for share in (1.0, 0.3):
        got = expected_gradient(credit.returns(red(prefix, 0.1, share=share)), q=table)
        assert got == pytest.approx(exact_gradient())


def test_leave_one_out_gives_the_exact_gradient():
    for size in (2, 3):
        assert expected_gradient(credit.leave_one_out(R), size) == pytest.approx(exact_gradient())


def test_leave_one_out_at_a_place_gives_the_exact_gradient():
    assert expected_gradient(credit.place_leave_one_out(credit.returns(S)), 2) == pytest.approx(exact_gradient())


def test_centring_on_the_group_or_the_position_scales_the_gradient_by_n_minus_one_over_n():
    for size in (2, 3):
        factor = (size - 1) / size
        assert expected_gradient(credit.group_relative(R, scale="none"), size) == pytest.approx(
            factor * exact_gradient()
        )
        assert expected_gradient(credit.position_advantage(S), size) == pytest.approx(factor * exact_gradient())


def test_the_token_baseline_of_pure_is_exact_for_returns_of_equal_length():
    assert expected_gradient(credit.token_leave_one_out(credit.returns(S)), 2) == pytest.approx(exact_gradient())


def test_dividing_by_the_deviation_bends_the_gradient():
    bent = expected_gradient(credit.group_relative(R), 3)
    assert parallel(bent, exact_gradient()) < 0.999
    # With 0/1 rewards and one prompt it keeps the direction: only the weight between prompts changes.
    binary = expected_gradient(credit.group_relative(OK), 3)
    assert parallel(binary, expected_gradient(credit.leave_one_out(OK), 2)) == pytest.approx(1.0)


def true_values():
    after = [sum(POLICY[1 + a, b] * STEP_REWARD[a, b][1] for b in (0, 1)) for a in (0, 1)]
    start = sum(POLICY[0, a] * (STEP_REWARD[a, 0][0] + after[a]) for a in (0, 1))
    return {path: (start, after[path[0]]) for path in PATHS}


V = gd.column("v", axis="step")


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_gae_with_the_true_critic_is_exact_for_every_lambda(lam):
    assert expected_gradient(credit.gae(S, V, lam=lam), v=true_values()) == pytest.approx(exact_gradient())
    assert expected_gradient(credit.n_step(S, V, n=1), v=true_values()) == pytest.approx(exact_gradient())


def test_gae_with_a_wrong_critic_is_exact_only_at_lambda_one():
    wrong = {path: (2.0, 1.0 - path[0]) for path in PATHS}
    assert expected_gradient(credit.gae(S, V, lam=1.0), v=wrong) == pytest.approx(exact_gradient())
    assert expected_gradient(credit.gae(S, V, lam=0.5), v=wrong) != pytest.approx(exact_gradient(), abs=0.01)
    assert expected_gradient(credit.n_step(S, V, n=2), v=wrong) == pytest.approx(exact_gradient())


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("column", ["ok", "r"])
def test_pass_at_k_follows_the_exact_gradient_of_the_best_of_k(k, column):
    n = 3
    exact = np.zeros((3, 2))
    value = {p: SUCCESS[p] if column == "ok" else SCORE[p] for p in PATHS}
    for group in product(PATHS, repeat=k):
        gradient = sum(score_function(p, t) for p in group for t in (0, 1))
        exact += np.prod([chance(p) for p in group]) * max(value[p] for p in group) * gradient
    got = expected_gradient(credit.pass_at_k_advantage(gd.column(column), k=k, scale="none"), n)
    assert got * n == pytest.approx((n - k) / k * exact)


def test_pass_at_k_estimates_without_bias():
    n, k = 3, 2
    value = {p: SUCCESS[p] for p in PATHS}
    exact = sum(np.prod([chance(p) for p in g]) * max(value[p] for p in g) for g in product(PATHS, repeat=k))
    groups = list(product(PATHS, repeat=n))
    data = [{"prompt": str(i), "ok": value[p]} for i, g in enumerate(groups) for p in g]
    estimate = credit.pass_at_k(OK, k=k).score(data).values[::n]
    assert sum(np.prod([chance(p) for p in g]) * e for g, e in zip(groups, estimate, strict=True)) == pytest.approx(
        exact
    )


def test_min_form_trades_bias_for_safety():
    assert parallel(expected_gradient(pure_returns(S, strict=True)), exact_gradient()) < 0.999
