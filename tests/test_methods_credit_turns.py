"""Methods that give credit to turns, searches and calls: worked examples as literals, and pitfalls."""

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.capo import capo, voted_wrong
from guerdon.methods.istar import implicit_reward, istar, preference_loss
from guerdon.methods.pica import pica
from guerdon.methods.t_reg import pair_weight, regulariser, t_reg
from guerdon.methods.taco import taco
from guerdon.methods.trace import trace, turn_value_gain
from method_rows import one, with_tokens

S, OK = gd.column("s", axis="step"), gd.column("ok")
TOKEN = gd.column("logprobs", axis="token")


def scored(reward, data):
    return reward.score(data).values


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
    data = [with_tokens([2, 1, 2], s=[0.2, 0.7, 0.4], ok=1)]
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
    short = capo(OK, S, TOKEN).score([with_tokens([1, 1], s=[0, 4], ok=1), with_tokens([1, 1], s=[0, 0], ok=1)]).scores
    long = capo(OK, S, TOKEN).score([with_tokens([1, 9], s=[0, 4], ok=1), with_tokens([1, 1], s=[0, 0], ok=1)]).scores
    assert long.values[0] > short.values[0]
