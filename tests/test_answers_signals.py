"""The signals verify.math and verify.units on rollouts: scores, unknowns, evidence, several references."""

from __future__ import annotations

import pytest

from guerdon.core.rollout import Rollout
from guerdon.verify.answer_signals import math, units


@pytest.mark.parametrize(
    ("completion", "answer", "value"),
    [
        (r"So \boxed{\frac{2}{4}}", "0.5", 1.0),
        (r"So \boxed{\frac{2}{4}}", "0.6", 0.0),
        ("<think>5</think> The answer is 6", "5", 0.0),
        ("I can't tell.", "5", 0.0),
        ("The answer is not 5.", "5", 0.0),
        (r"\boxed{0.33}", "1/3", None),
        (r"\boxed{\pi if 1 else 0}", "5", None),
        ("5", "", None),
        ("5", None, None),
        ("5", ["4", "5"], 1.0),
        ("5", ["4", "6"], 0.0),
    ],
)
def test_math_scores_an_answer_or_says_why_it_cannot(completion: str, answer: object, value: float | None) -> None:
    score = math(Rollout(completion, answer=answer))
    assert score.value == value
    assert (value is None) == bool(score.reason)


def test_what_no_answer_and_an_unparsable_one_are_worth_is_the_callers_choice() -> None:
    silent, odd = Rollout("I can't tell.", answer="5"), Rollout(r"\boxed{\pi if 1 else 0}", answer="5")
    assert math(silent, no_answer=None).value is None
    assert math(silent, no_answer=-1.0).value == -1.0
    assert math(odd, unparsable=0.0).value == 0.0


def test_units_are_part_of_the_answer() -> None:
    assert units(Rollout(r"\boxed{500\text{ cm}}", answer="5 m")).value == 1.0
    assert units(Rollout(r"\boxed{5\text{ cm}}", answer="5 m")).value == 0.0
    assert units(Rollout("5", answer="5 m")).value == 0.0
    assert units(Rollout("5", answer="5 m"), missing_unit="unknown").value is None


def test_the_evidence_says_what_was_compared_and_how() -> None:
    score = math(Rollout(r"\boxed{\frac{1}{2}}", answer="0.5"))
    assert score.evidence == {"extracted": r"\frac{1}{2}", "rule": "box", "reference": "0.5", "tier": "number"}


def test_a_frame_of_rollouts_is_scored_like_any_signal() -> None:
    rows = [{"completion": r"\boxed{4}", "answer": "4"}, {"completion": r"\boxed{0.33}", "answer": "1/3"}]
    scores = math(rounding="accept").score(rows).scores
    assert scores.values.tolist() == [1.0, 1.0]
    assert math.score(rows).scores.known.tolist() == [True, False]
