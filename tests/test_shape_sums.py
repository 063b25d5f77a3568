"""Weighted sums and means: what an unknown part does, what is renormalised, and the range that is declared."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon.core.interval import Interval
from guerdon.shape import weighted_items, weighted_mean, weighted_sum
from shape_strategies import UNIT, given, same

A, B, C = (gd.column(n, range=(0, 1)) for n in "abc")


def one(expr, **row):
    """The score of a single row, None if unknown."""
    value = expr.score([row]).values[0]
    return None if math.isnan(value) else float(value)


def test_weights_are_by_name_or_in_order_and_one_by_default():
    assert one(weighted_sum({"a": A, "b": B}, {"b": 2, "a": 3}), a=1.0, b=0.5) == 4.0
    assert one(weighted_sum([A, B], [3, 2]), a=1.0, b=0.5) == 4.0
    assert one(weighted_sum([A, B]), a=1.0, b=0.5) == 1.5
    assert one(weighted_mean([A, B], [2, 1]), a=0.8, b=0.5) == pytest.approx(0.7)
    assert one(weighted_sum([A, B], [2, 1], total=1.0), a=0.8, b=0.5) == pytest.approx(0.7)


def test_an_unknown_part_makes_the_sum_unknown_with_its_reason():
    scored = weighted_sum([A, B]).score([{"a": 1.0}])
    assert not scored.scores.known[0]
    assert scored.scores.reason(0) == "column 'b' is missing"


def test_renormalising_lets_the_known_parts_stand_for_all_and_reports_their_share():
    scored = weighted_sum({"a": A, "b": B}, {"a": 0.75, "b": 0.25}, missing="renormalise").score([{"a": 0.8}])
    assert scored.values.tolist() == pytest.approx([0.8])
    assert scored.scores.evidence[0] == {"known_weight": 0.75, "missing": ["b"]}
    assert weighted_sum([A, B], missing="renormalise").score([{"a": 0.8, "b": 1.0}]).scores.evidence[0] is None


def test_renormalising_over_nothing_is_unknown_not_zero():
    assert one(weighted_sum([A, B], missing="renormalise")) is None
    assert one(weighted_sum([A, B], [0, 1], missing="renormalise"), a=1.0) is None


def test_renormalising_keeps_the_scale_of_a_sum_with_a_penalty():
    expr = weighted_sum({"good": A, "bad": B}, {"good": 1.0, "bad": -1.0}, missing="renormalise")
    assert one(expr, a=0.5) == 1.0  # 0.5 times 2 / 1
    assert one(expr, b=0.5) == -1.0


def test_a_stated_value_stands_in_for_its_part_only():
    expr = weighted_sum({"a": A, "b": B}, missing={"b": 0.25})
    assert one(expr, a=1.0) == 1.25
    assert one(expr, b=1.0) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: weighted_sum({"style": A}, {"stile": 1.0}), "did you mean 'style'"),
        (lambda: weighted_sum({"a": A, "b": B}, {"a": 1.0}), "no weight for b"),
        (lambda: weighted_sum([A, B], [1.0]), "1 weights for 2 parts"),
        (lambda: weighted_sum([A], [math.nan]), "finite"),
        (lambda: weighted_sum({"a": A}, missing={"b": 0.0}), "'b', which is no part"),
        (lambda: weighted_mean([A, B], [0.0, 0.0]), "have no mean"),
        (lambda: weighted_mean([A, B], [2.0, -1.0]), "at least 0"),
        (lambda: weighted_sum({}), "at least one part|needs scores"),
        (lambda: weighted_sum([A.score([{"a": 1.0}])], missing="skip"), "missing='skip'"),
    ],
)
def test_what_can_not_be_meant_is_an_error_that_says_so(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_the_declared_range_follows_from_the_parts():
    assert weighted_sum([A, B], [2, -1]).range == Interval(-1, 2)
    assert weighted_mean([A, B]).range == Interval(0, 1)
    assert weighted_sum([A, B], [2, -1], missing="renormalise").range == Interval(-3, 3)
    assert weighted_sum({"a": A}, missing={"a": -5}).range == Interval(-5, 1)
    assert weighted_sum([A, gd.column("x")]).range == Interval()


@given(
    st.lists(st.one_of(st.none(), UNIT), min_size=3, max_size=3),
    st.lists(st.sampled_from([-1.0, 0.0, 0.1, 0.3, 0.7]), min_size=3, max_size=3),
    st.sampled_from(["unknown", "renormalise"]),
)
def test_sums_equal_a_plain_loop_and_stay_in_their_range(values, weights, missing):
    expr = weighted_sum([A, B, C], weights, missing=missing)
    got = one(expr, **{k: v for k, v in zip("abc", values, strict=True) if v is not None})
    known = [(w, v) for w, v in zip(weights, values, strict=True) if v is not None]
    have, full = sum(abs(w) for w, _ in known), sum(abs(w) for w in weights)
    if missing == "unknown":
        expected = sum(w * v for w, v in known) if len(known) == 3 else None
    else:
        expected = sum(w * v for w, v in known) * full / have if have > 0 else None
    assert same([got], [expected])
    if got is not None:
        assert expr.range.low <= got <= expr.range.high


def test_sums_that_overflow_are_unknown_not_infinite():
    assert one(weighted_sum([gd.column("x"), gd.column("y")]), x=1.7e308, y=1.7e308) is None


# Over the items of a finer axis.

MET, WEIGHT = gd.column("met", axis="criterion", range=(0, 1)), gd.column("w", axis="criterion")


def test_items_are_averaged_by_weight():
    assert one(weighted_items(MET, WEIGHT), met=[1, 0, 1, 1], w=[1.0, 0.7, 0.3, 0.9]) == pytest.approx(2.2 / 2.9)


def test_an_unknown_item_leaves_both_sums_only_when_skipped():
    row = {"met": [1, None, 0], "w": [1, 5, 1]}
    assert one(weighted_items(MET, WEIGHT), **row) is None
    scored = weighted_items(MET, WEIGHT, missing="skip").score([row])
    assert scored.values.tolist() == [0.5]
    assert scored.scores.evidence[0] == {"known_items": 2, "items": 3}


def test_without_weight_or_items_there_is_no_mean():
    assert one(weighted_items(MET, WEIGHT), met=[1, 0], w=[0, 0]) is None
    scored = weighted_items(MET, WEIGHT).score([{"met": [], "w": []}, {"met": [1], "w": [-1]}])
    assert [scored.scores.reason(i) for i in (0, 1)] == [
        "it has no criterions",
        "a criterion or its weight is unknown",
    ]


def test_classes_count_equally_whatever_their_size():
    kind = gd.column("kind", axis="criterion")
    row = {"met": [1, 1, 1, 0], "w": [1, 1, 1, 1], "kind": [0, 0, 0, 1]}
    assert one(weighted_items(MET, WEIGHT), **row) == 0.75
    assert one(weighted_items(MET, WEIGHT, classes=kind), **row) == 0.5
    row = {"met": [1, 1, None, None], "w": [1, 1, 1, 1], "kind": [0, 0, 0, 1]}
    assert one(weighted_items(MET, WEIGHT, classes=kind, missing="skip"), **row) == 1.0


@given(
    st.lists(
        st.lists(st.tuples(st.one_of(st.none(), UNIT), st.sampled_from([0.0, 0.1, 1.0, 3.0])), max_size=5), max_size=4
    )
)
def test_items_equal_a_plain_loop(rows):
    data = [{"met": [m for m, _ in r], "w": [w for _, w in r]} for r in rows]
    scored = weighted_items(MET, WEIGHT, missing="skip").score(data)
    got = [None if math.isnan(v) else float(v) for v in scored.values]
    expected = []
    for row in rows:
        weight = sum(w for m, w in row if m is not None)
        expected.append(sum(w * m for m, w in row if m is not None) / weight if weight > 0 else None)
    assert same(got, expected)
    assert all(0 <= v <= 1 for v in got if v is not None)
    assert np.isfinite(scored.scores.values[scored.scores.known]).all()
