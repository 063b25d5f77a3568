"""Methods that give credit to steps and tokens: the catalogue's worked examples as literals, and its pitfalls."""

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.clip_delta import clip_delta
from guerdon.methods.prorl import centred, prorl
from guerdon.methods.pure import pure, pure_returns
from guerdon.methods.safer_steer import survival, tcsr, turn_rewards
from guerdon.methods.vppo import prefix_rewards, vppo
from method_rows import one, with_tokens

S, OK = gd.column("s", axis="step"), gd.column("ok")
TOKEN = gd.column("logprobs", axis="token")


def scored(reward, data):
    return reward.score(data).values


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
    data = [with_tokens([3, 1], s=[0.5, 1.0]), with_tokens([1, 1], s=[0.25, 0.75])]
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


def test_the_builder_gives_the_catalogues_advantages_of_a_group_of_two():
    data = one(0.9, -0.8, 0.0) + one(0.2, 0.2, 0.2, 0.2)
    out = scored(gd.method("pure-min-form", S, strict=True, width=4, whiten=False), data)
    assert out == pytest.approx([-1, -1, -0.2, 0.6, 0.6, 0.6, 0.6])


def test_all_tokens_of_a_step_hold_its_return_so_none_after_the_last_reward_is_zero():
    data = [with_tokens([2, 3], s=[0.9, 0.4]), with_tokens([1], s=[0.6])]
    out = scored(pure(S, tokens=TOKEN, strict=True, width=5, whiten=False), data)
    assert out == pytest.approx([0.4 - 0.6 / 5] * 5 + [0.6 - 0.4])


def test_whoever_splits_a_bad_step_finer_shares_its_blame_and_a_greeting_of_one_step_has_none():
    whole, split = one(0.9, -0.8), one(0.9, 0.1, -0.8)
    assert scored(pure_returns(S, strict=True), whole).tolist() == [-0.8, -0.8]
    assert scored(pure_returns(S, strict=True), split).tolist() == [-0.8, -0.8, -0.8]
    assert scored(pure_returns(S, strict=True), one(0.7)).tolist() == [0.7]


def test_an_unknown_step_leaves_its_rollout_unknown_and_out_of_the_others_baseline():
    data = one(0.9, None) + one(0.5) + one(0.3)
    out = pure(S, strict=True, width=1, whiten=False).score(data).scores
    assert out.known.tolist() == [False, False, True, True]
    assert out.values[2:] == pytest.approx([0.2, -0.2])


def test_the_builder_takes_the_padded_width():
    data = one(0.5) + one(0.25)
    assert scored(pure(S, strict=True, whiten=False), data).tolist() == [0.25, -0.25]
    assert scored(pure(S, strict=True, whiten=False, width=2), data).tolist() == [0.375, 0.0]


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


def test_clip_makes_a_shorter_chain_pay_even_where_its_steps_are_no_better():
    clip = clip_delta(S, threshold=0.7, delta=False, weight=1.0)
    long, short = one(0.6, 0.6, 0.6, 0.9), one(0.6, 0.9)
    assert scored(clip, long).sum() < scored(clip, short).sum() < 0


def test_a_threshold_off_the_scale_of_the_scores_punishes_all_steps_or_none():
    percent, signed = one(90, 40, 70), one(0.2, -0.6, 0.0)  # on 0..100 and on -1..1
    clip = clip_delta(S, threshold=0.7, delta=False, weight=1.0)
    assert scored(clip, percent).tolist() == [0.0, 0.0, 0.0]
    assert scored(clip, signed) == pytest.approx([-0.5, -1.3, -0.7])


def test_the_outcome_is_paid_on_the_last_step_with_a_small_weight_of_the_process():
    assert scored(gd.method("clip-delta-process-reward", S, OK), one(*P, ok=1)) == pytest.approx([0.05, -0.03, 0.07, 1])
    assert not clip_delta(S, OK).score(one(0.9, None, 0.7, ok=1)).scores.known.any()
    assert not clip_delta(S, OK).score(one(0.9, 0.7, ok=None)).scores.known.any()


# ---- VPPO ----


def vppo_data():
    right = with_tokens([10], s=[0.9], ok=1, c=0)
    o2 = with_tokens([45, 55], s=[0.9, 0.1], ok=0, c=5)  # |RP| = 45 - 5
    o3 = with_tokens([10, 10], s=[0.1, 0.9], ok=0, c=5)
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
        with_tokens([4], s=[0.9], ok=1, c=0),
        with_tokens([3, 3], s=[0.9, 0.9], ok=0, c=1),
        with_tokens([2, 2], s=[0.9, 0.1], ok=0, c=50),
    ]
    out = vppo(OK, S, TOKEN, gd.column("c")).score(data).scores.values
    mean = (1 + 0.5 * 2 / 6 + 0) / 3
    assert out[4:10] == pytest.approx(np.array([0.5] * 2 + [0] * 4) - mean)
    assert out[10:] == pytest.approx([-mean] * 4)


