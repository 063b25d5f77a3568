"""Methods that fuse a verifier with a model's score: their worked examples, recomputed, and every trap named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon.methods.bpmn import bpmn
from guerdon.methods.discretised import PairAgreement, discretised, dropout_is_off, pair_agreement
from guerdon.methods.gated_accumulation import gated_accumulation, gated_steps
from guerdon.methods.gated_aggregation import gated_aggregation
from guerdon.methods.harmo import harmo, length_term
from guerdon.methods.hero import hero
from guerdon.methods.irrl import irrl
from guerdon.methods.par import par
from guerdon.methods.pow3r import pow3r, pow3r_factors
from guerdon.methods.pspo import pspo, ramp, weibull
from guerdon.methods.trust_grpo import trust_grpo
from guerdon.methods.uncertainty import uncertainty_aware
from shape_strategies import UNIT, given

C = gd.column


def values(expr, rows, **more):
    return [None if math.isnan(v) else float(v) for v in expr.score(rows, **more).values]


def group(**columns):
    """The rollouts of one prompt."""
    return [{"prompt": "p", **dict(zip(columns, row, strict=True))} for row in zip(*columns.values(), strict=True)]


# Discretised reward models.

MEANS, TRUTH = [1.00, 1.05, 1.10, 2.00, 2.04], [0, 0, 0, 1, 1]


def passes_with(mean, spread=0.1):
    """Two passes of that mean and population deviation."""
    return [[m - spread, m + spread] for m in mean]


def test_scores_within_the_models_own_noise_share_a_cluster():
    rows = group(passes=passes_with(MEANS), truth=TRUTH)
    clusters = discretised(C("passes", axis="pass"))
    assert values(clusters, rows) == [0, 0, 0, 1, 1]
    raw, binned = C("passes", axis="pass").mean().score(rows).framed, clusters.score(rows).framed
    truth = C("truth").score(rows).framed
    assert pair_agreement(raw, truth) == PairAgreement(1.0, 0.0)
    assert pair_agreement(binned, truth) == PairAgreement(1.0, 1.0)


def test_equal_answers_get_equal_advantages():
    rows = group(passes=passes_with(MEANS))
    raw = gd.credit.group_relative(C("passes", axis="pass").mean())
    binned = gd.credit.group_relative(discretised(C("passes", axis="pass")))
    assert values(raw, rows) == pytest.approx([-0.919, -0.814, -0.709, 1.180, 1.264], abs=1e-3)
    assert values(binned, rows) == pytest.approx([-0.816] * 3 + [1.225] * 2, abs=1e-3)


def test_chained_clusters_lose_the_signal_and_can_be_rescued():
    rows = group(passes=passes_with([0.0, 0.1, 0.2, 0.3, 0.4]))
    assert values(discretised(C("passes", axis="pass")), rows) == [0.0] * 5
    rescued = values(discretised(C("passes", axis="pass"), rescue=True), rows)
    assert rescued == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])


def test_a_model_without_dropout_is_noticed():
    fused = C("passes", axis="pass").score(group(passes=[[1.0, 1.0], [2.0, 2.0]])).framed
    live = C("passes", axis="pass").score(group(passes=[[1.0, 1.1], [2.0, 2.0]])).framed
    single = C("passes", axis="pass").score(group(passes=[[1.0], [2.0]])).framed
    assert [dropout_is_off(x) for x in (fused, live, single)] == [True, False, False]


def test_a_single_pass_or_a_single_response_is_no_error():
    assert values(discretised(C("passes", axis="pass")), group(passes=[[1.0], [1.0], [1.01]])) == [0, 0, 1]
    assert values(discretised(C("passes", axis="pass")), [{"passes": [1.0, 2.0]}, {"passes": [None, 1.0]}]) == [0, None]
    alone = C("x").score([{"x": 1.0}]).framed
    assert pair_agreement(alone, alone) == PairAgreement(None, None)


def test_pairs_of_different_prompts_are_not_compared():
    rows = [{"prompt": p, "s": s, "q": q} for p, s, q in (("a", 1, 1), ("b", 0, 0), ("a", 0, 1), ("b", 1, 1))]
    agreement = pair_agreement(C("s").score(rows).framed, C("q").score(rows).framed)
    assert agreement == PairAgreement(1.0, 0.0)


# Trust-GRPO.

TRUST = trust_grpo(C("ok"), C("think"), C("step"))


def test_a_thinking_reward_that_prefers_wrong_answers_is_distrusted():
    rows = group(ok=[1, 1, 0, 0], think=[0.6, 0.4, 0.9, 0.7], step=[100] * 4)
    assert values(TRUST, rows) == pytest.approx([1.109176, 1.072784, 0.163763, 0.127371], abs=5e-7)
    rows = group(ok=[1, 1, 0, 0], think=[0.9, 0.7, 0.3, 0.2], step=[100] * 4)
    assert values(TRUST, rows) == pytest.approx([1.221057, 1.171933, 0.073686, 0.049124], abs=5e-7)


def test_zeroing_the_thinking_of_wrong_rollouts_would_disable_the_trust():
    rows = group(ok=[1, 1, 0, 0], think=[0.6, 0.4, 0.0, 0.0], step=[0] * 4)
    assert values(TRUST, rows)[0] == pytest.approx(1 + 0.3 * 0.6)  # gamma is 1 although the judge was not


def test_groups_that_are_all_right_or_all_wrong_get_no_thinking_reward_and_are_not_judged():
    seen = []

    @gd.signal(range=(0, 1), key="tests.thinking", version=1)
    def judge(rollout):
        seen.append(rollout.id)
        return 0.5

    rows = [{"id": i, "prompt": i[0], "ok": ok} for i, ok in (("a1", 1.0), ("a2", 0.95), ("b1", 1), ("b2", 0))]
    assert values(trust_grpo(C("ok"), judge), rows) == pytest.approx([1.0, 0.95, 1.15, 0.15])
    assert sorted(seen) == ["b1", "b2"]


def test_without_a_member_on_one_side_the_trust_is_one():
    rows = group(ok=[0.5, 0.8], think=[0.2, 0.9], step=[0, 0])
    assert values(TRUST, rows) == pytest.approx([0.5 + 0.3 * 0.2, 0.8 + 0.3 * 0.9])


def test_an_unparsed_judge_is_unknown_not_zero_and_moves_no_mean():
    rows = group(ok=[1, 1, 0, 0], think=[0.6, None, 0.9, 0.7], step=[0] * 4)
    gamma = math.exp(0.6 - 0.8)
    assert values(TRUST, rows) == pytest.approx([1 + 0.3 * gamma * 0.6, None, 0.3 * gamma * 0.9, 0.3 * gamma * 0.7])


# POW3R.

RUBRIC = [C(n, axis="criterion") for n in ("met", "w", "kind")]
OLD = C("old", axis="criterion")
POW3R_ROWS = group(met=[[1, 1], [1, 0], [1, 1], [1, 0]], w=[[5, 1]] * 4, kind=[[0, 0]] * 4, old=[[1, 1]] * 4)


def test_weights_follow_the_criterion_that_the_rollouts_disagree_on():
    factors = pow3r_factors(*RUBRIC, OLD, mix=0.5, eps=0.01)
    got = factors.score(POW3R_ROWS).framed.values
    assert got == pytest.approx([0.596774, 3.016129] * 4, abs=5e-7)
    assert values(pow3r(*RUBRIC), POW3R_ROWS) == pytest.approx([1, 0.833333, 1, 0.833333], abs=5e-7)
    weighed = pow3r(*RUBRIC, factors)
    assert values(weighed, POW3R_ROWS) == pytest.approx([1, 0.497312, 1, 0.497312], abs=5e-7)
    assert np.std(values(pow3r(*RUBRIC), POW3R_ROWS)) == pytest.approx(0.0833, abs=5e-5)
    assert np.std(values(weighed, POW3R_ROWS)) == pytest.approx(0.2513, abs=5e-5)


def test_criteria_with_few_verdicts_keep_their_factor_and_stay_out_of_the_average():
    rows = group(met=[[1, None], [0, None], [1, 1], [1, 0]], w=[[1, 1]] * 4, kind=[[0, 0]] * 4, old=[[1, 2.5]] * 4)
    got = pow3r_factors(*RUBRIC, OLD).score(rows).framed.values.reshape(4, 2)
    assert got[:, 1].tolist() == [2.5] * 4
    assert got[:, 0].tolist() == [1.0] * 4  # alone in its average


def test_a_category_without_contrast_goes_back_to_one_through_the_average():
    rows = group(met=[[1], [1]], w=[[1]] * 2, kind=[[0]] * 2, old=[[3]] * 2)
    assert pow3r_factors(*RUBRIC, OLD).score(rows).framed.values.tolist() == [1.0, 1.0]
    assert pow3r_factors(*RUBRIC, OLD, rate=0.5).score(rows).framed.values.tolist() == [2.0, 2.0]


def test_factors_stay_within_their_bounds():
    rows = group(met=[[1, 1], [1, 0]], w=[[1e6, 1]] * 2, kind=[[0, 0]] * 2, old=[[1, 1]] * 2)
    got = pow3r_factors(*RUBRIC, OLD, mix=1.0, eps=1e-9).score(rows).framed.values
    assert got.tolist() == [0.25, 4.0, 0.25, 4.0]


def test_a_rollout_without_any_verdict_is_unknown():
    rows = group(met=[[None, None], [1, None]], w=[[1, 1]] * 2, kind=[[0, 1]] * 2)
    assert values(pow3r(*RUBRIC), rows) == [None, 1.0]


def test_a_noisy_judge_of_equal_rollouts_raises_a_factor_as_real_contrast_would():
    rows = group(met=[[1, 1], [1, 0], [1, 1], [1, 1]], w=[[1, 1]] * 4, kind=[[0, 0]] * 4, old=[[1, 1]] * 4)
    sure, noisy = pow3r_factors(*RUBRIC, OLD).score(rows).framed.values[:2]
    assert noisy > 1 > sure


# HARMO.


def test_lengths_far_from_those_of_right_answers_are_penalised():
    rows = group(n=[100, 200, 40, 600], ok=[1, 1, 0, 0])
    assert values(length_term(C("n"), C("ok")), rows) == pytest.approx([0, 0, -0.116667, -0.5], abs=5e-7)
    assert values(length_term(C("n"), C("ok")), group(n=[100, 900], ok=[0, 0])) == [0, 0]


def test_items_that_no_rule_can_check_are_scored_by_the_model():
    expr = harmo(C("ok"), C("rm"), C("rule"), C("form"), C("n"))
    checked = group(ok=[1, 0], rm=[None, None], rule=[1, 1], form=[1, 1], n=[10, 10])
    assert values(expr, checked) == [2.0, 1.0]
    scored = group(ok=[None, None], rm=[0.8, 0.2], rule=[0, 0], form=[1, 0], n=[10, 100])
    assert values(expr, scored) == pytest.approx([1.8, 0.2])
    above = harmo(C("ok"), C("rm"), C("rule"), C("form"), C("n"), threshold=0.5)
    assert values(above, scored) == pytest.approx([1.8, -0.3])


# G-RA.


def test_a_shut_gate_masks_everything_below_it():
    out, form, steps = C("out"), C("form"), C("steps", axis="step").sum()
    three = gated_accumulation([out, form, steps])
    assert values(three, [{"out": -1, "form": 0.1, "steps": [0.2, 0.3]}]) == [-1.0]
    assert values(three, [{"out": 1, "form": 0.1, "steps": [0.2, 0.3]}]) == pytest.approx([1.6])
    assert values(out + form + steps, [{"out": -1, "form": 0.1, "steps": [0.2, 0.3]}]) == pytest.approx([-0.4])
    levels = gated_accumulation([out, form, steps], [0.4, 0.0])
    assert values(levels, [{"out": 0.5, "form": 0, "steps": [0.3]}]) == [0.5]


def test_steps_are_paid_behind_the_gate_and_the_outcome_on_the_last():
    expr = gated_steps(C("out"), C("steps", axis="step"))
    rows = [{"out": 1, "steps": [0.2, 0.3]}, {"out": 0, "steps": [0.2, 0.3]}]
    assert values(expr, rows) == pytest.approx([0.2, 1.3, 0.0, 0.0])


def test_behind_a_gate_that_nobody_passes_the_dense_part_is_never_used():
    rows = group(out=[0, 0, 0], form=[0.1, 0.5, 0.9])
    strict, scheduled = (gated_accumulation([C("out"), C("form")], g) for g in (0.0, -1.0))
    assert values(gd.credit.group_relative(strict), rows) == [0, 0, 0]
    assert values(gd.credit.group_relative(scheduled), rows)[2] > 1


# HERO.

HERO = hero(C("ok"), C("rm"), alpha=0.1, beta=0.1, weighted=False)


def test_quality_orders_rollouts_within_their_class_only():
    assert values(HERO, group(ok=[1, 1, 0, 0], rm=[2, 0.5, 1.5, -1])) == pytest.approx([1.1, 0.9, 0.1, -0.1])
    assert values(HERO, group(ok=[0] * 4, rm=[1, 2, 3, 4])) == pytest.approx([-0.1, -1 / 30, 1 / 30, 0.1])


def test_the_weight_grows_with_the_spread_of_the_group():
    def weight(spread, mean):
        state = {"mean": mean, "groups": 10**12}  # so that this group does not move the mean
        scores = C("rm").score(group(rm=[-spread, spread])).framed
        return gd.shape.spread_weight(scores, state=state)[0].values[0]

    assert weight(0.5, 0.5) == pytest.approx(1.7)
    assert weight(0.8, 0.5) == pytest.approx(2.631187, abs=5e-7)
    assert weight(0.1, 0.5) == pytest.approx(0.616249, abs=5e-7)


def test_the_running_mean_spread_is_kept_in_the_session():
    weight, session = gd.shape.spread_weight(C("rm")), gd.Session()
    weight.score(group(rm=[0, 2]), session=session)
    assert next(iter(session.state.values())) == {"mean": 1.0, "groups": 1}
    weight.score(group(rm=[0, 6]), session=session)
    assert next(iter(session.state.values())) == {"mean": 2.0, "groups": 2}


def test_a_class_of_one_takes_the_middle_of_its_band():
    assert values(HERO, group(ok=[1, 0, 0], rm=[2, 1, 1])) == [1, 0, 0]


def test_dividing_by_the_deviation_blows_up_the_band_of_a_failed_group():
    rows = group(ok=[0, 0], rm=[1, 2])
    assert values(gd.credit.group_relative(HERO), rows) == pytest.approx([-1, 1])
    assert values(gd.credit.group_relative(HERO, scale="none"), rows) == pytest.approx([-0.1, 0.1])


def test_dividing_by_the_deviation_cancels_a_weight_on_the_reward():
    rows = group(ok=[1, 0], rm=[1, 2])
    plain, weighted = HERO, HERO * 3.0
    assert values(gd.credit.group_relative(weighted), rows) == values(gd.credit.group_relative(plain), rows)


# PSPO.


def test_the_ramp_at_its_published_points():
    s, t = np.array([0.5, 0.5, 0.5, 0.9, 0.1]), np.array([2.0, 4.0, 6.0, 6.0, 6.0])
    assert ramp(s, t) == pytest.approx([1.359141, 3.694528, 3.943543, 8.122512, 0.604965], abs=5e-7)
    h = weibull(np.array([2.0, 4.0, 6.0, 8.0, 12.0]))
    assert h == pytest.approx([0.88815, 0.999406, 0.91044, 0.740472, 0.392644], abs=5e-6)


def test_the_geometric_mean_enters_the_released_form_twice():
    assert values(pspo(C("p", axis="step")), [{"p": [0.5] * 4}]) == pytest.approx([1.847264], abs=5e-7)
    assert values(pspo(C("p", axis="step"), form="weibull"), [{"p": [0.5] * 4}]) == pytest.approx([0.499703], abs=5e-7)


def test_chains_of_one_step_earn_nothing_and_of_none_are_unknown():
    rows = [{"p": [0.9]}, {"p": []}, {"p": [0.9, None]}, {"p": [0.9, 0.0, 0.8]}, {"p": [0.5, 1.5]}]
    assert values(pspo(C("p", axis="step")), rows) == [0.0, None, None, 0.0, None]


def test_the_reward_is_not_bounded_and_jumps_where_the_source_says():
    long = values(pspo(C("p", axis="step")), [{"p": [1.0] * n} for n in (4, 40)])
    assert long[1] > 30 * long[0]
    edges = ramp(np.array([0.2 - 1e-9, 0.2, 0.88433, 0.88433 + 1e-9]), np.full(4, 8.0))
    assert edges[1] - edges[0] > 0.1
    assert edges[3] - edges[2] > 0.1


def test_whoever_splits_the_steps_controls_the_reward():
    same_quality = values(pspo(C("p", axis="step")), [{"p": [0.8] * n} for n in (2, 4, 8)])
    assert same_quality[0] < same_quality[1] < same_quality[2]


# Internally rewarded RL.


def test_linear_and_logarithmic_gains_over_the_prior():
    rows = [{"q": 0.7}, {"q": 0.05}]
    assert values(irrl(C("q"), 0.1), rows) == pytest.approx([0.6, 0])
    assert values(irrl(C("q"), 0.1, form="linear"), rows) == pytest.approx([0.6, -0.05])
    assert values(irrl(C("q"), 0.1, form="log"), rows) == pytest.approx([1.945910, -0.693147], abs=5e-7)
    assert values(irrl(C("q"), 0.1, form="clipped-log"), rows) == pytest.approx([1.945910, 0], abs=5e-7)


def test_a_probability_of_zero_has_a_finite_logarithmic_reward():
    assert values(irrl(C("q"), 0.1, form="log"), [{"q": 0.0}]) == pytest.approx([math.log(1e-8) - math.log(0.1)])


def test_the_logarithm_amplifies_the_noise_of_an_immature_discriminator():
    noisy = np.clip(0.1 + np.random.default_rng(0).normal(0, 0.1, 10_000), 1e-3, 1)
    rows = [{"q": float(q)} for q in noisy]
    log_variance = np.var(values(irrl(C("q"), 0.1, form="log"), rows))
    variance = np.var(values(irrl(C("q"), 0.1), rows))
    assert log_variance == pytest.approx(3.470, abs=5e-4)
    assert variance == pytest.approx(0.00338, abs=5e-6)
    assert log_variance > 100 * variance


# PAR.

REFS = C("refs", axis="reference")


def test_the_reward_is_the_probability_of_beating_a_reference():
    assert values(par(C("r"), REFS), [{"r": 1.0, "refs": [0.5]}]) == pytest.approx([0.6224593])
    assert values(par(C("r"), REFS), [{"r": 2.0, "refs": [1, 3]}]) == [0.5]
    assert values(par(C("r"), REFS, C("n")), [{"r": 5.0, "refs": [3.5], "n": 400}]) == pytest.approx([0.6224593])
    assert values(par(C("r"), REFS), [{"r": 1.0, "refs": []}, {"r": -1e6, "refs": [0]}]) == [None, 0.0]


def test_the_alternatives_at_known_points():
    row = [{"r": 2.0, "refs": [1.0, 3.0]}]
    assert values(par(C("r"), REFS, form="centred"), row) == [0.0]
    assert values(par(C("r"), REFS, form="tanh"), row) == pytest.approx([0.0])
    assert values(par(C("r"), REFS, form="arctan"), [{"r": 1, "refs": [0, 0]}]) == pytest.approx([math.pi / 4])
    assert values(par(C("r"), REFS, form="shifted"), [{"r": 3, "refs": [0]}]) == [0.5]
    top = 2 + 1.0364 * (1 + 1e-5)
    assert values(par(C("r"), REFS, form="log-sigmoid"), row) == pytest.approx([-math.log1p(math.exp(top - 2))])
    assert values(par(C("r"), REFS, form="ceiling", ceiling=0.5), row) == [0.5]
    with pytest.raises(ValueError, match="choose one of par"):
        par(C("r"), REFS, form="softmax")


def test_running_statistics_include_the_batch_they_shape():
    session = gd.Session()
    expr = par(C("r"), REFS, form="zscore")
    expr.score([{"r": 1.0}, {"r": 2.0}], session=session)
    assert values(expr, [{"r": 3.0}], session=session) == pytest.approx([1 / 0.8164966])
    assert values(par(C("r"), REFS, form="minmax"), [{"r": 2.0}, {"r": 2.0}]) == [0, 0]


def test_group_normalisation_undoes_affine_shaping_but_not_this():
    rows = group(r=[0.0, 1.0, 4.0], refs=[[0.0]] * 3)
    plain = values(gd.credit.group_relative(C("r")), rows)
    assert values(gd.credit.group_relative(C("r") * 3 - 1), rows) == pytest.approx(plain)
    assert values(gd.credit.group_relative(par(C("r"), REFS)), rows) != pytest.approx(plain, abs=0.05)


def test_a_policy_that_beats_all_references_saturates_the_reward():
    rows = group(r=[20.0, 25.0], refs=[[0.0]] * 2)
    assert np.std(values(par(C("r"), REFS), rows)) < 1e-8


def test_bounded_shaping_slows_hacking_of_a_proxy_down():
    true, proxy = np.array([0.0, 1.0, -1.0]), [0.0, 1.0, 5.0]

    def after(rewards):
        logits = np.zeros(3)
        for _ in range(400):
            p = np.exp(logits - logits.max())
            p /= p.sum()
            logits = logits + 0.05 * p * (rewards - p @ rewards)
        p = np.exp(logits - logits.max())
        return float(true @ (p / p.sum()))

    shaped = np.array(values(par(C("r"), REFS), group(r=proxy, refs=[[0.0]] * 3)))
    assert after(np.array(proxy)) == pytest.approx(-0.987, abs=1e-3)
    assert after(shaped) == pytest.approx(-0.713, abs=1e-3)


# Gated aggregation.

FLOOR, BEHAVIOUR = [C(n) for n in ("s1", "s2", "s3")], {"rich": C("b1"), "short": C("b2")}


def searched(*s, b=(0.8, 0.5)):
    return [{"s1": s[0], "s2": s[1], "s3": s[2], "b1": b[0], "b2": b[1]}]


def test_one_failed_bottom_line_collapses_the_reward():
    expr = gated_aggregation(FLOOR, BEHAVIOUR, {"rich": 2, "short": 1})
    got = [values(expr, searched(*s))[0] for s in ((1, 1, 1), (1, 1, 0), (0.9, 0.8, 1))]
    assert got == pytest.approx([0.7, 0.1503111, 0.6281441], abs=5e-8)
    assert expr.range == gd.Interval(0, 1)


def test_the_slope_of_the_floor_is_bounded():
    expr = gated_aggregation(FLOOR, [gd.constant(1.0) * C("one", range=(0, 1))])
    rows = [{"s1": s, "s2": 1, "s3": 1, "one": 1} for s in (0.0, 1e-6)]
    low, high = np.log(values(expr, rows))
    assert (high - low) / 1e-6 <= 33.34


def test_a_missing_or_impossible_verdict_is_not_a_zero():
    expr = gated_aggregation(FLOOR, BEHAVIOUR)
    assert values(expr, searched(1, 1, None)) == [None]
    assert values(expr, searched(1, 1, 1.2)) == [None]
    assert values(expr, searched(1, 1, 1, b=(1.2, 0.5))) == [None]


def test_no_bottom_line_is_no_floor_but_no_behaviour_is_an_error():
    assert values(gated_aggregation([], BEHAVIOUR, {"rich": 2, "short": 1}), searched(0, 0, 0)) == pytest.approx([0.7])
    for behaviour, weights in (({}, None), (BEHAVIOUR, {"rich": 0, "short": 0})):
        with pytest.raises((ValueError, TypeError)):
            gated_aggregation(FLOOR, behaviour, weights)


# Process models.

QUALITY = [C(n) for n in ("syn", "prag", "sem")]
MODEL = {"ok": 1, "syn": 0.9, "prag": 0.6, "sem": 0.75}


def test_valid_models_get_their_quality_and_invalid_ones_the_penalty_per_function():
    broken = {"ok": 0}
    assert values(bpmn(C("ok"), QUALITY), [MODEL, broken]) == pytest.approx([0.75, -1])
    assert values(bpmn(C("ok"), QUALITY, (1, 1, 1)), [MODEL, broken]) == pytest.approx([2.25, -3])
    assert values(bpmn(C("ok"), QUALITY, (3, 1, 1)), [MODEL, broken]) == pytest.approx([4.05, -5])
    assert values(bpmn(C("ok"), QUALITY[:2]), [MODEL]) == pytest.approx([0.75])


def test_a_valid_model_of_quality_zero_stays_zero_and_a_failed_metric_is_unknown():
    rows = [{"ok": 1, "syn": 0, "prag": 0, "sem": 0}, {"ok": 1, "syn": 0.5, "prag": None, "sem": 0.5}]
    assert values(bpmn(C("ok"), QUALITY), rows) == [0.0, None]


# Ensembles.

MEMBERS = C("members", axis="member")


def test_disagreement_makes_moving_away_from_the_reference_dear():
    row = [{"members": [1, 2, 3], "ratio": 0.5}]
    assert values(uncertainty_aware(MEMBERS, C("ratio")), row) == pytest.approx([1.95])
    assert values(gd.shape.ensemble_lower_bound(MEMBERS), row) == [1.0]
    assert values(gd.shape.ensemble_min(MEMBERS), row) == [1.0]
    assert values(uncertainty_aware(MEMBERS, C("ratio")), [{"members": [1], "ratio": 0.5}]) == [None]


def test_below_the_reference_the_penalty_is_a_bonus_unless_it_is_cut():
    row = [{"members": [1, 2, 3], "ratio": -0.5}]
    assert values(uncertainty_aware(MEMBERS, C("ratio")), row) == pytest.approx([2.05])
    assert values(uncertainty_aware(MEMBERS, C("ratio"), only_above=True), row) == pytest.approx([2.0])


def test_a_lower_bound_picks_as_well_with_less_variance():
    generator = np.random.default_rng(0)
    noise = generator.uniform(0.1, 2, 50)
    picks = {"mean": [], "bound": []}
    member = gd.Axis.under(gd.Axis.under(gd.Axis("prompt", 1), [50], "rollout"), np.full(50, 8), "member")
    for _ in range(500):
        true = generator.normal(0, 1, 50)
        seen = true[:, None] + noise[:, None] * generator.normal(0, 1, (50, 8))
        scores = gd.Scores.of(member, seen.reshape(-1))
        picks["mean"].append(true[np.argmax(gd.shape.ensemble_mean(scores).values)])
        picks["bound"].append(true[np.argmax(gd.shape.ensemble_lower_bound(scores).values)])
    assert np.var(picks["bound"]) < np.var(picks["mean"])
    assert np.mean(picks["bound"]) == pytest.approx(np.mean(picks["mean"]), abs=0.15)


@given(st.lists(UNIT, min_size=2, max_size=5), st.floats(0.1, 10))
def test_unscaled_members_make_the_disagreement_meaningless(scores, scale):
    agree = [{"members": [s, s]} for s in scores]
    assert set(values(gd.shape.ensemble_spread(MEMBERS), agree)) == {0.0}
    off = [{"members": [s, scale * s + 1]} for s in scores]
    measured = values(gd.shape.ensemble_spread(MEMBERS), off)
    assert measured == pytest.approx([abs((scale - 1) * s + 1) * math.sqrt(0.5) for s in scores], abs=1e-9)
