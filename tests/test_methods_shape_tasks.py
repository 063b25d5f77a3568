"""Methods made for a kind of task - images, questions, driving, safety, clicks - with worked examples and traps."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon.methods.alphaalign import alphaalign
from guerdon.methods.arena_t2i import arena_t2i, checklist
from guerdon.methods.carl import carl
from guerdon.methods.faithrl import faithrl, modulated, truthful_helpfulness
from guerdon.methods.firm import firm, firm_generation, firm_guarded, firm_quality, likert
from guerdon.methods.sweet_spot import click_closeness, ssl
from method_rows import group, values
from shape_strategies import UNIT, given

C = gd.column


# Arena-T2I Hard.


def test_attributes_of_a_missing_object_earn_nothing():
    answers, chain = C("yes", axis="question"), [[], [0], [1], [2]]
    row = [{"yes": [1, 1, 0, 1]}]
    assert values(checklist(answers, parents=chain), row) == [0.5]
    assert values(answers.mean(), row) == [0.75]
    weighted = checklist(answers, parents=chain, weights=C("w", axis="question"))
    assert values(weighted, [{"yes": [1, 1, 0, 1], "w": [3, 1, 1, 1]}]) == pytest.approx([4 / 6])


def test_a_generated_graph_with_a_cycle_is_unknown_not_an_endless_loop():
    edges = checklist(C("yes", axis="question"), C("child", axis="edge"), C("parent", axis="edge"))
    assert values(
        edges, [{"yes": [1, 1], "child": [0, 1], "parent": [1, 0]}, {"yes": [1], "child": [], "parent": []}]
    ) == [
        None,
        1.0,
    ]


def test_the_component_of_larger_variance_does_not_swallow_the_other():
    rows = group(faith=[1, 0.5, 0, 0.5], looks=[100, 102, 101, 101])
    sums = [0, 1.2247, -1.2247, 0]
    assert values(gd.shape.normalised_sum([C("faith"), C("looks")]), rows) == pytest.approx(sums, abs=1e-4)
    whitened = np.array(sums) / np.std(sums, ddof=1)
    assert values(arena_t2i(C("faith"), {"looks": C("looks")}), rows) == pytest.approx(whitened.tolist(), abs=1e-4)
    naive = gd.credit.group_relative(C("faith") + C("looks"), ddof=1, eps=1e-6)
    assert values(naive, rows) == pytest.approx([-0.7071, 1.4142, -0.7071, 0], abs=1e-4)


def test_a_component_without_spread_gives_zero_and_a_group_of_one_stays_out():
    rows = [*group(faith=[1, 0], looks=[5, 5]), {"prompt": "alone", "faith": 1, "looks": 9}]
    out = values(arena_t2i(C("faith"), {"looks": C("looks")}), rows)
    assert out == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5), None])


def test_whitening_couples_the_prompts_of_a_batch():
    one = group(faith=[1, 0], looks=[0, 0])
    other = [{"prompt": "q", "faith": f, "looks": k} for f, k in ((1, 3), (0, 1), (0, 2))]
    expr = arena_t2i(C("faith"), {"looks": C("looks")})
    assert values(expr, one)[0] != pytest.approx(values(expr, [*one, *other])[0])


def test_a_question_with_two_parents_needs_both_or_either():
    answers, graph, row = C("yes", axis="question"), [[], [], [0, 1]], [{"yes": [1, 0, 1]}]
    assert values(checklist(answers, parents=graph), row) == pytest.approx([1 / 3])
    assert values(checklist(answers, parents=graph, need="any"), row) == pytest.approx([2 / 3])


def test_a_missing_root_leaves_an_early_policy_without_signal():
    answers, deep = C("yes", axis="question"), [[], [0], [0], [0]]
    rows = group(yes=[[0, 1, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0]])
    assert values(gd.credit.group_relative(checklist(answers, parents=deep)), rows) == [0.0] * 3
    assert values(gd.credit.group_relative(answers.mean()), rows)[0] > 1


# FaithRL.

FAITH = faithrl(C("ok"), C("idk"), C("answerable"), base_correct=0.6, base_wrong=0.3)


def outcomes(*triples):
    return [{"prompt": "p", "ok": a, "idk": b, "answerable": c} for a, b, c in triples]


def test_the_base_model_starts_at_zero_and_abstaining_is_between():
    assert values(FAITH, outcomes((1, 0, 1), (0, 1, 1), (0, 0, 1))) == pytest.approx([0.3, 0, -0.6])
    assert pytest.approx(0.0) == 0.6 * 0.3 + 0.3 * -0.6  # E[R] of the base model
    assert values(FAITH, outcomes((0, 1, 0), (0, 0, 0), (1, 0, 0))) == pytest.approx([0.3, -0.6, -0.6])


def test_advantages_and_their_modulation():
    adv = gd.credit.group_relative(FAITH, ddof=1, eps=1e-6)
    rows = outcomes((1, 0, 1), (1, 0, 1), (0, 1, 1), (0, 0, 1))
    assert values(adv, rows) == pytest.approx([0.707105, 0.707105, 0, -1.41421], abs=2e-6)
    steps = modulated(C("a"), C("ok", axis="step"))
    rows = [{"a": 0.707105, "ok": [1, 0]}, {"a": -1.41421, "ok": [1, 0]}, {"a": 0.0, "ok": [1, 0]}]
    assert values(steps, rows) == pytest.approx([0.707105, 0.530329, -1.060658, -1.41421, 0, 0], abs=1e-6)
    flipped = modulated(C("a"), C("ok", axis="step"), share=-1)
    assert values(flipped, rows[:1]) == pytest.approx([0.707105, -0.707105])


def test_rates_of_zero_are_lifted_and_impossible_ones_refused():
    sure = faithrl(C("ok"), C("idk"), base_correct=0.0, base_wrong=0.0)
    assert values(sure, outcomes((1, 0, 1), (0, 0, 1))) == [0.001, -0.001]
    assert truthful_helpfulness(0.65, 0.2, base_correct=0.6, base_wrong=0.3) == pytest.approx(0.25)
    assert truthful_helpfulness(0.65, 0.2, base_correct=0.6, base_wrong=0.0) is None
    with pytest.raises(ValueError, match="at most 1"):
        faithrl(C("ok"), C("idk"), base_correct=0.8, base_wrong=0.3)


def test_a_verdict_that_is_missing_is_unknown():
    assert values(FAITH, outcomes((None, 0, 1), (None, 1, 1), (1, None, 1))) == [None, 0, None]


def test_the_base_models_own_mix_of_outcomes_earns_nothing():
    rows = outcomes(*[(1, 0, 1)] * 6, *[(0, 0, 1)] * 3, (0, 1, 1))
    assert sum(values(FAITH, rows)) == pytest.approx(0.0)


def test_the_answer_keeps_its_whole_advantage():
    steps = modulated(C("a"), C("ok", axis="step"), C("end", axis="step"))
    rows = [{"a": a, "ok": [1, 0, 0], "end": [0, 0, 1]} for a in (1.0, -1.0)]
    assert values(steps, rows) == pytest.approx([1.0, 0.75, 1.0, -0.75, -1.0, -1.0])
    assert values(modulated(C("a"), C("ok", axis="step")), [{"a": 1.0, "ok": [None, 1]}]) == [None, 1.0]


# FIRM.


def test_a_bonus_can_only_multiply_what_was_earned():
    assert values(firm(C("e"), C("c")), [{"e": 0.8, "c": 0.6}]) == pytest.approx([0.672])
    assert values(firm_generation(C("e"), C("c")), [{"e": 0.75, "c": 0.5}]) == pytest.approx([0.525])


def test_doing_nothing_perfectly_does_not_pay():
    idle = [{"e": 0.2, "c": 1.0}]
    assert values(firm(C("e"), C("c")), idle) == pytest.approx([0.2])
    assert values(C("e") * 0.5 + C("c") * 0.5, idle) == pytest.approx([0.6])


def test_a_missing_quality_score_follows_the_stated_policy():
    rows = [{"e": 0.75, "c": None}]
    assert values(firm_generation(C("e"), C("c")), rows) == [0.75]
    assert values(firm_generation(C("e"), C("c"), missing_quality="unknown"), rows) == [None]
    assert values(firm(C("e"), C("c")), rows) == [None]


def test_ratings_have_one_scale_and_none_outside_it():
    assert values(likert(C("s")), [{"s": s} for s in (1, 3, 5, 6)]) == [0, 0.5, 1, None]
    parts = firm_quality((C("a"), C("b"), C("c")), C("sum"))
    rows = [{"a": 5, "b": 2, "c": 4, "sum": 15}, {"a": 5, "b": None, "c": 4, "sum": 9}]
    assert values(parts, rows) == [0.25, 0.5]
    assert values(firm_quality(total=C("sum")), [{"sum": 3}]) == [0]


def test_the_released_scale_of_edits_has_another_floor():
    rows = [{"s": 1, "c": 1.0}]
    assert values(firm(likert(C("s")), C("c")), rows) == [0.0]
    assert values(firm(C("s") / 5.0, C("c")), rows) == pytest.approx([0.2])


def test_the_guarded_sum_drops_consistency_at_the_threshold():
    rows = [{"e": 2, "c": 5}, {"e": 3, "c": 5}]
    assert values(firm_guarded(C("e"), C("c")), rows) == pytest.approx([0.125, 0.75])


def test_a_base_of_zero_takes_the_bonus_away_and_its_differences_with_it():
    assert values(firm(C("e"), C("c")), [{"e": 0.0, "c": c} for c in (0.0, 0.5, 1.0)]) == [0.0] * 3


# CaRL.

DONE, HIT = C("done", axis="step"), C("hit", axis="step")


def test_progress_times_penalties_and_a_terminal_one():
    expr = carl(DONE, [C("speed", axis="step"), C("lane", axis="step")], HIT)
    rows = [{"done": [0.5, 0.5, 9], "speed": [0.8, 1, 1], "lane": [0.9, 1, 1], "hit": [0, 1, 0]}]
    assert values(expr, rows) == pytest.approx([0.36, -1.0, 0.0])


@given(st.lists(st.integers(0, 100), min_size=1, max_size=12))
def test_an_episode_earns_its_route_once_whatever_the_path(path):
    earned = values(carl(DONE), [{"done": [*path, 100]}])
    assert sum(earned) == pytest.approx(100)
    assert min(earned) >= 0


def test_waiting_and_going_back_and_forth_earn_nothing():
    assert values(carl(DONE), [{"done": [10, 10, 0, 10, 20]}]) == [10, 0, 0, 0, 10]


def test_a_factor_of_zero_kills_the_signal():
    assert values(carl(DONE, [C("f", axis="step")]), [{"done": [50, 100], "f": [0, 0]}]) == [0, 0]


def test_only_a_discount_urges():
    quick, slow = {"done": [50, 100]}, {"done": [50, 50, 50, 50, 100]}
    assert values(carl(DONE).sum(), [quick, slow]) == [100, 100]
    first = values(gd.credit.returns(carl(DONE), gamma=0.9), [quick, slow])
    assert first[0] > first[2]


def test_an_unknown_reading_is_unknown_and_leaves_the_rest_of_the_route():
    assert values(carl(DONE), [{"done": [10, None, 30]}]) == [10, None, 20]
    assert values(carl(DONE, (), HIT), [{"done": [10, 20, 30], "hit": [0, None, 0]}]) == [10, None, None]


# AlphaAlign.

ALIGN = alphaalign(C("form"), C("refused"), C("harmful"), C("rm"))


def test_helpfulness_counts_above_the_group_mean_only():
    rows = group(form=[1] * 4, refused=[0] * 4, harmful=[0] * 4, rm=[1, 2, 3, 6])
    assert values(ALIGN, rows) == pytest.approx([1, 1, 1, 2.38873], abs=5e-6)
    z = values(gd.shape.zscore(C("rm"), ddof=1), rows)
    assert z == pytest.approx([-0.92582, -0.46291, 0, 1.38873], abs=5e-6)
    assert values(gd.shape.zscore(C("rm")), rows)[3] == pytest.approx(1.603567, abs=5e-7)


def test_refusing_is_right_for_harmful_prompts_and_wrong_for_benign_ones():
    rows = [
        {"prompt": p, "form": 1, "refused": r, "harmful": h, "rm": rm}
        for p, r, h, rm in (("a", 1, 0, 9), ("a", 0, 0, 1), ("b", 1, 1, None), ("b", 0, 1, None))
    ]
    assert values(ALIGN, rows) == [0, 1, 2, 1]


def test_equal_scores_or_one_response_give_no_helpfulness_not_nan():
    assert values(ALIGN, group(form=[1, 1], refused=[0, 0], harmful=[0, 0], rm=[3, 3])) == [1, 1]
    assert values(ALIGN, group(form=[1], refused=[0], harmful=[0], rm=[3])) == [1]
    assert values(ALIGN, group(form=[1, 1], refused=[0, 0], harmful=[0, 0], rm=[3, None])) == [1, None]


def test_refusals_take_part_in_the_mean():
    rows = group(form=[1] * 3, refused=[1, 0, 0], harmful=[0] * 3, rm=[-100, 1, 2])
    assert values(ALIGN, rows)[1] > 1  # above a mean that the refusal pulled down


def test_the_reward_model_is_asked_about_benign_prompts_only():
    seen = []

    @gd.signal(key="tests.rm", version=1)
    def rm(rollout):
        seen.append(rollout.prompt)
        return 1.0

    rows = [{"prompt": p, "form": 1, "refused": 0, "harmful": h} for p, h in (("bad", 1), ("good", 0), ("good", 0))]
    rows = [{**r, "id": str(i)} for i, r in enumerate(rows)]
    alphaalign(C("form"), C("refused"), C("harmful"), rm).score(rows)
    assert set(seen) == {"good"}


def test_a_wrong_label_of_the_prompt_inverts_the_signal():
    rows = [{"prompt": "p", "form": 1, "refused": r, "harmful": h, "rm": 1} for h in (0, 1) for r in (0, 1)]
    complied, refused, harm_done, refused_harm = values(ALIGN, rows)
    assert complied > refused
    assert harm_done < refused_harm


# Sweet Spot Learning.


def test_closeness_is_tiered():
    s = gd.shape.gaussian(C("d"), 20)
    rows = [{"ok": 0, "d": d} for d in (0, 10, 20, 40, 80)]
    assert values(s, rows) == pytest.approx([1, 0.882497, 0.606531, 0.135335, 0.000335], abs=5e-7)
    assert values(ssl(C("ok"), s, alpha=0.5), rows) == [0.5, 0.5, 0.375, 0.125, 0.125]
    assert values(ssl(C("ok"), s, alpha=0.5, floor=0.05), rows)[-1] == 0.0


def test_steps_are_averaged_before_the_tier_and_rounding_does_not_lift_it():
    expr = ssl(C("ok"), C("s", axis="step"), alpha=0.5)
    rows = [{"ok": 0, "s": [0.2, 0.4, 0.3, 0.1]}, {"ok": 1, "s": []}]
    assert values(expr, rows) == [0.125, None]


@given(st.lists(st.tuples(st.booleans(), UNIT), min_size=2, max_size=6), st.sampled_from([0.1, 0.5, 0.99]))
def test_no_near_miss_outranks_a_success(members, alpha):
    got = values(ssl(C("ok"), C("s"), alpha=alpha), [{"ok": float(ok), "s": s} for ok, s in members])
    right = [v for v, (ok, _) in zip(got, members, strict=True) if ok]
    wrong = [v for v, (ok, _) in zip(got, members, strict=True) if not ok]
    assert not right or not wrong or min(right) > max(wrong)
    tiers = sorted(zip([s for _, s in members], [v - ok for v, (ok, _) in zip(got, members, strict=True)], strict=True))
    assert all(a[1] <= b[1] + 1e-12 for a, b in itertools.pairwise(tiers))


def test_a_share_that_could_outrank_a_success_is_refused():
    with pytest.raises(ValueError, match="near miss"):
        ssl(C("ok"), C("s"), alpha=1.0)


def test_clicks_are_measured_in_units_of_the_box():
    columns = [C(n) for n in ("x", "y", "cx", "cy", "w", "h")]
    row = {"x": 20, "y": 0, "cx": 0, "cy": 0, "w": 20, "h": 10}
    assert values(click_closeness(*columns), [row]) == pytest.approx([0.606531], abs=5e-7)


def test_cells_that_the_task_gives_away_are_left_out_of_the_share():
    match, free = C("match", axis="cell"), C("free", axis="cell")
    rows = [{"ok": 0, "match": [1, 1, 1, 0, 0], "free": [0, 0, 0, 1, 1]}]
    copied = ssl(C("ok"), match.mean())
    earned = ssl(C("ok"), gd.shape.only(match, where=free).mean(missing="skip"))
    assert values(copied, rows) == [0.375]
    assert values(earned, rows) == [0.0]


def test_a_box_without_a_side_has_no_closeness():
    columns = [C(n) for n in ("x", "y", "cx", "cy", "w", "h")]
    row = {"x": 20, "y": 0, "cx": 0, "cy": 0, "w": 0, "h": 10}
    assert values(click_closeness(*columns), [row]) == [None]