def test_vppo_all_wrong_groups_learn_and_all_right_ones_do_not():
    wrong = [with_tokens([2, 2], s=[0.9, 0.1], ok=0, c=0), with_tokens([2, 2], s=[0.1, 0.1], ok=0, c=0)]
    right = [with_tokens([2], s=[0.1], ok=1, c=0), with_tokens([3], s=[0.1], ok=1, c=0)]
    assert np.ptp(vppo(OK, S, TOKEN, gd.column("c")).score(wrong).scores.values) > 0
    assert vppo(OK, S, TOKEN, gd.column("c")).score(right).scores.values.tolist() == [0.0] * 5


def test_a_fraction_of_a_token_is_none():
    # A tenth of 15 tokens: 1.5 of the 5 before the wrong step, of which 3.5 are left.
    data = [with_tokens([5, 10], s=[0.9, 0.1], ok=0, c=1.5), with_tokens([1], s=[0.9], ok=1, c=0)]
    out = scored(vppo(OK, S, TOKEN, gd.column("c")), data)
    mean = (0.5 * 3 / 15 + 1) / 2
    assert out[:15] == pytest.approx([0.5 - mean] * 3 + [-mean] * 12)


def test_as_rewards_the_prefix_is_paid_at_its_last_token():
    out = np.split(scored(prefix_rewards(OK, S, TOKEN, gd.column("c")), vppo_data()), [10, 110, 130])
    assert [np.flatnonzero(part).tolist() for part in out] == [[9], [39], [], [9]]
    assert [part.sum() for part in out] == [1.0, 0.5, 0.0, 1.0]


def test_an_error_that_the_model_finds_too_late_pays_the_wrong_step_before_it():
    true, late = (with_tokens([2, 2, 2], s=s, ok=0, c=0) for s in ([0.9, 0.1, 0.1], [0.9, 0.9, 0.1]))
    right = with_tokens([2], s=[0.9], ok=1, c=0)
    first, later = (scored(vppo(OK, S, TOKEN, gd.column("c")), [row, right])[:6] for row in (true, late))
    assert first[2] < first[0]
    assert later[2] == later[0] > later[4]


def test_only_wrong_rollouts_need_step_scores_and_an_unknown_one_is_unknown():
    data = [with_tokens([2], s=[None], ok=1, c=0), with_tokens([2], s=[None], ok=0, c=0), *vppo_data()[1:]]
    out = vppo(OK, S, TOKEN, gd.column("c")).score(data).scores
    assert out.known[:4].tolist() == [True, True, False, False]


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


def test_rewards_of_positive_mean_favour_long_paths_until_they_are_centred():
    data = [{"prompt": "p", "s": [0.5, 0.4, 0.6, 0.5]}, {"prompt": "p", "s": [0.5]}]
    raw, centred_sum = scored(S.sum(), data), scored(centred(S).sum(), data)
    assert raw[0] > 3 * raw[1]
    assert centred_sum == pytest.approx([0.0, 0.0], abs=1e-12)


def test_a_mean_that_takes_in_hallucinated_items_is_biased():
    data = [{"s": [1.0, 3.0, -100.0], "real": [1, 1, 0]}]
    real = scored(centred(S, gd.column("real", axis="step")), data)[:2]
    assert real.mean() == pytest.approx(0.0)
    assert scored(centred(S), data)[:2].mean() > 0.5


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


def test_the_published_weights_are_three_and_seven_tenths_not_four_and_six():
    out = scored(gd.method("safer-steer-tcsr", S), one(1.0, 0.0))[0]
    assert out == pytest.approx(0.35)
    assert out != pytest.approx(0.4 * 0.0 + 0.6 * 0.5)
    with pytest.raises(ValueError, match="choose one of"):
        tcsr(S, aggregate="linear")  # weights 1..T overfit the last turn: not offered


def test_one_error_of_the_judge_weighs_more_by_the_minimum_than_by_the_mean_on_a_long_dialogue():
    right, misjudged = one(*[1.0] * 10), one(*[1.0] * 9, 0.0)
    by_minimum = scored(tcsr(S), right)[0] - scored(tcsr(S), misjudged)[0]
    by_mean = scored(tcsr(S, aggregate="mean"), right)[0] - scored(tcsr(S, aggregate="mean"), misjudged)[0]
    assert (by_minimum, by_mean) == (pytest.approx(0.37), pytest.approx(0.1))


def test_dialogues_are_compared_with_the_population_deviation_and_those_without_a_turn_left_out():
    data = [{"prompt": "p", "s": s} for s in ([1.0], [0.0], [None], [])]
    out = gd.credit.group_relative(tcsr(S), eps=1e-6).score(data).scores
    assert out.values[:2] == pytest.approx([0.5 / (0.5 + 1e-6), -0.5 / (0.5 + 1e-6)], abs=1e-12)
    assert out.known.tolist() == [True, True, False, False]
