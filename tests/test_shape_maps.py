"""Maps of one score: their values, and that what they declare as their range always holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon import shape
from guerdon.core.interval import Interval
from shape_strategies import ANY, given, scores_of

X = gd.column("x")


def values(expr, *xs):
    return [None if math.isnan(v) else float(v) for v in expr.score([{"x": x} for x in xs]).values]


def test_clip_affine_and_power():
    assert values(shape.clip(X, -1, 1), 3, -0.5, -7) == [1.0, -0.5, -1.0]
    assert values(shape.clip(X, low=0), 3, -0.5) == [3.0, 0.0]
    assert values(shape.affine(X, 2, -1), 0, 1, None) == [-1.0, 1.0, None]
    assert values(shape.power(X, 2), 3, -1) == [9.0, None]
    assert values(shape.power(X, 0), 0) == [1.0]


def test_bounded_maps_at_known_points():
    assert values(shape.sigmoid(X), 0, 0.5, -1000) == pytest.approx([0.5, 0.6224593, 0.0])
    assert values(shape.sigmoid(X, 2, 1), 1.25) == pytest.approx([0.6224593])
    assert values(shape.tanh(X), 1) == pytest.approx([0.7615942])
    assert values(shape.arctan(X), 1) == pytest.approx([math.pi / 4])
    assert values(shape.log_sigmoid(X), 0, -1000) == pytest.approx([-math.log(2), -1000.0])
    assert values(shape.gaussian(X, 20), 0, 10, 20, 40, 80) == pytest.approx(
        [1, 0.882497, 0.606531, 0.135335, 0.000335], abs=5e-7
    )


def test_a_logarithm_of_zero_is_unknown_unless_a_floor_is_stated():
    assert values(shape.log(X), 1, 0, -1) == [0.0, None, None]
    assert values(shape.log(X, 1e-8), 0) == pytest.approx([math.log(1e-8)])
    assert values(shape.exp(X), 0, 1e6) == [1.0, None]


def test_length_penalties_over_a_budget():
    soft = shape.length_penalty(X, budget=20480, buffer=4096)
    assert values(soft, 100, 16384, 18432, 20480, 99999) == [0.0, 0.0, -0.5, -1.0, -1.0]
    assert values(shape.length_penalty(X, budget=10), 10, 11) == [0.0, -1.0]
    linear = shape.length_penalty(X, budget=300, kind="linear", rate=0.01)
    assert values(linear, 300, 400, 100) == [0.0, -1.0, 0.0]
    assert values(shape.length_penalty(X, budget=300, kind="linear", most=0.5), 1000) == [-0.5]


def test_length_penalties_declare_how_much_they_can_take():
    assert shape.length_penalty(X, budget=10).range == Interval(-1, 0)
    assert shape.length_penalty(X, budget=10, kind="linear").range == Interval(-math.inf, 0)
    tokens = gd.column("x", range=(0, 400))
    assert shape.length_penalty(tokens, budget=300, kind="linear").range == Interval(-1, 0)


@pytest.mark.parametrize(
    "wrong", [{"kind": "square"}, {"buffer": 11}, {"rate": -1}, {"most": -1}, {"buffer": -1}], ids=str
)
def test_a_penalty_that_could_be_a_bonus_is_refused(wrong):
    with pytest.raises(ValueError, match=r"length_penalty|kind"):
        shape.length_penalty(X, budget=10, **wrong)


def test_tiers_of_a_distance():
    near = shape.tiered(X, [0, 5, 10], [1.0, 0.5, 0.2, 0.0])
    assert values(near, 0, 3, 5, 10, 11, -1, None) == [1.0, 0.5, 0.5, 0.2, 0.0, 1.0, None]
    assert near.range == Interval(0, 1)
    assert shape.tiered(gd.column("x", range=(6, 99)), [0, 5, 10], [1, 0.5, 0.2, 0]).range == Interval(0, 0.2)
    with pytest.raises(ValueError, match="separate 3 tiers"):
        shape.tiered(X, [0, 5], [1, 0])
    with pytest.raises(ValueError, match="increase"):
        shape.tiered(X, [5, 0], [1, 0, 0])


def test_tiers_round_up_but_not_by_a_rounding_error():
    s = [1.0, 0.882497, 0.606531, 0.135335, 0.000335]
    assert values(shape.quantise(X), *s) == [1.0, 1.0, 0.75, 0.25, 0.25]
    assert values(shape.quantise(X, floor=0.05), s[-1]) == [0.0]
    noisy = (0.2 + 0.4 + 0.3 + 0.1) / 4
    assert 4 * noisy > 1.0  # 1.0000000000000002
    assert values(shape.quantise(X), noisy, 0.25 + 1e-8) == [0.25, 0.5]
    assert values(shape.quantise(X), 0.0, -0.1, 1.1, 1e-12) == [0.0, None, None, 0.25]


MAPS = {
    "clip": lambda x: shape.clip(x, -2, 0.5),
    "clip_low": lambda x: shape.clip(x, 3),
    "affine": lambda x: shape.affine(x, -3, 0.1),
    "sigmoid": lambda x: shape.sigmoid(x, -2.5, 0.3),
    "log_sigmoid": shape.log_sigmoid,
    "tanh": shape.tanh,
    "arctan": shape.arctan,
    "exp": shape.exp,
    "log": lambda x: shape.log(x, 1e-8),
    "power": lambda x: shape.power(x, 0.5),
    "gaussian": lambda x: shape.gaussian(x, 0.7),
    "tiered": lambda x: shape.tiered(x, [-1, 0, 5], [3, -1, 2, 0]),
    "quantise": lambda x: shape.quantise(x, levels=3),
    "soft": lambda x: shape.length_penalty(x, budget=3, buffer=2, most=0.3),
    "linear": lambda x: shape.length_penalty(x, budget=3, kind="linear", rate=0.1),
    "anneal": lambda x: shape.anneal(x, over=7, kind="cosine", start=0.3, end=0.1),
    "anneal_exp": lambda x: shape.anneal(x, over=7, kind="exponential", start=0.1, end=0.3),
    "cap": lambda x: shape.cap(x, 0.4),
    "soft_gate": lambda x: shape.soft_gate(x, x),
}


@pytest.mark.parametrize("name", MAPS)
@given(low=ANY, high=ANY, shares=st.lists(st.floats(0, 1), max_size=4))
def test_the_declared_range_always_holds_and_nothing_is_nan(name, low, high, shares):
    low, high = min(low, high), max(low, high)
    expr = MAPS[name](gd.column("x", range=(low, high)))
    inside = [min(max(low * (1 - s) + high * s, low), high) for s in shares]
    out = expr.score([{"x": x} for x in [low, high, *inside]]).scores
    got = out.values[out.known]
    assert np.isfinite(got).all()
    assert (got >= expr.range.low).all()
    assert (got <= expr.range.high).all()


@pytest.mark.parametrize("name", MAPS)
def test_what_is_unknown_stays_unknown_with_its_reason(name):
    out = MAPS[name](scores_of([[None, 0.5], []]))
    assert out.known.tolist() == [False, True]
    assert out.reason(0) == "not given"
