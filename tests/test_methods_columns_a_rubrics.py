"""Rubric methods over columns: the catalogue's worked examples as literals, and every trap named there."""

from __future__ import annotations

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.audio_rubrics import audio_rubrics, evolving_rubric
from guerdon.methods.metacognition import metacognition
from guerdon.methods.openrs import CORE, FATAL, HIGHLIGHT, IMPORTANT, both_orders, comparison_score, openrs
from guerdon.methods.rlcer import rlcer, rlcer_writer, valid_criteria
from guerdon.methods.rlr3 import additional_share, rlr3, rlr3_advantage
from method_rows import group, values

C = gd.column
OK, MET, W = C("ok"), C("met", axis="criterion"), C("w", axis="criterion")


# ---- metacognition as reward ----

PARTS = [C(n) for n in ("k", "r", "n", "a", "s")]


def judged(k=3, r=1, n=5, a=0.8, s=0.5, ok=1, **more):
    return {"prompt": "p", "k": k, "r": r, "n": n, "a": a, "s": s, "ok": ok, **more}


def test_knowledge_regulation_and_outcome_add_up():
    assert values((PARTS[0] + PARTS[1]) / PARTS[2], [judged()]) == [0.8]
    assert values(metacognition(*PARTS, OK), [judged()]) == pytest.approx([0.8 + 0.68 + 1.0])


def test_no_gold_units_or_a_unit_counted_twice_is_unknown_not_zero():
    out = metacognition(*PARTS, OK).score([judged(k=0, r=0, n=0), judged(k=4, r=2), judged(s=None)]).scores
    assert not out.known.any()
    assert out.reason(0) == "division by zero"


def test_listing_facts_is_free_until_precision_counts():
    few, many = judged(k=3, listed=3), judged(k=5, r=0, listed=60)
    assert values(metacognition(*PARTS, OK), [few, many])[1] > values(metacognition(*PARTS, OK), [few, many])[0]
    precise = values(metacognition(*PARTS, OK, listed=C("listed")), [few, many])
    assert precise == pytest.approx([8 / 9 + 0.68 + 1, 10 / 65 + 0.68 + 1])
    assert values(metacognition(*PARTS, OK, listed=C("listed")), [judged(k=5, r=0, listed=4)]) == [None]


def test_the_process_outbids_correctness_unless_the_outcome_weighs_more():
    rows = [judged(k=5, r=0, a=1, s=0, ok=0), judged(k=0, r=0, a=0, s=0, ok=1)]
    assert values(metacognition(*PARTS, OK), rows) == [2.0, 1.0]
    wrong, right = values(metacognition(*PARTS, OK, outcome_weight=2.5), rows)
    assert right > wrong


def test_the_range_of_the_whole_travels():
    assert str(metacognition(*PARTS, OK).range) == "[0, 3]"


# ---- AudioRubrics ----

NEG = C("neg", axis="criterion")
MATRIX = {
    "met": [[1, 1, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]],
    "neg": [[0, 0, 1]] * 4,
    "w": [[0.0, 0.6, 0.4]] * 4,
}
GOOD = gd.when(NEG, 1.0 - MET, MET)
AUDIO = audio_rubrics(MET, W, C("out"), C("think"), negative=NEG, static=C("static"))


def test_flat_criteria_are_dropped_and_negative_ones_flipped():
    rows = group(**MATRIX)
    assert GOOD.score(rows).framed.values.reshape(4, 3).T.tolist() == [[1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 0]]
    spread = gd.shape.label_statistic(GOOD, "std").score(rows).framed.values[:3]
    assert spread == pytest.approx([0, 0.5, 0.433013], abs=5e-7)
    assert gd.shape.contrasting(GOOD).score(rows).framed.values[:3].tolist() == [0, 1, 1]
    assert values(evolving_rubric(GOOD, W), rows) == pytest.approx([1.0, 0.4, 1.0, 0.0])


def test_reward_with_the_linear_length_term():
    rows = group(**MATRIX, out=[1.0] * 4, think=[64, 320, 64, 64])
    assert values(1.0 - C("think") / 256, rows)[:2] == [0.75, -0.25]
    assert values(AUDIO, rows)[0] == pytest.approx(1.6125)
    assert values(AUDIO, rows)[1] == pytest.approx(1 + 0.5 * 0.4 - 0.15 * 0.25)


