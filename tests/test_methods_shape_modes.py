"""Methods whose reward follows the number of steps, a mode, the competence or the calls: examples and traps."""

from __future__ import annotations

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.gait_routing import routed
from guerdon.methods.pspo import pspo, ramp, weibull
from guerdon.methods.self_paced_grpo import self_paced_grpo
from guerdon.methods.toolrl import jaccard, match_share, tool_match, toolrl
from method_rows import values

C = gd.column


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


def test_a_chain_too_long_for_its_ramp_is_unknown_not_infinite():
    scored = pspo(C("p", axis="step")).score([{"p": [1.0] * 8000}])
    assert scored.unknown == {"not a finite number": 1}
    assert values(pspo(C("p", axis="step"), form="weibull"), [{"p": [1.0] * 8000}]) == [0.0]


# Routing by mode.

ROUTED = routed(C("mode"), {"common": C("c")}, [{}, {"knee": C("k"), "arm": C("a")}, {"stride": C("s")}])
STEP = {"c": 1.0, "k": 0.5, "a": -0.2, "s": 2.0}


def test_only_the_terms_of_the_mode_count():
    rows = [{**STEP, "mode": m} for m in (1, 2, 0, 7)]
    assert values(ROUTED, rows) == pytest.approx([1.3, 3.0, 1.0, None])


def test_unknown_terms_of_other_modes_do_not_count():
    assert values(ROUTED, [{"c": 1.0, "mode": 0}, {"c": 1.0, "s": 2.0, "mode": 2}]) == [1.0, 3.0]


def test_the_weight_of_an_inactive_term_changes_nothing():
    terms = [{}, {"knee": C("k")}, {"stride": C("s")}]
    rows = [{**STEP, "mode": 1}]
    base = values(routed(C("mode"), {"common": C("c")}, terms, {"stride": 1.0}), rows)
    assert values(routed(C("mode"), {"common": C("c")}, terms, {"stride": 9.0}), rows) == base
    with pytest.raises(ValueError, match="strode, which are no terms"):
        routed(C("mode"), {"common": C("c")}, terms, {"strode": 1.0})


def test_the_reward_jumps_where_the_mode_changes():
    path = [{**STEP, "mode": m} for m in (1, 1, 2, 2)]
    assert values(ROUTED, path) == pytest.approx([1.3, 1.3, 3.0, 3.0])


def test_modes_on_different_scales_can_be_brought_to_one():
    rows = [{**STEP, "prompt": "p", "mode": m, "k": k, "s": 100 * k} for m in (1, 2) for k in (0.2, 0.4)]
    assert np.ptp(values(ROUTED, rows)[2:]) == pytest.approx(100 * np.ptp(values(ROUTED, rows)[:2]))
    assert values(gd.shape.minmax(ROUTED, within=C("mode")), rows) == pytest.approx([0, 1, 0, 1])


# Self-paced.


def test_weight_moves_on_as_the_leading_term_is_mastered():
    parts = {"easy": C("a"), "middle": C("b"), "hard": C("c")}
    expr, session = self_paced_grpo(parts, rate=0.5), gd.Session()
    rows = [{"a": 1.0, "b": 0.8, "c": 0.0}]
    seen = [values(expr, rows, session=session)[0] for _ in range(6)]
    competence = next(iter(session.state.values()))["competence"]
    assert competence > 0.75
    assert seen[0] > seen[-1]  # the hard term weighs more, and scores 0


@pytest.mark.parametrize(
    ("competence", "weights"),
    [
        (0.2, (0.595752, 0.399345, 0.004903)),
        (0.5, (0.106507, 0.786986, 0.106507)),
        (0.8, (0.004903, 0.399345, 0.595752)),
    ],
)
def test_the_weights_at_a_competence(competence, weights):
    parts = [C(n).score([{n: 1.0}]).framed for n in "abc"]
    mixed, state = gd.shape.self_paced.function(parts, state={"competence": competence})
    assert [mixed.evidence[0][str(j)] for j in range(3)] == pytest.approx(weights, abs=5e-7)
    assert state["competence"] > competence  # 1 was reached in the leading part
    floored = gd.shape.pace_weights(competence, (0.0, 0.5, 1.0), 0.25, 0.05)
    assert floored.min() >= 0.05
    assert floored.sum() == pytest.approx(1.0)


