"""Methods over scores of every step of a chain or node of a tree: worked examples as literals, and pitfalls."""

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.denoising import calibrated_noise, densegrpo, tp_grpo, turning_rewards, vgpo
from guerdon.methods.red import red
from guerdon.methods.rest_mcts import backed_up, rest_mcts_value, simulated, uct
from guerdon.methods.step_reducers import reducer_agreement, reinforce_step_by_step
from guerdon.methods.treerpo import treerpo
from method_rows import one

S, OK = gd.column("s", axis="step"), gd.column("ok")
TOKEN = gd.column("logprobs", axis="token")


def scored(reward, data):
    return reward.score(data).values


# ---- DenseGRPO, TurningPoint-GRPO, VGPO ----


def chains():
    raw = [[0.2, 0.3, 0.5, 0.8], [0.2, 0.4, 0.35, 0.5], [0.2, 0.2, 0.3, 0.2]]
    return [{"prompt": "p", "s": r[1:], "start": r[0]} for r in raw]


def test_densegrpo_gains_telescope_and_are_normalised_per_step():
    gains = scored(gd.credit.potential_shaping(S, gd.column("start"), absorb=False), chains()).reshape(3, 3)
    assert gains == pytest.approx(np.array([[0.1, 0.2, 0.3], [0.2, -0.05, 0.15], [0, 0.1, -0.1]]))
    assert gains.sum(axis=1) == pytest.approx([0.6, 0.3, 0.0])
    out = scored(densegrpo(S, gd.column("start")), chains()).reshape(3, 3)
    assert out[:, 0] == pytest.approx([0, 1.224745, -1.224745], abs=1e-6)
    flat = [{"prompt": "p", "s": [0.5, x], "start": 0.2} for x in (0.7, 0.8)]
    assert scored(densegrpo(S, gd.column("start")), flat).reshape(2, 2)[:, 0].tolist() == [0.0, 0.0]


def test_noise_goes_up_where_gains_are_balanced():
    gains = S.score([{"s": [1.0, 1.0, 0.0]}, {"s": [-1.0, 1.0, 0.0]}]).framed
    out = calibrated_noise(np.full(4, 0.7), gains, by=0.1, tolerance=0.1)
    assert out == pytest.approx([0.8, 0.6, 0.8, 0.7])


def turning(*values, start, final, **params):
    data = [{"prompt": "p", "s": list(values), "a": start, "z": final}]
    return scored(turning_rewards(S, gd.column("a"), gd.column("z"), **params), data)


def test_only_the_true_turning_point_earns_the_rest_of_the_change():
    out = turning(0.46, 0.55, 0.53, 0.60, start=0.50, final=0.60)
    assert out == pytest.approx([-0.04, 0.14, -0.02, 0.07])


def test_the_first_step_turns_if_it_is_consistent_and_no_change_turns_nowhere():
    assert turning(0.6, 0.7, start=0.5, final=0.9) == pytest.approx([0.4, 0.1])
    assert turning(0.5, 0.5, start=0.5, final=0.5).tolist() == [0.0, 0.0]


def test_balance_keeps_as_many_rising_as_falling_turning_points():
    data = [
        {"prompt": "p", "s": [0.6, 0.9], "a": 0.5, "z": 1.0},
        {"prompt": "p", "s": [0.6, 0.7], "a": 0.5, "z": 0.8},
        {"prompt": "p", "s": [0.4, 0.3], "a": 0.5, "z": 0.2},
    ]
    method = turning_rewards(S, gd.column("a"), gd.column("z"), balance=True)
    assert scored(method, data)[[0, 2, 4]] == pytest.approx([0.5, 0.1, -0.3])
    assert scored(method, data[:2])[[0, 2]] == pytest.approx([0.5, 0.3])


def test_tp_grpo_is_normalised_at_each_step():
    data = [{"prompt": "p", "s": [x, 0.9], "a": 0.5, "z": 0.9} for x in (0.6, 0.4)]
    out = scored(tp_grpo(S, gd.column("a"), gd.column("z")), data).reshape(2, 2)
    assert out.sum(axis=0) == pytest.approx([0.0, 0.0])


def test_vgpo_values_and_weights():
    value = scored(gd.credit.returns(S, gamma=0.9), one(0.1, 0.2, 0.4, 0.7))
    assert value == pytest.approx([1.1143, 1.127, 1.03, 0.7])
    assert value / value.mean() == pytest.approx([1.122353, 1.135145, 1.037444, 0.705059], abs=1e-6)
    data = one(0.1, 0.2, 0.4, 0.7) * 2
    assert scored(vgpo(S), data)[:4] == pytest.approx(value / value.mean() * 0.1 * value)


