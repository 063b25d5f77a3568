"""The comparison rules as literal tables, and against an obvious reference."""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guerdon.verify.queries.compare import Expected, Tolerance, canonical, compare_rows, match_rows


def one_block(rows, ordered=False):
    return Expected(((len(rows), tuple(rows)),) if rows else (), len(rows[0]) if rows else 1, ordered)


def kind(rows, expected, **options):
    difference = compare_rows(rows, expected, columns=expected.columns, **options)
    return None if difference is None else difference.kind


NAN = float("nan")
CELLS = [
    # left, right, equal
    (None, None, True),
    (None, "", False),
    (None, 0, False),
    (None, NAN, False),
    (NAN, NAN, True),
    (math.inf, math.inf, True),
    (math.inf, -math.inf, False),
    (3, 3.0, True),
    (3, decimal.Decimal("3.00"), True),
    (True, 1, True),
    ("3", 3, False),
    ("3.0", 3.0, False),
    ("", 0, False),
    ("a", "A", False),
    ("a", "a ", False),
    (10_000_000, 10_000_001, False),
    (10_000_000.0, 10_000_001, False),
    (0.1 + 0.2, 0.3, True),
    (1.0, 1.0000005, True),
    (1.0, 1.000002, False),
    (0.0, 5e-10, True),
    (0.0, 1e-8, False),
    (decimal.Decimal("0.333333333"), 1 / 3, True),
    (2**60, 2**60 + 1, False),
    (1e17, 1e17 + 64, True),
    (b"a", "a", False),
    (b"a", b"a", True),
    (datetime.date(2020, 1, 2), "2020-01-02", True),
    (datetime.datetime(2020, 1, 2, 3, 4), "2020-01-02 03:04:00", True),
    ([1, 2.0], [1.0, 2], True),
    ([1, 2], [2, 1], False),
    ({"a": 1}, {"a": 1.0}, True),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "equal"), CELLS)
def test_cells_are_equal_by_type_and_value(left, right, equal):
    assert (kind([(left,)], one_block([(right,)])) is None) is equal
    assert (kind([(right,)], one_block([(left,)])) is None) is equal


UNORDERED = [
    # rows, gold, difference
    ([], [], None),
    ([(1,), (2,)], [(2,), (1,)], None),
    ([(1,)], [(1,), (1,)], "rows"),
    ([(1,), (1,), (2,)], [(1,), (2,), (2,)], "values"),
    ([(1, 2)], [(1,)], "columns"),
    ([(1,)], [(1, 1)], "columns"),
    ([(1, "a"), (2, "b")], [(1, "b"), (2, "a")], "values"),
    ([("a", 1)], [(1, "a")], "values"),
]


@pytest.mark.parametrize(("rows", "gold", "difference"), UNORDERED)
def test_without_order_results_are_multisets_of_rows(rows, gold, difference):
    assert kind(rows, one_block(gold)) == difference


def test_an_empty_result_still_needs_the_right_number_of_columns():
    assert compare_rows([], Expected((), 2), columns=1).kind == "columns"
    assert compare_rows([], Expected((), 2), columns=2) is None


TIES = Expected(((1, (("a",),)), (2, (("b",), ("c",))), (1, (("d",),))), 1, ordered=True)
CUT = Expected(((1, (("a",),)), (1, (("b",), ("c",)))), 1, ordered=True)
ORDERED = [
    ("abcd", TIES, None),
    ("acbd", TIES, None),
    ("bacd", TIES, "order"),
    ("dcba", TIES, "order"),
    ("abbd", TIES, "values"),
    ("abc", TIES, "rows"),
    ("ab", CUT, None),
    ("ac", CUT, None),
    ("ba", CUT, "order"),
    ("bc", CUT, "values"),
    ("aa", CUT, "values"),
    ("abc", CUT, "rows"),
]


@pytest.mark.parametrize(("letters", "expected", "difference"), ORDERED)
def test_with_order_the_sort_keys_decide_and_ties_are_free(letters, expected, difference):
    assert kind([(letter,) for letter in letters], expected) == difference


def test_a_tie_cut_by_limit_makes_the_gold_ambiguous():
    assert CUT.ambiguous
    assert not TIES.ambiguous
    assert CUT.rows == 2


