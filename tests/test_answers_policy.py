"""Each policy option, with what it changes; the three-valued outcomes and their reasons."""

from __future__ import annotations

import pytest

from guerdon.verify.answers import Policy, Reason, check_answer, check_golds, equivalent, explain_answer, extract


@pytest.mark.parametrize(
    ("a", "b", "option", "verdicts"),
    [
        ("10 cm", "10", "missing_unit", {"accept": True, "reject": False, "unknown": None}),
        ("50\\%", "0.5", "percent", {"fraction": True, "number": False, "strict": False}),
        ("50\\%", "50", "percent", {"fraction": None, "number": True, "strict": False}),
        ("1/3", "0.33", "rounding", {"unknown": None, "accept": True, "reject": False}),
        ("2.6667", "8/3", "rounding", {"unknown": None, "accept": True, "reject": False}),
        ("1/3", "0.34", "rounding", {"unknown": False, "accept": False, "reject": False}),
        ("1/3", "0.33", "decimal_places", {None: None, 2: True, 4: False}),
        ("(1,2)", "(2,1)", "tuple_order", {"strict": False, "free": True}),
        ("\\{1,2\\}", "\\{1,1,2\\}", "duplicates", {"ignore": True, "count": False}),
        ("x^2+C", "x^2+3+C", "constant", {"free": True, "literal": False}),
        ("Paris", "paris", "case", {"ignore": True, "strict": False}),
        ("0.12346", "0.123456789012", "digits", {4: True, 10: None}),
    ],
)
def test_an_option_decides_what_mathematics_leaves_open(a: str, b: str, option: str, verdicts: dict) -> None:
    for value, expected in verdicts.items():
        for x, y in ((a, b), (b, a)):
            assert equivalent(x, y, **{option: value}).equal is expected, (x, y, value)


@pytest.mark.parametrize(
    ("which", "expected"), [("last", "6"), ("first", "5"), ("all", None)]
)  # fmt: skip
def test_which_of_several_boxes_is_the_answer_is_a_choice(which: str, expected: str | None) -> None:
    assert extract(r"\boxed{5}, no wait. \boxed{6}", policy=Policy(which=which)).text == expected


def test_boxes_that_agree_are_an_answer_under_all() -> None:
    assert extract(r"\boxed{5}. So again \boxed{ 5}", policy=Policy(which="all")).text == " 5"


def test_the_tags_that_hold_the_answer_can_be_chosen() -> None:
    assert check_answer("5", "<final>5</final> not 7", tags=("final",)).equal is True


def test_choices_can_be_answered_by_their_text() -> None:
    options = {"choices": ("red", "green", "blue"), "options": "ABC"}
    assert check_answer("B", r"\boxed{\text{green}}", kind="choice", **options).equal is True
    assert check_answer("green", r"\boxed{B}", kind="choice", **options).equal is True
    assert check_answer("B", r"\boxed{\text{blue}}", kind="choice", **options).equal is False


def test_an_unclosed_box_counts_only_on_request() -> None:
    assert check_answer("5", r"\boxed{5").reason is Reason.NO_ANSWER
    assert check_answer("5", r"\boxed{5", unclosed_box=True).equal is True


@pytest.mark.parametrize(
    ("gold", "completion", "reason"),
    [
        ("", "5", Reason.GOLD_UNPARSABLE),
        ("$$", "5", Reason.GOLD_UNPARSABLE),
        (r"\frac{1}{", r"\boxed{5}", Reason.GOLD_UNPARSABLE),
        ("5", r"\boxed{\foo{}{\bar}", Reason.NO_ANSWER),
        ("5", r"\boxed{\pi if 1 else 0}", Reason.PREDICTION_UNPARSABLE),
        ("5", "", Reason.NO_ANSWER),
        ("5", "<think>5", Reason.NO_ANSWER),
        ("5", "The answer is not 5.", Reason.NO_ANSWER),
        ("1/3", r"\boxed{0.33}", Reason.POLICY),
        ("5", r"\boxed{\frac{5}{0}}", Reason.UNDECIDED),
    ],
)
def test_unknown_outcomes_say_which_kind_they_are(gold: str, completion: str, reason: Reason) -> None:
    verdict = check_answer(gold, completion)
    assert verdict.equal is None
    assert verdict.reason is reason
    assert verdict.detail


def test_the_verdict_shows_what_was_extracted_and_where() -> None:
    text = r"Some words. So \boxed{\frac{1}{2}} it is."
    verdict = check_answer("0.5", text)
    assert (verdict.equal, verdict.rule, verdict.extracted, verdict.gold) == (True, "box", r"\frac{1}{2}", "0.5")
    assert verdict.span is not None
    assert text[slice(*verdict.span)] == verdict.extracted
    assert verdict.seconds > 0


@pytest.mark.parametrize(
    "completion", ["<think>no</think> The answer is 12.", "x\n#### 12", "<answer>12</answer>", "so we get $12$"]
)
def test_spans_point_at_the_answer(completion: str) -> None:
    found = extract(completion)
    assert found.span is not None
    assert "12" in completion[slice(*found.span)]
    assert found.text is not None
    assert found.text.strip() == "12"


def test_an_unknown_option_or_value_is_an_error_that_names_the_valid_ones() -> None:
    with pytest.raises(TypeError, match="missing_unit"):
        equivalent("1", "1", units="accept")
    with pytest.raises(ValueError, match=r"accept.*reject.*unknown"):
        equivalent("1", "1", missing_unit="maybe")
    with pytest.raises(ValueError, match="choice"):
        check_answer("1", "1", kind="maths")
    with pytest.raises(TypeError, match="str"):
        check_answer(None, "1")  # type: ignore[arg-type]


def test_gold_answers_that_cannot_serve_are_listed_with_their_reason() -> None:
    report = check_golds(["1/2", "", "x^2", 7, r"\frac{1}{0}"])
    assert (report.total, report.equal, report.sound) == (5, 3, False)
    assert [(i, g) for i, g, _ in report.unknown] == [(1, ""), (4, r"\frac{1}{0}")]
    assert not report.different


def test_an_explanation_holds_the_evidence_as_plain_data() -> None:
    shown = explain_answer("1/2", r"\boxed{0.5}")
    assert shown["equal"] is True
    assert shown["tier"] == "number"
    assert shown["rule"] == "box"
    assert shown["gold_parse"] == "parsed as an expression"
