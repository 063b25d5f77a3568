"""Methods that give credit to steps and tokens: the catalogue's worked examples as literals, and its pitfalls."""

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.capo import capo, voted_wrong
from guerdon.methods.clip_delta import clip_delta
from guerdon.methods.denoising import calibrated_noise, densegrpo, tp_grpo, turning_rewards, vgpo
from guerdon.methods.istar import implicit_reward, istar, preference_loss
from guerdon.methods.pica import pica
from guerdon.methods.prorl import centred, prorl
from guerdon.methods.pure import pure, pure_returns
from guerdon.methods.red import red
from guerdon.methods.rest_mcts import backed_up, rest_mcts_value, simulated, uct
from guerdon.methods.safer_steer import survival, tcsr, turn_rewards
from guerdon.methods.step_reducers import reducer_agreement, reinforce_step_by_step
from guerdon.methods.t_reg import pair_weight, regulariser, t_reg
from guerdon.methods.taco import taco
from guerdon.methods.trace import trace, turn_value_gain
from guerdon.methods.treerpo import treerpo
from guerdon.methods.vppo import vppo

S, OK = gd.column("s", axis="step"), gd.column("ok")
TOKEN = gd.column("logprobs", axis="token")


def scored(reward, data):
    return reward.score(data).values


def one(*steps, **more):
    return [{"prompt": "p", "s": list(steps), **more}]


def tokened(step_tokens, **more):
    """A rollout with steps of so many tokens each."""
    n = sum(step_tokens)
    return {
        "prompt": "p", "completion": "x" * n, "steps": ["x"] * len(step_tokens), "step_tokens": list(step_tokens),
        "tokens": list(range(n)), "logprobs": [-1.0] * n, **more,
    }  # fmt: skip


# ---- PURE ----


def test_the_soft_minimum_is_nearly_the_worst_step():
    weighted = scored(gd.credit.soft_min(S, temperature=0.1), one(0.9, -0.8, 0.5))
    assert weighted.sum() == pytest.approx(-0.799997, abs=1e-6)
    weights = weighted / np.array([0.9, -0.8, 0.5])
    assert weights == pytest.approx([4e-8, 0.999998, 2.3e-6], abs=5e-7)
    assert weights[0] == pytest.approx(4e-8, rel=0.05)


def test_sum_form_and_strict_min_form_returns():
    assert scored(gd.credit.returns(S), one(0.9, -0.8, 0.5)) == pytest.approx([0.6, -0.3, 0.5])
    assert scored(pure_returns(S, strict=True), one(0.9, -0.8, 0.5)).tolist() == [-0.8, -0.8, 0.5]


def test_five_more_good_steps_move_the_sum_and_not_the_minimum():
    padded = one(0.9, -0.8, 0.5, *[0.9] * 5)
    assert scored(gd.credit.returns(S), padded)[0] == pytest.approx(5.1)
    assert scored(pure_returns(S, strict=True), padded)[0] == -0.8
    assert scored(pure_returns(S), padded)[0] == pytest.approx(-0.8, abs=1e-4)


def test_the_token_baseline_is_the_catalogues():
    g = gd.column("g", axis="token_return")
    data = [{"prompt": "p", "g": [-0.8, -0.8, 0.0]}, {"prompt": "p", "g": [0.2] * 4}]
    out = scored(gd.credit.token_leave_one_out(g, width=4), data)
    assert out == pytest.approx([-1, -1, -0.2, 0.6, 0.6, 0.6, 0.6])


def test_the_token_baseline_depends_on_the_padded_width():
    g = gd.column("g", axis="token_return")
    data = [{"prompt": "p", "g": [1.0]}, {"prompt": "p", "g": [2.0]}]
    assert scored(gd.credit.token_leave_one_out(g), data).tolist() == [-1.0, 1.0]
    assert scored(gd.credit.token_leave_one_out(g, width=2), data).tolist() == [0.0, 1.5]


def test_steps_weigh_in_the_baseline_by_their_tokens():
    data = [tokened([3, 1], s=[0.5, 1.0]), tokened([1, 1], s=[0.25, 0.75])]
    out = scored(gd.credit.token_leave_one_out(S, TOKEN), data)
    assert out == pytest.approx([0.5 - 0.25] * 3 + [0.75] + [0.25 - 0.625, 0.75 - 0.625])


