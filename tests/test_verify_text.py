"""Exact and normalised text, token overlap, and where an answer is marked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guerdon.core.rollout import Rollout
from guerdon.verify import exact, text, token_f1
from guerdon.verify._reading import UngradableError, marked
from guerdon.verify._text import normalised


def test_exact_minds_every_character_but_the_space_around():
    assert exact(Rollout(" Paris\n", answer="Paris")).value == 1.0
    assert exact(Rollout("paris", answer="Paris")).value == 0.0


def test_text_minds_neither_case_nor_articles_nor_punctuation():
    assert text(Rollout("The Eiffel  Tower!", answer="eiffel tower")).value == 1.0
    assert text(Rollout("The Eiffel Tower", answer="eiffel tower"), articles=True).value == 0.0
    assert text(Rollout("ﬁne", answer="fine")).value == 1.0


@pytest.mark.parametrize(("raw", "plain"), [("A", "a"), ("The", "the"), ("?!", "?!"), ("a the", "a the"), (" ", "")])
def test_normalising_never_makes_something_into_nothing(raw, plain):
    assert normalised(raw) == plain


@pytest.mark.parametrize("verifier", [exact, text, token_f1])
@pytest.mark.parametrize("answer", [None, "", " \n", []])
def test_nothing_empty_equals_anything(verifier, answer):
    for completion in ("", " ", "x"):
        score = verifier(Rollout(completion, answer=answer))
        assert (score.value, score.reason) == (None, "no reference answer")
    assert verifier(Rollout("", answer="x")).value == 0.0
    assert verifier(Rollout("?!", answer="the")).value == 0.0


def test_several_references_accept_any():
    assert exact(Rollout("NYC", answer=["New York", "NYC"])).evidence["reference"] == "NYC"
    assert token_f1(Rollout("new york city", answer=["nyc", "new york"])).value == 0.8


def test_token_f1_counts_repeated_tokens_once_each():
    assert token_f1(Rollout("x x x x", answer="x y")).value == pytest.approx(2 * 1 / 6)


@pytest.mark.parametrize(
    ("raw", "how", "found"),
    [
        ("a\nb \n\n", "line", "b"),
        (r"\boxed{a} or \boxed{b{c}}", "boxed", "b{c}"),
        (r"\boxed{a\}}", "boxed", r"a\}"),
        (r"\boxed{a", "boxed", None),
        (r"\boxed a", "boxed", None),
        ("#### a \nmore", "####", "a"),
        ("<answer>a</answer><answer>b</answer>", "<answer>", "b"),
        ("<answer>a", "<answer>", None),
        ("</answer>a<answer>", "<answer>", None),
        ("<answer> </answer>", "<answer>", None),
        ("none", "####", None),
    ],
)
def test_an_answer_is_taken_from_where_it_is_marked(raw, how, found):
    got = marked(raw, how)
    assert (got.text if got else None) == found


def test_a_marked_answer_that_is_not_there_is_wrong():
    score = exact(Rollout("Paris", answer="Paris"), extract="<answer>")
    assert (score.value, score.evidence["rule"]) == (0.0, "no answer (<answer>)")


@pytest.mark.parametrize("params", [{"extract": "nowhere"}, {"part": "all"}])
def test_a_wrong_parameter_is_named(params):
    with pytest.raises(UngradableError, match=next(iter(params))):
        exact(Rollout("a", answer="a"), **params)


def test_a_text_too_long_to_grade_is_unknown():
    scores = exact.score([{"completion": "x" * 4_000_001, "answer": "x"}]).scores
    assert not scores.known[0]
    assert "4,000,001 characters" in scores.reason(0)


def test_a_reference_of_an_unusable_kind_is_unknown():
    scores = exact.score([{"completion": "x", "answer": {"a": 1}}]).scores
    assert not scores.known[0]
    assert "not dict" in scores.reason(0)


def test_evidence_has_no_lone_surrogates_and_is_short():
    score = exact(Rollout("\ud800" + "é" * 500, answer="x"))
    score.evidence["extracted"].encode("utf-8")
    assert len(score.evidence["extracted"]) == 200


@given(st.text(max_size=60), st.text(max_size=60))
def test_f1_is_symmetric_and_one_for_equal_texts(a, b):
    if a.strip() and b.strip():
        one, two = token_f1(Rollout(a, answer=b)).value, token_f1(Rollout(b, answer=a)).value
        assert one == pytest.approx(two)
        assert token_f1(Rollout(a, answer=a)).value == 1.0