def test_ties_in_spread_keep_the_first_criteria():
    rows = group(met=[[1, 0, 1, 1], [0, 1, 1, 0]])
    kept = gd.shape.contrasting(MET, top=2).score(rows).framed.values
    assert kept.tolist() == [1, 1, 0, 0] * 2


@pytest.mark.parametrize("w", [[None] * 3, [0.0] * 3, [-1.0, -2.0, -1.0]])
def test_without_usable_weights_the_kept_criteria_count_equally(w):
    rows = group(**{**MATRIX, "w": [w] * 4})
    assert values(evolving_rubric(GOOD, W), rows) == [1.0, 0.5, 1.0, 0.0]


def test_a_negative_weight_counts_as_zero_and_the_others_are_rescaled():
    rows = group(**{**MATRIX, "w": [[5.0, 0.5, -3.0]] * 4})
    assert values(evolving_rubric(GOOD, W), rows) == [1.0, 0.0, 1.0, 0.0]


def test_a_failed_verdict_sends_the_whole_prompt_to_the_static_rubric():
    broken = {**MATRIX, "met": [[1, None, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]]}
    rows = group(**broken, out=[1.0] * 4, think=[0] * 4, static=[0.2, 0.4, 0.6, 0.8])
    assert values(AUDIO, rows) == pytest.approx([1.15 + 0.5 * s for s in (0.2, 0.4, 0.6, 0.8)])


def test_no_contrast_falls_back_or_stays_unknown_without_a_static_rubric():
    rows = group(met=[[1, 1]] * 2, w=[[1, 1]] * 2, out=[1.0] * 2, think=[0] * 2)
    bare = audio_rubrics(MET, W, C("out"), C("think"))
    assert values(bare, rows) == [None, None]
    assert values(audio_rubrics(MET, W, C("out"), C("think"), static=0.5), rows) == pytest.approx([1.4, 1.4])


def test_a_kept_criterion_can_run_against_correctness_and_its_correlation_shows_it():
    rows = group(**MATRIX, ok=[0, 1, 0, 1])
    against = gd.shape.label_correlation(GOOD, OK).score(rows).framed.values[:3]
    assert against[1] == pytest.approx(-1.0)


# ---- OpenRS ----

PAIR = comparison_score(C("kind", axis="criterion"), C("winner", axis="criterion"), C("size", axis="criterion"))


def pair(*criteria):
    kind, winner, size = zip(*criteria, strict=True) if criteria else ((), (), ())
    return {"kind": list(kind), "winner": list(winner), "size": list(size)}


THREE = [(CORE, 1, 2), (IMPORTANT, -1, 1), (HIGHLIGHT, 1, 1)]


def test_the_weighted_mean_and_the_veto():
    assert values(PAIR, [pair(*THREE), pair(*THREE, (FATAL, -1, 3))]) == pytest.approx([1.125, -3.0], abs=1e-6)
    assert values(PAIR, [pair(*THREE)])[0] == pytest.approx(9 / (8 + 1e-6), rel=1e-12)


def test_both_orders_must_agree():
    rows = [{"f": 1.1, "b": -0.9}, {"f": 1.1, "b": 0.2}, {"f": -1.0, "b": 0.4}, {"f": None, "b": 0.4}]
    assert values(both_orders(C("f"), C("b")), rows) == [1.0, 0.0, -1.0, None]


def test_the_rule_is_asymmetric_at_zero():
    assert values(both_orders(C("f"), C("b")), [{"f": 0.3, "b": 0.0}, {"f": 0.0, "b": -0.3}]) == [1.0, 0.0]


def test_zero_criteria_stay_out_of_the_weights_and_inflate_the_score():
    assert values(PAIR, [pair((CORE, 1, 0), (HIGHLIGHT, 1, 2))])[0] == pytest.approx(2.0, abs=1e-5)
    dilute = values(PAIR, [pair((CORE, 0, 1), (HIGHLIGHT, 1, 2))])[0]
    assert dilute == pytest.approx(2 / 6, abs=1e-6)  # no winner adds nothing, and its weight


