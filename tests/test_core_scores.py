"""Scores: finite where known, a reason where not, and what becomes of unknowns at the edge."""

from __future__ import annotations

import numpy as np
import pytest

import guerdon as gd
from guerdon.core.axis import Axis
from guerdon.core.scores import NOT_ASKED, Scores, aligned

ROLLOUT = Axis.under(Axis("prompt", 2), [2, 2], "rollout")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_known_score_that_is_not_finite_is_refused(bad):
    with pytest.raises(gd.NonFiniteError, match="score 1"):
        Scores.of(ROLLOUT, [0.0, bad, 1.0, 2.0])
    assert not Scores.of(ROLLOUT, [0.0, bad, 1.0, 2.0], [True, False, True, True]).known[1]


def test_the_wrong_number_of_values_is_refused():
    with pytest.raises(gd.AxisError, match="4 items"):
        Scores.of(ROLLOUT, [1.0])


def test_reasons_of_several_parts_are_joined_once():
    known = [False, True, False, True]
    a = Scores.of(ROLLOUT, np.zeros(4), known, "timed out")
    b = Scores.of(ROLLOUT, np.zeros(4), known, "no reference")
    both = Scores.of(ROLLOUT, np.zeros(4), known, (a, b, a))
    assert both.reason(0) == "timed out; no reference"
    assert both.reason(1) is None


def test_unknown_at_the_edge():
    scores = Scores.of(ROLLOUT, [1.0, 9.0, 9.0, 9.0], [True, False, False, False], "no verdict")
    assert scores.resolve("keep") is scores
    assert scores.resolve(0.5).values.tolist() == [1.0, 0.5, 0.5, 0.5]
    mean = scores.resolve("group-mean")
    assert mean.known.tolist() == [True, True, False, False]
    assert mean.values[1] == 1.0
    assert mean.reason(2) == "no verdict"
    with pytest.raises(gd.UnknownScoreError, match=r"3 of 4 scores are unknown, the first \(1\): no verdict"):
        scores.resolve("raise")
    for wrong in ("drop it", float("nan")):
        with pytest.raises(ValueError, match="choose"):
            scores.resolve(wrong)


def test_coarser_scores_are_repeated_down():
    step = Axis.under(ROLLOUT, [1, 2, 0, 1], "step")
    fine, coarse = aligned(Scores.constant(step, 1.0), Scores.of(ROLLOUT.parent, [5.0, 7.0]))
    assert fine.axis is coarse.axis
    assert coarse.values.tolist() == [5.0, 5.0, 5.0, 7.0]


def test_scores_of_some_rollouts_are_padded_with_not_asked():
    part = Scores.constant(Axis.under(ROLLOUT, [2, 0, 0, 1], "test"), 1.0)
    full = Scores.constant(Axis.under(ROLLOUT, [2, 1, 0, 1], "test"), 0.5)
    a, b = aligned(part, full)
    assert a.known.tolist() == [True, True, False, True]
    assert a.reason(2) == NOT_ASKED
    assert b.known.all()
    with pytest.raises(gd.AxisError, match="2 items against 3 under rollout 0"):
        part.broadcast(Axis.under(ROLLOUT, [3, 0, 0, 1], "test"))


def test_an_unknown_score_needs_a_reason():
    with pytest.raises(ValueError, match="needs a reason"):
        gd.Score(None)
