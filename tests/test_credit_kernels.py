"""The ragged kernels against plain loops: random lengths, both paths (numpy, compiled), no leak between segments."""

import importlib.util
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guerdon.credit import _kernels as kernels
from guerdon.credit import _loops as loops

LENGTHS = st.one_of(
    st.lists(st.integers(0, 5), max_size=12),
    st.lists(st.integers(0, 90), max_size=8),
    st.lists(st.sampled_from([0, 1, 15, 16, 17, 64, 65, 257]), max_size=8),
)
QUICK = settings(max_examples=30, deadline=None)
DECAYS = st.sampled_from([0.0, 0.3, 0.9, 0.9405, 0.999, 1.0])


def ragged(lengths, seed=0):
    offsets = np.r_[0, np.cumsum(np.array(lengths, dtype=np.int64))].astype(np.int64)
    return np.random.default_rng(seed).normal(size=int(offsets[-1])), offsets


def by_loop(function, x, offsets, *params):
    out = np.empty_like(x)
    function(x, offsets, *params, out)
    return out


@QUICK
@given(LENGTHS, DECAYS, st.integers(0, 3))
def test_discounted_suffix_sums_equal_the_loop(lengths, decay, seed):
    x, offsets = ragged(lengths, seed)
    expected = by_loop(loops.suffix_discounted, x, offsets, decay)
    before = x.copy()
    assert kernels.suffix_discounted(x, offsets, decay) == pytest.approx(expected, abs=1e-11)
    assert (x == before).all()


@QUICK
@given(LENGTHS, st.sampled_from([np.minimum, np.maximum, np.add]), st.booleans())
def test_accumulation_equals_accumulation_of_each_segment(lengths, ufunc, reverse):
    x, offsets = ragged(lengths)
    parts = np.split(x, offsets[1:-1]) if len(lengths) else []
    expected = [ufunc.accumulate(p[::-1])[::-1] if reverse else ufunc.accumulate(p) for p in parts if len(p)]
    assert kernels.accumulate(ufunc, x, offsets, reverse=reverse).tolist() == (
        np.concatenate(expected).tolist() if expected else []
    )


@QUICK
@given(LENGTHS, st.integers(1, 12), DECAYS)
def test_window_sums_equal_the_definition(lengths, width, decay):
    x, offsets = ragged(lengths)
    expected = [
        sum(decay**j * x[t + j] for j in range(width) if t + j < end)
        for start, end in pairwise(offsets)
        for t in range(start, end)
    ]
    assert kernels.window_sums(x, offsets, width, decay) == pytest.approx(np.array(expected), abs=1e-11)


@QUICK
@given(LENGTHS, DECAYS, DECAYS)
def test_gae_equals_the_loop(lengths, gamma, lam):
    rewards, offsets = ragged(lengths, 1)
    values, _ = ragged(lengths, 2)
    expected = rewards.copy()
    loops.gae(values, offsets, gamma, gamma * lam, expected)
    assert kernels.gae(rewards.copy(), values, offsets, gamma, lam) == pytest.approx(expected, abs=1e-11)


@QUICK
@given(LENGTHS)
def test_neighbours_and_positions(lengths):
    x, offsets = ragged(lengths)
    parts = [x[a:b].tolist() for a, b in pairwise(offsets)]
    assert kernels.following(x, offsets, 7.0).tolist() == [v for p in parts if p for v in [*p[1:], 7.0]]
    assert kernels.preceding(x, offsets, 7.0).tolist() == [v for p in parts if p for v in [7.0, *p[:-1]]]
    assert kernels.positions(offsets).tolist() == [i for p in parts for i in range(len(p))]


@QUICK
@given(LENGTHS, st.integers(1, 9))
def test_adding_what_lies_ahead_stays_in_the_segment(lengths, ahead):
    x, offsets = ragged(lengths)
    expected = [
        1.0 + (0.5 * x[t + ahead] if t + ahead < end else 0.0)
        for start, end in pairwise(offsets)
        for t in range(start, end)
    ]
    out = np.ones_like(x)
    kernels.add_ahead(out, x, offsets, ahead, 0.5)
    assert out == pytest.approx(np.array(expected))


