"""Along the steps of a rollout: differences, gains over the best so far, and what a first hit cuts off."""

from __future__ import annotations

import guerdon as gd
from guerdon.shape import delta, gain, until
from shape_strategies import ANY, UNIT, given, groups, listed, same, scores_of

# Rollouts of a prompt are consecutive items under a parent, as steps are under a rollout.


@given(groups(UNIT))
def test_delta_is_the_difference_to_the_item_before(rows):
    expected = []
    for row in rows:
        for i, x in enumerate(row):
            before = 0.25 if i == 0 else row[i - 1]
            expected.append(None if x is None or before is None else x - before)
    assert same(listed(delta(scores_of(rows), start=0.25)), expected)


@given(groups(UNIT))
def test_gain_is_what_exceeds_the_best_so_far_and_telescopes(rows):
    expected = []
    for row in rows:
        best = 0.1
        for x in row:
            expected.append(None if x is None else max(x - best, 0.0))
            best = max([best, *([] if x is None else [x])])
        total = sum(e for e in expected[len(expected) - len(row) :] if e is not None)
        assert abs(total - (best - 0.1)) < 1e-12
    assert same(listed(gain(scores_of(rows), start=0.1)), expected, 0)


@given(groups(ANY))
def test_gains_are_never_negative_nor_nan(rows):
    out = gain(scores_of(rows))
    assert (out.values[out.known] >= 0).all()


def test_back_and_forth_earns_nothing():
    swing = {"progress": [10, 0, 10, 0, 10, 30]}
    assert gain(gd.column("progress", axis="step")).score([swing]).values.tolist() == [10, 0, 0, 0, 0, 20]
    deltas = delta(gd.column("progress", axis="step")).score([swing]).values
    assert deltas.sum() == 30


@given(groups(UNIT.map(round)))
def test_until_keeps_everything_up_to_the_first_hit(rows):
    expected = []
    for row in rows:
        for i in range(len(row)):
            earlier = row[:i]
            expected.append(0.0 if 1 in earlier else None if None in earlier else 1.0)
    assert listed(until(scores_of(rows))) == expected


def test_the_declared_ranges():
    x = gd.column("x", axis="step", range=(0, 100))
    assert (gain(x).range.low, gain(x).range.high) == (0, 100)
    assert (delta(x).range.low, delta(x).range.high) == (-100, 100)
    assert gain(x, start=150).range.high == 0
