"""Methods that fuse a verifier with a model's score: their worked examples, recomputed, and every trap named."""

from __future__ import annotations

import math

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.bpmn import bpmn
from guerdon.methods.gated_accumulation import gated_accumulation, gated_steps
from guerdon.methods.gated_aggregation import gated_aggregation
from guerdon.methods.harmo import harmo, length_term
from guerdon.methods.hero import hero
from guerdon.methods.pow3r import pow3r, pow3r_factors
from guerdon.methods.trust_grpo import trust_grpo
from method_rows import group, values

C = gd.column


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


def test_the_trust_is_the_exponential_of_the_difference_not_of_twice_it():
    rows = group(ok=[1, 1, 0, 0], think=[0.6, 0.4, 0.9, 0.7], step=[0] * 4)
    gamma = (values(TRUST, rows)[0] - 1) / (0.3 * 0.6)
    assert gamma == pytest.approx(0.740818, abs=5e-7)
    assert gamma != pytest.approx(math.exp(2 * (0.5 - 0.8)))  # what the released code logs


def test_with_one_rollout_in_a_class_its_judge_alone_sets_the_trust_of_all():
    high, low = (values(TRUST, group(ok=[1, 1, 0], think=[0.6, 0.4, t], step=[0] * 3)) for t in (1.0, 0.5))
    assert low[0] - 1 == pytest.approx(0.3 * 0.6)
    assert high[0] - 1 == pytest.approx(0.3 * 0.6 * math.exp(-0.5))


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
    assert pow3r_factors(*RUBRIC, OLD, eps=0.0).score(rows).framed.values.tolist() == [1.0, 1.0]


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


def test_categories_count_equally_whatever_their_size_and_missing_verdicts_leave_both_sums():
    rows = group(met=[[1, 0, 1, 0], [None, 1, None, 0]], w=[[3, 1, 1, 7]] * 2, kind=[[0, 0, 0, 1]] * 2)
    assert values(pow3r(*RUBRIC), rows) == pytest.approx([(4 / 5 + 0) / 2, (1 + 0) / 2])
    rows = group(met=[[1, 0, 1, None]], w=[[3, 1, 1, 7]], kind=[[0, 0, 0, 1]])
    assert values(pow3r(*RUBRIC), rows) == pytest.approx([4 / 5])


def test_an_epoch_is_paid_with_the_factors_stored_before_it_and_its_scale_drifts_from_the_base():
    first, factors = pow3r(*RUBRIC), pow3r_factors(*RUBRIC, OLD)
    stored = np.reshape(values(factors, POW3R_ROWS), (4, 2)).tolist()
    visited = [{**row, "old": old} for row, old in zip(POW3R_ROWS, stored, strict=True)]
    assert values(first, POW3R_ROWS)[1] == pytest.approx(5 / 6)
    assert values(pow3r(*RUBRIC, OLD), visited)[1] == pytest.approx(0.497312, abs=5e-7)
    assert values(first, visited)[1] == pytest.approx(5 / 6)  # for evaluation: never the factors


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


def test_a_part_on_a_larger_scale_swallows_the_others():
    expr = harmo(C("ok"), C("rm"), C("rule"), C("form"), C("n"))
    rows = group(ok=[None] * 2, rm=[8.0, 2.0], rule=[0, 0], form=[0, 1], n=[10, 10])
    assert values(gd.credit.group_relative(expr, scale="none"), rows) == [2.5, -2.5]  # the format does not show


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


def test_the_comparison_is_strict_and_the_reward_jumps_at_a_gate():
    expr = gated_accumulation([C("out"), C("steps")], 0.5)
    rows = [{"out": out, "steps": 1.0} for out in (0.5, 0.5 + 1e-9)]
    assert values(expr, rows) == pytest.approx([0.5, 1.5])


def test_an_unknown_behind_a_shut_gate_does_not_count_and_an_unknown_gate_does():
    expr = gated_accumulation([C("out"), C("form"), C("steps")])
    rows = [{"out": -1, "form": None}, {"out": 1, "form": None, "steps": 1}, {"out": None, "form": 1, "steps": 1}]
    assert values(expr, rows) == [-1.0, None, None]


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


def test_the_builder_weighs_the_banded_quality_by_the_spread_of_the_prompt():
    expr = gd.method("hero-hybrid-reward", C("ok"), C("rm"))
    rows = group(ok=[1, 1, 0, 0], rm=[2, 0.5, 1.5, -1])
    assert values(expr, rows) == pytest.approx(np.multiply(1.7, [1.05, 0.95, 0.05, -0.05]))  # alone: sigma = sigma_bar
    flat = [{**row, "prompt": "q", "rm": 1.0} for row in rows]
    spread = np.std([2, 0.5, 1.5, -1])
    high, low = (0.4 + 2.6 / (1 + math.exp(-6 * off)) for off in (spread / 2, -spread / 2))
    assert values(expr, [*rows, *flat]) == pytest.approx(
        [*np.multiply(high, [1.05, 0.95, 0.05, -0.05]), low, low, 0, 0]
    )


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


def test_among_many_bottom_lines_one_failure_hurts_less_unless_delta_is_small():
    names = [f"s{i}" for i in range(10)]
    row = [{**dict.fromkeys(names, 1), "s9": 0, "b1": 1}]
    assert values(gated_aggregation([C(n) for n in names], [C("b1")]), row) == pytest.approx([0.6303298], abs=5e-8)
    assert values(gated_aggregation([C(n) for n in names], [C("b1")], delta=1e-9), row)[0] < 0.13


def test_the_product_shrinks_the_spread_of_a_bad_group():
    expr = gated_aggregation(FLOOR, BEHAVIOUR)
    good, bad = ([*searched(1, 1, s, b=(0.9, 0.9)), *searched(1, 1, s, b=(0.1, 0.1))] for s in (1, 0))
    assert np.ptp(values(expr, bad)) == pytest.approx(0.2147301 * np.ptp(values(expr, good)), abs=1e-7)


def test_the_evidence_names_the_blocking_criterion():
    told = gated_aggregation(FLOOR, BEHAVIOUR).score(searched(1, 0.2, 1)).explain(0)
    assert told.parts[0].evidence == {"weakest_part": 1}


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


def test_an_invalid_model_can_be_worth_nothing_and_without_a_reference_there_are_two_functions():
    rows = [{"ok": 0}, {**MODEL, "ok": None}]
    assert values(bpmn(C("ok"), QUALITY, penalty=0.0), rows) == [0.0, None]
    assert values(bpmn(C("ok"), QUALITY[:2], (3, 1)), [MODEL, rows[0]]) == pytest.approx([3.3, -4.0])