def test_the_outcome_is_added_after_the_weighting_or_to_the_last_step_before_the_minimum():
    data = one(0.9, -0.8, 0.5, ok=1)
    soft = scored(gd.credit.soft_min(S), data)
    assert scored(pure_returns(S, OK), data) == pytest.approx(np.cumsum((soft + np.array([0, 0, 1]))[::-1])[::-1])
    assert scored(pure_returns(S, OK, strict=True), data) == pytest.approx([-0.8, -0.8, 1.5])


def test_positive_rewards_keep_a_positive_minimum_since_tokens_between_carry_none():
    assert scored(pure_returns(S, strict=True), one(0.9, 0.4)).tolist() == [0.4, 0.4]


def test_a_tiny_temperature_neither_under_nor_overflows():
    out = scored(gd.credit.soft_min(S, temperature=1e-300), one(1.0, -1.0, 0.5))
    assert out.tolist() == [0.0, -1.0, 0.0]
    with pytest.raises(ValueError, match="temperature"):
        gd.credit.soft_min(S, temperature=0.0).score(one(1.0))


def test_pure_end_to_end_is_whitened_and_unknown_for_a_single_rollout():
    data = one(0.9, -0.8) + one(0.5, 0.7)
    out = scored(pure(S), data)
    assert out.mean() == pytest.approx(0.0, abs=1e-12)
    assert out.std(ddof=1) == pytest.approx(1.0, abs=1e-6)
    assert not pure(S).score(one(0.9, 0.8)).scores.known.any()


# ---- Clip and Delta ----

P = (0.9, 0.4, 0.7, 0.8)


def test_clip_punishes_and_delta_telescopes():
    clip = clip_delta(S, threshold=0.7, delta=False, weight=1.0)
    delta = clip_delta(S, weight=1.0)
    assert scored(clip, one(*P)) == pytest.approx([0, -0.3, 0, 0])
    assert scored(delta, one(*P)) == pytest.approx([0.5, -0.3, 0.7, 0])
    assert scored(gd.credit.returns(delta), one(*P)) == pytest.approx([0.9, 0.4, 0.7, 0])
    assert scored(delta, one(*P)).sum() == pytest.approx(0.9)


def test_ten_repeated_steps_earn_nothing_under_clip_or_delta():
    hacked = one(*P, *[0.8] * 10)
    assert scored(S.sum(), hacked)[0] == pytest.approx(10.8)
    assert scored(clip_delta(S, threshold=0.7, delta=False, weight=1.0), hacked).sum() == pytest.approx(-0.3)
    assert scored(clip_delta(S, weight=1.0), hacked).sum() == pytest.approx(0.9)


def test_clip_and_delta_chain_and_single_steps_get_zero():
    assert scored(clip_delta(S, threshold=0.7, weight=1.0), one(*P)) == pytest.approx([0.3, -0.3, 0.0, 0.0])
    assert scored(clip_delta(S), one(0.9)).tolist() == [0.0]
    assert scored(clip_delta(S, OK), one(0.9, ok=1)).tolist() == [1.0]
    assert len(scored(clip_delta(S), [{"s": []}])) == 0


def test_a_discount_below_one_breaks_the_telescoping():
    out = scored(gd.credit.returns(clip_delta(S, weight=1.0), gamma=0.9), one(*P))
    assert out[0] != pytest.approx(0.9)


# ---- VPPO ----


def vppo_data():
    right = tokened([10], s=[0.9], ok=1, c=0)
    o2 = tokened([45, 55], s=[0.9, 0.1], ok=0, c=5)  # |RP| = 45 - 5
    o3 = tokened([10, 10], s=[0.1, 0.9], ok=0, c=5)
    return [right, o2, o3, dict(right)]


def test_vppo_saves_the_good_prefix_of_a_wrong_rollout():
    out = vppo(OK, S, TOKEN, gd.column("c")).score(vppo_data()).scores
    first, second, third = np.split(out.values, [10, 110])[0], out.values[10:110], out.values[110:130]
    assert first == pytest.approx([0.45] * 10)
    assert second[:40] == pytest.approx([-0.05] * 40)
    assert second[40:] == pytest.approx([-0.55] * 60)
    assert third == pytest.approx([-0.55] * 20)


