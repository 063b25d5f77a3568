"""Methods over log-probabilities and gold evidence in columns: worked examples as literals, and every trap named."""

from __future__ import annotations

import math

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.confclip import confclip, mean_confidence
from guerdon.methods.longtracerl import entity_share, f_beta, longtracerl, longtracerl_chunks, norm
from guerdon.methods.p2s import faithful_steps, gold_chain, p2s, path_faithfulness
from guerdon.methods.variance_profile import guarded_zscore
from method_rows import group, values

C = gd.column
OK = C("ok")


# ---- P2S ----

SUFFIX = [C(n, axis="suffix") for n in ("logp", "masked", "of")]
STEPS = faithful_steps(*SUFFIX, C("answer"), C("s", axis="step"))
MASKED = [-14.0, -9.0, -5.5]
ROW = {
    "prompt": "p", "logp": [-12.0, -8.0, -5.0, -9.0, -6.5, -2.0], "masked": MASKED * 2, "of": [0, 0, 0, 1, 1, 1],
    "answer": -1.5, "s": [0, 0, 0], "ok": 0, "form": 1,
}  # fmt: skip
P2S = p2s(OK, C("form"), STEPS)


def test_a_step_is_worth_its_best_suffix_and_the_last_one_the_answer():
    assert values(STEPS, [ROW]) == [2.0, 5.0, -1.5]
    assert values(path_faithfulness(STEPS), [ROW]) == pytest.approx([1.453044], abs=5e-7)


def test_a_group_with_a_right_rollout_ignores_path_faithfulness():
    rows = [ROW, {**ROW, "ok": 1}, {**ROW, "form": 0, "ok": 1}]
    assert values(P2S, rows) == [0.0, 1.0, -1.0]
    assert values(P2S, rows[:1]) == pytest.approx([1.453044], abs=5e-7)


def test_a_malformed_rollout_does_not_count_as_right():
    assert values(P2S, [ROW, {**ROW, "form": 0, "ok": 1}]) == pytest.approx([1.453044, -1.0], abs=5e-7)


def test_steps_are_measured_only_in_groups_without_a_right_rollout():
    asked = []

    @gd.signal(axis="step", per="rollout", key="tests.lift", version=1)
    def lift(rollout):
        asked.append(rollout.id)
        return [1.0, 2.0]

    rows = [{"id": i, "prompt": i[0], "ok": ok, "form": 1, "steps": ["x", "y"]} for i, ok in
            (("a1", 1), ("a2", 0), ("b1", 0), ("b2", 0))]  # fmt: skip
    p2s(OK, C("form"), lift).score(rows)
    assert sorted(asked) == ["b1", "b2"]


def test_sums_over_suffixes_depend_on_their_length_and_means_do_not():
    row = {**ROW, "logp": [-40.0, -4.0] * 2, "masked": [-44.0, -5.0] * 2, "of": [0, 0, 1, 1], "len": [40, 2] * 2}
    assert values(STEPS, [row])[:2] == [4.0, 4.0]  # the long suffix, although it gains 0.1 a token
    mean = faithful_steps(*SUFFIX, C("answer"), C("s", axis="step"), length=C("len", axis="suffix"))
    assert values(mean, [row])[:2] == [0.5, 0.5]


def test_an_empty_prefix_gains_nothing():
    assert values(STEPS, [{**ROW, "logp": MASKED * 2}])[:2] == [0.0, 0.0]


def test_path_faithfulness_is_in_nats_and_unbounded():
    assert P2S.range.high == math.inf
    assert values(P2S, [{**ROW, "logp": [-1.0] * 6}])[0] > 5


def test_a_single_step_is_the_answer_alone_and_no_step_unknown():
    empty = {**ROW, "logp": [], "masked": [], "of": []}
    assert values(P2S, [{**empty, "s": [0]}, {**empty, "s": []}]) == [-1.5, None]


def test_an_unknown_reading_or_one_that_belongs_to_no_step_is_unknown():
    hole = {**ROW, "logp": [None, *ROW["logp"][1:]]}
    out = STEPS.score([hole, {**ROW, "of": [0, 0, 0, 1, 1, 7]}]).scores
    assert out.known.tolist() == [False, True, True, False, False, True]
    assert values(P2S, [hole]) == [None]


def test_the_gold_chain_is_the_likeliest_well_formed_one():
    assert gold_chain([-4.0, None, -1.5, -1.5]) == 2
    assert gold_chain([None]) is None


# ---- ConfClip ----

CONF = confclip(OK, C("c"))


def test_confidence_is_clipped_and_signed_by_the_verdict():
    assert values(CONF, group(c=[0.95, 0.6, 0.2], ok=[1, 1, 0])) == [0.8, 0.6, -0.2]
    assert values(CONF, group(c=[0.9, 0.5], ok=[1, 1])) == [0.8, 0.5]
    assert str(CONF.range) == "[-0.8, 0.8]"


