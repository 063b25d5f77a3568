"""What holds for every function of the room: ranges, unknowns, order of the rollouts, pickling, both ways to call
it."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon import shape
from guerdon.core.transform import Transform
from guerdon.spec import dump_spec, load_spec
from shape_strategies import UNIT, given, listed, same, scores_of

X, Y, B = (gd.column(n, range=(0, 1)) for n in "xyb")
S, W, K, E = (gd.column(n, axis="item", range=r) for n, r in (("s", (0, 1)), ("w", (0, 3)), ("k", None), ("e", None)))
OPPONENT = gd.column("beats", axis="opponent", range=(0, 1))

CASES = {
    "affine": shape.affine(X, -2, 0.3),
    "anneal": shape.anneal(X, over=0.5, kind="cosine"),
    "arctan": shape.arctan(X),
    "base_bonus": shape.base_bonus(X, Y),
    "bradley_terry": shape.bradley_terry(OPPONENT),
    "calls": shape.calls(X),
    "cap": shape.cap(X, 0.3, unless=B),
    "centre": shape.centre(X),
    "choose": shape.choose(B, [X, Y]),
    "clip": shape.clip(X, 0.2, 0.6),
    "copeland": shape.copeland(OPPONENT),
    "dag_gate": shape.dag_gate(S, parents=[[], [0], [0, 1]]),
    "delta": shape.delta(S),
    "dominance": shape.dominance([X, Y]),
    "elo": shape.elo(OPPONENT, rounds=5),
    "ensemble_lower_bound": shape.ensemble_lower_bound(S),
    "ensemble_mean": shape.ensemble_mean([X, Y]),
    "ensemble_min": shape.ensemble_min(S),
    "ensemble_spread": shape.ensemble_spread([X, Y]),
    "exp": shape.exp(X),
    "fallback": shape.fallback(X, Y),
    "gain": shape.gain(S),
    "gate": shape.gate(X, [B, Y >= 0.1], failed=[-1, -0.5]),
    "gated_sum": shape.gated_sum([X, Y, B], [0.1, 0.5]),
    "gaussian": shape.gaussian(X, 0.5),
    "group_class": shape.group_class(X),
    "group_log_mean": shape.group_log_mean(X),
    "group_statistic": shape.group_statistic(X, "std", where=B, ddof=1),
    "items": shape.items(S),
    "kendall": shape.kendall(S, W),
    "label_statistic": shape.label_statistic(S, "var"),
    "length_penalty": shape.length_penalty(X, budget=0.5, buffer=0.2),
    "log": shape.log(X, 1e-6),
    "log_sigmoid": shape.log_sigmoid(X),
    "mean_over_others": shape.mean_over_others(OPPONENT),
    "merge_uncertain": shape.merge_uncertain(X, Y * 0.1, values="mean"),
    "minmax": shape.minmax(X, within=B),
    "normalised_sum": shape.normalised_sum([X, Y]),
    "ordinal": shape.ordinal(X),
    "pareto_front": shape.pareto_front([X, Y]),
    "power": shape.power(X, 1.5),
    "quantise": shape.quantise(X),
    "rank": shape.rank(X),
    "running_clip": shape.running_clip(X),
    "running_mean": shape.running_mean(X),
    "running_minmax": shape.running_minmax(X),
    "running_quantile_scale": shape.running_quantile_scale(X),
    "running_zscore": shape.running_zscore(X),
    "self_paced": shape.self_paced([X, Y]),
    "sigmoid": shape.sigmoid(X, 3, 0.5),
    "skew_preference": shape.skew_preference(S),
    "soft_and": shape.soft_and([X, Y]),
    "soft_gate": shape.soft_gate(X, Y),
    "spread_weight": shape.spread_weight(X),
    "stratify": shape.stratify(X, by=B),
    "tanh": shape.tanh(X),
    "tiered": shape.tiered(X, [0.1, 0.5], [0, 1, -1]),
    "until": shape.until(S >= 0.5),
    "weighted_items": shape.weighted_items(S, W, classes=K, missing="skip"),
    "weighted_mean": shape.weighted_mean({"x": X, "y": Y}, {"x": 2, "y": 1}, missing="renormalise"),
    "weighted_sum": shape.weighted_sum([X, Y], [2, -1], missing={"1": 0.5}),
    "win_rate": shape.win_rate(OPPONENT),
    "zscore": shape.zscore(X, ddof=1, eps=1e-6),
}
READS_THE_ORDER = {"bradley_terry", "copeland", "elo", "mean_over_others", "skew_preference", "win_rate"}

MAYBE = st.one_of(st.none(), UNIT)


@st.composite
def rollouts(draw):
    """Rollouts of up to three prompts, three items each, and a comparison with every member of their group."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    rows = []
    for prompt, size in enumerate(sizes):
        for _ in range(size):
            three = st.lists(MAYBE, min_size=3, max_size=3)
            rows.append(
                {
                    "prompt": str(prompt), "x": draw(MAYBE), "y": draw(MAYBE),
                    "b": draw(st.sampled_from([0.0, 1.0, 1.0, None])), "s": draw(three), "k": [0, 0, 1], "e": [0, 1, 2],
                    "w": draw(st.lists(st.sampled_from([0.0, 1.0, 3.0]), min_size=3, max_size=3)),
                    "beats": draw(st.lists(MAYBE, min_size=size, max_size=size)),
                }
            )  # fmt: skip
    return rows