def test_the_competence_never_falls_and_stalls_where_the_leading_part_saturates():
    expr, session = self_paced_grpo([C("a"), C("b"), C("c")], rate=0.5), gd.Session()

    def after(level, times):
        for _ in range(times):
            expr.score([{"a": level, "b": level, "c": level}], session=session)
        return next(iter(session.state.values()))["competence"]

    reached = after(0.6, 30)
    assert reached == pytest.approx(0.6)  # never the hard part, which leads above 0.75
    assert after(0.0, 5) == reached


def test_weights_are_frozen_while_a_batch_is_scored_whatever_its_groups():
    rows = [{"prompt": p, "a": 1.0, "b": 0.5, "c": 0.0} for p in "xxyy"]
    assert len(set(values(self_paced_grpo([C("a"), C("b"), C("c")]), rows))) == 1
    assert values(self_paced_grpo([C("a"), C("b"), C("c")]), [{"a": 1.0, "b": None, "c": 0.0}]) == [None]


# ToolRL.

REF = [{"name": "w", "arguments": {"city": "P", "unit": "C"}}]


def tools(calls, expected=REF, form=1):
    return [{"calls": calls, "expected_calls": expected, "form": form}]


def test_partial_credit_by_name_parameter_and_value():
    wrong_unit = [{"name": "w", "arguments": {"city": "P", "unit": "F"}}]
    assert match_share(REF, wrong_unit) == 0.75
    assert values(tool_match, tools(wrong_unit)) == [1.5]
    assert values(toolrl(C("form")), tools(wrong_unit)) == [2.5]
    assert values(toolrl(C("form")), tools(REF)) == [4.0]


def test_a_call_made_twice_loses_in_the_name_term_only():
    assert jaccard(["w"], ["w", "w"]) == 0.5
    assert match_share(REF, REF * 2) == 3.5 / 4
    assert values(tool_match, tools(REF * 2)) == [2.25]


def test_no_call_or_a_malformed_one_is_the_minimum_and_an_uncalled_for_one_is_free():
    assert values(tool_match, tools([])) == [-3]
    assert values(tool_match, tools([{"arguments": {}}])) == [-3]
    assert values(tool_match, tools([{"name": "w"}])) == [-3]
    assert values(tool_match, tools([{"name": "other"}])) == [-3]  # never compared, and no name in common
    assert values(tool_match, tools(REF, expected=[])) == [0]
    assert values(tool_match, tools(REF * 300)) == [-3]


def test_a_missing_column_is_unknown():
    assert (
        values(tool_match, [{"calls": REF}, {"expected_calls": REF}, {"calls": "w", "expected_calls": REF}])
        == [None] * 3
    )


def test_the_matching_is_greedy_in_the_order_of_the_reference():
    a = {"name": "w", "arguments": {"x": 1, "y": 2}}
    b = {"name": "w", "arguments": {"x": 1, "y": 3}}
    near = {"name": "w", "arguments": {"x": 1, "y": 9}}
    assert match_share([a, b], [near, b]) == 6 / 7
    assert match_share([a, b], [b, near]) == 5 / 7  # a takes b's call, the first of two equally good ones
    assert match_share([b, a], [b, near]) == 6 / 7


def test_values_are_compared_whole_and_by_type():
    nested = [{"name": "w", "arguments": {"at": {"lat": 1, "lon": 2}}}]
    other = [{"name": "w", "arguments": {"at": {"lat": 1, "lon": 3}}}]
    assert match_share(nested, other) == 2 / 3
    true, one = ([{"name": "w", "arguments": {"n": v}}] for v in (True, 1))
    assert match_share(one, true) == 2 / 3


def test_a_call_with_nothing_in_common_stays_unmatched_and_empty_lists_are_equal():
    assert match_share(REF, [{"name": "w", "arguments": {"town": "P"}}]) == 1 / 4
    empty = [{"name": "w", "arguments": {}}]
    assert match_share(empty, empty) == 1.0