def test_a_fatal_criterion_without_winner_still_vetoes_and_unknown_kinds_are_ignored():
    assert values(PAIR, [pair(*THREE, (FATAL, 0, 1)), pair((9, -1, 5), (HIGHLIGHT, 1, 1)), pair()]) == [
        0.0, pytest.approx(1.0, abs=1e-5), 0.0,
    ]  # fmt: skip


def test_small_scores_count_as_nothing():
    close = comparison_score(*[C(n, axis="criterion") for n in ("kind", "winner", "size")], least=1.2)
    assert values(close, [pair(*THREE)]) == [0.0]


def test_an_unparsed_criterion_is_unknown_not_a_tie():
    row = pair(*THREE)
    row["winner"][1] = None
    assert values(PAIR, [row]) == [None]


def test_round_robin_over_the_group_and_failed_checks():
    f, b = C("f", axis="opponent"), C("b", axis="opponent")
    rows = group(f=[[0, 1, 1], [-1, 0, None], [-1, 1, 0]], b=[[0, -1, -1], [1, 0, 0.5], [1, 0.5, 0]], passed=[1, 1, 0])
    assert values(openrs(f, b), rows) == [1.0, -1.0, -0.5]
    assert values(openrs(f, b, C("passed"), failed=-1.0), rows) == [1.0, -1.0, -1.0]
    assert str(openrs(f, b, C("passed"), failed=-1.0).range) == "[-1, 1]"


# ---- RLR^3 ----

ESS = C("ess", axis="criterion")


def hits(essential, additional):
    return {"met": essential + additional, "ess": [1] * len(essential) + [0] * len(additional)}


def test_additional_credit_counts_only_with_all_essential_ones():
    rows = [hits([1, 1, 0], [1, 1]), hits([1, 1, 1], [1, 0])]
    assert values(rlr3(MET, ESS), rows) == pytest.approx([2 / 3, 1.25])
    assert str(rlr3(MET, ESS).range) == "[0, 1.5]"


def test_the_decoupled_advantage():
    rows = [{"prompt": "p", **hits(e, a)} for e, a in
            (([1, 1, 0], [1, 1]), ([1, 1, 1], [1, 0]), ([1, 1, 1], [1, 1]), ([1, 1, 1], [0, 0]))]  # fmt: skip
    assert values(rlr3(MET, ESS), rows) == pytest.approx([0.666667, 1.25, 1.5, 1.0], abs=5e-7)
    got = values(rlr3_advantage(MET, ESS), rows)
    assert got == pytest.approx([-1.732039, 0.577346, 1.189717, -0.035025], abs=1e-6)
    assert got[3] < 0  # meets everything essential, and is still below the mean


def test_lone_complete_rollouts_and_groups_without_spread_get_no_additional_term():
    rows = [{"prompt": "p", **hits(e, a)} for e, a in (([1], [1]), ([0], [1]))]
    assert values(rlr3_advantage(MET, ESS), rows) == pytest.approx([1, -1], abs=1e-5)
    same = [{"prompt": "p", **hits([1], [1])}] * 2
    assert values(rlr3_advantage(MET, ESS), same) == [0.0, 0.0]


def test_no_essential_criteria_count_as_met_and_no_criteria_at_all_as_unknown():
    assert values(rlr3(MET, ESS), [hits([], [1, 0]), hits([1], []), hits([], [])]) == [1.25, 1.0, None]


def test_completeness_is_decided_hit_by_hit_not_from_the_rounded_mean():
    almost = [1.0] * 9 + [np.nextafter(1.0, 0.0)]
    assert values(rlr3(MET, ESS), [hits(almost, [1])])[0] <= 1.0


def test_the_reward_jumps_at_the_last_essential_criterion():
    before, after = values(rlr3(MET, ESS, bonus=1.0), [hits([1] * 9 + [0], [1]), hits([1] * 10, [1])])
    assert after - before == pytest.approx(1.1)


