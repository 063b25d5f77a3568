"""Does credit keep the optimum? Expected policy gradients by full enumeration against the exact ones.

Every name of the room stands in one of the lists at the end: what claims the exact gradient, what claims it up to a
stated factor, what trades bias and says so, and what is no credit by itself.
"""

from itertools import product

import numpy as np
import pytest

import guerdon as gd
from decision_processes import OK, PHI, Fixed, R, Ragged, S, V, parallel
from guerdon import credit
from guerdon.methods.pure import pure_returns
from guerdon.methods.red import red

FIXED, ITEMS, STEPS = Fixed(), Ragged(end_is_step=False), Ragged(end_is_step=True)
RETURNS = credit.returns(S)
PROCESSES = pytest.mark.parametrize("process", [FIXED, STEPS], ids=["fixed", "ragged"])


def nearly(gradient):
    return pytest.approx(gradient, abs=1e-12)


# ---- exact ----


@PROCESSES
@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_reward_to_go_gives_the_exact_gradient(process, gamma):
    assert process.expected(credit.returns(S, gamma=gamma), gamma=gamma) == nearly(process.exact(gamma))
    assert process.expected(credit.returns(credit.drop(RETURNS))) == nearly(process.exact())


@PROCESSES
@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_potential_based_shaping_keeps_the_gradient(process, gamma):
    shaped = credit.returns(S + credit.potential_shaping(PHI, 0.35, gamma=gamma), gamma=gamma)
    assert process.expected(shaped, gamma=gamma) == nearly(process.exact(gamma))


@PROCESSES
def test_shaping_that_keeps_its_last_potential_does_not(process):
    shaped = credit.returns(S + credit.potential_shaping(PHI, 0.35, absorb=False))
    assert process.expected(shaped) != pytest.approx(process.exact(), abs=0.01)


def test_red_keeps_the_gradient_of_its_reward_model():
    table = {path: (0.4, FIXED.score(path)) for path in FIXED.paths}
    prefix = gd.column("q", axis="step")
    for share in (1.0, 0.3):
        got = FIXED.expected(credit.returns(red(prefix, 0.1, share=share)), q=table)
        assert got == nearly(FIXED.exact())


@pytest.mark.parametrize("process", [FIXED, ITEMS, STEPS], ids=["fixed", "items", "steps"])
@pytest.mark.parametrize("size", [2, 3])
def test_leave_one_out_gives_the_exact_gradient(process, size):
    assert process.expected(credit.leave_one_out(R), size) == nearly(process.exact())


@PROCESSES
@pytest.mark.parametrize("size", [2, 3])
def test_the_token_baseline_of_pure_is_exact_where_its_width_is_fixed(process, size):
    assert process.expected(credit.token_leave_one_out(RETURNS, width=4), size) == nearly(process.exact())


def test_a_width_that_follows_the_longest_rollout_bends_the_token_baseline():
    got = STEPS.expected(credit.token_leave_one_out(RETURNS), 2, batches=True)
    assert parallel(got, STEPS.exact()) < 0.9999


@pytest.mark.parametrize("how", ["repeat", "last"])
@PROCESSES
def test_an_outcome_repeated_or_paid_at_the_end_is_exact(process, how):
    paid = credit.spread(R, S, how=how)
    assert process.expected(paid if how == "repeat" else credit.returns(paid)) == nearly(process.exact())
    assert process.expected(credit.returns(credit.pay_last(S * 0.0, R))) == nearly(process.exact())


@PROCESSES
def test_an_outcome_shared_over_the_items_credits_late_ones_too_little(process):
    assert parallel(process.expected(credit.returns(credit.spread(R, S, how="share"))), process.exact()) < 0.96


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_with_the_true_critic_every_lambda_and_every_window_is_exact(lam):
    true = FIXED.true_values()
    assert FIXED.expected(credit.gae(S, V, lam=lam), v=true) == nearly(FIXED.exact())
    assert FIXED.expected(credit.lambda_return(S, V, lam=lam), v=true) == nearly(FIXED.exact())
    for n in (1, 2):
        assert FIXED.expected(credit.n_step(S, V, n=n), v=true) == nearly(FIXED.exact())


