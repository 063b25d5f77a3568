"""Signals on the step axis and signals that read whole groups, through the engine."""

from __future__ import annotations

import pytest

import guerdon as gd
from guerdon.core.rollout import Rollout
from guerdon.core.signal import Group
from guerdon.verify import distinct, majority, step_repeats


def test_a_step_repeats_what_an_earlier_step_said():
    text = "Let x be 2. Then y is 4. let X be 2."
    spans = [[0, 11], [12, 24], [25, 36]]
    rows = [
        {"completion": text, "steps": spans, "group": "a"},
        {"completion": "", "steps": ["one", ""], "group": "a"},
        {"completion": "no steps", "group": "a"},
    ]
    scores = step_repeats.score(rows).scores
    assert scores.axis.name == "step"
    assert scores.values.tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]
    assert step_repeats.max().score(rows[:2]).scores.values.tolist() == [1.0, 0.0]


def test_partial_repetition_is_a_share_of_n_grams():
    steps = ["a b c d", "x b c d"]
    assert step_repeats(Rollout("", steps=steps), n=2) == [0.0, 2 / 3]


def test_distinct_is_the_share_of_others_that_differ():
    rows = [{"completion": c, "group": g} for g, c in [("p", "Yes."), ("q", "x"), ("p", "yes"), ("p", "No")]]
    scored = distinct.score(rows)
    assert [scored.scores.values[i] for i in (0, 2, 3)] == [0.5, 0.5, 1.0]
    assert scored.scores.reason(1) == "alone in its group"


def test_a_rollout_without_the_extracted_part_differs_from_all():
    group = Group([Rollout("<a>1</a>"), Rollout("none"), Rollout("none")])
    assert distinct(group, extract="<a>") == [1.0, 1.0, 1.0]


def test_the_majority_is_of_equal_values_not_equal_texts():
    rows = [{"prompt": "p", "completion": c} for c in ("= 1/2", "0.5", ".50", "2", "none")]
    assert majority.score(rows).scores.values.tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("replies", "reason"), [(["1", "2"], "no majority in the group"), (["x", ""], "no answer in the group")]
)
def test_without_a_majority_the_group_is_unknown(replies, reason):
    scores = majority.score([{"prompt": "p", "completion": r} for r in replies]).scores
    assert not scores.known.any()
    assert scores.unknown_reasons() == {reason: 2}


def test_votes_can_be_texts():
    group = Group([Rollout("Paris"), Rollout("paris!"), Rollout("Rome")])
    assert [s.value for s in majority(group, read="text")] == [1.0, 1.0, 0.0]


def test_a_group_signal_behind_a_gate_still_sees_the_whole_group():
    rows = [{"prompt": "p", "completion": c, "ask": a} for c, a in [("4", 1), ("4", 0), ("5", 0)]]
    gated = gd.when(gd.column("ask"), majority(), otherwise=0.0)
    assert gated.score(rows).scores.values.tolist() == [1.0, 0.0, 0.0]