def test_the_z_score_amplifies_tiny_differences_of_confidence_and_a_floor_does_not():
    rows = group(c=[0.70, 0.701], ok=[1, 1])
    assert values(gd.shape.zscore(CONF), rows) == pytest.approx([-1, 1])
    assert values(guarded_zscore(CONF, floor=0.1), rows) == pytest.approx([-0.005, 0.005])


def test_a_policy_that_is_sure_of_everything_has_no_spread_left():
    assert values(gd.shape.zscore(CONF), group(c=[0.99, 1.0, 0.9], ok=[1, 1, 1])) == [0.0, 0.0, 0.0]


def test_confidence_depends_on_length():
    logprobs = C("logprobs", axis="token")
    rows = [{"logprobs": [-2.0]}, {"logprobs": [-2.0] + [0.0] * 9}, {"logprobs": [0.5]}, {"logprobs": []}]
    assert values(mean_confidence(logprobs), rows) == [
        pytest.approx(math.exp(-2)),
        pytest.approx(math.exp(-0.2)),
        None,
        None,
    ]
    assert str(mean_confidence(logprobs).range) == "[0, 1]"


def test_unknown_confidence_or_verdict_is_unknown():
    assert values(CONF, [{"c": None, "ok": 1}, {"c": 0.5}]) == [None, None]


# ---- LongTraceRL ----

RUB = C("rub")


def test_only_right_answers_get_the_rubric_relative_to_the_groups_best():
    rows = group(ok=[1, 1, 0], rub=[0.8, 0.4, 0.6])
    assert values(gd.shape.over_best(RUB), rows) == pytest.approx([1.0, 0.5, 0.75])
    assert values(longtracerl(OK, RUB), rows) == pytest.approx([1.0, 0.85, 0.0])
    assert values(longtracerl(OK, RUB, mode="negative"), rows) == pytest.approx([1.0, 1.0, 0.225])
    assert values(longtracerl(OK, RUB, mode="plain"), rows) == pytest.approx([1.0, 0.85, 0.225])
    assert str(longtracerl(OK, RUB).range) == "[0, 1]"


def test_the_citation_variant_ranges_to_two():
    rows = group(p=[0.5, 0.0, 0.0], r=[1.0, 0.0, 1.0], ok=[1, 1, 0])
    f = f_beta(C("p"), C("r"))
    assert values(f, rows) == pytest.approx([0.833333, 0.0, 0.0], abs=5e-7)
    assert values(longtracerl_chunks(OK, f), rows) == pytest.approx([1.833333, 1.0, 0.0], abs=5e-7)
    assert str(longtracerl_chunks(OK, C("f")).range) == "[0, 2]"


def test_the_best_may_be_a_wrong_answers():
    rows = group(ok=[1, 0], rub=[0.4, 0.8])
    assert values(longtracerl(OK, RUB), rows) == pytest.approx([0.85, 0.0])
    assert values(longtracerl(OK, RUB, among_right=True), rows) == pytest.approx([1.0, 0.0])


def test_without_any_entity_found_the_outcome_is_left():
    assert values(longtracerl(OK, RUB), group(ok=[1, 0], rub=[0.0, 0.0])) == pytest.approx([0.7, 0.0])


def test_entities_match_whole_tokens_and_not_inside_words():
    assert norm("The U.S. (東京), 2024") == "the u s 東 京 2024"
    row = gd.Rollout("We took the bus to 東京 in New York.", extra={"entities": ["US", "東京", "new york", "é"]})
    assert entity_share(row).value == 0.5
    assert entity_share(row, whole_tokens=False).value == 0.75


def test_stuffing_entities_raises_the_rubric_of_right_answers_only():
    rows = [{"prompt": "p", "completion": t, "entities": ["Rome", "Oslo"], "ok": ok} for t, ok in
            (("So it is Rome.", 1), ("Rome Oslo Rome Oslo", 1), ("Rome Oslo", 0))]  # fmt: skip
    assert values(longtracerl(OK), rows) == pytest.approx([0.85, 1.0, 0.0])


def test_no_entities_are_zero_and_no_column_of_them_unknown():
    assert entity_share(gd.Rollout("x", extra={"entities": []})).value == 0.0
    assert entity_share(gd.Rollout("x")).value is None
    assert values(longtracerl(OK, RUB), group(ok=[1, 0, None], rub=[None, None, 1.0])) == [None, 0.0, None]


def test_the_best_of_unknown_members_is_no_number():
    out = gd.shape.over_best(RUB).score(group(rub=[None, 0.5, 0.25])).values
    assert np.isnan(out[0])
    assert out[1:].tolist() == [1.0, 0.5]