def test_vppo_relu_lifts_the_prefix_only():
    out = vppo(OK, S, TOKEN, gd.column("c"), relu=True).score(vppo_data()).scores.values
    assert out[10:50].tolist() == [0.0] * 40
    assert out[50:110] == pytest.approx([-0.55] * 60)


def test_vppo_shortening_beyond_the_prefix_leaves_none_and_no_wrong_step_means_the_last():
    data = [
        tokened([4], s=[0.9], ok=1, c=0),
        tokened([3, 3], s=[0.9, 0.9], ok=0, c=1),
        tokened([2, 2], s=[0.9, 0.1], ok=0, c=50),
    ]
    out = vppo(OK, S, TOKEN, gd.column("c")).score(data).scores.values
    mean = (1 + 0.5 * 2 / 6 + 0) / 3
    assert out[4:10] == pytest.approx(np.array([0.5] * 2 + [0] * 4) - mean)
    assert out[10:] == pytest.approx([-mean] * 4)


def test_vppo_all_wrong_groups_learn_and_all_right_ones_do_not():
    wrong = [tokened([2, 2], s=[0.9, 0.1], ok=0, c=0), tokened([2, 2], s=[0.1, 0.1], ok=0, c=0)]
    right = [tokened([2], s=[0.1], ok=1, c=0), tokened([3], s=[0.1], ok=1, c=0)]
    assert np.ptp(vppo(OK, S, TOKEN, gd.column("c")).score(wrong).scores.values) > 0
    assert vppo(OK, S, TOKEN, gd.column("c")).score(right).scores.values.tolist() == [0.0] * 5


# ---- ProRL ----

PATHS = [[1.0, 2.0], [0.0, 1.0, 3.0], [2.0]]


def test_prorl_position_advantages_match_the_catalogue():
    data = [{"prompt": "p", "s": s} for s in PATHS]
    assert scored(gd.credit.position_advantage(S, limit=3), data).tolist() == [0.0, 0.0, 1.0, 2.0, 1.5, -1.0]
    assert scored(gd.credit.end_advantage(S, limit=3), data).tolist() == [-1.5, 0.0, -2.0]


def test_a_longer_limit_gives_the_longest_rollout_an_end_and_an_unended_one_has_none():
    data = [{"prompt": "p", "s": s, "ok": e} for s, e in zip(PATHS, (1, 1, 0), strict=True)]
    assert scored(gd.credit.end_advantage(S, OK, limit=10), data).tolist() == [-1.5, 0.0, 0.0]
    # Without its end, the third path no longer counts at position 1: the baseline is 3, not 2.
    assert scored(gd.credit.position_advantage(S, OK, limit=10), data)[[1, 3]].tolist() == [-1.0, 1.0]


def test_a_position_reached_alone_and_an_empty_path():
    data = [{"prompt": "p", "s": [1.0]}, {"prompt": "p", "s": []}]
    assert scored(gd.credit.position_advantage(S), data).tolist() == [0.0]
    ends = gd.credit.end_advantage(S).score(data).scores
    assert ends.known.tolist() == [True, False]


def test_prorl_statistics_use_real_items_and_freeze_after_the_warm_up():
    session = gd.Session()
    z = centred(S, gd.column("real", axis="step"), warmup=1)
    first = z.score([{"s": [1.0, 3.0, -100.0], "real": [1, 1, 0]}], session=session).values
    assert first[:2] == pytest.approx([-1 / 2**0.5, 1 / 2**0.5])
    second = z.score([{"s": [2.0, 50.0], "real": [1, 1]}], session=session).values
    assert second == pytest.approx([0.0, 48 / 2**0.5])


def test_prorl_floors_the_deviation_of_a_constant_channel():
    out = centred(S).score([{"s": [0.5, 0.5, 0.5]}]).values
    assert out.tolist() == [0.0, 0.0, 0.0]
    assert centred(S).score([{"s": [0.7]}]).values.tolist() == [0.0]
    nearly = centred(S).score([{"s": [0.5, 0.501]}]).values
    assert nearly == pytest.approx([-0.005, 0.005])


