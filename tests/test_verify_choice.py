"""Multiple choice: which option a reply settles on, and what several named options earn."""

from __future__ import annotations

import time

import pytest

from guerdon.core.rollout import Rollout
from guerdon.verify import choice
from guerdon.verify._choice import pick

CITIES = ["Paris", "New York", "York", "Rome"]


@pytest.mark.parametrize(
    ("reply", "letters"),
    [
        ("B", "B"),
        ("b", "B"),
        ("B.", "B"),
        ("(B)", "B"),
        ("**B**", "B"),
        ("B) Paris", "B"),
        ("B. Paris", "B"),
        ("The answer is B", "B"),
        ("The answer is **B**.", "B"),
        ("Answer: B", "B"),
        ("Final answer: option D", "D"),
        ("the answer is a", "A"),
        ("The answer is A because of the tax.", "A"),
        ("The answer is B, not C.", "B"),
        ("The answer is B and I am sure", "B"),
        ("The answer is C. Option B is wrong", "C"),
        (r"answer: $\boxed{\text{D}}$", "D"),
        ("<think>A or B?</think><answer>B</answer>", "B"),
        ("Let me think.\nC", "C"),
        ("I think it's C", "C"),
        ("It must be (D), I am sure", "D"),
        ("B is correct", "B"),
        ("First I said the answer is A. No, the answer is C.", "C"),
        ("A or B", "AB"),
        ("Both A and B", "AB"),
        ("(A) or (B)?", "AB"),
        ("Answer: A/B", "AB"),
        ("The answer is A, B and C", "ABC"),
        (r"\boxed{A, C}", "AC"),
        ("D is wrong so E", "DE"),
        ("The answer is (B). (A) is wrong.", "B"),
        ("A. B. C.", "ABC"),
        ("The answer is not A", ""),
        ("A dog barks.", ""),
        ("I do not know", ""),
        ("The answer is a dog", ""),
        ("Z", ""),
        ("", ""),
    ],
)
def test_a_reply_settles_on(reply, letters):
    assert "".join(pick(reply).letters) == letters


def test_several_options_are_wrong_or_unknown_by_choice():
    hedge = Rollout("The answer is A or B", answer="A")
    assert choice(hedge).value == 0.0
    assert choice(hedge, several="unknown").reason == "the reply names several options"


def test_naming_every_option_never_pays():
    for reply in (
        "A, B, C, D",
        "(A) (B) (C) (D)",
        "The answer is A and B and C and D",
        "A B C D",
        "A|B|C|D",
        "A) B) C) D)",
    ):
        assert choice(Rollout(reply, answer="D")).value == 0.0, reply
        assert choice(Rollout(reply, answer="A")).value == 0.0, reply


@pytest.mark.parametrize(
    ("reply", "gold", "value"),
    [
        ("New York", "B", 1.0),
        ("new york.", "New York", 1.0),
        ("The answer is York", "C", 1.0),
        ("It is surely New York, the city", "B", 1.0),
        ("It is surely New York, the city", "C", 0.0),
        ("Paris or Rome", "Paris", 0.0),
        ("The answer is (D) Rome", "Rome", 1.0),
    ],
)
def test_with_the_options_texts_a_reply_may_name_the_text(reply, gold, value):
    rollout = Rollout(reply, answer=gold, extra={"choices": CITIES})
    assert choice(rollout, options="choices").value == value


def test_options_may_map_letters_to_texts():
    rollout = Rollout("Rome", answer="B", extra={"choices": {"A": "Paris", "B": "Rome"}})
    assert choice(rollout, options="choices").value == 1.0


@pytest.mark.parametrize(
    ("gold", "reason"), [(None, "no reference answer"), ("Z", "the reference answer is not one of the options")]
)
def test_an_unusable_reference_is_unknown(gold, reason):
    assert choice(Rollout("B", answer=gold)).reason == reason


def test_the_evidence_names_letter_and_rule():
    assert choice(Rollout("Answer: B", answer="(B)")).evidence == {"extracted": "B", "rule": "stated", "reference": "B"}


@pytest.mark.parametrize("unit", ["(A)", "answer is ", "answer is B, ", "A, ", "\\boxed{", "<answer>", "*", " "])
def test_hostile_replies_take_linear_time(unit):
    start = time.perf_counter()
    choice(Rollout(unit * (1_000_000 // len(unit)), answer="A"))
    assert time.perf_counter() - start < 3.0
