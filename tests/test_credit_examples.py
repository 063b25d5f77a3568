"""The examples of credit show what they say: seeded, small, and the direction is checked."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "credit"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


def example(name):
    return importlib.import_module(name)


def test_summed_step_rewards_get_hacked_and_the_minimum_does_not():
    module = example("step_reward_hacking")
    accuracy, filler = module.train("sum")
    assert np.mean(accuracy[-30:]) < 0.2
    assert np.mean(filler[-30:]) > 4.0
    accuracy, filler = module.train("min")
    assert np.mean(accuracy[-30:]) > 0.8
    assert np.mean(filler[-30:]) < 2.5


def test_the_z_score_drives_an_all_fail_policy_into_the_dark_room():
    module = example("dark_room")
    assert module.train("std")[-1] > 0.95
    assert module.train("none")[-1] < 0.5


def test_a_plain_sum_collapses_to_one_objective_and_normalised_parts_find_the_compromise():
    module = example("two_objectives")
    last = {way: module.train(way)[-1] for way in module.ADVANTAGE}
    assert last["plain sum"].argmax() == 1
    assert last["plain sum"] @ module.FIRST > 9.0
    assert last["per component"].argmax() == 2
    assert last["per component"][2] > 0.6
    assert last["per component"] @ module.SECOND > 0.4


def test_index_broken_ties_teach_something_where_there_is_nothing_to_learn():
    module = example("tied_ranks")
    assert module.train("by index")[-1] > 0.8
    assert module.train("mid-rank")[-1] == 0.5


def test_repetition_pays_under_a_sum_only():
    module = example("repeated_steps")
    assert module.earned("sum")[0] == pytest.approx(2.8)
    assert module.earned("sum")[10] == pytest.approx(10.8)
    for way in ("clip", "delta", "clip, then delta"):
        assert np.ptp(module.earned(way)) == pytest.approx(0.0)


def test_analytic_pass_at_k_advantages_equal_brute_force():
    module = example("best_of_k")
    for right in range(9):
        for k in (1, 2, 4, 8):
            assert module.analytic(right, k) == pytest.approx(module.brute(right, k), abs=1e-9)


def test_positive_step_rewards_favour_longer_paths_until_centred():
    module = example("path_length")
    raw, error = module.gradient("raw")
    assert raw == pytest.approx(0.5, abs=4 * error)
    centred, error = module.gradient("centred")
    assert abs(centred) < 3 * error
    assert module.train("raw", updates=30)[-1] > 5.0
    assert module.train("centred", updates=30)[-1] < 4.0


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_plots_are_written(tmp_path, monkeypatch, ending):
    pytest.importorskip("matplotlib")
    target = tmp_path / f"plot.{ending}"
    monkeypatch.setattr(sys, "argv", ["x", str(target)])
    module = example("_softmax")
    assert module.save_curves({"a": [0.0, 1.0]}, "x", "y", "title", "unused.png") == target
    assert target.stat().st_size > 1000


def test_the_right_prefix_learns_a_long_chain_far_sooner_than_the_outcome():
    """The catalogue's miniature: depth 4, 34 updates against 48; depth 8, 69 against 179 (other random numbers)."""
    module = example("right_prefix")
    needed = {d: {way: module.updates_needed(way, depth=d, seeds=3) for way in module.WAYS} for d in (4, 8)}
    assert needed[4]["right prefix"] < 0.9 * needed[4]["outcome"]
    assert needed[8]["right prefix"] < 0.5 * needed[8]["outcome"]
    assert needed[8]["right prefix"] < 2.5 * needed[4]["right prefix"]
