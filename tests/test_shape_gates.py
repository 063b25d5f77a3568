"""Gates: what a failed check masks, caps, or leaves unasked."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon.core.interval import Interval
from guerdon.shape import base_bonus, cap, choose, gate, gated_sum, soft_and, soft_gate
from shape_strategies import UNIT, given, same

X = gd.column("x", range=(0, 1))
OK, SAFE = gd.column("ok", range=(0, 1)), gd.column("safe", range=(0, 1))


def values(expr, rows):
    return [None if math.isnan(v) else float(v) for v in expr.score(rows).values]


def asked(name="judge"):
    """A signal that notes whom it was asked about."""
    seen: list[str] = []

    @gd.signal(range=(0, 1), key=name, version=1)
    def judge(rollout) -> float:
        seen.append(rollout.id)
        return 0.7

    return judge, seen


def test_the_first_failed_gate_decides():
    rows = [{"ok": 1, "safe": 1, "x": 0.7}, {"ok": 1, "safe": 0, "x": 0.7}, {"ok": 0, "safe": 0, "x": 0.7}]
    assert values(gate(X, [OK, SAFE], failed=[-1, -0.5]), rows) == [0.7, -0.5, -1.0]
    assert values(gate(X, OK), rows) == [0.7, 0.7, 0.0]


def test_nothing_behind_a_failed_gate_is_asked():
    judge, seen = asked()
    second, checked = asked("second")
    rows = [{"id": "a", "ok": 1}, {"id": "b", "ok": 0}, {"id": "c", "ok": None}]
    scored = gate(judge, [OK, second < 2], failed=-1).score(rows)
    assert [None if math.isnan(v) else v for v in scored.values] == [0.7, -1.0, None]
    assert seen == ["a"]
    assert checked == ["a"]


def test_an_unknown_behind_a_failed_gate_does_not_count_but_an_unknown_gate_does():
    rows = [{"ok": 0, "safe": None, "x": None}, {"ok": None, "safe": 0, "x": 1.0}, {"ok": 1, "safe": 1, "x": None}]
    scored = gate(X, [OK, SAFE], failed=-1).score(rows)
    assert values(gate(X, [OK, SAFE], failed=-1), rows) == [-1.0, None, None]
    assert scored.scores.reason(1) == "column 'ok' is missing"
    assert scored.scores.reason(2) == "column 'x' is missing"
    assert scored.scores.evidence[0] == {"failed_gate": 0}


def test_a_gate_that_is_neither_open_nor_shut_is_unknown():
    scored = gate(X, OK).score([{"ok": 0.5, "x": 1.0}])
    assert scored.scores.reason(0) == "gate 0 is neither 0 nor 1"


def test_a_bonus_can_not_outbid_a_failed_gate_whatever_its_size():
    huge = gd.column("bonus")
    rows = [{"prompt": "p", "ok": 0, "bonus": 1e12}, {"prompt": "p", "ok": 1, "bonus": 0.0}]
    assert values(gate(huge, OK, failed=-1), rows) == [-1.0, 0.0]
    assert values(OK + huge, rows)[0] > values(OK + huge, rows)[1]  # the plain sum is outbid


def test_the_range_of_a_gate_holds_the_values_that_can_come_out():
    assert gate(X, OK, failed=-1).range == Interval(-1, 1)
    assert gate(X, gd.constant(1.0), failed=-1).range == Interval(0, 1)
    assert gate(X, [gd.constant(0.0), OK], failed=[-1, 5]).range == Interval(-1, -1)


@pytest.mark.parametrize("failed", [[1.0, 2.0], math.nan, math.inf])
def test_failed_values_must_fit_the_gates(failed):
    with pytest.raises(ValueError, match="failed="):
        gate(X, OK, failed=failed)


# Accumulation by priority.


def test_lower_priorities_count_only_behind_open_gates():
    parts = [gd.column("outcome"), gd.column("form"), gd.column("steps")]
    two = [parts[0], parts[2]]
    rows = [{"outcome": -1.0, "steps": 0.5}, {"outcome": 1.0, "steps": 0.5}]
    assert values(gated_sum(two, [0.0]), rows) == [-1.0, 1.5]
    assert values(gated_sum(parts, [0.4, 0.0]), [{"outcome": 0.5, "form": 0.0, "steps": 0.3}]) == [0.5]


def test_the_threshold_itself_does_not_open_a_gate():
    expr = gated_sum([gd.column("outcome"), gd.column("steps")], [0.5])
    assert values(expr, [{"outcome": 0.5, "steps": 1.0}, {"outcome": 0.75, "steps": 1.0}]) == [0.5, 1.75]


def test_masked_parts_are_not_asked_and_their_unknowns_do_not_count():
    judge, seen = asked()
    rows = [{"id": "a", "outcome": 0.0}, {"id": "b", "outcome": 1.0}]
    assert values(gated_sum([gd.column("outcome"), judge], [0.0]), rows) == [0.0, 1.7]
    assert seen == ["b"]


@given(st.lists(st.tuples(UNIT, UNIT, UNIT), min_size=1, max_size=5), st.tuples(st.sampled_from([0.0, 0.1, 0.5]), UNIT))
def test_gated_sum_equals_its_formula(triples, thresholds):
    parts = [gd.column(n) for n in "abc"]
    rows = [dict(zip("abc", t, strict=True)) for t in triples]
    expected = [a + (a > thresholds[0]) * b + (a > thresholds[0] and b > thresholds[1]) * c for a, b, c in triples]
    assert same(values(gated_sum(parts, list(thresholds)), rows), expected)


def test_every_part_but_the_last_needs_a_threshold():
    with pytest.raises(ValueError, match="2 parts need 1 thresholds, not 2"):
        gated_sum([X, OK], [0.0, 0.0])


# Caps, soft gates, soft and, base and bonus.


def test_a_cap_holds_only_where_the_check_failed():
    rows = [{"x": 0.9, "ok": 1}, {"x": 0.9, "ok": 0}, {"x": 0.1, "ok": 0}, {"x": 0.9}]
    assert values(cap(X, 0.3, unless=OK), rows) == [0.9, 0.3, 0.1, None]
    assert values(cap(X, 0.3), rows) == [0.3, 0.3, 0.1, 0.3]
    assert cap(X, 0.3).range == Interval(0, 0.3)
    assert cap(X, 0.3, unless=OK).range == Interval(0, 1)
    assert values(cap(X, gd.column("limit"), unless=OK), [{"x": 0.9, "ok": 1}]) == [0.9]


def test_a_soft_gate_is_half_open_at_its_threshold_and_hard_far_from_it():
    expr = soft_gate(X, gd.column("g"), threshold=0.5, width=0.01)
    assert values(expr, [{"x": 1.0, "g": g} for g in (0.5, 1.0, 0.0)]) == pytest.approx([0.5, 1.0, 0.0])
    assert expr.range == Interval(0, 1)
    with pytest.raises(ValueError, match="width"):
        soft_gate(X, OK, width=0).score([{"x": 1, "ok": 1}])


def test_soft_and_collapses_on_one_failure_less_so_with_more_parts():
    columns = [gd.column(n) for n in "abc"]
    rows = [{"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 1.0, "b": 1.0, "c": 0.0}, {"a": 0.9, "b": 0.8, "c": 1.0}]
    assert values(soft_and(columns), rows) == pytest.approx([1.0, 0.2147301, 0.8973487], abs=5e-8)
    ten = [gd.column(f"s{i}") for i in range(10)]
    assert values(soft_and(ten), [{f"s{i}": float(i > 0) for i in range(10)}]) == pytest.approx([0.63], abs=0.01)


def test_soft_and_of_scores_outside_the_unit_interval_is_unknown():
    scored = soft_and([X.within(0, 5), gd.column("y")]).score([{"x": 0.5, "y": 1.5}])
    assert scored.scores.reason(0) == "a part lies outside [0, 1]"


def test_a_bonus_multiplies_its_base():
    expr = base_bonus(gd.column("e"), gd.column("c"))
    assert values(expr, [{"e": 0.8, "c": 0.6}, {"e": 0.0, "c": 1.0}]) == pytest.approx([0.672, 0.0])


# Columns of a finer axis behind a gate.


@pytest.mark.parametrize("axis", ["step", "criterion"])
def test_a_column_of_a_finer_axis_behind_a_gate_keeps_its_sizes(axis):
    x = gd.column("s", axis=axis, range=(0, 1))
    rows = [{"ok": 1, "s": [0.5, 1.0, 0.0]}, {"ok": 0, "s": [0.5]}, {"ok": 0, "s": []}]
    assert values(gate(x.mean(), OK, failed=-1), rows) == [0.5, -1.0, -1.0]
    assert values(gate(x, OK, failed=-1), rows) == [0.5, 1.0, 0.0, -1.0]


def test_two_columns_of_one_axis_behind_different_gates_do_not_clash():
    a, b = (gd.column(n, axis="criterion", range=(0, 1)) for n in "ab")
    rows = [{"ok": 0, "a": [1, 0], "b": [1, 1]}, {"ok": 1, "a": [1], "b": None}, {"ok": None, "a": [], "b": []}]
    expr = gate(gate(b.mean(), SAFE < 2, failed=0), a.mean() >= 0.9, failed=-1)
    rows = [{**r, "safe": 1} for r in rows]
    scored = expr.score(rows)
    assert [None if math.isnan(v) else v for v in scored.values] == [-1.0, None, None]
    assert scored.scores.reason(1) == "criterion 0: column 'b' is missing"


# Choosing by class.


def test_only_the_chosen_case_is_asked():
    judge, seen = asked()
    rows = [{"id": "a", "mode": 0}, {"id": "b", "mode": 1}, {"id": "c", "mode": 0.5}, {"id": "d"}]
    scored = choose(gd.column("mode"), [judge, 0.25]).score(rows)
    assert [None if math.isnan(v) else v for v in scored.values] == [0.7, 0.25, None, None]
    assert seen == ["a"]
    assert scored.scores.reason(2) == "the index is no position among the 2 cases"


def test_unknowns_of_other_cases_do_not_count():
    assert values(choose(gd.column("mode"), [X, OK]), [{"mode": 1, "ok": 1}, {"mode": 0, "ok": 1}]) == [1.0, None]
    assert choose(gd.column("mode", range=(1, 2)), [X - 9, X, 3.0]).range == Interval(0, 3)


def test_scores_can_be_gated_without_an_expression():
    x, ok = (gd.column(n).score([{"x": 0.4, "ok": 1}, {"x": 0.4, "ok": 0}]).framed for n in ("x", "ok"))
    assert gate(x, [ok]).values.tolist() == [0.4, 0.0]
    assert np.array_equal(gated_sum([ok, x], [0.0]).values, [1.4, 0.0])
