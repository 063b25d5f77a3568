"""Numeric answers: extraction, exact comparison, and 5,276 labelled solutions."""

from __future__ import annotations

import gzip
import json
import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guerdon.core.rollout import Rollout
from guerdon.verify import number
from guerdon.verify._number import find_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A: 26", 26),
        ("She makes $1,250.50 a day.", Fraction(2501, 2)),
        ("x = -3", -3),
        ("x=\u22127", -7),
        ("16 - 3", 3),
        ("10-3", 3),
        ("- 5 apples", 5),
        ("-$5", -5),
        ("$-5", -5),
        ("about 50%", 50),
        (r"50\%", 50),
        ("1/2", Fraction(1, 2)),
        ("it is 7 / 8.", Fraction(7, 8)),
        ("1 1/2 cups", Fraction(3, 2)),
        (r"-\frac{3}{4}", Fraction(-3, 4)),
        (r"3\frac{1}{2}", Fraction(7, 2)),
        (r"\dfrac12", Fraction(1, 2)),
        (r"1.5 \times 10^{3}", 1500),
        ("2e3", 2000),
        ("2 * 10^-2", Fraction(1, 50)),
        (".5", Fraction(1, 2)),
        ("18.", 18),
        (r"1{,}000", 1000),
        ("1\u202f000\u202f000", 1_000_000),
        ("12,34", 34),
        ("007", 7),
    ],
)
def test_the_last_number_is_read_exactly(text, value):
    assert find_number(text, "last").value == value


@pytest.mark.parametrize("text", ["", "none", "3/0", "5e9999", "9" * 300, "\u0663"])
def test_what_is_no_readable_number_is_not_found(text):
    assert find_number(text) is None


@pytest.mark.parametrize(
    ("text", "value", "rule"),
    [
        (r"2 + 2, so \boxed{4}. That took 3 steps.", 4, "boxed"),
        ("5 + 6\n#### 11\n", 11, "####"),
        ("#### $1,100 dollars", 1100, "####"),
        ("#### 2. Compute the total\nIt is 7", 7, "last number"),
        (r"#### 3" + "\n" + r"\boxed{4}", 4, "boxed"),
        (r"\boxed{3} #### 4", 4, "####"),
        (r"\boxed{18\text{ dollars}}", 18, "boxed"),
        (r"truncated \boxed{18", 18, "last number"),
    ],
)
def test_auto_takes_the_later_of_boxed_and_hashes_and_else_the_last_number(text, value, rule):
    found = find_number(text)
    assert (found.value, found.rule) == (value, rule)


@pytest.mark.parametrize("text", [r"\boxed{1, 2}", r"\boxed{x}", r"\boxed{}", r"\boxed{" + "1" * 400 + "}"])
def test_a_box_must_hold_one_number(text):
    assert find_number(text) is None


def test_naming_many_numbers_in_the_box_earns_nothing():
    everything = r"\boxed{" + ", ".join(map(str, range(40))) + "}"
    assert number(Rollout(everything, answer="39")).value == 0.0


@pytest.mark.parametrize(
    "gold", ["1250", 1250, 1250.0, Decimal("1250"), Fraction(1250), ["7", "1,250"], "so #### 1250"]
)
def test_references_come_as_text_numbers_or_lists(gold):
    assert number(Rollout("= $1,250.00", answer=gold)).value == 1.0


@pytest.mark.parametrize("gold", [None, "", "  ", [], [None, ""], float("nan")])
def test_no_reference_is_unknown(gold):
    score = number(Rollout("18", answer=gold))
    assert (score.value, score.reason) == (None, "no reference answer")


def test_a_reference_without_a_number_is_unknown():
    assert number(Rollout("18", answer="eighteen")).reason == "no number in the reference answer"


def test_no_number_in_the_reply_is_wrong_not_unknown():
    assert number(Rollout("I don't know", answer="18")).value == 0.0


def test_comparison_is_exact_where_floats_are_not():
    assert number(Rollout("0.30000000000000004", answer="0.3")).value == 0.0
    assert number(Rollout("9007199254740993", answer="9007199254740992")).value == 0.0
    assert number(Rollout("0.1", answer=0.1)).value == 1.0


def test_tolerances_are_absolute_or_relative_to_the_reference():
    assert number(Rollout("3.14", answer="3.15"), abs_tol="0.01").value == 1.0
    assert number(Rollout("3.14", answer="3.15"), abs_tol=0.009).value == 0.0
    assert number(Rollout("99", answer="-100"), rel_tol=0.02).value == 0.0
    assert number(Rollout("99", answer="100"), rel_tol=0.01).value == 1.0


def test_percent_is_stripped_or_scaled_by_choice():
    assert number(Rollout("50%", answer="50")).value == 1.0
    assert number(Rollout("50%", answer="0.5"), percent="scale").value == 1.0
    assert number(Rollout("50%", answer="50"), percent="scale").value == 0.0


def test_a_decimal_comma_is_understood_when_asked_for():
    assert number(Rollout("1.234,5", answer="1234,5"), decimal=",").value == 1.0


def test_another_column_can_hold_the_reference():
    assert number(Rollout("4", extra={"gold": 4}), reference="gold").value == 1.0


def test_tool_output_is_not_the_policys_answer():
    chat = [
        {"role": "assistant", "content": "Let me compute.", "tool_calls": []},
        {"role": "tool", "content": "18"},
        {"role": "assistant", "content": "I could not do it."},
    ]
    assert number(Rollout(chat, answer="18")).value == 0.0
    assert number(Rollout([*chat, {"role": "tool", "content": "18"}], answer="18"), part="text").value == 0.0


@given(st.integers(-(10**12), 10**12), st.integers(0, 3))
def test_writing_a_number_differently_does_not_change_it(value, zeros):
    written = f"{value:,}" + ("." + "0" * zeros if zeros else "")
    assert number(Rollout(f"The total is {written}.", answer=str(value))).value == 1.0


@given(st.fractions(), st.fractions())
def test_two_numbers_are_equal_only_if_they_are(a, b):
    assert number(Rollout(f"= {a}", answer=str(b))).value == float(a == b)


@given(st.text(max_size=200))
def test_any_text_gives_a_number_or_nothing(text):
    found = find_number(text)
    assert found is None or isinstance(found.value, (int, Fraction))


def test_labelled_solutions_agree_with_their_labels(shared_data):
    with gzip.open(shared_data / "gsm8k" / "model_solutions_labelled.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    scored = number.score([{"completion": r["solution"], "answer": r["gold"], "group": r["id"]} for r in rows])
    assert len(rows) == 5276
    assert scored.scores.known.all()
    assert [bool(v) for v in scored.scores.values] == [r["is_correct"] for r in rows]


@pytest.mark.parametrize("unit", ["9", "1,", "1/2/", "\\boxed{", "#### ", "\\frac{", "$-", "x", "1 "])
def test_hostile_texts_take_linear_time(unit):
    start = time.perf_counter()
    number(Rollout(unit * (1_000_000 // len(unit)), answer="1"))
    assert time.perf_counter() - start < 2.0