def per_rollout(scored):
    """Each rollout's values in input order, None where unknown."""
    scores = scored.scores
    flat = listed(scores)
    if scores.axis.name == "rollout":
        return [[v] for v in flat]
    ends = scores.axis.offsets.tolist()
    return [flat[a:b] for a, b in itertools.pairwise(ends)]


def test_no_public_function_of_the_modules_covered_here_is_left_out():
    home = {n: getattr(shape, n).function.__module__ for n in shape.__all__ if isinstance(getattr(shape, n), Transform)}
    covered = {home[name] for name in CASES if name in home}
    assert {name for name, module in home.items() if module in covered} <= set(CASES)


@pytest.mark.parametrize("name", CASES)
@given(rows=rollouts(), seed=st.integers(0, 99), examples=12)
def test_ranges_hold_nothing_is_nan_and_the_order_of_the_rollouts_does_not_matter(name, rows, seed):
    expr = CASES[name]
    scored = expr.score(rows)
    got = scored.framed.values[scored.framed.known]
    assert np.isfinite(got).all()
    assert (got >= expr.range.low).all()
    assert (got <= expr.range.high).all()
    assert all(scored.framed.reason(i) for i in np.flatnonzero(~scored.framed.known))
    if name in READS_THE_ORDER:
        return
    order = np.random.default_rng(seed).permutation(len(rows))
    plain, mixed = per_rollout(scored), per_rollout(expr.score([rows[i] for i in order]))
    assert all(same(plain[i], mixed[place]) for place, i in enumerate(order))


@pytest.mark.parametrize("name", CASES)
def test_a_node_survives_pickling_with_its_fingerprint(name):
    twin = pickle.loads(pickle.dumps(CASES[name]))
    assert twin.fingerprint == CASES[name].fingerprint
    assert twin.range == CASES[name].range
    rows = [{"prompt": "p", "x": v, "y": 1 - v, "b": 1.0, "s": [v] * 3, "w": [1] * 3, "k": [0] * 3, "beats": [v, v]}
            for v in (0.25, 0.75)]  # fmt: skip
    assert np.array_equal(twin.score(rows).framed.values, CASES[name].score(rows).framed.values)


@pytest.mark.parametrize("name", CASES)
def test_a_node_can_be_written_as_a_spec_and_read_back(name):
    assert load_spec(dump_spec(CASES[name])).reward.fingerprint == CASES[name].fingerprint


@pytest.mark.parametrize("name", CASES)
def test_an_empty_batch_is_no_error(name):
    assert len(CASES[name].score([])) == 0


# The blocks that no other file tests by themselves.


def test_a_fallback_steps_in_only_where_the_first_is_unknown_and_says_why():
    asked = []

    @gd.signal(key="tests.second", version=1, range=(0, 1))
    def second(rollout):
        asked.append(rollout.id)
        return 0.25

    scored = shape.fallback(X, second).score([{"id": "a", "x": 0.5}, {"id": "b", "x": None}])
    assert scored.values.tolist() == [0.5, 0.25]
    assert asked == ["b"]
    assert scored.scores.evidence[1] == {"fallback": "column 'x' is missing"}
    assert shape.fallback(X, -3).range == gd.Interval(-3, 1)
    assert math.isnan(shape.fallback(X, Y).score([{}]).values[0])


@given(st.lists(st.tuples(MAYBE, UNIT), max_size=6))
def test_kendall_equals_its_definition(items):
    said, gold = [s for s, _ in items], [g for _, g in items]
    got = shape.kendall(scores_of([said]), scores_of([gold]))
    if None in said or len(said) < 2:
        assert listed(got) == [None]
        return
    signs = [
        np.sign(said[i] - said[j]) * np.sign(gold[i] - gold[j]) for i, j in itertools.combinations(range(len(said)), 2)
    ]
    assert same(listed(got), [sum(signs) / len(signs)])


@given(st.lists(st.floats(-1e5, 0), min_size=1, max_size=6))
def test_the_log_of_a_groups_mean_probability_lies_between_its_members(logs):
    (got,) = listed(shape.group_log_mean(scores_of([logs])))
    assert min(logs) <= got <= max(logs)
    top = max(logs)
    assert got == pytest.approx(top + math.log(sum(math.exp(x - top) for x in logs) / len(logs)))


def test_items_are_counted_whether_known_or_not():
    assert shape.items(S).score([{"s": [1, None]}, {"s": []}]).values.tolist() == [2, 0]


def test_the_weight_of_a_group_grows_with_its_spread_up_to_its_bounds():
    rows = [{"prompt": p, "x": x} for p, x in (("a", 0), ("a", 1), ("b", 0.5))]
    wide, _, narrow = shape.spread_weight(X).score(rows).values
    assert 3 >= wide > narrow >= 0.4