def test_prorl_end_to_end():
    items, ends = prorl({"a": S, "b": gd.column("b", axis="step")}, weights={"a": 1.0, "b": 0.0}, limit=3)
    data = [{"prompt": "p", "s": s, "b": [5.0] * len(s)} for s in PATHS]
    mean, sd = np.mean([1, 2, 0, 1, 3, 2]), np.std([1, 2, 0, 1, 3, 2], ddof=1)
    z = [{"prompt": "p", "s": [(x - mean) / sd for x in s]} for s in PATHS]
    assert scored(items, data) == pytest.approx(scored(gd.credit.position_advantage(S, limit=3), z))
    assert scored(ends, data) == pytest.approx(scored(gd.credit.end_advantage(S, limit=3), z))


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


# ---- SaFeR-Steer ----


def test_tcsr_mixes_the_worst_turn_and_the_mean():
    data = one(1.0, 0.8, 0.2)
    assert scored(gd.credit.prefix_mean(S), data) == pytest.approx([1, 0.9, 2 / 3])
    assert scored(turn_rewards(S), data) == pytest.approx([1, 0.87, 0.526667], abs=1e-6)
    assert scored(tcsr(S), data)[0] == pytest.approx(0.526667, abs=1e-6)
    assert scored(tcsr(S, aggregate="mean"), data)[0] == pytest.approx(0.666667, abs=1e-6)
    assert scored(tcsr(S, aggregate="harmonic"), data)[0] == pytest.approx(0.413793, abs=1e-6)
    assert scored(tcsr(S, aggregate="last"), data)[0] == 0.2
    assert scored(tcsr(S, aggregate="soft_linear"), data)[0] == pytest.approx((1 + 0.88 + 0.24) / 3.3)


def test_missing_turns_are_left_out_and_none_left_is_unknown():
    data = [{"s": [1.0, None, 0.2]}, {"s": [0.4]}, {"s": [None]}, {"s": []}]
    out = tcsr(S).score(data).scores
    assert out.values[:2] == pytest.approx([0.3 * 0.2 + 0.7 * 0.6, 0.4])
    assert out.known.tolist() == [True, True, False, False]
    running = turn_rewards(S).score(data[:1]).scores
    assert running.known.tolist() == [True, False, True]
    assert running.values[2] == pytest.approx(0.3 * 0.2 + 0.7 * 0.6)
    soft = tcsr(S, aggregate="soft_linear").score(data[:1]).values[0]
    assert soft == pytest.approx((1.0 + 1.1 * 0.2) / 2.1)


def test_survival_keeps_the_last_state_of_ended_dialogues():
    safe = S.score([{"s": [1, 0, 1]}, {"s": [1]}, {"s": [1, 1, 1]}, {"s": [1, None]}]).framed
    assert survival(safe) == pytest.approx([1.0, 2 / 3, 2 / 3])


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


# ---- iStar ----


def test_istar_adds_episode_and_step_advantages():
    data = [
        {"prompt": "p", "s": [-1, -2], "old": [-1.4, -1.8], "ok": 1},
        {"prompt": "p", "s": [-1.5, -2.5], "old": [-1.2, -2.9], "ok": 0},
    ]
    old = gd.column("old", axis="step")
    r = scored(implicit_reward(S, old), data)
    assert r == pytest.approx([0.02, -0.01, -0.015, 0.02])
    steps = scored(gd.shape.zscore(implicit_reward(S, old)), data)
    assert steps == pytest.approx([0.994135, -0.841191, -1.147079, 0.994135], abs=1e-6)
    assert scored(istar(OK, S, old), data) == pytest.approx([1.994135, 0.158809, -2.147079, -0.005865], abs=1e-6)
    margin = r[:2].sum() - r[2:].sum()
    loss = scored(preference_loss(gd.column("w"), gd.column("l")), [{"w": r[:2].sum(), "l": r[2:].sum()}])
    assert margin == pytest.approx(0.005)
    assert loss[0] == pytest.approx(0.690650, abs=1e-6)


