"""Schedules and running statistics: what is kept in the state, and what a batch sees of it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon import shape
from guerdon.core.interval import Interval
from shape_strategies import ANY, UNIT, given, groups, listed, scores_of

X = gd.column("x")


def batches(expr, *batch):
    """Values of each batch, scored one after another in one session."""
    session = gd.Session()
    return [
        [None if math.isnan(v) else float(v) for v in expr.score([{"x": x} for x in xs], session=session).values]
        for xs in batch
    ]


def test_schedules_at_known_points():
    steps = scores_of([[0, 25, 50, 100, 200, -5]])
    assert listed(shape.anneal(steps, over=100)) == [1.0, 0.75, 0.5, 0.0, 0.0, 1.0]
    assert listed(shape.anneal(steps, over=100, kind="constant", start=0.3)) == [0.3] * 6
    cosine = listed(shape.anneal(steps, over=100, kind="cosine", start=2.0, end=1.0))
    assert cosine == pytest.approx([2.0, 1.8535534, 1.5, 1.0, 1.0, 2.0])
    decay = listed(shape.anneal(scores_of([[100]]), over=500, kind="exponential", start=0.3))
    assert decay == pytest.approx([0.245619], abs=5e-7)
    assert listed(shape.anneal(steps, over=100, start=0.0, end=1.0))[:2] == [0.0, 0.25]
    with pytest.raises(ValueError, match="kind"):
        shape.anneal(steps, over=1, kind="square")
    with pytest.raises(ValueError, match="over"):
        shape.anneal(steps, over=0)


def test_calls_count_the_batches_of_a_session():
    expr = shape.anneal(shape.calls(X), over=2)
    assert batches(expr, [9], [9, 9], [9], [9]) == [[1.0], [0.5, 0.5], [0.0], [0.0]]
    assert expr.score([{"x": 1.0}]).values.tolist() == [1.0]  # without a session there is no memory


def test_weights_move_from_easy_to_hard_and_add_up_to_one():
    assert shape.pace_weights(0.2, (0, 0.5, 1), 0.25) == pytest.approx([0.595752, 0.399345, 0.004903], abs=5e-7)
    assert shape.pace_weights(0.5, (0, 0.5, 1), 0.25) == pytest.approx([0.106507, 0.786986, 0.106507], abs=5e-7)
    assert shape.pace_weights(0.8, (0, 0.5, 1), 0.25) == pytest.approx(shape.pace_weights(0.2, (0, 0.5, 1), 0.25)[::-1])
    floored = shape.pace_weights(0.0, (0, 0.5, 1), 0.01, floor=0.05)
    assert floored == pytest.approx([0.9, 0.05, 0.05])


def test_competence_never_falls_and_is_frozen_while_a_batch_is_scored():
    mix = shape.self_paced({"easy": X, "hard": gd.column("y")}, rate=0.5)
    session = gd.Session()
    first = mix.score([{"x": 1.0, "y": 0.0}, {"x": 1.0, "y": 0.0}], session=session)
    w = shape.pace_weights(0.0, (0.0, 1.0), 0.25)
    assert first.values.tolist() == pytest.approx([w[0], w[0]])
    assert next(iter(session.state.values())) == {"competence": 0.5}
    assert first.scores.evidence[0]["competence"] == 0.0
    mix.score([{"x": 0.0, "y": 0.0}], session=session)
    assert next(iter(session.state.values())) == {"competence": 0.5}
    mix.score([{"x": None, "y": None}], session=session)
    assert next(iter(session.state.values())) == {"competence": 0.5}


def test_running_moments_merge_the_batch_before_it_is_shaped():
    z = shape.running_zscore(X)
    first, second = batches(z, [1, 2], [3])
    assert first == pytest.approx([-1.0, 1.0])
    assert second == pytest.approx([1.0 / 0.8164966])
    session = gd.Session()
    z.score([{"x": 1.0}, {"x": 2.0}], session=session)
    z.score([{"x": 3.0}, {"x": None}], session=session)
    state = next(iter(session.state.values()))
    assert (state["count"], state["mean"], state["low"], state["high"]) == (3, 2.0, 1.0, 3.0)
    assert math.sqrt(state["squares"] / 3) == pytest.approx(0.8164966)


def test_a_first_batch_of_equal_scores_divides_by_one_not_by_zero():
    assert batches(shape.running_zscore(X), [0.3, 0.3], [0.3]) == [[0.0, 0.0], [0.0]]
    assert batches(shape.running_minmax(X), [0.3, 0.3], [0.4]) == [[0.0, 0.0], [1.0]]
    assert batches(shape.running_clip(X), [2.0], [2.0]) == [[2.0], [2.0]]


def test_running_clip_and_minmax_use_everything_seen():
    assert batches(shape.running_minmax(X), [0, 10], [5, 20]) == [[0.0, 1.0], [0.25, 1.0]]
    assert batches(shape.running_clip(X, width=1.0), [0, 2, 10]) == [[0.0, 2.0, pytest.approx(8.3204937)]]


def test_the_place_between_running_quantiles():
    first = batches(shape.running_quantile_scale(X), [2, 3, 4])[0]
    assert first == pytest.approx([0.0, 0.5, 1.0])
    assert batches(shape.running_quantile_scale(X), [7], [7]) == [[0.5], [0.5]]
    buffered = batches(shape.running_quantile_scale(X, low=0, high=1, size=2), [0, 100], [1, 2], [1.5])
    assert buffered == [[0.0, 1.0], [0.0, 1.0], [0.0]]  # 1.5 and 2 are left of all that was seen


def test_a_moving_average_starts_at_the_first_known_batch():
    assert batches(shape.running_mean(X, rate=0.25), [None], [2, 4], [7], [None]) == [[None], [3.0, 3.0], [4.0], [4.0]]


@pytest.mark.parametrize("name", ["running_zscore", "running_minmax", "running_clip", "running_quantile_scale"])
@given(st.lists(groups(UNIT, max_groups=2), max_size=4))
def test_states_are_plain_data_and_scores_stay_in_range(name, many):
    function = getattr(shape, name)
    expr = function(gd.column("x", range=(0, 1)))
    state = None
    for rows in many:
        out, state = function(scores_of(rows), **({} if state is None else {"state": state}))
        assert json.loads(json.dumps(state)) == state
        assert np.isfinite(out.values[out.known]).all()
        assert (out.values[out.known] >= expr.range.low).all()
        assert (out.values[out.known] <= expr.range.high).all()
        assert listed(out).count(None) == sum(x is None for row in rows for x in row)


@given(st.lists(st.lists(UNIT, min_size=1, max_size=5), min_size=1, max_size=5))
def test_merged_moments_are_those_of_all_batches_together(many):
    state = None
    for batch in many:
        _, state = shape.running_zscore(scores_of([batch]), **({} if state is None else {"state": state}))
    everything = np.concatenate(many)
    assert state["mean"] == pytest.approx(everything.mean(), abs=1e-12)
    assert state["squares"] / len(everything) == pytest.approx(everything.var(), abs=1e-12)


@given(groups(ANY))
def test_running_statistics_of_any_input_are_finite_or_unknown(rows):
    for function in (shape.running_zscore, shape.running_minmax, shape.running_clip, shape.running_quantile_scale):
        out, _ = function(scores_of(rows))
        assert np.isfinite(out.values[out.known]).all()


def test_a_wrong_rate_is_refused():
    with pytest.raises(ValueError, match="rate"):
        shape.running_mean(scores_of([[1.0]]), rate=0)
    with pytest.raises(ValueError, match="low < high"):
        shape.running_quantile_scale(scores_of([[1.0]]), low=0.9, high=0.1)
    assert shape.running_minmax(X).range == Interval(0, 1)
