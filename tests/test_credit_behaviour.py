"""The examples of behaviour show what they say: seeded, small, and the direction is checked."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "behaviour"
NAMES = sorted(path.stem for path in EXAMPLES.glob("[a-z]*.py"))


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


def example(name):
    return importlib.import_module(name)


def test_summed_step_rewards_get_hacked_and_the_minimum_does_not():
    module = example("step_reward_hacking")
    accuracy, filler = module.train("sum", updates=120)
    assert np.mean(accuracy[-30:]) < 0.1
    assert np.mean(filler[-30:]) > 4.5
    accuracy, filler = module.train("min", updates=200)
    assert np.mean(accuracy[-30:]) > 0.85
    assert np.mean(filler[-30:]) < 1.5


def test_the_z_score_drives_an_all_fail_policy_into_the_dark_room():
    module = example("dark_room")
    assert (module.train("std", updates=50, seeds=3)[:, -1] > 0.99).all()
    assert (module.train("none", updates=200, seeds=3)[:, -1] < 0.2).all()


def test_a_plain_sum_collapses_to_one_objective_and_normalised_parts_find_the_compromise():
    """The catalogue's miniature: 9.90 and 0.011 by the plain sum, 4.82 and 0.591 with arm 3 at 0.74 per component."""
    module = example("two_objectives")
    last = {way: module.train(way)[:, -1] for way in module.ADVANTAGE}
    assert (last["plain sum"].argmax(axis=1) == 1).all()
    assert (last["per component"].argmax(axis=1) == 2).all()
    mean = {way: policies.mean(axis=0) for way, policies in last.items()}
    assert (mean["plain sum"] @ module.FIRST, mean["plain sum"] @ module.SECOND) == pytest.approx(
        (9.90, 0.011), abs=0.01
    )
    assert (mean["per component"] @ module.FIRST, mean["per component"] @ module.SECOND) == pytest.approx(
        (4.82, 0.591), abs=0.02
    )
    assert mean["per component"][2] == pytest.approx(0.74, abs=0.01)


def test_index_broken_ties_teach_something_where_there_is_nothing_to_learn():
    module = example("tied_ranks")
    assert (module.train("by index", updates=100)[:, -1] > 0.9).all()
    assert (module.train("mid-rank", updates=20) == 0.5).all()


def test_repetition_pays_under_a_sum_only():
    module = example("repeated_steps")
    assert module.earned("sum")[0] == pytest.approx(2.8)
    assert module.earned("sum")[10] == pytest.approx(10.8)
    for way, stays in {"clip": -0.3, "delta": 0.9, "clip, then delta": 0.0}.items():
        assert module.earned(way) == pytest.approx([stays] * 21), way


def test_analytic_pass_at_k_advantages_equal_brute_force():
    module = example("best_of_k")
    for right in range(9):
        for k in (1, 2, 4, 8):
            assert module.analytic(right, k) == pytest.approx(module.brute(right, k), abs=1e-9)
    totals = [np.abs(module.analytic(right, 4)).sum() for right in range(1, 6)]
    assert totals == pytest.approx([2.0, 2.0889, 1.6641, 0.9631, 0.0], abs=5e-5)


def test_positive_step_rewards_favour_longer_paths_until_centred():
    """The catalogue's miniature: 200,000 paths, raw 0.498 (s.e. 0.006), centred within 3 s.e. (0.0036) of 0."""
    module = example("path_length")
    raw, error = module.gradient("raw")
    assert raw == pytest.approx(0.5, abs=4 * error)
    assert error == pytest.approx(0.006, abs=0.0005)
    centred, error = module.gradient("centred")
    assert abs(centred) < 3 * error
    assert error == pytest.approx(0.0036, abs=0.0003)
    assert (module.train("raw", updates=15, seeds=2)[:, -1] > 5.0).all()
    assert (module.train("centred", updates=30, seeds=2)[:, -1] < 3.0).all()


def test_discretised_scores_are_hacked_less_than_raw_ones():
    module = example("discretised_scores")
    raw, merged = (module.train(way, updates=200, seeds=3) for way in ("raw mean", "discretised"))
    assert (raw.max(axis=1) > 0.85).all()  # both learn not to be wrong
    assert (merged.max(axis=1) > 0.85).all()
    assert (raw[:, -1] < 0.7).all()  # and then the raw score pads
    assert (merged[:, -1] > 0.9).all()


def test_a_gated_bonus_can_not_outbid_a_failed_gate():
    module = example("gated_bonus")
    added, gated = (module.train(way, updates=250, seeds=3)[:, -1] for way in module.REWARD)
    assert (added[:, 2] > 0.95).all()
    assert (gated[:, 2] < 0.05).all()
    assert (gated[:, 1] > 0.8).all()  # what passes is still told apart by the bonus
    assert module.REWARD["plain sum"].range.high == 4


def test_the_right_prefix_learns_a_long_chain_far_sooner_than_the_outcome():
    """The catalogue's miniature: depth 4, 34 updates against 48; depth 8, 69 against 179 (other random numbers)."""
    module = example("right_prefix")
    needed = {d: {way: module.updates_needed(way, depth=d) for way in module.WAYS} for d in (4, 8)}
    assert needed[4]["right prefix"] < 0.9 * needed[4]["outcome alone"]
    assert needed[8]["right prefix"] < 0.5 * needed[8]["outcome alone"]
    assert needed[8]["right prefix"] == pytest.approx(69, rel=0.2)
    assert needed[8]["outcome alone"] == pytest.approx(179, rel=0.2)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_plots_are_written(tmp_path, monkeypatch, ending):
    pytest.importorskip("matplotlib")
    target = tmp_path / f"plot.{ending}"
    monkeypatch.setattr(sys, "argv", ["x", str(target)])
    curves = {"one seed": [0.0, 1.0, 4.0], "three seeds": np.arange(9.0).reshape(3, 3)}
    assert example("_learning").save_curves(curves, "x", "y", "title", "unused.png", dots={"d": [[1, 2]]}) == target
    assert target.stat().st_size > 1000


@pytest.mark.parametrize("name", NAMES)
def test_every_example_says_how_to_run_it_and_what_was_measured(name):
    text = example(name).__doc__
    assert f"python examples/behaviour/{name}.py" in text
    assert "Measured" in text