def test_with_a_wrong_critic_only_the_whole_return_is_exact():
    wrong = {path: (2.0, 1.0 - path[0]) for path in FIXED.paths}
    for whole in (credit.gae(S, V, lam=1.0), credit.lambda_return(S, V, lam=1.0), credit.n_step(S, V, n=2)):
        assert FIXED.expected(whole, v=wrong) == nearly(FIXED.exact())
    for part in (credit.gae(S, V, lam=0.5), credit.lambda_return(S, V, lam=0.5), credit.n_step(S, V, n=1)):
        assert FIXED.expected(part, v=wrong) != pytest.approx(FIXED.exact(), abs=0.01)


def test_pass_at_k_estimates_without_bias():
    n, k = 3, 2
    exact = sum(weight * max(FIXED.success(p) for p in group) for group, weight in FIXED.groups(k))
    groups = FIXED.groups(n)
    data = [{"prompt": str(i), "ok": FIXED.success(p)} for i, (group, _) in enumerate(groups) for p in group]
    estimates = credit.pass_at_k(OK, k=k).score(data).values[::n]
    assert sum(w * e for (_, w), e in zip(groups, estimates, strict=True)) == pytest.approx(exact)


# ---- exact up to a stated factor ----


@pytest.mark.parametrize("process", [FIXED, ITEMS, STEPS], ids=["fixed", "items", "steps"])
@pytest.mark.parametrize("size", [2, 3])
def test_centring_on_the_group_scales_the_gradient_by_n_minus_one_over_n(process, size):
    got = process.expected(credit.group_relative(R, scale="none"), size)
    assert got == nearly((size - 1) / size * process.exact())


@pytest.mark.parametrize("size", [2, 3])
def test_a_position_baseline_scales_each_position_by_the_others_that_reach_it(size):
    """``E[k / (k + 1)]`` for ``k`` others at the position: where all get there, ``(n - 1) / n``."""
    factor = [sum(p * k / (k + 1) for k, p in enumerate(ITEMS.reach(t, size - 1))) for t in range(3)]
    assert factor[0] == pytest.approx((size - 1) / size)
    with_end = (credit.position_advantage(S, limit=3), credit.end_advantage(S, limit=3))
    expected = np.array(factor)[:, None] * ITEMS.exact()
    assert ITEMS.expected(with_end, size) == nearly(expected)
    ended_as_step = credit.place_relative(RETURNS, scale="none", least=1)
    assert STEPS.expected(ended_as_step, size) == nearly(expected)


def test_without_the_advantage_of_ending_a_position_baseline_is_biased():
    items_only = (credit.position_advantage(S, limit=3), credit.end_advantage(S, limit=3) * 0.0)
    assert parallel(ITEMS.expected(items_only, 2), ITEMS.exact()) < 0.99


@pytest.mark.parametrize("size", [2, 3])
def test_leave_one_out_at_a_place_is_exact_where_another_rollout_reaches_it(size):
    """A place is credited in the share of groups in which another rollout gets there, and there exactly."""
    heard = np.array([1.0 - STEPS.reach(t, size - 1)[0] for t in range(3)])
    got = STEPS.expected(credit.place_leave_one_out(RETURNS), size, every=True)
    assert got == nearly(heard[:, None] * STEPS.exact())
    assert FIXED.expected(credit.place_leave_one_out(RETURNS), size) == nearly(FIXED.exact())


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("column", ["ok", "r"])
def test_pass_at_k_advantages_follow_the_exact_gradient_of_the_best_of_k(k, column):
    n = 3
    value = FIXED.success if column == "ok" else FIXED.score
    exact = np.zeros((3, 2))
    for group, weight in FIXED.groups(k):
        exact += weight * max(map(value, group)) * sum(FIXED.score_function(p, t) for p in group for t in (0, 1))
    got = FIXED.expected(credit.pass_at_k_advantage(gd.column(column), k=k, scale="none"), n)
    assert got * n == nearly((n - k) / k * exact)


NODE = gd.column("node", axis="step")


