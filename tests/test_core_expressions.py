"""Expressions: operators with unknowns, ranges, laziness, fingerprints, pickling."""

from __future__ import annotations

import itertools
import math
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import guerdon as gd
from guerdon.core.interval import Interval
from guerdon.core.reward import Reward

A, B = gd.column("a"), gd.column("b")
P, Q = gd.column("a", range=(0, 1)), gd.column("b", range=(0, 1))


def one(expression, **cells):
    """The expression's value for one rollout, None where unknown."""
    scores = expression.score([cells]).scores
    return scores.values[0] if scores.known[0] else None


def test_arithmetic_and_comparisons():
    assert one(2 * A - B / 4 + 1, a=3.0, b=8.0) == 5.0
    assert one(-A, a=3.0) == -3.0
    assert [one(op, a=1.0, b=2.0) for op in (A < B, A <= B, A > B, A >= B, A == B, A != B)] == [1, 1, 0, 0, 0, 1]
    assert one(gd.minimum(A, B), a=1.0, b=2.0) == 1.0
    assert one(gd.maximum(A, 7), a=1.0) == 7.0


def test_division_by_zero_is_unknown():
    scored = (A / B).score([{"a": 1.0, "b": 0.0}])
    assert scored.unknown == {"division by zero": 1}


@pytest.mark.parametrize("operate", [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a < b])
def test_an_unknown_part_makes_the_result_unknown_with_its_reason(operate):
    scored = operate(A, B).score([{"a": 0.0, "b": None}])
    assert scored.unknown == {"column 'b' is missing": 1}


TRUTH = [0.0, 1.0, None]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(TRUTH, TRUTH)))
def test_and_or_not_and_products_are_three_valued(a, b):
    both = 0.0 if 0.0 in (a, b) else None if None in (a, b) else 1.0
    either = 1.0 if 1.0 in (a, b) else None if None in (a, b) else 0.0
    assert one(P & Q, a=a, b=b) == both
    assert one(P * Q, a=a, b=b) == both
    assert one(gd.minimum(P, Q), a=a, b=b) == both
    assert one(P | Q, a=a, b=b) == either
    assert one(~P, a=a) == (None if a is None else 1.0 - a)


def test_when_counts_only_the_chosen_branch():
    choice = gd.when(gd.column("c"), A, B)
    assert one(choice, c=1, a=5.0, b=None) == 5.0
    assert one(choice, c=0, a=None, b=6.0) == 6.0
    assert one(choice, c=None, a=5.0, b=6.0) is None
    assert one(choice, c=1, a=None, b=6.0) is None
    assert choice.score([{"c": 0.5, "a": 1.0, "b": 1.0}]).unknown == {"the condition is neither 0 nor 1": 1}


def test_reductions_up_an_axis():
    s = gd.column("s", axis="step")
    rows = [{"s": [1.0, 2.0, 3.0]}]
    values = [one(r, **rows[0]) for r in (s.mean(), s.sum(), s.min(), s.max(), s.product(), s.last())]
    assert values == [2.0, 6.0, 1.0, 3.0, 6.0, 3.0]
    assert s.mean().score([{"s": []}]).unknown == {"it has no steps": 1}


def test_a_reduction_is_unknown_if_an_item_is_unless_missing_items_are_skipped():
    s = gd.column("s", axis="step")
    row = {"s": [1.0, None, 3.0]}
    assert s.mean().score([row]).unknown == {"step 1: column 's' is missing": 1}
    skipped = s.mean(missing="skip").score([row])
    assert skipped.scores.values[0] == 2.0
    assert skipped.scores.evidence[0] == {"known_items": 2, "items": 3}
    assert one(s.last(missing="skip"), s=[1.0, 2.0, None]) == 2.0
    assert one(s.min(missing="skip"), s=[None, None]) is None


def test_a_reduction_that_overflows_is_unknown():
    s = gd.column("s", axis="step")
    assert s.sum().score([{"s": [1e308, 1e308]}]).unknown == {"not a finite number": 1}
    assert s.product().score([{"s": [1e308, 1e308]}]).unknown == {"not a finite number": 1}


def test_coarse_scores_are_repeated_down_in_an_expression():
    s = gd.column("s", axis="step")
    assert one((s * A).sum(), s=[1.0, 2.0], a=10.0) == 30.0


def test_rewards_have_no_truth_value():
    with pytest.raises(TypeError, match="use & for and"):
        bool(A and B)