def test_vgpo_still_learns_where_the_group_agrees_and_plain_grpo_does_not():
    equal, spread = one(0.9) * 4, [{"prompt": "p", "s": [x]} for x in (0.2, 0.4, 0.6, 0.8)]
    assert scored(vgpo(S), equal) == pytest.approx([0.09] * 4)
    assert scored(gd.credit.place_relative(S), equal).tolist() == [0.0] * 4
    assert scored(vgpo(S), spread) == pytest.approx([-1.321641, -0.407214, 0.507214, 1.421641], abs=1e-6)
    assert scored(vgpo(S), one(0.0, 0.0) * 2).tolist() == [0.0] * 4


def test_densegrpo_of_all_columns_recomputed():
    out = scored(gd.method("densegrpo-stepwise-gain", S, gd.column("start")), chains()).reshape(3, 3)
    gains = np.array([[0.1, 0.2, 0.3], [0.2, -0.05, 0.15], [0.0, 0.1, -0.1]])
    assert out == pytest.approx((gains - gains.mean(axis=0)) / gains.std(axis=0))


def test_turning_rewards_no_longer_add_up_to_the_change():
    path = (0.46, 0.55, 0.53, 0.60)
    assert turning(*path, start=0.50, final=0.60).sum() == pytest.approx(0.15)  # the change is 0.10
    assert np.diff([0.50, *path]).sum() == pytest.approx(0.10)


def test_a_flat_step_neither_turns_nor_lets_the_next_one_turn():
    assert turning(0.50, 0.55, 0.60, start=0.50, final=0.60) == pytest.approx([0.0, 0.05, 0.05])
    assert turning(0.45, 0.45, 0.55, start=0.50, final=0.60) == pytest.approx([-0.05, 0.0, 0.10])


def test_noise_in_the_scores_makes_a_turning_point():
    steady, noisy = (turning(*path, start=0.5, final=0.9) for path in ((0.5, 0.6, 0.7, 0.9), (0.5, 0.49, 0.7, 0.9)))
    assert steady == pytest.approx([0.0, 0.1, 0.1, 0.2])
    assert noisy == pytest.approx([0.0, -0.01, 0.41, 0.2])


def test_anything_unknown_leaves_the_whole_chain_unknown():
    data = [
        {"prompt": "p", "s": s, "a": a, "z": z} for s, a, z in (([0.1, None], 0, 1), ([0.1], None, 1), ([0.1], 0, None))
    ]
    out = turning_rewards(S, gd.column("a"), gd.column("z")).score(data).scores
    assert not out.known.any()
    assert [out.reason(i) for i in (0, 2, 3)] == [
        "step 1: column 's' is missing", "column 'a' is missing", "column 'z' is missing"
    ]  # fmt: skip


def test_negative_scores_break_the_weights_of_vgpo_and_a_shift_moves_its_gradient():
    mixed = one(1.0, -1.0, 0.101) * 2
    assert scored(gd.credit.returns(S, gamma=0.9), mixed)[0] > 0 > scored(vgpo(S), mixed)[0]  # a good step pushed down
    low, high = ([{"prompt": "p", "s": [x + c]} for x in (0.2, 0.4)] for c in (0.0, 5.0))
    assert scored(vgpo(S), low).sum() == pytest.approx(0.06)
    assert scored(vgpo(S), high).sum() == pytest.approx(1.06)  # no baseline takes it away


def test_vgpo_pushes_a_group_that_is_all_right_up_for_ever():
    assert (scored(vgpo(S), one(1.0, 1.0) * 4) > 0).all()


# ---- TreeRPO ----


N = gd.column("n", axis="step")


def tree(*leaves):
    return [{"prompt": "p", "n": n, "ok": ok} for n, ok in leaves]


LEAVES = tree(([1, 3], 1), ([1, 4], 0), ([2, 5], 1), ([2, 6], 1))


def test_treerpo_node_values_and_bernoulli_advantages():
    assert scored(gd.credit.node_value(OK, N), LEAVES).tolist() == [0.5, 1, 0.5, 0, 1, 1, 1, 1]
    out = scored(treerpo(OK, N), LEAVES)
    assert out == pytest.approx([-0.57735, 1, -0.57735, -1, 0.57735, 0, 0.57735, 0], abs=1e-5)
    grpo = scored(gd.credit.node_relative(OK, N, scale="std"), LEAVES)
    assert grpo == pytest.approx([-1, 1, -1, -1, 1, 0, 1, 0])


def test_nearly_equal_siblings_are_pruned_and_otherwise_stay_small():
    data = tree(([1], 0.49), ([2], 0.51))
    assert scored(treerpo(OK, N), data).tolist() == [0.0, 0.0]
    assert scored(treerpo(OK, N, prune=0.0), data) == pytest.approx([-0.02, 0.02], abs=1e-4)
    assert scored(gd.credit.node_relative(OK, N, scale="std", prune=0.0), data) == pytest.approx([-1, 1])


