"""Methods over rubrics, paths, milestones and likelihoods: worked examples, recomputed, and every trap named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon.methods.admire import admire, admire_advantage, milestone_hits
from guerdon.methods.likelihood_family import likelihood_advantage, likelihood_reward
from guerdon.methods.ppr import ppr, ppr_tokens
from guerdon.methods.router_r1 import router_r1
from guerdon.methods.rubrics_as_rewards import rubric_rating, rubrics_as_rewards
from guerdon.methods.salmon import principle_label, principle_score, salmon
from guerdon.methods.scope_rl import gradient_share, needs_scaffold, process_quality, scope_rl
from guerdon.methods.search_p1 import path_score, search_p1
from guerdon.methods.self_aligned import perplexity, self_aligned
from guerdon.methods.urpo import referee_agreement, urpo
from shape_strategies import UNIT, given

C = gd.column


def values(expr, rows, **more):
    return [None if math.isnan(v) else float(v) for v in expr.score(rows, **more).values]


def group(**columns):
    """The rollouts of one prompt."""
    return [{"prompt": "p", **dict(zip(columns, row, strict=True))} for row in zip(*columns.values(), strict=True)]


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


# Likelihoods.

LOGP = C("lp", axis="answer")
P = [0.5, 0.25, 0.8]


def logs(*ps):
    return group(lp=[[math.log(x) for x in p] for p in ps])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("prob", 0.1), ("avgprob", 0.516667), ("logprob", -2.302585), ("avglogprob", -0.767528), ("inv_ppl", 0.464159)],
)
def test_each_design_at_the_worked_example(kind, expected):
    assert values(likelihood_reward(LOGP, kind=kind), logs(P)) == pytest.approx([expected], abs=5e-7)


def test_the_group_form_is_the_log_of_the_mean_probability():
    rows = logs([0.1], [0.3])
    assert values(likelihood_reward(LOGP, kind="jepo"), rows) == pytest.approx([-1.609438] * 2, abs=5e-7)
    assert values(likelihood_advantage(LOGP, kind="jepo"), rows) == [0.0, 0.0]


def test_the_advantage_leaves_each_chain_out():
    rows = group(lp=[[-2.0], [-4.0], [-3.0]])
    assert values(likelihood_advantage(LOGP), rows) == [1.5, -1.5, 0.0]
    assert values(likelihood_advantage(LOGP), [{"lp": [-2.0]}]) == [None]
    assert values(likelihood_reward(LOGP), [{"lp": []}]) == [None]


def test_a_probability_of_many_tokens_vanishes_and_its_logarithm_does_not():
    rows = logs([0.5] * 400)
    assert np.float32(values(likelihood_reward(LOGP, kind="prob"), rows)[0]) == 0.0
    assert values(likelihood_reward(LOGP), rows) == pytest.approx([-277.2589], abs=5e-5)
    far = group(lp=[[-2000.0], [-2001.0]])
    assert values(likelihood_reward(LOGP, kind="prob"), far) == [0.0, 0.0]
    assert values(likelihood_reward(LOGP, kind="jepo"), far)[0] == pytest.approx(
        -2000 + math.log((1 + math.exp(-1)) / 2)
    )
    with pytest.raises(ValueError, match="choose one of"):
        likelihood_reward(LOGP, kind="ppl")


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


# Self-aligned.


def test_the_relative_drop_in_perplexity_is_added_with_a_small_weight():
    rows = [{"ok": 1, "alone": 2.0, "given": 1.5}, {"ok": 1, "alone": 1.5, "given": 4.0}]
    expr = self_aligned(C("ok"), C("alone"), C("given"))
    assert values(expr, rows) == pytest.approx([1.05, 0.8])
    plain = self_aligned(C("ok"), C("alone"), C("given"), form="difference")
    assert values(plain, rows[:1]) == pytest.approx([1.1])
    fading = self_aligned(C("ok"), C("alone"), C("given"), C("step"), over=100)
    assert values(fading, [{**rows[0], "step": 50}]) == pytest.approx([1.025])


def test_perplexity_of_very_improbable_text_is_unknown_not_infinite():
    rows = [{"lp": [math.log(0.5), math.log(0.125)]}, {"lp": [-1e6]}, {"lp": []}]
    assert values(perplexity(C("lp", axis="answer")), rows) == pytest.approx([4.0, None, None])


def test_a_wrong_but_specific_answer_gains_less_than_a_right_one():
    rows = [{"ok": 0, "alone": 100.0, "given": 1.0}, {"ok": 1, "alone": 1.0, "given": 100.0}]
    wrong, right = values(self_aligned(C("ok"), C("alone"), C("given")), rows)
    assert wrong < right


# SALMON.

SALMON = salmon(C("rm"), C("n"), C("cut"))


def test_the_length_bonus_is_capped_and_an_unfinished_answer_pays():
    rows = [
        {"rm": 0.7, "n": 0.9 * 1024, "cut": 0},
        {"rm": 0.7, "n": 0.3 * 1024, "cut": 0},
        {"rm": 0.7, "n": 1e4, "cut": 1},
    ]
    assert values(SALMON, rows) == pytest.approx([4.7, 2.2, -1.3])
    assert values(salmon(C("rm"), C("n"), C("cut"), scale=10), rows[:1]) == pytest.approx([47.0])


def test_the_bonus_can_outweigh_the_model():
    short, long = values(SALMON, [{"rm": 2.0, "n": 10, "cut": 0}, {"rm": -1.5, "n": 2000, "cut": 0}])
    assert long > short


D1, D2, VAR = (C(n, axis="principle") for n in ("d1", "d2", "var"))


def test_a_principle_counts_only_where_both_orders_agree_and_by_its_variance():
    rows = [{"d1": [1.0, 1.0, -2.0], "d2": [-0.2, 3.0, -4.0], "var": [1, 4, 2]}]
    assert values(principle_score(D1, D2, VAR), rows) == [0.0, 0.5, -1.5]
    assert values(principle_score(D1, D2, VAR), [{"d1": [1], "d2": [1], "var": [0]}]) == [None]


def test_the_label_is_that_of_the_clearest_principle_turned_where_it_was_negated():
    scores, negated = C("s", axis="principle"), C("neg", axis="principle")
    rows = [{"s": [0.4, -1.5, 0.0], "neg": [0, 1, 0]}, {"s": [0.4, -1.5, 0.0], "neg": [0, 0, 0]}]
    assert values(principle_label(scores, negated), rows) == [1, -1]
    ties = [{"s": [1.0, -1.0]}, {"s": [0.0, 0.0]}, {"s": []}, {"s": [None, 1.0]}]
    assert values(principle_label(scores), ties) == [0, 0, None, None]


# URPO.

SAID, GOLD = C("said", axis="answer"), C("gold", axis="answer")


def test_a_referee_is_paid_for_the_order_it_gives():
    rows = [
        {"said": [8, 6, 7, 3], "gold": [4, 3, 2, 1]},
        {"said": [1, 2], "gold": [1, 2]},
        {"said": [2, 1], "gold": [1, 2]},
    ]
    assert values(referee_agreement(SAID, GOLD), rows) == pytest.approx([0.833333, 1, 0], abs=5e-7)


def test_a_referee_that_scores_all_alike_earns_half_unless_ties_count_against_it():
    rows = [{"said": [5, 5, 5], "gold": [3, 2, 1]}, {"said": [5, 5, 5], "gold": [1, 1, 1]}]
    assert values(referee_agreement(SAID, GOLD), rows) == [0.5, 0.5]
    assert values(referee_agreement(SAID, GOLD, ties="discordant"), rows) == [0.0, 0.5]


def test_an_unparsable_referee_is_unknown_unless_its_format_is_given():
    rows = [{"said": [None, 1], "gold": [1, 2], "parsed": 0}, {"said": [1], "gold": [1], "parsed": 1}]
    assert values(referee_agreement(SAID, GOLD), rows) == [None, None]
    assert values(referee_agreement(SAID, GOLD, C("parsed")), rows) == [0.0, None]


def test_each_kind_of_record_has_its_own_reward():
    expr = urpo(C("kind"), C("ok"), C("agree"), C("own"))
    rows = [{"kind": 0, "ok": 1}, {"kind": 1, "agree": 0.75}, {"kind": 2, "own": 7}]
    assert values(expr, rows) == [1, 0.75, 7]


def test_equal_self_scores_give_no_advantage_and_no_nan():
    rows = group(kind=[2] * 4, own=[7] * 4)
    reward = urpo(C("kind"), C("ok"), C("agree"), C("own"))
    assert values(gd.credit.group_relative(reward, eps=1e-6), rows) == [0.0] * 4