def test_istar_keeps_step_credit_where_outcomes_agree():
    data = [{"prompt": "p", "s": [x], "old": [0.0], "ok": 1} for x in (0.5, -0.5)]
    assert scored(istar(OK, S, gd.column("old", axis="step")), data).tolist() == [1.0, -1.0]


# ---- PiCA ----


def test_pica_step_rewards_fall_with_risk_and_with_every_search_beyond_the_third():
    data = one(0.2, 0.7, 0.4, 0.5, 0.3, ok=0)
    out = scored(pica(S, OK), data)
    assert out == pytest.approx([0.075, -0.075, 0.015, -0.15, -0.1575])
    assert out / 0.3 == pytest.approx([0.25, -0.25, 0.05, -0.5, -0.525])


def test_pica_pays_searches_at_their_last_token_and_the_outcome_at_the_very_last():
    data = [tokened([2, 1, 2], s=[0.2, 0.7, 0.4], ok=1)]
    out = pica(S, OK, TOKEN).score(data).scores.values
    assert out == pytest.approx([0, 0.075, -0.075, 0, 0.015 + 1.5])
    again = pica(S, OK, TOKEN).score(data).scores.values
    assert again.tolist() == out.tolist()  # pure: the released code's aliasing gives scale 1.3, 0.325 for 0.25


def test_pica_without_a_search_has_only_the_outcome_and_a_length_mismatch_is_an_error():
    data = [{"s": [], "completion": "xy", "logprobs": [-1.0, -1.0], "ok": 1}]
    assert gd.credit.pay_last(TOKEN * 0.0, OK, weight=1.5).score(data).scores.values.tolist() == [0.0, 1.5]
    with pytest.raises(gd.AxisError):
        pica(S, OK).score([{"steps": ["a", "b"], "completion": "ab", "s": [0.2], "ok": 1}])


# ---- TRACE ----

ELL = [-1.2, -1.2, -0.4]


def test_trace_values_telescope_and_a_redundant_call_earns_nothing():
    data = one(*ELL, l0=-2.0)
    gain = scored(turn_value_gain(S, gd.column("l0")), data)
    assert np.cumsum(gain) == pytest.approx([0.479573, 0.479573, 1.435085], abs=1e-6)
    assert gain == pytest.approx([0.479573, 0, 0.955511], abs=1e-6)
    assert gain[1] == 0.0
    assert gain.sum() == pytest.approx(np.log(2.1 / 0.5))
    local = scored(gd.credit.window_mean(turn_value_gain(S, gd.column("l0")), width=3, gamma=0.8), data)
    assert local == pytest.approx([0.447172, 0.424672, 0.955511], abs=1e-6)


def test_trace_adds_the_outcome_where_the_window_touches_the_end():
    data = one(*ELL, l0=-2.0, ok=1) + one(-1.0, -1.0, -1.0, l0=-1.0, ok=0)
    out = scored(trace(OK, S, gd.column("l0")), data)
    assert out[:3] == pytest.approx([1.294234, 1.340934, 1.511102], abs=1e-6)


def test_trace_keeps_turn_credit_without_outcome_spread_and_refuses_a_positive_log_probability():
    data = one(*ELL, l0=-2.0, ok=1) + one(-1.0, -1.0, -1.0, l0=-1.0, ok=1)
    out = scored(trace(OK, S, gd.column("l0")), data)
    assert out[:3] == pytest.approx(0.2 * np.array([0.447172, 0.424672, 0.955511]), abs=1e-6)
    assert out[3:].tolist() == [0.0, 0.0, 0.0]
    bad = trace(OK, S, gd.column("l0")).score(one(0.3, l0=-2.0, ok=1) + one(-1.0, l0=-1.0, ok=0)).scores
    assert bad.known.tolist() == [False, True]
    near_zero = scored(turn_value_gain(S, gd.column("l0")), one(0.0, l0=0.0))
    assert near_zero.tolist() == [0.0]


# ---- TACO ----


