"""Frames: grouping, input order, columns."""

from __future__ import annotations

import pytest

import guerdon as gd

R = gd.column("r")


def test_rollouts_are_grouped_and_results_come_back_in_input_order():
    rows = [{"prompt": p, "r": r} for p, r in [("a", 1.0), ("b", 2.0), ("a", 3.0), ("b", 8.0)]]
    assert R.score(rows).scores.values.tolist() == [1.0, 2.0, 3.0, 8.0]
    centred = gd.shape.centre(R).score(rows)
    assert centred.scores.values.tolist() == [-1.0, -3.0, 1.0, 3.0]
    assert gd.shape.centre(R.score(rows)).values.tolist() == [-1.0, -3.0, 1.0, 3.0]
    assert centred.explain(1).parts[0].value == 2.0


def test_finer_scores_follow_their_rollouts_back_into_input_order():
    rows = [{"prompt": p, "s": s} for p, s in [("a", [1.0]), ("b", [2.0, 3.0]), ("a", [4.0, 5.0])]]
    scores = gd.column("s", axis="step").score(rows).scores
    assert scores.values.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert scores.axis.offsets_over("rollout").tolist() == [0, 1, 3, 5]


def test_groups_by_key_by_prompt_and_alone():
    same = [{"role": "user", "content": "hi"}]
    assert gd.Frame.of([{"prompt": same}, {"prompt": list(same)}]).prompt.size == 1
    assert gd.Frame.of([{"prompt": "x", "group": 1}, {"prompt": "y", "group": "1"}]).prompt.size == 1
    assert gd.Frame.of([{}, {}, {}]).prompt.size == 3
    assert gd.Frame.of([{"prompt": "x"}, {"prompt": "x", "group": "x"}]).prompt.size == 2
    assert len(gd.Frame.of([])) == 0


def test_other_keys_land_in_extra():
    rollout = gd.Rollout.of({"completion": "c", "answer": "4", "model": "m", "extra": {"k": 1}})
    assert rollout.extra == {"k": 1, "model": "m"}
    assert rollout.get("model") == "m"
    assert rollout.get("answer") == "4"
    assert rollout.get("absent") is None


def test_only_what_the_policy_wrote_is_its_text():
    rollout = gd.Rollout(
        completion=[
            {"role": "assistant", "content": "Let me look.", "tool_calls": [{"function": {"name": "f"}}]},
            {"role": "tool", "content": "#### 42"},
            {"role": "assistant", "content": [{"type": "text", "text": "It is 7."}, {"type": "image_url"}]},
        ]
    )
    assert rollout.text == "Let me look.\n\nIt is 7."
    assert rollout.final == "It is 7."
    assert "42" not in rollout.text
    assert gd.Rollout(completion=[{"role": "tool", "content": "42"}]).final == ""


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_non_finite_columns_are_refused_at_the_border(bad):
    with pytest.raises(gd.NonFiniteError, match="column 'r', item 1"):
        R.score([{"r": 1.0}, {"r": bad}])


def test_a_column_of_text_is_an_error_and_a_missing_cell_is_unknown():
    with pytest.raises(gd.DataError, match="not a number"):
        R.score([{"r": "1.0"}])
    scores = R.score([{"r": 1}, {}, {"r": None}]).scores
    assert scores.known.tolist() == [True, False, False]
    assert scores.reason(1) == "column 'r' is missing"


def test_columns_of_one_axis_must_agree_in_length():
    rows = [{"id": "x", "a": [1.0, 2.0], "b": [1.0]}]
    both = gd.column("a", axis="criterion") + gd.column("b", axis="criterion")
    with pytest.raises(gd.AxisError, match="1 values for the 2 criterions of rollout 'x'"):
        both.score(rows)


def test_tokens_lie_under_steps_where_step_sizes_are_given():
    rows = [{"steps": ["a", "b"], "step_tokens": [1, 2], "logprobs": [-1.0, -2.0, -3.0]}]
    sums = gd.column("logprobs", axis="token").sum()
    assert sums.axis == "step"
    assert sums.score(rows).scores.values.tolist() == [-1.0, -5.0]
    with pytest.raises(gd.AxisError, match="step_tokens"):
        sums.score([{**rows[0], "step_tokens": [1, 1]}])


def test_one_row_is_not_a_list_of_rows():
    for wrong in ({"completion": "x"}, "text"):
        with pytest.raises(gd.DataError, match="expected a list"):
            R.score(wrong)
    with pytest.raises(gd.DataError, match="rollouts:2: expected a mapping"):
        R.score([{"r": 1}, 5])


def test_a_missing_list_is_unknown_not_empty():
    rows = [{"met": [1.0, 0.0]}, {"met": []}, {}]
    met = gd.column("met", axis="criterion")
    scored = met.sum().score(rows)
    assert scored.scores.known.tolist() == [True, False, False]
    assert scored.scores.reason(1) == "it has no criterions"
    assert scored.scores.reason(2) == "criterion 0: column 'met' is missing"


def test_a_batch_without_rollouts_has_every_axis_empty():
    steps, tokens = gd.column("s", axis="step"), gd.column("logprobs", axis="token")
    for reward in (R, steps.mean(), gd.shape.centre(R), gd.credit.spread(R, tokens), gd.credit.spread(steps, tokens)):
        assert len(reward.score([]).scores) == 0