def test_no_segment_feels_the_size_of_its_neighbours_numbers():
    x = np.concatenate([np.full(100, 1e-3), np.full(100, 1e200), np.full(100, 1e-3)])
    offsets = np.array([0, 100, 200, 300])
    alone = np.array([0, 100])
    for decay in (0.5, 0.999, 1.0):
        out = kernels.suffix_discounted(x, offsets, decay)
        assert (out[:100] == kernels.suffix_discounted(x[:100].copy(), alone, decay)).all() or out[
            :100
        ] == pytest.approx(kernels.suffix_discounted(x[:100].copy(), alone, decay), rel=1e-12)
        assert np.abs(out[200:]).max() < 1.0
    assert kernels.window_sums(x, offsets, 5, 1.0)[96:100] == pytest.approx([4e-3, 3e-3, 2e-3, 1e-3])


def test_the_smallest_numbers_survive_beside_the_largest():
    tiny, offsets = np.array([5e-324, 2e-308, 1e-300]), np.array([0, 3, 103, 106])
    x = np.concatenate([tiny, np.full(100, 1e300), tiny])
    alone = kernels.suffix_discounted(tiny, np.array([0, 3]), 0.5)
    out = kernels.suffix_discounted(x, offsets, 0.5)
    assert alone.min() > 0
    assert out[:3].tolist() == out[103:].tolist() == alone.tolist()
    assert out[3] == pytest.approx(2e300)


def test_chunks_and_blocks_join_without_a_seam(monkeypatch):
    monkeypatch.setattr(kernels, "CHUNK", 64)
    monkeypatch.setattr(kernels, "COMPILE_FROM", 1 << 60)
    x, offsets = ragged([0, 700, 1, 333, 64, 2000, 5] + [3] * 50)
    for decay in (0.9, 0.9999):
        expected = by_loop(loops.suffix_discounted, x, offsets, decay)
        assert kernels.suffix_discounted(x, offsets, decay) == pytest.approx(expected, abs=1e-10)
    assert (kernels.accumulate(np.minimum, x, offsets, reverse=True) == by_loop(loops.suffix_min, x, offsets)).all()


def test_a_decay_outside_the_unit_interval_and_an_empty_window_are_errors():
    x, offsets = ragged([3])
    with pytest.raises(ValueError, match="decay"):
        kernels.suffix_discounted(x, offsets, 1.5)
    with pytest.raises(ValueError, match="window"):
        kernels.window_sums(x, offsets, 0, 0.5)


def test_spread_can_repeat_straight_into_a_trainers_dtype():
    out = kernels.spread(np.array([0.5, -0.5]), np.array([2, 1]), np.float32)
    assert out.dtype == np.float32
    assert out.tolist() == [0.5, 0.5, -0.5]


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed (guerdon[fast])")
@pytest.mark.slow
def test_compiled_loops_give_what_the_array_versions_give(monkeypatch):
    x, offsets = ragged([0, 700, 1, 333, 5, 64, 2000] + [3] * 50)
    v, _ = ragged(np.diff(offsets), 5)
    calls = {
        "discounted": lambda: kernels.suffix_discounted(x, offsets, 0.94),
        "sum": lambda: kernels.suffix_discounted(x, offsets, 1.0),
        "minimum": lambda: kernels.accumulate(np.minimum, x, offsets, reverse=True),
        "gae": lambda: kernels.gae(x.copy(), v, offsets, 0.99, 0.95),
    }
    monkeypatch.setattr(kernels, "COMPILE_FROM", 1 << 60)
    plain = {name: call() for name, call in calls.items()}
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
    for name, call in calls.items():
        assert call() == pytest.approx(plain[name], abs=1e-11), name
