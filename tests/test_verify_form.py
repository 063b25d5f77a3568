"""Tags, JSON, patterns, keywords, length and repetition."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import guerdon as gd
from guerdon.core.rollout import Rollout
from guerdon.verify import format, json, keywords, length, length_ratio, length_within, regex, repetition
from guerdon.verify._reading import UngradableError

GOOD = "<think>1+1</think>\n<answer>2</answer>"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (GOOD, "all tags in order"),
        ("<answer>2</answer><think>1</think>", "expected <think>, found <answer>"),
        ("<think>1</think>", "<answer> is missing"),
        ("", "<think> is missing"),
        ("<think>1</think><answer>2", "</answer> is missing"),
        ("<think> </think><answer>2</answer>", "nothing in <think>"),
        ("<think>1</think><answer>\n</answer>", "nothing in <answer>"),
        ("Hi <think>1</think><answer>2</answer>", "text before <think>"),
        ("<think>1</think> so <answer>2</answer>", "text before <answer>"),
        (GOOD + " bye", "text after </answer>"),
        (GOOD + "<answer>3</answer>", "<answer> once too often"),
        ("<think>1<answer>2</answer></think>", "expected </think>, found <answer>"),
        ("<think>a<think>b</think></think><answer>2</answer>", "expected </think>, found <think>"),
    ],
)
def test_the_first_broken_rule_of_form_is_named(text, rule):
    score = format(Rollout(text))
    assert (score.value, score.evidence["rule"]) == (float(rule == "all tags in order"), rule)


def test_tags_can_nest_and_text_beside_them_can_be_allowed():
    nested = ["think", {"answer": ["final"]}]
    text = "<think>1</think> <answer>so <final>2</final></answer>"
    assert format(Rollout(text), tags=nested).value == 1.0
    assert format(Rollout(GOOD), tags=nested).evidence["rule"] == "expected <final>, found </answer>"
    assert format(Rollout("Hi " + GOOD), outside=True).value == 1.0


def test_what_the_chat_template_wrote_counts():
    assert format(Rollout("1+1</think><answer>2</answer>"), prefill="<think>").value == 1.0


@pytest.mark.parametrize("tags", [[], ["a", "a"], ["a|b"], ["<a>"], "think"])
def test_tags_that_make_no_sense_are_refused(tags):
    with pytest.raises(UngradableError, match="tags="):
        format(Rollout(GOOD), tags=tags)


@pytest.mark.parametrize(
    ("text", "params", "value"),
    [
        ('{"a": 1}', {}, 1.0),
        ("[1]", {"kind": "array"}, 1.0),
        ("[1]", {"kind": "object"}, 0.0),
        ('{"a": 1}', {"required": ["a", "b"]}, 0.0),
        ("3", {"required": ["a"]}, 0.0),
        ("", {}, 0.0),
        ("NaN", {}, 0.0),
        ("{'a': 1}", {}, 0.0),
        ("[" * 100_000, {}, 0.0),
        ("\ud800", {}, 0.0),
        ('```json\n{"a": 1}\n``` done', {"extract": "fence"}, 1.0),
        ("```\nno\n```\n```json\n[]\n```", {"extract": "fence"}, 1.0),
        ('{"a": 1}', {"extract": "fence"}, 0.0),
    ],
)
def test_json_is_valid_or_not(text, params, value):
    assert json(Rollout(text), **params).value == value


def test_a_pattern_is_searched_or_must_match_all():
    assert regex(Rollout("at 14:30."), pattern=r"\d\d:\d\d").evidence["matched"] == "14:30"
    assert regex(Rollout("at 14:30."), pattern=r"\d\d:\d\d", mode="full").value == 0.0
    assert regex(Rollout("naïve \ud800"), pattern=r"ï\w+").evidence["matched"] == "ïve"


def test_a_pattern_that_explodes_elsewhere_takes_linear_time():
    start = time.perf_counter()
    assert regex(Rollout("a" * 1_000_000), pattern=r"(a*)*b").value == 0.0
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "(?=a)", "a{1000}{1000}", "x" * 2_001])
def test_a_pattern_that_cannot_be_used_ends_the_run(pattern):
    with pytest.raises(gd.SignalError, match="pattern"):
        regex(pattern=pattern).score([{"completion": "a"}])


def test_keywords_are_whole_words_or_phrases():
    rollout = Rollout("Wash your hands, then dry-clean them.", extra={"keywords": ["Wash", "soap"]})
    assert keywords(rollout).value == 0.5
    assert keywords(rollout, words=["wash your hands", "hand", "dry"]).evidence["missing"] == ["hand"]
    assert keywords(rollout, words=["wash"], case=True).value == 0.0
    assert keywords(Rollout("x")).reason == "no keywords given"
    assert keywords(Rollout("x"), words=["", " "]).reason == "no keywords given"


def test_length_counts_what_the_policy_wrote_and_not_the_tools():
    chat = [{"role": "assistant", "content": "one two"}, {"role": "tool", "content": "three four five"}]
    assert length(Rollout(chat)) == 7.0
    assert length(Rollout(chat), unit="words") == 2.0
    assert length(Rollout("x", tokens=[1, 2, 3]), unit="tokens") == 3.0
    assert length(Rollout("x"), unit="tokens").reason == "the rollout has no tokens"


def test_bounded_lengths_stay_in_their_range():
    assert length_ratio(Rollout("x" * 30), max=20) == 1.0
    assert length_within(Rollout("abc"), low=2, high=3).value == 1.0
    assert length_within(Rollout("abcd"), low=2, high=3).value == 0.0
    with pytest.raises(UngradableError, match="max=0"):
        length_ratio(Rollout("x"), max=0)


@pytest.mark.parametrize(
    ("text", "n", "unit", "share"),
    [
        ("ha ha ha ha ha", 2, "words", 0.75),
        ("a b c d", 2, "words", 0.0),
        ("a b", 3, "words", 0.0),
        ("", 1, "words", 0.0),
        ("x X  x", 1, "words", 2 / 3),
        ("aaaa", 2, "characters", 2 / 3),
    ],
)
def test_repetition_is_the_share_of_n_grams_seen_before(text, n, unit, share):
    assert repetition(Rollout(text), n=n, unit=unit) == pytest.approx(share)


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(1, 4))
def test_repetition_agrees_with_counting_by_hand(words, n):
    seen, again, total = set(), 0, 0
    for i in range(len(words) - n + 1):
        gram = tuple(words[i : i + n])
        again, total = again + (gram in seen), total + 1
        seen.add(gram)
    assert repetition(Rollout(" ".join(words)), n=n) == pytest.approx(again / total if total else 0.0)


@pytest.mark.parametrize("unit", ["<think>", "</answer>", "<", "```json\n", "[", " ", "a"])
def test_hostile_texts_take_linear_time(unit):
    rollout = Rollout(unit * (1_000_000 // len(unit)))
    start = time.perf_counter()
    format(rollout)
    json(rollout, extract="fence")
    assert time.perf_counter() - start < 3.0
