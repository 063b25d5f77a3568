"""Normalising within the group, against loops that say what is meant."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon.shape import centre, minmax, normalised_sum, ordinal, rank, zscore
from shape_strategies import ANY, TIED, WIDE, given, groups, listed, same, scores_of


def each_group(rows, rule, least=2):
    """The rule applied to the known members of each group; unknown below ``least`` of them."""
    out = []
    for row in rows:
        known = [x for x in row if x is not None]
        out += [rule(x, known) if x is not None and len(known) >= least else None for x in row]
    return out


@given(groups(WIDE))
def test_centre_is_score_minus_mean(rows):
    expected = each_group(rows, lambda x, known: x - math.fsum(known) / len(known))
    assert same(listed(centre(scores_of(rows))), expected, 1e-6)


@given(groups(), st.sampled_from([0, 1]), st.sampled_from([0.0, 1e-6]))
def test_zscore_divides_by_the_stated_deviation(rows, ddof, eps):
    deviation = statistics.stdev if ddof else statistics.pstdev

    def rule(x, known):
        return 0.0 if min(known) == max(known) else (x - statistics.fmean(known)) / (deviation(known) + eps)

    assert same(listed(zscore(scores_of(rows), ddof=ddof, eps=eps)), each_group(rows, rule))


@given(groups(WIDE))
def test_minmax_spans_the_stated_ends_and_a_flat_group_takes_the_middle(rows):
    def rule(x, known):
        low, high = min(known), max(known)
        return 1.0 if low == high else 4.0 * (x - low) / (high - low) - 1.0

    assert same(listed(minmax(scores_of(rows), low=-1, high=3)), each_group(rows, rule, least=1))


@given(groups())
def test_rank_gives_ties_the_mean_of_their_places(rows):
    def rule(x, known):
        below, equal = sum(y < x for y in known), sum(y == x for y in known)
        return (below + (equal - 1) / 2) / (len(known) - 1)

    assert same(listed(rank(scores_of(rows))), each_group(rows, rule))


@given(groups())
def test_ordinal_counts_the_different_scores_below(rows):
    expected = each_group(rows, lambda x, known: float(len({y for y in known if y < x})), least=1)
    assert listed(ordinal(scores_of(rows))) == expected


@given(groups(TIED, max_groups=3), st.sampled_from([0.5, 2.0, 1024.0]), st.sampled_from([-3.0, 0.0, 8.0]))
def test_shift_and_scale_change_nothing_but_centre_scales(rows, scale, shift):
    moved = [[None if x is None else scale * x + shift for x in row] for row in rows]
    for normalise in (zscore, minmax, rank, ordinal):
        assert same(listed(normalise(scores_of(moved))), listed(normalise(scores_of(rows))), 1e-7)
    scaled = [None if x is None else scale * x for x in listed(centre(scores_of(rows)))]
    assert same(listed(centre(scores_of(moved))), scaled, 1e-7)


@given(groups(TIED, max_groups=3), st.randoms(use_true_random=False))
def test_members_may_come_in_any_order(rows, random):
    orders = [random.sample(range(len(row)), len(row)) for row in rows]
    mixed = [[row[i] for i in order] for row, order in zip(rows, orders, strict=True)]
    for normalise in (centre, zscore, minmax, rank, ordinal):
        plain, moved = listed(normalise(scores_of(rows))), iter(listed(normalise(scores_of(mixed))))
        start = 0
        for row, order in zip(rows, orders, strict=True):
            assert same([plain[start + i] for i in order], [next(moved) for _ in row], 1e-12)
            start += len(row)


@given(groups(ANY))
def test_no_input_however_wide_or_tiny_gives_nan(rows):
    x = scores_of(rows)
    for normalise in (centre, zscore, minmax, rank, ordinal):
        out = normalise(x)
        assert np.isfinite(out.values[out.known]).all()
        assert not (out.known & ~x.known).any()


def test_deviations_that_underflow_or_overflow_still_separate_the_scores():
    low, high = listed(zscore(scores_of([[0.0, 5e-324]])))
    assert low < high
    assert listed(zscore(scores_of([[-1e300, 1e300]]))) == [-1.0, 1.0]
    assert listed(zscore(scores_of([[0.0, 1e-200]]))) == [-1.0, 1.0]
    third = listed(zscore(scores_of([[0.0, 0.0, 7e-161]])))  # squares with a few digits left
    assert same(third, [-math.sqrt(0.5), -math.sqrt(0.5), math.sqrt(2)], 1e-12)


def test_a_deviation_beyond_the_floats_says_nothing_of_its_members():
    largest = float(np.finfo(np.float64).max)
    for normalise in (zscore, gd.credit.group_relative):
        out = normalise(scores_of([[largest, -largest], [1.0, 3.0]]), ddof=1, eps=1e-9)
        assert same(listed(out), [None, None, -math.sqrt(0.5), math.sqrt(0.5)], 1e-8)
        assert out.reason(0) == "not a finite number"
        assert listed(normalise(scores_of([[largest, -largest]]))) == [1.0, -1.0]


def test_zero_spread_is_max_equal_min_not_a_small_deviation():
    thirds = [0.1 + 0.2, 0.1 + 0.2, 0.1 + 0.2]
    assert listed(zscore(scores_of([thirds]))) == [0.0, 0.0, 0.0]
    assert listed(zscore(scores_of([[0.3, 0.1 + 0.2]]))) != [0.0, 0.0]
    assert (0.1 + 0.1 + 0.1) / 3 != 0.1
    for exactly in (centre, zscore, gd.credit.group_relative):
        assert listed(exactly(scores_of([[0.1] * 3]))) == [0.0] * 3


def test_a_group_with_one_known_member_is_unknown_and_says_so():
    out = zscore(scores_of([[1.0, None]]))
    assert listed(out) == [None, None]
    assert out.reason(0) == "fewer than two known members in the group"
    assert out.reason(1) == "not given"


def test_min_max_within_a_class_reads_members_of_that_class_only():
    rows = [{"prompt": "p", "q": q, "c": c} for q, c in ((2, 1), (0, 1), (9, 0), (5, 0), (7, 0))]
    expr = minmax(gd.column("q"), within=gd.column("c"))
    assert expr.score(rows).values.tolist() == [1.0, 0.0, 1.0, 0.0, 0.5]


def test_across_label_compares_one_criterion_over_the_rollouts():
    rows = [{"prompt": "p", "met": m} for m in ([1.0, 5.0], [0.0, 7.0])]
    by_label = centre(gd.column("met", axis="criterion"), across="label").score(rows).framed
    assert by_label.values.tolist() == [0.5, -1.0, -0.5, 1.0]
    whole = centre(gd.column("met", axis="criterion")).score(rows).framed
    assert whole.values.tolist() == [-2.25, 1.75, -3.25, 3.75]
    with pytest.raises(ValueError, match="across"):
        centre(gd.column("x").score([{"x": 1.0}]), across="prompt")


# Per-component normalisation before the sum.


def test_a_component_of_large_variance_does_not_swallow_the_others():
    faith, looks = scores_of([[1.0, 0.5, 0.0, 0.5]]), scores_of([[100.0, 102.0, 101.0, 101.0]])
    total = normalised_sum({"faith": faith, "looks": looks})
    assert np.allclose(total.values, [0, 1.2247, -1.2247, 0], atol=1e-4)
    raw = gd.shape.weighted_sum([faith, looks])
    assert np.allclose(zscore(raw, ddof=1, eps=1e-6).values, [-0.7071, 1.4142, -0.7071, 0], atol=1e-4)


def test_a_component_without_spread_adds_exactly_zero():
    flat, other = scores_of([[0.1, 0.1, 0.1]]), scores_of([[1.0, 2.0, 3.0]])
    alone = normalised_sum([other])
    assert listed(normalised_sum([flat, other])) == listed(alone)


@given(groups(WIDE, max_groups=2), st.sampled_from([1e-3, 1.0, 1e3]))
def test_the_scale_of_a_component_does_not_matter(rows, scale):
    one = scores_of(rows)
    other = scores_of([[None if x is None else (i % 3) * 1.0 for i, x in enumerate(row)] for row in rows])
    scaled = scores_of([[None if x is None else x * scale for x in row] for row in rows])
    left = normalised_sum([one, other], eps=0.0)
    right = normalised_sum([scaled, other], eps=0.0)
    assert same(listed(left), listed(right), 1e-4)
