"""Members compared with each other: checklists as graphs, Pareto fronts, ensembles, clusters, tournaments."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon import shape
from guerdon.core.interval import Interval
from shape_strategies import ANY, TIED, UNIT, given, groups, listed, same, scores_of


def values(expr, rows):
    return [None if math.isnan(v) else float(v) for v in expr.score(rows).values]


# Checklists.

YES = gd.column("yes", axis="criterion", range=(0, 1))


def test_no_credit_behind_a_failed_question():
    gated = shape.dag_gate(YES, parents=[[], [0], [1], [2]])
    assert values(gated, [{"yes": [1, 1, 0, 1]}]) == [1, 1, 0, 0]
    assert values(gated.mean(), [{"yes": [1, 1, 0, 1]}]) == [0.5]
    assert values(YES.mean(), [{"yes": [1, 1, 0, 1]}]) == [0.75]


def test_the_graph_can_come_with_the_data_edge_by_edge():
    gated = shape.dag_gate(YES, gd.column("child", axis="edge"), gd.column("parent", axis="edge"))
    rows = [
        {"yes": [1, 0, 1], "child": [2, 0], "parent": [0, 1]},
        {"yes": [1, 1], "child": [], "parent": []},
        {"yes": [], "child": [], "parent": []},
    ]
    assert values(gated, rows) == [0, 0, 0, 1, 1]


def test_a_cycle_or_an_edge_out_of_the_list_makes_that_rollout_unknown():
    gated = shape.dag_gate(YES, gd.column("child", axis="edge"), gd.column("parent", axis="edge"))
    rows = [
        {"yes": [1, 1, 1], "child": [0, 1], "parent": [1, 0]},
        {"yes": [1], "child": [0], "parent": [7]},
        {"yes": [1, 1], "child": [1], "parent": [0]},
        {"yes": [1], "child": [0], "parent": [0]},
    ]
    out = gated.score(rows).scores
    assert listed(out) == [None] * 4 + [1, 1, None]
    assert "cycle" in out.reason(0)


def test_one_of_several_parents_may_be_enough():
    parents = [[], [], [0, 1]]
    rows = [{"yes": [1, 0, 1]}]
    assert values(shape.dag_gate(YES, parents=parents), rows) == [1, 0, 0]
    assert values(shape.dag_gate(YES, parents=parents, need="any"), rows) == [1, 0, 1]


def test_a_known_zero_decides_beside_an_unknown():
    gated = shape.dag_gate(YES, parents=[[], [0], [1]])
    assert values(gated, [{"yes": [None, 1, 0]}]) == [None, None, 0]
    assert values(gated, [{"yes": [0, None, 1]}]) == [0, 0, 0]
    out = gated.score([{"yes": [None, 1, 0]}]).scores
    assert out.reason(1) == "it depends on an unknown answer"


def test_a_list_of_another_length_does_not_fit_a_fixed_graph():
    assert values(shape.dag_gate(YES, parents=[[], [0]]), [{"yes": [1, 1, 1]}]) == [None] * 3
    with pytest.raises(ValueError, match="positions from 0 to 1"):
        shape.dag_gate(YES, parents=[[], [2]]).score([{"yes": [1, 1]}])


@given(st.data())
def test_gating_equals_a_recursion_on_random_graphs(data):
    size = data.draw(st.integers(1, 6))
    order = data.draw(st.permutations(range(size)))
    parents = [
        [order[q] for q in range(order.index(i)) if data.draw(st.booleans())] for i in range(size)
    ]  # earlier in the order: no cycle
    answers = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=size, max_size=size))

    def value(i):
        return answers[i] * math.prod(value(p) for p in parents[i])

    assert values(shape.dag_gate(YES, parents=parents), [{"yes": answers}]) == [value(i) for i in range(size)]


# Pareto.


def dominates(a, b):
    return all(x >= y for x, y in zip(a, b, strict=True)) and any(x > y for x, y in zip(a, b, strict=True))


@given(st.lists(st.lists(st.tuples(TIED, st.one_of(st.none(), TIED)), max_size=6), max_size=3))
def test_fronts_and_dominance_equal_the_pairwise_definition(rows):
    one = scores_of([[a for a, _ in row] for row in rows])
    two = scores_of([[b for _, b in row] for row in rows])
    fronts, net = [], []
    for row in rows:
        left = {i for i, (_, b) in enumerate(row) if b is not None}
        known, level, mine = set(left), 0, {}
        while left:
            front = {i for i in left if not any(dominates(row[j], row[i]) for j in left)}
            mine.update(dict.fromkeys(front, float(level)))
            left, level = left - front, level + 1
        fronts += [mine.get(i) for i in range(len(row))]
        for i in range(len(row)):
            wins = sum(dominates(row[i], row[j]) - dominates(row[j], row[i]) for j in known) if i in known else 0
            net.append(wins / (len(known) - 1) if i in known and len(known) > 1 else None)
    assert listed(shape.pareto_front([one, two])) == fronts
    assert same(listed(shape.dominance([one, two])), net)


def test_pairs_are_made_in_pieces_of_bounded_size(monkeypatch):
    from guerdon.shape import _pairs

    monkeypatch.setattr(_pairs, "PIECE", 5)
    ends = np.array([0, 3, 3, 4, 6])
    made = list(_pairs.pairs(ends))
    assert len(made) > 2
    got = [(int(a), int(b)) for i, j in made for a, b in zip(i, j, strict=True)]
    assert got == [(a, b) for lo, hi in itertools.pairwise(ends.tolist()) for a in range(lo, hi) for b in range(lo, hi)]


# Ensembles.


@given(st.lists(st.lists(st.one_of(st.none(), UNIT), min_size=3, max_size=3), min_size=1, max_size=5), examples=25)
def test_members_as_a_sequence_or_as_a_column_give_the_same(rows):
    columns = [gd.column(n, range=(0, 1)) for n in "abc"]
    member = gd.column("all", axis="member", range=(0, 1))
    data = [{**dict(zip("abc", row, strict=True)), "all": row} for row in rows]
    for function in (shape.ensemble_mean, shape.ensemble_spread, shape.ensemble_lower_bound, shape.ensemble_min):
        for missing in ("unknown", "skip"):
            apart, together = function(columns, missing=missing), function(member, missing=missing)
            assert values(apart, data) == values(together, data)
            assert apart.range == together.range
            assert all(apart.range.low <= v <= apart.range.high for v in values(apart, data) if v is not None)


@given(st.lists(UNIT, min_size=2, max_size=6))
def test_ensemble_statistics_equal_their_definition(row):
    member = gd.column("all", axis="member")
    rows = [{"all": row}]
    assert same(values(shape.ensemble_mean(member), rows), [statistics.fmean(row)])
    assert same(values(shape.ensemble_spread(member), rows), [statistics.stdev(row)], 1e-7)
    assert same(values(shape.ensemble_spread(member, ddof=0), rows), [statistics.pstdev(row)], 1e-7)
    assert values(shape.ensemble_min(member), rows) == [min(row)]
    bound = statistics.fmean(row) - 2 * statistics.stdev(row)
    assert same(values(shape.ensemble_lower_bound(member, k=2), rows), [bound], 1e-7)


def test_one_member_has_no_sample_deviation():
    scored = shape.ensemble_lower_bound(gd.column("all", axis="member")).score([{"all": [1.0]}, {"all": []}])
    assert [scored.scores.reason(i) for i in (0, 1)] == ["too few members for a deviation", "it has no members"]
    assert values(shape.ensemble_spread(gd.column("all", axis="member"), ddof=0), [{"all": [0.3]}]) == [0.0]
    with pytest.raises(ValueError, match="k of at least 0"):
        shape.ensemble_lower_bound(scores_of([[1.0]]), k=-1)


# Clusters.


def clustered(mean, spread, width=1.0):
    """Cluster numbers of one group by the rule, in plain steps."""
    order = sorted(range(len(mean)), key=lambda i: (mean[i], spread[i]))
    out, number = {}, 0
    for before, i in itertools.pairwise([None, *order]):
        if before is not None:
            number += mean[i] - mean[before] > width * math.hypot(spread[i], spread[before])
        out[i] = float(number)
    return [out[i] for i in range(len(mean))]


@given(st.lists(st.lists(st.tuples(TIED, st.sampled_from([0.0, 0.1, 0.3])), max_size=6), max_size=3))
def test_clusters_equal_the_rule_step_by_step(rows):
    mean, spread = ([[m[k] for m in row] for row in rows] for k in (0, 1))
    numbers = [clustered(m, s) for m, s in zip(mean, spread, strict=True)]
    out = shape.merge_uncertain(scores_of(mean), scores_of(spread))
    assert listed(out) == [c for group in numbers for c in group]
    sizes = [group.count(c) for group in numbers for c in group]
    assert [out.evidence[i]["cluster_size"] for i in range(len(sizes))] == sizes
    middles = [
        statistics.fmean(m for m, d in zip(means, group, strict=True) if d == c)
        for means, group in zip(mean, numbers, strict=True)
        for c in group
    ]
    assert same(listed(shape.merge_uncertain(scores_of(mean), scores_of(spread), values="mean")), middles)


def test_a_cluster_can_stand_for_its_mean():
    mean, spread = scores_of([[1.0, 1.05, 1.1, 2.0, 2.04]]), scores_of([[0.1] * 5])
    assert listed(shape.merge_uncertain(mean, spread, values="mean")) == pytest.approx([1.05] * 3 + [2.02] * 2)
    assert shape.merge_uncertain(mean, spread).evidence[3] == {"cluster": 1, "cluster_size": 2}


# Tournaments.

BEATS = gd.column("beats", axis="opponent")
RULES = {
    "win_rate": shape.win_rate,
    "copeland": shape.copeland,
    "bradley_terry": shape.bradley_terry,
    "elo": shape.elo,
}


def tournament(matrix):
    return [{"prompt": "p", "beats": row} for row in matrix]


def averaged(matrix, i, j):
    """P(i beats j) from both rows, None where neither judged."""
    there, back = matrix[i][j], matrix[j][i]
    if there is None and back is None:
        return None
    if back is None:
        return there
    return 1 - back if there is None else (there + 1 - back) / 2


MATRICES = st.integers(1, 4).flatmap(
    lambda n: st.lists(
        st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 1.0])), min_size=n, max_size=n),
        min_size=n,
        max_size=n,
    )
)


@given(MATRICES)
def test_win_rate_and_copeland_equal_their_definition(matrix):
    n = len(matrix)
    wins, signs = [], []
    for i in range(n):
        met = [p for j in range(n) if j != i and (p := averaged(matrix, i, j)) is not None]
        wins.append(statistics.fmean(met) if met else None)
        signs.append(statistics.fmean([(p > 0.5) - (p < 0.5) for p in met]) if met else None)
    assert same(values(shape.win_rate(BEATS), tournament(matrix)), wins)
    assert same(values(shape.copeland(BEATS), tournament(matrix)), signs)


@given(MATRICES)
def test_bradley_terry_is_where_the_slope_vanishes(matrix):
    n, prior = len(matrix), 0.1
    b = values(shape.bradley_terry(BEATS, prior=prior), tournament(matrix))
    assert same([sum(x for x in b if x is not None)], [0.0], 1e-6)
    for i in range(n):
        met = [(j, p) for j in range(n) if j != i and (p := averaged(matrix, i, j)) is not None]
        assert (b[i] is None) == (not met)
        slope = sum(p - 1 / (1 + math.exp(b[j] - b[i])) for j, p in met)
        assert not met or slope == pytest.approx(prior * b[i], abs=1e-6)


def test_bradley_terry_recovers_the_strengths_behind_the_probabilities():
    b = [1.0, 0.25, -1.25]
    matrix = [[1 / (1 + math.exp(y - x)) for y in b] for x in b]
    assert values(shape.bradley_terry(BEATS, prior=1e-9), tournament(matrix)) == pytest.approx(b, abs=1e-6)
    many_rounds = values(shape.elo(BEATS, rounds=2000, rate=100), tournament(matrix))
    assert many_rounds == pytest.approx([400 / math.log(10) * x for x in b], abs=1e-6)


@pytest.mark.parametrize("name", RULES)
@given(MATRICES, st.randoms(use_true_random=False), examples=30)
def test_no_rule_depends_on_the_order_of_the_members(name, matrix, random):
    order = random.sample(range(len(matrix)), len(matrix))
    mixed = [[matrix[i][j] for j in order] for i in order]
    plain = values(RULES[name](BEATS), tournament(matrix))
    assert same([plain[i] for i in order], values(RULES[name](BEATS), tournament(mixed)), 1e-6)


def test_a_row_of_another_length_than_the_group_does_not_count():
    rows = [{"prompt": "p", "beats": b} for b in ([0.5, 1.0, 0.3], [0.0, 0.5])]
    assert values(shape.win_rate(BEATS), rows) == [1.0, 0.0]  # only the second row fits
    assert values(shape.win_rate(BEATS), [{"prompt": "p", "beats": [1.0]}]) == [None]


def test_a_clean_sweep_has_finite_strength():
    out = values(shape.bradley_terry(BEATS), tournament([[0.5, 1, 1], [0, 0.5, 1], [0, 0, 0.5]]))
    assert out[0] > out[1] > out[2]
    assert out[1] == pytest.approx(0.0, abs=1e-9)


def test_a_cycle_gives_equal_scores():
    ring = tournament([[0.5, 1, 0], [0, 0.5, 1], [1, 0, 0.5]])
    assert values(shape.copeland(BEATS), ring) == [0, 0, 0]
    assert values(shape.bradley_terry(BEATS), ring) == pytest.approx([0, 0, 0], abs=1e-9)
    with pytest.raises(ValueError, match="prior above 0"):
        shape.bradley_terry(BEATS, prior=0).score(ring)


# Embeddings.


def at_angle(*degrees):
    return [{"prompt": "p", "v": [math.cos(math.radians(a)), math.sin(math.radians(a))]} for a in degrees]


V = gd.column("v", axis="dimension")


def test_embeddings_can_hold_a_cycle():
    out = shape.skew_preference(V).score(at_angle(0, 120, 240)).framed.values.reshape(3, 3)
    s = 0.8660254
    assert np.allclose(out, [[0, s, -s], [-s, 0, s], [s, -s, 0]], atol=1e-7)


@given(st.lists(st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=4, max_size=4), min_size=1, max_size=4))
def test_preference_scores_are_skew_symmetric_and_ignore_length(vectors):
    rows = [{"prompt": "p", "v": v} for v in vectors]
    longer = [{"prompt": "p", "v": [3 * x for x in v]} for v in vectors]
    n = len(vectors)
    out = shape.skew_preference(V).score(rows).framed
    matrix = out.values.reshape(n, n)
    assert np.allclose(matrix, -matrix.T)
    assert np.allclose(matrix, shape.skew_preference(V).score(longer).framed.values.reshape(n, n))
    assert out.known.reshape(n, n).tolist() == [[any(a) and any(b) for b in vectors] for a in vectors]
    assert (np.abs(matrix) <= 1 + 1e-12).all()


def test_strengths_weigh_the_pairs_of_coordinates():
    rows = [{"prompt": "p", "v": v, "lam": [2.0, 0.0]} for v in ([1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0])]
    plain = shape.skew_preference(V).score(rows).framed.values
    weighed = shape.skew_preference(V, gd.column("lam", axis="block")).score(rows).framed.values
    assert plain.tolist() == pytest.approx([0, 0, 0, 0], abs=1e-12)
    assert weighed.tolist() == pytest.approx([0, 1, -1, 0])


def test_odd_zero_or_unequal_embeddings_have_no_direction():
    rows = [{"prompt": "p", "v": v} for v in ([1.0, 0.0], [0.0, 0.0], [1.0, 0.0, 0.0], [None, 1.0], [0.0, 1.0])]
    known = shape.skew_preference(V).score(rows).framed.known.reshape(5, 5)
    assert known.tolist() == [[i in (0, 4) and j in (0, 4) for j in range(5)] for i in range(5)]


# What nothing may do.


@given(groups(ANY, max_groups=2, max_size=4))
def test_no_comparison_gives_nan(rows):
    x = scores_of(rows)
    absolute = scores_of([[None if v is None else abs(v) for v in row] for row in rows])
    outs = [
        shape.pareto_front([x, absolute]),
        shape.dominance([x, absolute]),
        shape.merge_uncertain(x, absolute),
        shape.merge_uncertain(x, absolute, values="mean"),
        shape.ensemble_mean([x, absolute]),
        shape.ensemble_spread([x, absolute]),
        shape.ensemble_lower_bound([x, absolute]),
    ]
    for out in outs:
        assert np.isfinite(out.values[out.known]).all()


def test_declared_ranges():
    x = gd.column("x", range=(0, 1))
    assert shape.dominance([x, x]).range == Interval(-1, 1)
    assert shape.win_rate(BEATS).range == Interval(0, 1)
    assert shape.merge_uncertain(x, x, values="mean").range == Interval(0, 1)