def test_columns_may_be_permuted_only_by_choice():
    gold = one_block([(1, "a", 2), (3, "b", 4)])
    rows = [("a", 1, 2), ("b", 3, 4)]
    assert kind(rows, gold) == "values"
    assert kind(rows, gold, permute_columns=True) is None
    assert kind([("a", 1, 4), ("b", 3, 2)], gold, permute_columns=True) == "values"


def test_nothing_but_nulls_is_trivial():
    assert one_block([]).trivial
    assert one_block([(None, None)]).trivial
    assert not one_block([(None, 0)]).trivial


def test_floats_close_on_both_sides_of_a_rounding_step_still_pair():
    step = 0.4999999999
    rows = [(step, "x"), (0.5, "y")]
    gold = [(0.5, "x"), (step, "y")]
    assert kind(rows, one_block(gold)) is None


def test_many_close_floats_pair_in_sorted_order():
    gold = [(i / 7,) for i in range(1, 2000)]
    rows = [(value * (1 + 1e-9),) for (value,) in reversed(gold)]
    assert kind(rows, one_block(gold)) is None
    rows[5] = (rows[5][0] + 1,)
    assert kind(rows, one_block(gold)) == "values"


# The reference: try every assignment of rows to rows.


def reference_cells(left, right):
    if left is None or right is None or isinstance(left, str) or isinstance(right, str):
        return left == right and type(left) is type(right)
    if float(left).is_integer() and float(right).is_integer():
        return left == right
    return abs(left - right) <= max(1e-6 * max(abs(left), abs(right)), 1e-9)


def reference_multisets(left, right):
    if len(left) != len(right):
        return False
    return any(
        all(all(map(reference_cells, a, b)) for a, b in zip(left, order, strict=True))
        for order in itertools.permutations(right)
    )


noise = st.sampled_from([0.0, 1e-10, -1e-10, 2e-10])
number = st.one_of(
    st.integers(-3, 3), st.builds(lambda i, e: i + 0.5 + e, st.integers(-2, 2), noise), st.sampled_from([1.0, -2.0])
)
cell = st.one_of(st.none(), st.sampled_from(["", "a", "1"]), number)
table = st.lists(st.tuples(cell, number), max_size=5)


@settings(max_examples=300, deadline=None)
@given(table, table)
def test_unordered_comparison_agrees_with_trying_every_pairing(rows, gold):
    expected = Expected(((len(gold), tuple(gold)),) if gold else (), 2)
    assert (compare_rows(rows, expected, columns=2) is None) == reference_multisets(rows, gold)


@settings(max_examples=150, deadline=None)
@given(table, st.randoms())
def test_any_order_of_the_same_rows_is_equal(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert kind(shuffled, Expected(((len(rows), tuple(rows)),) if rows else (), 2)) is None


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.tuples(cell, number), min_size=1, max_size=3), max_size=3), st.randoms())
def test_ordered_comparison_agrees_with_comparing_each_group_of_ties(groups, random):
    rows = [row for group in groups for row in group]
    expected = Expected(tuple((len(group), tuple(group)) for group in groups), 2, ordered=True)
    random.shuffle(rows)
    start, same = 0, True
    for group in groups:
        same = same and reference_multisets(rows[start : start + len(group)], group)
        start += len(group)
    assert (compare_rows(rows, expected, columns=2) is None) == same


@settings(max_examples=150, deadline=None)
@given(table, table)
def test_matching_leaves_as_many_on_one_side_as_it_takes_from_the_other(rows, pool):
    extra, missing = match_rows(rows, pool, Tolerance())
    assert len(rows) - len(extra) == len(pool) - len(missing)


def test_canonical_kinds_never_meet():
    assert {canonical(value)[0] for value in (None, "1", 1, 1.5, b"1", [1], {"a": 1})} == {
        *("null", "text", "int", "float", "bytes", "list", "record")
    }


def test_a_hostile_result_of_the_same_size_is_compared_in_no_time():
    gold = [(f"g{i % 400}", i / 7, i / 3) for i in range(20_000)]
    rows = [(f"g{i % 400}", i / 7 + 1e-3 * (i % 5), i / 3) for i in range(20_000)]
    started = time.process_time()
    assert kind(rows, one_block(gold)) == "values"
    assert time.process_time() - started < 2.0


def test_integers_beyond_every_float_are_compared_exactly():
    assert kind([(10**400,)], one_block([(10**400,)])) is None
    assert kind([(10**400,)], one_block([(10**400 + 1,)])) == "values"
    assert kind([(10**400,)], one_block([(1.5,)])) == "values"
