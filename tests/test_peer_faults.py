"""Faults that reward libraries in use today have (found by running them), as tests of this one."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import warnings

import pytest

import guerdon as gd
from guerdon.core.rollout import Rollout
from openai_server import OpenAIServer

ROWS = [{"prompt": "6 + 12?", "completion": f"It is {n}.", "answer": "18"} for n in (18, 17, 18)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_refused_wherever_it_comes_from(bad):
    signalled = gd.signal(lambda rollout: bad).score(ROWS).scores
    assert not signalled.known.any()
    assert f"returned {bad}" in signalled.reason(0)
    with pytest.raises(gd.NonFiniteError):
        gd.column("x").score([{"completion": "a", "x": bad}])
    with pytest.raises((gd.NonFiniteError, gd.GuerdonError, ValueError)):
        (gd.column("x") + bad).score([{"completion": "a", "x": 1.0}])
    overflow = gd.column("x") * gd.column("x")
    assert not overflow.score([{"completion": "a", "x": 1e200}]).scores.known[0]


def test_a_not_finite_stage_never_passes_a_gate():
    broken = gd.signal(lambda rollout: math.nan)
    assert not gd.when(broken, 1.0, otherwise=0.0).score(ROWS).scores.known.any()
    assert not gd.when(broken > 0.5, 1.0, otherwise=0.0).score(ROWS).scores.known.any()


def test_one_raising_signal_leaves_its_siblings_values():
    @gd.signal
    def boom(rollout) -> float:
        raise RuntimeError("no")

    scored = (gd.verify.number().named("right") + boom.named("broken")).score(ROWS)
    assert scored.nodes["right"].values.tolist() == [1.0, 0.0, 1.0]
    assert scored.nodes["broken"].reason(0) == "RuntimeError: no"
    assert not scored.scores.known.any()


def test_one_raising_item_leaves_the_rest_of_its_batch():
    @gd.signal
    def picky(rollout) -> float:
        if "17" in rollout.text:
            raise ValueError("17")
        return 1.0

    scores = picky.score(ROWS).scores
    assert scores.known.tolist() == [True, False, True]
    assert scores.reason(1) == "ValueError: 17"


def test_a_sync_signal_works_in_async_code_and_an_async_one_in_sync_code():
    @gd.signal
    async def waits(rollout) -> float:
        await asyncio.sleep(0)
        return 1.0

    both = gd.verify.number() + waits
    expected = [2.0, 1.0, 2.0]

    async def main():
        return (await both.ascore(ROWS)).scores.values.tolist(), both.score(ROWS).scores.values.tolist()

    assert asyncio.run(main()) == (expected, expected)
    assert both.score(ROWS).scores.values.tolist() == expected


def test_a_correct_answer_off_the_main_thread_scores_one():
    got: list = []
    bounded = gd.verify.number().using(timeout=20.0)  # a deadline without signals of the operating system
    work = threading.Thread(target=lambda: got.extend(bounded.score(ROWS).scores.values.tolist()))
    work.start()
    work.join()
    assert got == [1.0, 0.0, 1.0]


def test_partial_unknown_does_not_count_as_zero():
    rows = [{"prompt": "p", "completion": "a", "x": x, "y": y} for x, y in [(1, None), (1, 1), (0, 1), (0, None)]]
    total = gd.column("x") + gd.column("y")
    advantage = gd.credit.group_relative(total.score(rows))
    assert advantage.known.tolist() == [False, True, True, False]
    assert advantage.values[[1, 2]].tolist() == pytest.approx([1.0, -1.0], abs=1e-3)
    assert total.for_trl("partial")(prompts=["p"] * 4, completions=["a"] * 4, x=[1, 1, 0, 0], y=[None, 1, 1, None]) == [
        None, 2.0, 1.0, None,
    ]  # fmt: skip


def test_a_failed_part_is_not_renormalised_away():
    @gd.signal(range=(0, 1))
    def boom(rollout) -> float:
        raise RuntimeError("no")

    mixed = 0.4 * gd.verify.number() + 0.6 * boom
    assert not mixed.score(ROWS).scores.known.any()


def test_weights_of_nested_sums_are_honoured():
    inner = 5.0 * gd.column("a") + 1.0 * gd.column("b")
    outer = 2.0 * inner + 3.0 * gd.column("c")
    assert outer.score([{"completion": "x", "a": 1.0, "b": 0.5, "c": 0.1}]).scores.values[0] == pytest.approx(11.3)


def test_two_functions_with_one_name_stay_apart():
    def make(value):
        @gd.signal
        def grade(rollout) -> float:
            return value

        return grade

    one, two = make(1.0), make(0.25)
    assert one.fingerprint != two.fingerprint
    assert (one + two).score(ROWS[:1]).scores.values[0] == 1.25
    named = (one.named("first") + two.named("second")).score(ROWS[:1])
    assert {name: s.values[0] for name, s in named.nodes.items()} == {"first": 1.0, "second": 0.25}
    assert one.for_trl("grade").__name__ != two.for_trl("grade").__name__
    with pytest.raises(gd.GuerdonError):  # two columns of one name in one file
        (one.named("same") + two.named("same")).score(ROWS[:1])


@pytest.mark.parametrize(
    "reply",
    [
        "Criterion 1 fails. Final score: 0.2",
        "Score: 8/10",
        "-0.5",
        "10",
        "I would say yes, no doubt",
        "yes\n\nno",
        "GRADE: CI",
    ],
)
def test_a_judges_first_number_or_word_is_never_taken_for_its_verdict(reply):
    with OpenAIServer(lambda body, n: reply) as server:
        judge = gd.judge.yes_no(question="Is it right?", model=server.model)
        scores = judge.score(ROWS[:1]).scores
    assert not scores.known[0]
    assert scores.evidence[0]["reply"] == reply


def test_an_unreachable_judge_pays_nobody():
    with OpenAIServer(lambda body, n: "") as server:
        model = server.model
    judge = gd.judge.yes_no(question="Is it right?", model=model).using(timeout=0.5)
    assert not judge.score(ROWS).scores.known.any()


NEED_A_REFERENCE = ["number", "exact", "text", "token_f1", "choice"]


@pytest.mark.parametrize("name", NEED_A_REFERENCE)
@pytest.mark.parametrize("completion", ["", " ", "None", "null", "nan", "[]"])
@pytest.mark.parametrize("answer", [None, "", " ", [], [None]])
def test_nothing_equals_nothing(name, completion, answer):
    score = getattr(gd.verify, name)(Rollout(completion, answer=answer))
    assert (score.value, score.reason) == (None, "no reference answer")


def test_tool_output_and_earlier_messages_are_not_the_answer():
    chat = [
        {"role": "assistant", "content": "Maybe 18?"},
        {"role": "tool", "content": "18"},
        {"role": "user", "content": "18"},
        {"role": "assistant", "content": "It is 17."},
        {"role": "tool", "content": "18"},
    ]
    assert gd.verify.number(Rollout(chat, answer="18")).value == 0.0


def test_calls_at_the_same_time_do_not_share_state():
    reward = gd.when(gd.verify.number() > 0.5, 1.0, otherwise=gd.verify.length_ratio(max=100))
    expected = {n: reward.score([ROWS[n]]).scores.values[0] for n in range(3)}
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(50):
            if reward.score([ROWS[n]]).scores.values[0] != expected[n]:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_systematic_failure_raises_an_alarm_and_a_single_one_does_not():
    @gd.signal
    def often(rollout) -> float:
        raise RuntimeError("down")

    with pytest.warns(gd.FailureRateWarning, match="failed on 30 of 30"):
        often.score([{"completion": str(i)} for i in range(30)])

    @gd.signal
    def once(rollout) -> float:
        return 1 / len(rollout.text)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert once.score([{"completion": "x" * i} for i in range(30)]).scores.known.sum() == 29


def test_an_instrument_failure_with_evidence_is_counted_and_a_plain_unknown_is_not():
    @gd.signal
    def reads(rollout) -> gd.Score:
        return gd.Score.failure("unreadable", reply=rollout.text)

    @gd.signal
    def abstains(rollout) -> gd.Score:
        return gd.Score.unknown("no reference answer")

    session = gd.Session()
    scored = (reads.named("reads") + abstains.named("abstains")).score(ROWS, session=session)
    assert scored.nodes["reads"].evidence[1] == {"reply": "It is 17."}
    assert (session.tallies["reads"].failed, session.tallies["abstains"].failed) == (3, 0)
    assert json.dumps(scored.explain(0).to_dict())
    with pytest.raises(gd.SignalError, match="unreadable"):
        reads.using(failure=gd.Failure(then="abort")).score(ROWS)