def test_siblings_all_right_or_all_wrong_give_zero_even_without_pruning():
    for ok in (0, 1):
        out = scored(treerpo(OK, N, prune=0.0), tree(([1], ok), ([2], ok)))
        assert out.tolist() == [0.0, 0.0]


def test_unequal_fan_out_takes_the_mean_over_children_and_shared_nodes_count_once():
    data = tree(([1, 3], 1), ([1, 4], 0), ([2], 1))
    assert scored(gd.credit.node_value(OK, N), data).tolist() == [0.5, 1, 0.5, 0, 1]
    assert scored(gd.credit.node_share(N), data).tolist() == [0.5, 1, 0.5, 1, 1]
    unknown = gd.credit.node_value(OK, N).score(tree(([1, 3], None), ([1, 4], 0), ([2], None))).scores
    assert unknown.known.tolist() == [True, False, True, True, False]
    assert unknown.values[0] == 0.0


def test_a_node_with_two_parents_is_an_error():
    with pytest.raises(ValueError, match="two parents"):
        gd.credit.node_value(OK, N).score(tree(([1, 3], 1), ([2, 3], 0)))


# ---- reducers ----


REDUCED = {
    "mean": 0.7875, "product": 0.342, "min": 0.5, "max": 0.95, "last": 0.95, "sum_log": -1.0729445, "sum_logit":
    6.527958,
}  # fmt: skip


@pytest.mark.parametrize(("reducer", "value"), REDUCED.items())
def test_step_reducers(reducer, value):
    out = scored(reinforce_step_by_step(S, reducer=reducer), one(0.9, 0.8, 0.5, 0.95))
    assert out[0] == pytest.approx(value, abs=1e-6)


def test_two_reducers_can_reverse_the_order_and_the_report_says_so():
    data = one(*[0.9] * 6) + one(0.8, 0.8)
    product, mean = (reinforce_step_by_step(S, reducer=r).score(data).scores for r in ("product", "mean"))
    assert product.values == pytest.approx([0.531441, 0.64])
    assert reducer_agreement(product, mean) == pytest.approx(-1.0)
    assert reducer_agreement(product, gd.Scores.of(mean.axis, [0.5, 0.5])) is None


def test_no_step_is_unknown_and_long_products_do_not_underflow_in_logs():
    for reducer in REDUCED:
        out = reinforce_step_by_step(S, reducer=reducer).score([{"s": []}]).scores
        assert not out.known.any()
        assert out.reason(0) == "it has no steps"
    assert scored(reinforce_step_by_step(S, reducer="sum_log"), one(*[0.001] * 500))[0] == pytest.approx(
        500 * np.log(0.001)
    )
    assert scored(reinforce_step_by_step(S, reducer="geometric"), one(*[0.001] * 500))[0] == pytest.approx(0.001)
    assert scored(reinforce_step_by_step(S, reducer="sum_log"), one(0.0))[0] == pytest.approx(np.log(1e-6))


# ---- RED ----


def test_red_differences_add_up_to_the_sequence_score():
    data = one(0.5, 0.3, 0.9, e=0.2)
    out = scored(red(S, gd.column("e")), data)
    assert out == pytest.approx([0.3, -0.2, 0.6])
    assert abs(out.sum() - (0.9 - 0.2)) < 1e-9
    assert scored(red(S, gd.column("e"), share=0.0), data) == pytest.approx([0, 0, 0.9])
    with_kl = red(S, gd.column("e"), log_ratio=gd.column("kl", axis="step"), kl=0.1)
    assert scored(with_kl, one(0.5, 0.3, 0.9, e=0.2, kl=[1, 0, -1])) == pytest.approx([0.2, -0.2, 0.7])


# ---- ReST-MCTS* ----


def test_rest_values_close_the_gap_on_a_right_path_and_fall_on_wrong_ones():
    data = tree(([1, 2, 3], 1), ([1, 4], 0), ([1, 2, 5], 0), ([6], 0))
    out = scored(rest_mcts_value(OK, N), data)
    assert out[:3] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert out[4] == pytest.approx(0.111111, abs=1e-6)
    assert out[7] == pytest.approx(0.5)
    assert out[8] == 0.0


def test_rest_needs_a_right_leaf_and_judges_finished_leaves_only():
    assert not rest_mcts_value(OK, N).score(tree(([1], 0), ([2], 0))).scores.known.any()
    out = rest_mcts_value(OK, N).score(tree(([1], 1), ([2], None))).scores
    assert out.known.tolist() == [True, False]


def test_uct_backup_and_simulation():
    assert uct(0.6, 10, 3) == pytest.approx(1.467282, abs=1e-6)
    assert uct(0.6, 10, 0) == 1.6
    with pytest.raises(ValueError, match="no visit"):
        uct(0.6, 0, 0)
    assert backed_up(np.array([0.5, 1.0]), np.array([3.0, 1.0])) == 0.625
    assert simulated(0.4, 0.8) == pytest.approx(0.6)