def test_an_unknown_additional_hit_matters_only_where_it_counts():
    assert values(rlr3(MET, ESS), [hits([0], [None]), hits([1], [None]), hits([None], [1])]) == [0.0, None, None]


def test_additional_criteria_are_weighted_and_may_not_outbid():
    rows = [{**hits([1], [1, 0]), "w": [9, 3, 1]}]
    assert values(additional_share(MET, ESS, W), rows) == [0.75]
    with pytest.raises(ValueError, match="outbid"):
        rlr3(MET, ESS, bonus=1.5)


def test_a_value_with_white_space_is_a_hit_under_exact_numeric_comparison():
    assert gd.verify.number()(gd.Rollout("12 ", answer="12")).value == 1.0


# ---- RLCER ----

Z = [1, 1, 0, 0, 1]
V1, V2, V3, V4 = [1, 1, 0, 0, 1], [1, 0, 1, 0, 1], [1] * 5, [1, 0, 0, 0, 1]
POINTS = C("pts", axis="criterion")


def criteria(z, *columns, points=None):
    met = [list(row) for row in zip(*columns, strict=True)]
    return group(ok=z, met=met, pts=[points or [1] * len(columns)] * len(z), form=[0.5] * len(z))


def test_only_criteria_that_go_with_correctness_are_valid():
    rows = criteria(Z, V1, V2, V4)
    with_z = gd.shape.label_correlation(MET, OK).score(rows).framed.values[:3]
    assert with_z == pytest.approx([1.0, 0.166667, 0.666667], abs=5e-7)
    assert valid_criteria(MET, OK).score(criteria(Z, V1, V2, V3)).framed.values[:3].tolist() == [1, 0, 0]
    assert values(rlcer_writer(OK, MET, C("form")), criteria(Z, V1, V2, V3)) == pytest.approx([1 / 3 + 0.5] * 5)


def test_points_earned_on_valid_criteria_add_to_the_outcome():
    rows = criteria(Z, V1, V4, V2, points=[3, 1, 2])
    assert values(rlcer(OK, MET, POINTS), rows) == [2.0, 1.75, -1.0, -1.0, 2.0]
    assert values(rlcer_writer(OK, MET, C("form")), rows) == pytest.approx([2 / 3 + 0.5] * 5)


@pytest.mark.parametrize("z", [[1] * 5, [0] * 5])
def test_a_group_of_one_verdict_falls_back_to_the_outcome(z):
    assert values(rlcer(OK, MET, POINTS), criteria(z, V1, V2)) == [1.0 if x else -1.0 for x in z]


def test_no_criteria_leave_the_outcome_and_the_format():
    rows = group(ok=[1, 0], met=[[], []], pts=[[], []], form=[0.5, 0.5])
    assert values(rlcer(OK, MET, POINTS), rows) == [1.0, -1.0]
    assert values(rlcer_writer(OK, MET, C("form")), rows) == [0.5, 0.5]


def test_random_criteria_often_pass_in_small_groups_and_rarely_in_large_ones():
    rng = np.random.default_rng(0)

    def passing(size, alpha):
        z = [1, 0] * (size // 2)
        rows = criteria(z, *rng.integers(0, 2, (40, size)).tolist())
        return valid_criteria(MET, OK, alpha=alpha).score(rows).framed.values[:40].mean()

    assert passing(4, 0.2) > 0.2 > passing(400, 0.2)
    assert passing(16, 0.7) < passing(16, 0.2)


def test_a_criterion_that_restates_the_answer_is_valid_unless_refused():
    rows = criteria(Z, Z)
    assert valid_criteria(MET, OK).score(rows).framed.values[0] == 1.0
    banned = [{**r, "allowed": [0]} for r in rows]
    assert values(rlcer(OK, MET, POINTS, allowed=C("allowed", axis="criterion")), banned) == [1, 1, -1, -1, 1]


def test_unknown_verdicts_of_invalid_criteria_do_no_harm():
    rows = criteria(Z, V1, V2)
    rows[0]["met"][1] = None
    assert values(rlcer(OK, MET, POINTS), rows)[0] == 2.0
    rows[0]["met"][0] = None
    assert values(rlcer(OK, MET, POINTS), rows)[0] is None
