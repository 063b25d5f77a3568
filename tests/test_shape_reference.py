"""Blocks that compare, count, pick or pool, against plain loops on random ragged input, and on literal examples."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon import credit, shape
from shape_strategies import TIED, given, groups, listed, same, scores_of

TIE = st.one_of(st.none(), TIED, TIED, TIED)
X, Y = gd.column("x"), gd.column("y")
S, W = gd.column("s", axis="step"), gd.column("w", axis="step")
CRITERIA = st.lists(st.lists(TIE, max_size=4), min_size=1, max_size=5)


def framed(expr, rows):
    return listed(expr.score(rows).framed)


def known(values):
    return [v for v in values if v is not None]


# ---- who is known, and who counts ----


def test_a_fallback_steps_in_only_where_the_first_is_unknown_and_says_why():
    asked = []

    @gd.signal(key="tests.second", version=1, range=(0, 1))
    def second(rollout):
        asked.append(rollout.id)
        return 0.25

    scored = shape.fallback(gd.column("x", range=(0, 1)), second).score([{"id": "a", "x": 0.5}, {"id": "b", "x": None}])
    assert scored.values.tolist() == [0.5, 0.25]
    assert asked == ["b"]
    assert scored.scores.evidence[1] == {"fallback": "column 'x' is missing"}
    assert shape.fallback(gd.column("x", range=(0, 1)), -3).range == gd.Interval(-3, 1)
    assert math.isnan(shape.fallback(X, Y).score([{}]).values[0])


def test_items_are_counted_whether_known_or_not():
    assert shape.items(S).score([{"s": [1, None]}, {"s": []}]).values.tolist() == [2, 0]


@given(groups(TIED))
def test_known_and_only_say_who_takes_part(rows):
    x = scores_of(rows)
    flat = [v for row in rows for v in row]
    assert listed(shape.known(x)) == [float(v is not None) for v in flat]
    where = scores_of([[None if v is None else float(v > 0) for v in row] for row in rows])
    assert listed(shape.only(x, where)) == [v if v is not None and v > 0 else None for v in flat]


@given(groups(TIED))
def test_over_best_is_the_share_of_the_groups_best(rows):
    expected = []
    for row in rows:
        best = max(known(row), default=0.0)
        expected += [None if v is None else v / best if best > 0 else v for v in row]
    assert same(listed(shape.over_best(scores_of(rows))), expected)


@given(groups(TIED))
def test_vote_shares_count_equal_known_members(rows):
    shares, others = [], []
    for row in rows:
        n = len(known(row))
        votes = [None if v is None else row.count(v) for v in row]
        shares += [None if v is None else v / n for v in votes]
        others += [None if v is None else (v - 1) / (n - 1) if n > 1 else 0.0 for v in votes]
    assert same(listed(shape.vote_share(scores_of(rows))), shares)
    assert same(listed(shape.vote_share(scores_of(rows), others=True)), others)


# ---- orders ----


@given(st.lists(st.lists(st.tuples(TIE, TIED), max_size=6), max_size=4))
def test_kendall_equals_its_definition(rows):
    said, gold = ([[pair[k] for pair in row] for row in rows] for k in (0, 1))
    for ties in ("neither", "discordant"):
        expected = []
        for s, g in zip(said, gold, strict=True):
            if None in s or len(s) < 2:
                expected.append(None)
                continue
            total = 0.0
            for i, j in itertools.combinations(range(len(s)), 2):
                a, b = np.sign(s[i] - s[j]), np.sign(g[i] - g[j])
                total += -abs(b) if ties == "discordant" and a == 0 else a * b
            expected.append(total / math.comb(len(s), 2))
        assert same(listed(shape.kendall(scores_of(said), scores_of(gold), ties=ties)), expected)


def mid_ranks(values):
    return [sum(v < x for v in values) + (values.count(x) - 1) / 2 for x in values]


@given(st.lists(st.lists(st.tuples(TIE, TIED), max_size=6), max_size=4))
def test_spearman_is_the_correlation_of_mid_ranks(rows):
    said, gold = ([[pair[k] for pair in row] for row in rows] for k in (0, 1))

    def correlation(a, b):
        if None in a or len(set(a)) < 2 or len(set(b)) < 2:
            return None
        return statistics.correlation(mid_ranks(a), mid_ranks(b))

    assert same(
        listed(shape.spearman(scores_of(said), scores_of(gold))),
        [correlation(a, b) for a, b in zip(said, gold, strict=True)],
    )
    assert same(listed(shape.spearman(scores_of(said))), [correlation(a, list(range(len(a)))) for a in said])


# ---- across the rollouts of a prompt ----


def columns(rows):
    """The known values of each place over the rollouts."""
    return {t: [row[t] for row in rows if t < len(row)] for t in range(max(map(len, rows), default=0))}


@given(CRITERIA, st.one_of(st.none(), st.integers(1, 3)))
def test_contrasting_keeps_the_places_with_the_largest_spread(rows, top):
    spreads = {t: statistics.pstdev(known(c)) if len(known(c)) > 1 else 0.0 for t, c in columns(rows).items()}
    apart = sorted((t for t in spreads if spreads[t] > 1e-12), key=lambda t: (-round(spreads[t], 9), t))[:top]
    got = framed(shape.contrasting(S, top=top), [{"prompt": "p", "s": row} for row in rows])
    assert got == [float(t in apart) for row in rows for t in range(len(row))]


def test_of_criteria_that_differ_as_much_the_first_stays_whatever_the_rounding():
    rows = [{"prompt": "p", "s": s} for s in ([1.0, 0.1 + 0.2, 1.0], [0.0, 0.1, 0.0], [0.0, 0.1, 0.0])]
    assert framed(shape.contrasting(S, top=1), rows)[:3] == [1.0, 0.0, 0.0]
    shifted = [{"prompt": "p", "s": [s, s + 0.1]} for s in (1.0, 0.0, 0.0, 1.0, 0.0)]
    assert framed(shape.contrasting(S, top=1), shifted)[:2] == [1.0, 0.0]


@given(CRITERIA, st.lists(TIE, min_size=5, max_size=5))
def test_label_correlation_is_pearsons_over_the_rollouts_that_know_both(rows, truth):
    expected = {}
    for t in columns(rows):
        pairs = [(row[t], y) for row, y in zip(rows, truth, strict=False) if t < len(row) and None not in (row[t], y)]
        a, b = [p[0] for p in pairs], [p[1] for p in pairs]
        expected[t] = statistics.correlation(a, b) if len(set(a)) > 1 and len(set(b)) > 1 else None
    data = [{"prompt": "p", "s": row, "y": y} for row, y in zip(rows, truth, strict=False)]
    assert same(
        framed(shape.label_correlation(S, Y), data), [expected[t] for row in rows for t in range(len(row))], 1e-6
    )


def test_a_rollout_that_knows_one_side_only_moves_no_correlation():
    rows = [{"prompt": "p", "s": [s], "y": y} for s, y in ((0, 0), (1, 1), (1, 0), (None, 1), (1, None))]
    assert framed(shape.label_correlation(S, Y), rows) == pytest.approx([0.5] * 5)


@given(st.lists(st.floats(-1e5, 0), min_size=1, max_size=6))
def test_the_log_of_a_groups_mean_probability_lies_between_its_members(logs):
    (got,) = listed(shape.group_log_mean(scores_of([logs])))
    assert min(logs) <= got <= max(logs)
    top = max(logs)
    assert got == pytest.approx(top + math.log(sum(math.exp(x - top) for x in logs) / len(logs)))


def test_the_weight_of_a_group_grows_with_its_spread_up_to_its_bounds():
    rows = [{"prompt": p, "x": x} for p, x in (("a", 0), ("a", 1), ("b", 0.5))]
    wide, _, narrow = shape.spread_weight(X).score(rows).values
    usual = 0.25  # the mean of the deviations 0.5 and 0
    assert wide == pytest.approx(0.4 + 2.6 / (1 + math.exp(-6 * (0.5 - usual))))
    assert narrow == pytest.approx(0.4 + 2.6 / (1 + math.exp(6 * usual)))


def test_one_absurd_group_does_not_spoil_the_running_spread_for_good():
    session, weight = gd.Session(), shape.spread_weight(X)
    weight.score([{"prompt": "a", "x": v} for v in (-1e308, 1e308)], session=session)
    weight.score([{"prompt": "a", "x": v} for v in (0.0, 1.0)], session=session)
    assert next(iter(session.state.values())) == {"mean": 0.5, "groups": 1}


# ---- clusters by mutual links ----


@given(st.integers(1, 5).flatmap(lambda n: st.lists(
    st.lists(st.sampled_from([0.0, 1.0, 1.0]), min_size=n, max_size=n), min_size=n, max_size=n
)))  # fmt: skip
def test_mutual_links_chain_into_clusters_named_by_their_first_member(links):
    n = len(links)
    label = list(range(n))
    for _ in range(n):
        for i, j in itertools.permutations(range(n), 2):
            if links[i][j] == links[j][i] == 1.0:
                label[i] = label[j] = min(label[i], label[j])
    rows = [{"prompt": "p", "beats": row} for row in links]
    assert framed(shape.mutual_clusters(gd.column("beats", axis="opponent")), rows) == [float(x) for x in label]


def test_an_open_pair_leaves_both_clusters_unknown_unless_they_are_one_anyhow():
    def clusters(*links):
        rows = [{"prompt": "p", "beats": list(row)} for row in links]
        return framed(shape.mutual_clusters(gd.column("beats", axis="opponent")), rows)

    assert clusters((1, None, 0), (1, 1, 0), (0, 0, 1)) == [None, None, 2.0]
    assert clusters((1, 0), (None, 1)) == [0.0, 1.0]
    assert clusters((1, 1, None), (1, 1, 1), (1, 1, 1)) == [0.0, 0.0, 0.0]


# ---- readings pooled onto steps ----


@given(
    st.lists(st.tuples(st.integers(0, 3), st.lists(st.tuples(TIE, st.sampled_from([0, 1, 2, 0.5, None])), max_size=4)))
)
def test_pooling_takes_the_readings_of_each_step(rows):
    ways = {"max": max, "min": min, "sum": math.fsum}
    for pool, way in ways.items():
        expected = []
        for size, readings in rows:
            lost = any(at is None or at != int(at) or at >= size for _, at in readings)
            for t in range(size):
                mine = [v for v, at in readings if at == t]
                expected.append(None if lost or not mine or None in mine else way(mine))
        data = [
            {"s": [0.0] * size, "reading": [v for v, _ in readings], "of": [at for _, at in readings]}
            for size, readings in rows
        ]
        reading, of = (gd.column(n, axis="reading") for n in ("reading", "of"))
        assert same(framed(shape.pooled(reading, of, S, pool=pool), data), expected)


# ---- named items over all batches ----


def test_live_rates_are_running_means_by_name_and_survive_as_plain_data():
    session, live = gd.Session(), shape.live_rate(S, X, rate=0.25)
    assert framed_in(session, live, [{"x": 7, "s": [1, 0, None]}, {"x": 7, "s": [0, 0]}]) == [0.5, 0.0, None, 0.5, 0.0]
    assert framed_in(session, live, [{"x": 7, "s": [1, None]}, {"x": 8, "s": [0]}]) == [0.625, 0.0, 0.0]
    assert next(iter(session.state.values())) == {"items": {"7/0": 0.625, "7/1": 0.0, "8/0": 0.0}}
    assert framed_in(session, live, [{"x": None, "s": [1]}]) == [None]


def test_an_item_that_never_succeeds_is_put_aside_after_its_patience():
    session, ever = gd.Session(), shape.ever_positive(S, X, patience=2)
    assert framed_in(session, ever, [{"x": 7, "s": [0, 0]}]) == [1.0, 1.0]
    assert framed_in(session, ever, [{"x": 7, "s": [0, 1]}, {"x": 7, "s": [None, 0]}]) == [0.0, 1.0, 0.0, 1.0]
    assert framed_in(session, ever, [{"x": 7, "s": [1, 0]}]) == [1.0, 1.0]


def framed_in(session, expr, rows):
    return listed(expr.score(rows, session=session).framed)


# ---- within a rollout ----


@given(st.lists(st.lists(st.tuples(TIE, st.sampled_from([0.0, 1.0])), max_size=6), max_size=4), st.sampled_from([0, 1]))
def test_rollout_relative_is_the_standard_score_among_the_picked_items(rows, ddof):
    expected = []
    for row in rows:
        picked = [x for x, pick in row if x is not None and pick]
        for x, pick in row:
            if not pick or (x is not None and (len(picked) < 2 or min(picked) == max(picked))):
                expected.append(0.0)
            else:
                spread = statistics.stdev if ddof else statistics.pstdev
                expected.append(None if x is None else (x - statistics.fmean(picked)) / (spread(picked) + 1e-3))
    data = [{"s": [x for x, _ in row], "w": [pick for _, pick in row]} for row in rows]
    assert same(framed(credit.rollout_relative(S, W, ddof=ddof, eps=1e-3), data), expected, 1e-7)