@given(st.lists(st.floats(-3, 3), min_size=4, max_size=4), st.floats(-3, 3), st.floats(-3, 3))
def test_ranges_hold_for_every_value_inside_the_parts_ranges(bounds, x, y):
    low_a, high_a = sorted(bounds[:2])
    low_b, high_b = sorted(bounds[2:])
    a, b = gd.column("a", range=(low_a, high_a)), gd.column("b", range=(low_b, high_b))
    x, y = min(max(x, low_a), high_a), min(max(y, low_b), high_b)
    for build in (a + b, a - b, a * b, a / b, gd.minimum(a, b), gd.maximum(a, b), -a, a < b, a <= b, a == b, ~a):
        value = one(build, a=x, b=y)
        slack = 1e-9 * (1 + abs(value or 0.0))
        assert value is None or build.range.low - slack <= value <= build.range.high + slack


def test_ranges_of_products_and_branches():
    assert (P * 3 - 1).range == Interval(-1, 2)
    assert gd.when(P, Q, -2).range == Interval(-2, 1)
    assert (P < 2).range == Interval(1, 1)
    assert (A * 0).range == Interval(0, 0)
    assert (P / A).range == Interval(-math.inf, math.inf)


def test_values_outside_a_declared_range_are_unknown_never_clipped():
    scored = (A + 1).within(0, 1).score([{"a": -0.5}, {"a": 0.5}])
    assert scored.scores.known.tolist() == [True, False]
    assert scored.unknown == {"1.5 lies outside the declared range [0, 1]": 1}
    assert P.score([{"a": 2.0}]).unknown == {"2 lies outside the declared range [0, 1]": 1}


def test_names_do_not_change_fingerprints_and_parameters_do():
    assert (A + B).named("total").fingerprint == (A + B).fingerprint
    assert (A + B).fingerprint != (B + A).fingerprint
    assert gd.shape.zscore(A).fingerprint == gd.shape.zscore(A, ddof=0).fingerprint
    assert gd.shape.zscore(A).fingerprint != gd.shape.zscore(A, ddof=1).fingerprint
    with pytest.raises(gd.SpecError, match="not a node name"):
        A.named("has space")


def test_two_functions_of_one_name_stay_apart():
    def made(bonus):
        @gd.signal
        def score(rollout):
            return bonus

        return score

    one_, two = made(1.0), made(2.0)
    assert one_.fingerprint != two.fingerprint
    assert made(1.0).fingerprint == one_.fingerprint
    assert (one_ + 10 * two).score([{}]).scores.values.tolist() == [21.0]


CODE = """
import guerdon as gd
LIMIT = {limit}
WORDS = frozenset({{"a", "b", "c", "d", "e"}})
@gd.signal(range=(0, 1))
def brief(rollout, *, share=0.5):
    return len(rollout.text) < LIMIT * share and rollout.text in WORDS and rollout.text in {{"x", "y", "z"}}
print(brief.fingerprint, gd.when(brief, gd.column("a"), 0.0).fingerprint)
"""


def fingerprints(seed, limit):
    run = [sys.executable, "-c", CODE.format(limit=limit)]
    return subprocess.run(run, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout


def test_fingerprints_are_the_same_in_every_process_and_follow_the_code_and_what_it_names():
    assert fingerprints("1", 10) == fingerprints("2", 10)
    assert fingerprints("1", 10) != fingerprints("1", 11)


def test_a_signal_over_something_without_a_stable_fingerprint_stands_for_itself_only():
    def made(handle):
        @gd.signal(cache=True)
        def odd(rollout):
            return float(handle is not None)

        return odd

    handle = object()
    odd = made(handle)
    assert not odd.stable
    assert odd.fingerprint == odd.named("x").fingerprint
    assert odd.fingerprint != made(handle).fingerprint
    assert odd.score([{}]).scores.values.tolist() == [1.0]


def test_expressions_survive_pickling():
    limit = 4

    @gd.signal(range=(0, 1))
    def brief(rollout, *, extra=0):
        return len(rollout.text) < limit + extra

    reward = gd.when(brief(extra=1).named("brief"), gd.shape.centre(A), B).named("r")
    twin = pickle.loads(pickle.dumps(reward))
    assert twin.fingerprint == reward.fingerprint
    assert [n.name for n in twin.walk()] == [n.name for n in reward.walk()]
    row = {"completion": "abcd", "prompt": "p", "a": 1.0, "b": 2.0}
    assert twin.score([row, row]).scores.values.tolist() == reward.score([row, row]).scores.values.tolist()


def test_a_transform_defined_inside_a_function_survives_pickling():
    factor = 3.0

    @gd.transform("scaled", range=lambda x: x * Interval(3, 3))
    def scaled(x: gd.Scores):
        return gd.Scores.of(x.axis, factor * x.values, x.known, x)

    twin = pickle.loads(pickle.dumps(scaled(A)))
    assert one(twin, a=2.0) == 6.0
    assert twin.fingerprint == scaled(A).fingerprint


def test_very_deep_expressions_do_not_overflow_the_stack():
    deep: Reward = A
    for _ in range(5_000):
        deep = deep + 1
    assert one(deep, a=0.0) == 5_000.0