def test_taco_routes_the_outcome_to_useful_calls():
    before, after = gd.column("b", axis="step"), gd.column("a", axis="step")
    calls = {"b": [0, 1, 1, 0], "a": [1, 0, 1, 0]}
    data = [{"prompt": "p", "ok": 1, **calls}]
    assert scored(after - before, data).tolist() == [1.0, -1.0, 0.0, 0.0]
    tool = scored(gd.credit.place_relative(after - before, gd.constant(0.0), eps=1e-6, least=1), data)
    assert tool == pytest.approx([1.414214, -1.414214, 0, 0], abs=1e-5)
    pair = [{"prompt": "p", "ok": 1, **calls}, {"prompt": "p", "ok": 0, **calls}]
    out = scored(taco(OK, before, after), pair)
    assert out == pytest.approx([2.414214, -1.414214, 0, 0, 1.414214, -2.414214, 0, 0], abs=1e-5)


def test_taco_recomputed_with_the_catalogues_outcome_advantage():
    routed = np.array([0.7, 0, 0, 0]) + np.array([1, -1, 0, 0]) / np.std([1, -1, 0, 0])
    assert routed == pytest.approx([2.114214, -1.414214, 0, 0], abs=1e-5)


def test_taco_equal_gains_and_all_right_groups_stay_finite():
    before, after = gd.column("b", axis="step"), gd.column("a", axis="step")
    data = [{"prompt": "p", "ok": 1, "b": [0], "a": [1]}, {"prompt": "p", "ok": 1, "b": [0], "a": [1]}]
    assert scored(taco(OK, before, after), data).tolist() == [0.0, 0.0]
    mixed = [{"prompt": "p", "ok": 1, "b": [0], "a": [1]}, {"prompt": "p", "ok": 0, "b": [], "a": []}]
    assert scored(taco(OK, before, after), mixed) == pytest.approx([1.0], abs=1e-5)


# ---- T-REG ----


def test_t_reg_token_rewards_and_loss_parts():
    zero = gd.column("z", axis="step")
    assert scored(t_reg(S, zero), one(1, -2, 0, z=[0, 0, 0])) == pytest.approx([0.231059, -0.380797, 0], abs=1e-6)
    loss = regulariser(t_reg(S, zero), gd.column("lp", axis="step"))
    assert scored(loss, one(1, -2, z=[0, 0], lp=[-1, -2]))[0] == pytest.approx(-0.053054, abs=1e-6)
    assert scored(pair_weight(gd.column("l"), gd.column("w")), [{"w": 0.3, "l": -0.2}])[0] == pytest.approx(
        0.377541, abs=1e-6
    )


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


# ---- CAPO ----


def test_capo_levels_and_advantages():
    data = one(0, 4, 0, ok=1) + one(0, 4, 0, ok=0)
    level = OK * 2.0 - voted_wrong(S, critiques=4)
    assert scored(level, data).tolist() == [2, 1, 2, 0, -1, 0]
    out = scored(capo(OK, S), data)
    expected = [1.206044, 0.301511, 1.206044, -0.603022, -1.507555, -0.603022]
    assert out == pytest.approx(expected, abs=1e-6)


def test_capo_votes():
    # Critiques {2}, {2, 3}, {2}, {} of three steps: counts 0, 3, 1.
    data = one(0, 3, 1)
    assert scored(voted_wrong(S, critiques=4, vote="intersection"), data).tolist() == [0, 0, 0]
    assert scored(voted_wrong(S, critiques=4, vote="majority"), data).tolist() == [0, 1, 0]
    assert scored(voted_wrong(S, critiques=4, vote="union"), data).tolist() == [0, 1, 1]
    assert scored(voted_wrong(S, critiques=4, vote="majority"), one(2)).tolist() == [1]


def test_capo_flagging_every_step_only_lowers_the_level_and_long_wrong_steps_weigh_more():
    everything = scored(capo(OK, S), one(4, 4, ok=1) + one(4, 4, ok=0))
    nothing = scored(capo(OK, S), one(0, 0, ok=1) + one(0, 0, ok=0))
    assert everything == pytest.approx(nothing)
    short = capo(OK, S, TOKEN).score([tokened([1, 1], s=[0, 4], ok=1), tokened([1, 1], s=[0, 0], ok=1)]).scores
    long = capo(OK, S, TOKEN).score([tokened([1, 9], s=[0, 4], ok=1), tokened([1, 1], s=[0, 0], ok=1)]).scores
    assert long.values[0] > short.values[0]
