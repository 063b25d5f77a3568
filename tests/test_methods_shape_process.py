"""Methods over rubrics, paths and milestones: worked examples, recomputed, and every trap named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon.methods.admire import admire, admire_advantage, milestone_hits
from guerdon.methods.ppr import ppr, ppr_tokens
from guerdon.methods.router_r1 import router_r1
from guerdon.methods.rubrics_as_rewards import rubric_rating, rubrics_as_rewards
from guerdon.methods.scope_rl import gradient_share, needs_scaffold, process_quality, scope_rl
from guerdon.methods.search_p1 import path_score, search_p1
from method_rows import values
from shape_strategies import UNIT, given

C = gd.column


# Rubrics as Rewards.

MET = C("met", axis="criterion")
FOUR = ["Essential", "Important", "Optional", "Pitfall"]


def test_items_count_by_the_weight_of_their_category():
    scored = rubrics_as_rewards(MET).score([{"met": [1, 0, 1, 1], "categories": FOUR}])
    assert scored.values.tolist() == pytest.approx([0.758621], abs=5e-7)
    by_column = rubrics_as_rewards(MET, C("w", axis="criterion"))
    assert values(by_column, [{"met": [1, 0, 1, 1], "w": [1.0, 0.7, 0.3, 0.9]}]) == pytest.approx([2.2 / 2.9])


def test_an_unparsed_item_is_missing_not_met_nor_failed():
    scored = rubrics_as_rewards(MET).score([{"met": [1, None, 1, 1], "categories": FOUR}])
    assert scored.values.tolist() == [1.0]
    assert scored.scores.evidence[0] == {"known_items": 3, "items": 4}


def test_no_items_no_verdicts_or_no_weight_are_unknown_not_nan():
    w = C("w", axis="criterion")
    rows = [{"met": [], "w": []}, {"met": [None], "w": [1]}, {"met": [1, 1], "w": [0, 0]}]
    assert values(rubrics_as_rewards(MET, w), rows) == [None] * 3
    unknown = rubrics_as_rewards(MET).score([{"met": [1], "categories": ["nice"]}])
    assert values(rubrics_as_rewards(MET), [{"met": [1], "categories": ["nice"]}]) == [None]
    assert unknown.unknown.total() == 1


def test_one_rating_of_the_whole_rubric():
    assert values(rubric_rating(C("l")), [{"l": 7}, {"l": 1}, {"l": 11}]) == pytest.approx(
        [0.666667, 0, None], abs=5e-7
    )
    assert values(rubric_rating(C("l"), from_zero=True), [{"l": 7}]) == pytest.approx([0.7])


def test_one_item_is_a_verifiable_reward_and_a_negative_pitfall_turns_its_sign():
    assert values(rubrics_as_rewards(MET), [{"met": [1], "categories": ["essential"]}]) == [1.0]
    avoided, happened = ([{"met": [1, m], "categories": ["essential", "pitfall"]}] for m in (1, 0))
    assert values(rubrics_as_rewards(MET), avoided) > values(rubrics_as_rewards(MET), happened)


# PPR.

STEPS = C("s", axis="step")


def test_the_sign_of_a_step_agrees_with_the_outcome():
    rows = [{"s": [0.8, 0.5, 1.0], "ok": 1}, {"s": [0.8, 0.5, 1.0], "ok": 0}]
    assert values(ppr(STEPS, C("ok")), rows) == pytest.approx([0.8, 0.5, 1.0, -0.2, -0.5, 0.0])


@given(st.lists(UNIT, min_size=1, max_size=5), st.sampled_from([0, 1]))
def test_no_step_of_a_failure_is_rewarded_and_none_of_a_success_punished(steps, ok):
    out = values(ppr(STEPS, C("ok")), [{"s": steps, "ok": ok}])
    assert all(v >= 0 for v in out) if ok else all(v <= 0 for v in out)


def test_a_score_on_another_scale_is_unknown_and_so_is_one_that_failed_to_parse():
    assert values(ppr(STEPS, C("ok")), [{"s": [7, None, 0.5], "ok": 0}]) == [None, None, -0.5]
    assert values(ppr(STEPS, C("ok")), [{"s": [], "ok": 0}]) == []


def test_many_steps_can_dwarf_the_outcome_until_they_are_averaged():
    renormed = ppr(STEPS, C("ok"))
    row = [{"s": [1.0] * 30, "ok": 1}]
    assert values(renormed.sum(), row) == [30.0]
    assert values(renormed.mean(), row) == [1.0]


def test_tokens_carry_each_step_on_its_last_one_and_the_outcome_on_the_very_last():
    row = {
        "completion": "abcd", "steps": [(0, 2), (2, 4)], "step_tokens": [2, 2], "tokens": [1, 2, 3, 4],
        "logprobs": [-1.0] * 4, "ok": 1,
    }  # fmt: skip
    expr = ppr_tokens(STEPS, C("ok"), C("logprobs", axis="token"))
    assert values(expr, [{**row, "s": [0.8, 0.5]}]) == pytest.approx([0, 0.8, 0, 1.5])
    assert values(expr, [{**row, "s": [None, 0.5]}]) == pytest.approx([0, 0, 0, 1.5])


# Search-P1.

PATH = path_score(*[C(n) for n in ("plan", "exec", "planned", "act", "cov", "ref")])
P1 = search_p1(PATH, *[C(n) for n in ("ok", "acc", "why", "form")])
WALK = {"plan": 1, "exec": 3, "planned": 4, "act": 5, "cov": 2, "ref": 3}


def test_the_better_of_two_tracks_and_soft_outcomes():
    assert values(PATH, [WALK]) == pytest.approx([0.45])
    assert values(PATH, [{**WALK, "plan": 0}]) == pytest.approx([0.266667], abs=5e-7)
    soft = {**WALK, "ok": 0, "acc": 0.5, "why": 0.8, "form": 1}
    assert values(P1, [soft]) == pytest.approx([0.571])
    assert values(P1, [{**WALK, "ok": 1, "form": 1}]) == pytest.approx([0.135 + 0.6 + 0.1])  # no judge asked


def test_no_plan_no_action_or_no_reference_is_a_ratio_of_zero():
    empty = dict.fromkeys(WALK, 0)
    assert values(PATH, [empty, {**WALK, "act": 0}, {**WALK, "planned": 0, "ref": 0}]) == [0, 0, 0]
    assert values(PATH, [{**WALK, "exec": 6}]) == [None]  # more than was planned: the counts are wrong


def test_a_plan_of_one_step_must_be_judged_and_a_wrong_answer_capped():
    assert values(PATH, [{"plan": 1, "exec": 1, "planned": 1, "act": 1, "cov": 0, "ref": 3}]) == [1.0]
    wrong = {**WALK, "ok": 0, "acc": 1, "why": 1, "form": 1}
    right = {**WALK, "ok": 1, "form": 1}
    assert values(P1, [wrong]) == pytest.approx(values(P1, [right]))
    capped = search_p1(PATH, *[C(n) for n in ("ok", "acc", "why", "form")], most=0.9)
    assert values(capped, [wrong]) < values(capped, [right])


# Router-R1.


def test_cost_counts_only_behind_format_and_quality():
    expr = router_r1(C("form"), C("q"), C("cost"), alpha=0.6)
    rows = [{"form": 1, "q": 0.8, "cost": c} for c in (4, 9, 16)]
    assert values(expr, rows) == pytest.approx([0.32 + 0.6, 0.62, 0.32])
    rows = [{"form": 0, "q": 0.9, "cost": 4}, {"form": 1, "q": 0, "cost": 4}, {"form": 1, "q": 0.8, "cost": 16}]
    assert values(expr, rows)[:2] == [-1.0, 0.0]


def test_the_percentiles_are_those_of_the_buffer():
    session = gd.Session()
    expr = router_r1(C("form"), C("q"), C("cost"), alpha=1.0)
    assert values(expr, [{"form": 1, "q": 1, "cost": 4}], session=session) == [0.5]  # nothing to compare with yet
    assert values(expr, [{"form": 1, "q": 1, "cost": c} for c in (9, 16)], session=session) == pytest.approx([0.5, 0])
    assert next(iter(session.state.values())) == {"seen": [2.0, 3.0, 4.0]}
    first = values(expr, [{"form": 1, "q": 1, "cost": 9}])
    assert first != values(expr, [{"form": 1, "q": 1, "cost": 9}, {"form": 1, "q": 1, "cost": 400}])[:1]


def test_costs_can_be_measured_in_other_ways():
    raw = router_r1(C("form"), C("q"), C("cost"), alpha=1.0, measure="raw")
    assert values(raw, [{"form": 1, "q": 1, "cost": c} for c in (0, 5, 10)]) == pytest.approx([1, 0.5, 0])
    logged = router_r1(C("form"), C("q"), C("cost"), alpha=1.0, measure="log")
    assert values(logged, [{"form": 1, "q": 1, "cost": c} for c in (0, 100)]) == pytest.approx([1, 0])
    with pytest.raises(ValueError, match="sqrt, log, raw"):
        router_r1(C("form"), C("q"), C("cost"), measure="square")


# SCOPE-RL.

SUB = C("sub", axis="sub")


def test_the_longest_right_prefix_is_paid():
    rows = [{"sub": [1, 1, 0, 1], "ok": 1}, {"sub": [1] * 4, "ok": 1}, {"sub": [1] * 4, "ok": 0}, {"sub": [], "ok": 1}]
    assert values(scope_rl(SUB, C("ok")), rows) == [0.25, 1.0, 0.5, 1.0]


def test_an_unknown_behind_the_first_failure_does_not_matter():
    rows = [{"sub": [1, 0, None, 1], "ok": None}, {"sub": [1, None, 1], "ok": 1}]
    assert values(scope_rl(SUB, C("ok").within(0, 1)), rows) == [0.125, None]


def test_groups_below_the_threshold_are_scaffolded():
    rows = [{"prompt": p, "ok": ok} for p, ok in (("a", 1), ("a", 0), ("b", 0), ("b", 0))]
    assert values(needs_scaffold(C("ok")), rows) == [0, 0, 1, 1]
    assert gradient_share(C("ok").score(rows).framed) == 0.5
    assert gradient_share(C("ok").score([{"ok": None}]).framed) is None


def test_the_quality_of_a_right_solution():
    labels = [0] * 6 + [1] * 2 + [2, 3]
    expr = process_quality(C("ok"), C("label", axis="step"))
    rows = [{"ok": 1, "label": labels}, {"ok": 0, "label": []}, {"ok": 1, "label": []}]
    assert values(expr, rows) == pytest.approx([0.393091, 0, 0], abs=5e-7)
    assert pytest.approx(0.81225) == 0.9 * 0.95 * 0.95
    assert 1 / (1 + 0.1 * math.log(11)) == pytest.approx(0.806589, abs=5e-7)


def test_a_finer_splitting_of_the_same_solution_scores_differently():
    expr = process_quality(C("ok"), C("label", axis="step"))
    coarse, fine = values(expr, [{"ok": 1, "label": [0, 1]}, {"ok": 1, "label": [0, 0, 1, 1]}])
    assert coarse > fine
    with pytest.raises(ValueError, match="four penalties"):
        process_quality(C("ok"), C("label", axis="step"), penalties=(1.0, 0, 0, 0))


# ADMIRE.

HITS = C("hit", axis="step")


def trip(length, hits, ok, k):
    return {"hit": [float(t + 1 in hits) for t in range(length)], "ok": ok, "k": k}


def test_failures_get_a_floor_and_successes_only_their_hits():
    expr = admire(C("ok"), HITS, C("k"))
    failed = values(expr, [trip(10, (3, 7), 0, 4)])
    assert failed == pytest.approx([0.6 if t in (3, 7) else 0.1 for t in range(1, 11)])
    won = values(expr, [trip(10, (3, 7), 1, 4)])
    assert won == pytest.approx([0.5 if t in (3, 7) else 1.0 if t == 10 else 0.0 for t in range(1, 11)])


def test_without_milestones_only_the_outcome_counts_and_the_term_can_be_annealed():
    expr = admire(C("ok"), HITS, C("k"), C("step"), over=100)
    assert values(expr, [{**trip(3, (1,), 1, 0), "step": 0}]) == [0, 0, 1]
    assert values(expr, [{**trip(3, (1,), 0, 2), "step": 50}]) == pytest.approx([0.3, 0.05, 0.05])
    assert values(expr, [{**trip(3, (1,), 0, 2), "step": 500}]) == [0, 0, 0]


def test_advantages_are_standardised_over_all_steps_of_the_group():
    rows = [{"prompt": "p", **trip(2, (), 1, 1)}, {"prompt": "p", **trip(1, (), 0, 1)}]
    reward = admire(C("ok"), HITS, C("k"))
    got = values(admire_advantage(reward), rows)
    steps = np.array([0.0, 1.0, 0.0])
    assert got == pytest.approx(((steps - steps.mean()) / (steps.std() + 1e-6)).tolist())
    equal = [{"prompt": "p", **trip(2, (), 0, 1)}] * 2
    assert values(admire_advantage(reward), equal) == [0.0] * 4


def reached(*table, threshold=0.75):
    flat = [x for row in table for x in row]
    rows = [{"sim": flat, "step": [0.0] * len(table)}]
    return values(milestone_hits(C("sim", axis="match"), C("step", axis="step"), threshold=threshold), rows)


def test_a_pointer_walks_through_the_milestones_in_order():
    assert reached([0.9, 0.9], [0.1, 0.9], [0.9, 0.9]) == [1, 1, 0]  # the last can't be hit twice
    assert reached([0.1, 0.9], [0.9, 0.1], [0.1, 0.75]) == [0, 1, 1]  # a later one out of turn is not a hit
    assert reached([0.9, 0.9], [0.9, 0.1]) == [1, 0]  # the same description again
    assert reached([], []) == [0, 0]


def test_an_unknown_similarity_that_the_pointer_meets_leaves_the_rest_unknown():
    assert reached([None, 0.9], [0.9, 0.9]) == [None, None]
    assert reached([0.9, None], [None, 0.9]) == [1, 1]  # neither is met


def test_rollouts_of_different_length_do_not_mix():
    rows = [{"sim": [0.9, 0.1, 0.2, 0.8], "step": [0, 0]}, {"sim": [0.8], "step": [0]}, {"sim": [], "step": []}]
    expr = milestone_hits(C("sim", axis="match"), C("step", axis="step"))
    assert values(expr, rows) == [1, 1, 1]
    assert values(expr, [{"sim": [0.9, 0.9, 0.9], "step": [0, 0]}]) == [None, None]