def tree_gradient(reward):
    """Expectation over trees of two children each, with the nodes' mean at each depth."""
    total, place = np.zeros((3, 2)), list(product((0, 1), repeat=2))
    trees = list(product(place, repeat=3))  # the two first actions, and the two second ones behind either
    data, weights = [], []
    for tree, (first, *second) in enumerate(trees):
        chance = np.prod([FIXED.policy[0, a] for a in first])
        chance *= np.prod([FIXED.policy[1 + first[c], b] for c in (0, 1) for b in second[c]])
        weights.append(chance)
        for c, leaf in place:
            path = (first[c], second[c][leaf])
            data.append({"prompt": str(tree), "r": FIXED.score(path), "node": [c, 2 + 2 * c + leaf], "path": path})
    advantage = reward.score(data).framed.values.reshape(len(trees), 4, 2)
    for tree, weight in enumerate(weights):
        for leaf in range(4):
            path = data[4 * tree + leaf]["path"]
            total += weight / 4 * sum(advantage[tree, leaf, t] * FIXED.score_function(path, t) for t in (0, 1))
    return total


def test_centring_among_siblings_halves_the_gradient_for_two_children():
    got = tree_gradient(credit.node_relative(R, NODE, scale="none", prune=0.0))
    assert got == nearly(FIXED.exact() / 2)


# ---- biased, and saying so ----

BIASED = {
    "group_relative": credit.group_relative(R),
    "place_relative": credit.place_relative(RETURNS),
    "batch_whiten": credit.batch_whiten(RETURNS),
    "reinforce_plus_plus": credit.reinforce_plus_plus(R, S),
    "gdpo": credit.gdpo([S.sum(), S.max()]),
    "rollout_relative": credit.rollout_relative(RETURNS),
    "soft_min": credit.returns(credit.soft_min(S)),
    "suffix_min": credit.suffix_min(S),
    "prefix_min": credit.prefix_min(S),
    "window_mean": credit.window_mean(S, width=2),
    "before_error": credit.returns(S * credit.before_error(S)),
    "pure": pure_returns(S, strict=True),
}


@PROCESSES
@pytest.mark.parametrize("name", BIASED)
def test_what_trades_bias_does_not_follow_the_exact_gradient(process, name):
    got = process.expected(BIASED[name], 2 if process is STEPS else 3, every=True, batches=name not in ("pure",))
    assert parallel(got, process.exact()) < 0.999


def test_dividing_by_the_deviation_weighs_prompts_but_keeps_the_direction_of_one_with_binary_rewards():
    binary = FIXED.expected(credit.group_relative(OK), 3)
    assert parallel(binary, FIXED.expected(credit.leave_one_out(OK), 2)) == pytest.approx(1.0)
    for k in (1, 2):
        scaled, plain = (credit.pass_at_k_advantage(R, k=k, scale=s) for s in ("std", "none"))
        assert parallel(FIXED.expected(scaled, 3), FIXED.expected(plain, 3)) < 0.999


def test_dividing_or_pruning_among_siblings_bends_the_gradient():
    for scale, prune in (("std", 0.0), ("none", 0.75)):
        got = tree_gradient(credit.node_relative(R, NODE, scale=scale, prune=prune))
        assert parallel(got, FIXED.exact()) < 0.999


EXACT = {
    "returns", "drop", "potential_shaping", "leave_one_out", "token_leave_one_out", "gae", "lambda_return", "n_step",
    "pass_at_k", "pay_last", "spread",
}  # fmt: skip
SCALED = {
    "group_relative", "position_advantage", "end_advantage", "place_relative", "place_leave_one_out",
    "pass_at_k_advantage", "node_relative",
}  # fmt: skip
NO_CREDIT = {
    "first_error", "geometric_mean", "harmonic_mean", "left", "log_product", "logit_sum", "node_share", "node_value",
    "place", "position_mean", "prefix_mean", "prefix_sum",
}  # fmt: skip
ALSO_BIASED = {
    "pass_at_k_advantage",
    "node_relative",
    "token_leave_one_out",
    "gae",
    "n_step",
    "lambda_return",
    "spread",
}
"""Exact or scaled with some parameters, biased with others; both are tested above."""


def test_every_block_of_the_room_is_told_to_be_exact_scaled_biased_or_no_credit():
    assert EXACT | SCALED | NO_CREDIT | (set(BIASED) - {"pure"}) == set(credit.__all__)
    assert not NO_CREDIT & (EXACT | SCALED | set(BIASED))


@pytest.mark.parametrize("name", sorted((set(BIASED) | ALSO_BIASED) - {"pure"}))
def test_what_trades_bias_says_so(name):
    assert "bias" in getattr(credit, name).__doc__.lower()
