"""Classes and statistics of groups, statistics at one label, and scores stratified by another score."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon.core.axis import Axis
from guerdon.core.interval import Interval
from guerdon.core.scores import Scores
from guerdon.shape import (
    ALL_FAIL,
    ALL_PASS,
    MIXED,
    choose,
    ensemble_spread,
    group_class,
    group_statistic,
    label_statistic,
    stratify,
)
from shape_strategies import ANY, TIED, UNIT, given, groups, listed, same, scores_of


def test_groups_are_all_fail_mixed_or_all_pass():
    out = group_class(scores_of([[0, 0], [1, 0], [1, 1], [None], [], [1, None], [0.5]]))
    assert listed(out) == [ALL_FAIL, MIXED, ALL_PASS, None, None, ALL_PASS, MIXED]
    assert out.reason(3) == "no known score in the group"


def test_thresholds_decide_what_passing_and_failing_mean():
    out = group_class(scores_of([[0.9, 0.95], [0.1, 0.05], [0.9, 0.1]]), fail=0.1, success=0.9)
    assert listed(out) == [ALL_PASS, ALL_FAIL, MIXED]
    with pytest.raises(ValueError, match="fail < success"):
        group_class(scores_of([[1.0]]), fail=1, success=1)


def test_a_rule_can_depend_on_the_class():
    right, bonus = gd.column("right"), gd.column("bonus")
    rule = choose(group_class(right), [bonus, right, right + 10])
    rows = [{"prompt": p, "right": r, "bonus": 0.25} for p, r in (("a", 0), ("a", 0), ("b", 1), ("b", 0), ("c", 1))]
    assert rule.score(rows).values.tolist() == [0.25, 0.25, 1.0, 0.0, 11.0]


STATISTICS = {
    "mean": statistics.fmean,
    "std": statistics.pstdev,
    "var": statistics.pvariance,
    "min": min,
    "max": max,
    "sum": sum,
    "count": len,
}


@pytest.mark.parametrize("stat", STATISTICS)
@given(groups())
def test_a_statistic_is_that_of_the_known_members(stat, rows):
    expected = []
    for row in rows:
        known = [x for x in row if x is not None]
        expected.append(float(STATISTICS[stat](known)) if known else (0.0 if stat == "count" else None))
    assert same(listed(group_statistic(scores_of(rows), stat)), expected)


def test_members_can_be_picked_by_another_score():
    length, right = scores_of([[100, 200, 40], [7]]), scores_of([[1, 1, 0], [0]])
    assert listed(group_statistic(length, where=right)) == [150.0, None]
    assert listed(group_statistic(length, where=right, empty=0.0)) == [150.0, 0.0]
    assert listed(group_statistic(length, "count", where=right)) == [2.0, 0.0]


def test_only_members_where_the_other_score_is_exactly_one_count():
    assert listed(group_statistic(scores_of([[1.0, 2.0, 4.0]]), "sum", where=scores_of([[1.0, 0.5, 2.0]]))) == [1.0]


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("stat", ["std", "var"])
def test_the_spread_of_equal_members_is_exactly_zero_even_where_their_mean_rounds(stat, ddof):
    assert (0.1 + 0.1 + 0.1) / 3 != 0.1
    assert listed(group_statistic(scores_of([[0.1] * 3]), stat, ddof=ddof)) == [0.0]
    assert listed(label_statistic(criteria([[0.1]] * 3), stat, ddof=ddof)) == [0.0] * 3
    assert listed(ensemble_spread(scores_of([[0.1] * 3]), ddof=ddof)) == [0.0]


def test_degrees_of_freedom_are_those_of_the_population_or_a_sample():
    with pytest.raises(ValueError, match=r"0 \(population\) or 1 \(sample\)"):
        group_statistic(scores_of([[1.0, 2.0]]), "std", ddof=2)


def test_a_sample_deviation_of_one_member_is_unknown():
    x = scores_of([[1.0, 3.0], [2.0]])
    assert listed(group_statistic(x, "var", ddof=1)) == [2.0, None]
    assert listed(group_statistic(x, "std")) == [1.0, 0.0]
    with pytest.raises(ValueError, match="stat='median'"):
        group_statistic(x, "median")


@pytest.mark.parametrize("stat", ["mean", "std", "var", "min", "max", "sum", "count"])
@pytest.mark.parametrize("ddof", [0, 1])
@given(rows=groups(UNIT))
def test_a_statistic_lies_in_its_declared_range(stat, ddof, rows):
    data = [{"prompt": str(i), "x": x} for i, row in enumerate(rows) for x in row]
    expr = group_statistic(gd.column("x", range=(0, 1)), stat, ddof=ddof)
    out = expr.score(data).scores
    assert (out.values[out.known] >= expr.range.low).all()
    assert (out.values[out.known] <= expr.range.high).all()


@given(groups(ANY))
def test_statistics_of_any_input_are_finite_or_unknown(rows):
    for stat in STATISTICS:
        out = group_statistic(scores_of(rows), stat)
        assert np.isfinite(out.values[out.known]).all()


# At one label across the group.


def criteria(rows, labels=None) -> Scores:
    """One prompt, a list of items for each rollout."""
    rollout = Axis.under(Axis("prompt", 1), [len(rows)], "rollout")
    flat = [x for row in rows for x in row]
    axis = Axis.under(rollout, [len(r) for r in rows], "criterion", labels)
    return Scores.of(axis, [x or 0.0 for x in flat], [x is not None for x in flat], "no verdict")


def test_a_criterion_is_compared_over_the_rollouts_of_its_prompt():
    x = criteria([[1, 1], [1, 0], [1, 1], [1, 0]])
    assert listed(label_statistic(x, "var")) == [0.0, 0.25] * 4
    assert listed(label_statistic(x, "mean")) == [1.0, 0.5] * 4


def test_labels_say_which_item_is_which_where_lists_differ():
    labels = np.array([7, 8, 8, 7])
    assert listed(label_statistic(criteria([[1, 0], [1, 0]], labels), "mean")) == [0.5, 0.5, 0.5, 0.5]
    assert listed(label_statistic(criteria([[1, 0], [1, 0]]), "mean")) == [1.0, 0.0, 1.0, 0.0]


def test_an_unknown_item_takes_no_part_but_sees_the_statistic():
    x = criteria([[1, None], [0, 1], [None]])
    assert listed(label_statistic(x, "mean")) == [0.5, 1.0, 0.5, 1.0, 0.5]
    assert listed(label_statistic(x, "count")) == [2.0, 1.0, 2.0, 1.0, 2.0]
    assert listed(label_statistic(x, "var", ddof=1)) == [0.5, None, 0.5, None, 0.5]


def test_labels_of_two_prompts_stay_apart():
    rows = [{"prompt": p, "met": [m]} for p, m in (("a", 1.0), ("b", 0.0), ("a", 0.0))]
    scored = label_statistic(gd.column("met", axis="criterion")).score(rows)
    assert scored.scores.values.tolist() == [0.5, 0.0, 0.5]


# Stratified by correctness.


def test_quality_breaks_ties_inside_a_class_only():
    quality, right = scores_of([[2.0, 0.5, 1.5, -1.0]]), scores_of([[1, 1, 0, 0]])
    out = stratify(quality, by=right, low=(-0.1, 0.1), high=(0.9, 1.1))
    assert np.allclose(out.values, [1.1, 0.9, 0.1, -0.1])


def test_a_class_without_spread_takes_the_middle_of_its_band():
    quality, right = scores_of([[2.0, 1.0, 1.0], [3.0]]), scores_of([[1, 0, 0], [1]])
    assert listed(stratify(quality, by=right)) == [1.0, 0.0, 0.0, 1.0]


@given(
    st.lists(
        st.tuples(st.one_of(st.none(), ANY), st.one_of(st.none(), st.sampled_from([0.0, 1.0]))), min_size=1, max_size=8
    )
)
def test_a_wrong_rollout_never_outscores_a_right_one(members):
    quality, right = scores_of([[q for q, _ in members]]), scores_of([[r for _, r in members]])
    out = stratify(quality, by=right)
    assert out.known.tolist() == [q is not None and r is not None for q, r in members]
    wrong = [v for v, (_, r) in zip(listed(out), members, strict=True) if v is not None and r == 0.0]
    good = [v for v, (_, r) in zip(listed(out), members, strict=True) if v is not None and r == 1.0]
    assert all(-0.05 <= v <= 0.05 for v in wrong)
    assert all(0.95 <= v <= 1.05 for v in good)


def test_a_class_that_is_neither_right_nor_wrong_is_unknown():
    out = stratify(scores_of([[1.0, 2.0]]), by=scores_of([[0.5, 1.0]]))
    assert out.reason(0) == "the class is neither 0 nor 1"
    assert stratify(gd.column("q"), by=gd.column("ok")).range == Interval(-0.05, 1.05)
    with pytest.raises(ValueError, match="apart"):
        stratify(scores_of([[1.0]]), by=scores_of([[1.0]]), low=(0, 1), high=(0.5, 2))


@given(groups(TIED, max_groups=3), st.sampled_from([0.5, 4.0]))
def test_the_scale_of_the_quality_does_not_matter(rows, scale):
    right = scores_of([[None if x is None else float(i % 2) for i, x in enumerate(row)] for row in rows])
    scaled = scores_of([[None if x is None else scale * x - 3 for x in row] for row in rows])
    assert same(listed(stratify(scores_of(rows), by=right)), listed(stratify(scaled, by=right)), 1e-9)
