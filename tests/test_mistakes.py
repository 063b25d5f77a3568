"""What a user gets wrong is said at once: what was wrong, where, and what would be right. None of it becomes a 0."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from typing import Literal

import pytest

import guerdon as gd

ROW = {"prompt": "6 * 7?", "completion": "#### 42", "answer": "42"}
NUMBER = gd.verify.number()


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"extract": "lst"}, "verify.number: extract='lst', but it must be 'auto' or 'last' or '####' or 'boxed'"),
        (
            {"extrct": "last"},
            "verify.number has no parameter 'extrct'; it has extract, .*did you mean extract",
        ),
        ({"reference": 3}, "verify.number: reference=3, but it must be a text"),
    ],
)
def test_a_parameter_that_does_not_fit_is_refused_where_it_is_given(params, says):
    with pytest.raises(gd.SignalError, match=says):
        gd.verify.number(**params)


@pytest.mark.parametrize(
    ("value", "fits"),
    [(1, True), (1.5, True), (True, False), ("1", False), (None, True), ("low", True), ("high", False), ([1], False)],
)
def test_numbers_texts_choices_and_unions_of_them_are_checked(value, fits):
    @gd.signal
    def asked(rollout, *, level: float | Literal["low"] | None = 0.0) -> float:
        return 1.0

    if fits:
        assert asked(level=value).score([ROW]).scores.known.all()
    else:
        with pytest.raises(gd.SignalError, match="it must be a number or 'low' or None"):
            asked(level=value)


def test_what_the_check_does_not_understand_is_left_to_the_function():
    @gd.signal
    def asked(rollout, *, words: list[str] | int = 0, other: NotImported = None) -> float:  # noqa: F821
        return 1.0

    assert asked(words={"a"}, other=object()).score([ROW]).scores.known.all()
    listed = gd.signal(lambda rollout, *, words=("a",): 1.0)
    assert listed(words=3).score([ROW]).scores.known.all()


def test_a_row_without_its_completion_is_unknown_and_the_columns_that_it_has_are_named():
    scored = NUMBER.score([{"id": "r7", "prompt": "6 * 7?", "response": "#### 42", "answer": "42"}, ROW])
    assert scored.scores.known.tolist() == [False, True]
    assert scored.scores.reason(0) == "DataError: rollout r7: there is no 'completion'; other columns are 'response'"


def test_an_empty_completion_is_graded():
    assert NUMBER.score([{**ROW, "completion": ""}]).scores.values.tolist() == [0.0]


def test_columns_can_be_scored_without_a_completion():
    assert gd.column("r").score([{"r": 1.0}]).scores.values.tolist() == [1.0]


@pytest.mark.parametrize(
    ("part", "value", "says"),
    [
        ("completion", ["#### 42"], "message 0 must be an object with role and content, not str"),
        ("completion", [{"content": "#### 42"}], "message 0 has no role"),
        ("completion", 42, "must be text or a list of messages, not int"),
        ("completion", b"42", "must be text or a list of messages, not bytes"),
        ("completion", [{"role": "assistant", "content": 42}], "message 0: content must be text or a list of parts"),
        ("completion", [{"role": "assistant", "tool_calls": "f()"}], "message 0: tool_calls must be a list of objects"),
        ("prompt", [{"role": "user", "content": "a"}, "b"], "message 1 must be an object"),
        ("prompt", {"role": "user", "content": "a"}, "must be text or a list of messages, not dict"),
    ],
)
def test_what_is_neither_text_nor_messages_is_an_error_of_its_row(part, value, says):
    with pytest.raises(gd.DataError, match=re.escape(f"rollouts:2: {part} {says}")):
        NUMBER.score([ROW, {**ROW, part: value}])


@pytest.mark.parametrize("policy", ["mean", "drop", float("nan"), None, True])
def test_a_policy_for_unknown_that_is_none_is_refused_before_anything_is_asked(policy):
    @gd.signal
    def never(rollout):
        raise AssertionError("asked")

    with pytest.raises(ValueError, match='choose "keep", "raise", "group-mean" or a finite number'):
        never.using(failure=gd.Failure(then="abort")).score([ROW], unknown=policy)
    if policy != "drop":
        with pytest.raises(ValueError, match='choose "drop", "raise", "group-mean" or a finite number'):
            NUMBER.for_trl(unknown=policy)


@pytest.mark.parametrize("needs", ["cpu", "lm", "sandbox"])
@pytest.mark.parametrize("error", [gd.MissingExtraError("httpx", "judge"), gd.SignalError("model='gpt': write it as")])
def test_what_is_wrong_with_the_signal_itself_ends_the_run(needs, error):
    @gd.signal(needs=needs)
    def broken(rollout):
        raise error

    @gd.signal(needs=needs)
    async def waiting(rollout):
        raise error

    @gd.signal(needs=needs, batch=True)
    def together(rollouts):
        raise error

    for signal in (broken, waiting, together):
        with pytest.raises(type(error), match=re.escape(str(error))):
            signal.score([ROW, ROW])


def test_a_batch_of_a_trainer_without_any_score_names_the_reason_and_the_columns():
    score = NUMBER.for_trl("right")
    batch = {"prompts": ["6 * 7?"], "completions": ["42"], "completion_ids": [[1]]}
    with pytest.warns(UserWarning, match=r"right: no completion of this batch has a score: no reference answer \(1\)"):
        assert score(**batch, solution=["42"]) == [None]
    with pytest.warns(UserWarning, match="its columns are solution"):
        score(**batch, solution=["42"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert score(**batch, answer=["42"]) == [1.0]


@pytest.mark.parametrize(("room", "name", "near"), [("guerdon", "wen", "when"), ("guerdon.verify", "maths", "math")])
def test_a_name_that_is_none_comes_with_the_nearest(room, name, near):
    code = f"import {room} as room; room.{name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"has no attribute '{name}'. Did you mean: '{near}'?" in done.stderr


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: gd.signal(needs="cpus")(len), "needs='cpus': choose cpu, process, embedder"),
        (lambda: NUMBER.using(timout=3), "there is no 'timout' to change; there are needs, batch, batch_size, timeout"),
        (lambda: gd.column("a", range="01"), "a range is a pair of numbers, not '01'"),
        (lambda: gd.column("a", range=(0, 1, 2)), r"a range is a pair of numbers, not \(0, 1, 2\)"),
        (lambda: gd.column("t", axis="test").for_trl(), "one score per rollout, not per test: reduce it"),
        (lambda: gd.transform(lambda x: x), "annotate the parameters that take scores with Scores"),
        (lambda: gd.shape.clip(NUMBER, lo=0), r"shape.clip: .*'lo'; it takes \(x: Scores, low: float = -inf"),
        (lambda: gd.when(NUMBER, 1.0), r"when: missing .*'otherwise'; it takes \(condition: Scores, "),
    ],
)
def test_what_cant_be_built_is_refused_with_what_can(make, says):
    with pytest.raises((gd.GuerdonError, ValueError, TypeError), match=says):
        make()


def test_a_transform_stands_with_or_without_arguments():
    @gd.transform
    def twice(x: gd.Scores) -> gd.Scores:
        return gd.Scores.of(x.axis, 2 * x.values, x.known, x)

    @gd.transform("thrice")
    def thrice(x: gd.Scores) -> gd.Scores:
        return gd.Scores.of(x.axis, 3 * x.values, x.known, x)

    assert (twice(gd.column("r")) + thrice(gd.column("r"))).score([{"r": 1.0}]).scores.values.tolist() == [5.0]
    assert thrice.traits.key == "thrice"
