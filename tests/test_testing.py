"""The public battery: every verifier passes it, and each check catches a reward that breaks its rule."""

from __future__ import annotations

import itertools
import random
import re
import time

import pytest

import guerdon as gd
from guerdon.testing import CHECKS, CheckFailed, check_reward, example_rollouts

CONFIGURED = {
    "keywords": {"words": ["blue", "total"]},
    "length_ratio": {"max": 40},
    "regex": {"pattern": r"\d+"},
}


def catalogue() -> list:
    return list(_catalogue())


def _catalogue():
    for name in gd.verify.__all__:
        verifier = getattr(gd.verify, name)
        if isinstance(verifier, gd.Signal) and verifier.manner.needs == "cpu":
            yield pytest.param(verifier(**CONFIGURED.get(name, {})), id=name)


@pytest.mark.parametrize("reward", catalogue())
def test_every_verifier_passes(reward):
    report = check_reward(reward, skip=["fresh_process"])
    assert set(report.skipped) <= {"fresh_process", "missing_columns"}


def test_an_expression_passes_the_whole_battery_with_a_fresh_process():
    reward = gd.when(gd.verify.format(), gd.verify.number() + 0.1 * gd.column("bonus", range=(0, 1)), otherwise=-1)
    report = check_reward(reward)
    assert {"fresh_process", "spec_round_trip", "missing_columns"} <= set(report.passed)


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_each_check_is_a_pytest_case_of_its_own(check):
    if check.name != "fresh_process":
        check(gd.verify.exact())


def flip(rollout) -> float:
    return random.random()


_calls = itertools.count()


def first_seen(rollout) -> float:
    return float(next(_calls) % 12 == 0)


def no_answer_is_wrong(rollout) -> float:
    return float(rollout.final == rollout.answer)


def default_weight(rollout) -> float:
    return rollout.extra.get("weight", 0.5)


def never_ends(rollout) -> float:
    while len(rollout.text) > 100_000:
        time.sleep(0.05)
    return 0.0


def chokes_on_hostility(rollout) -> gd.Score:
    return gd.Score(1.0, seen=rollout.text)


def reads_everything(rollout) -> float:
    said = rollout.completion if isinstance(rollout.completion, str) else str(rollout.completion)
    return float(str(rollout.answer) in said)


def depends_on_hash(rollout) -> float:
    return (hash(rollout.prompt_text) % 1000) / 1000


BROKEN = {
    "deterministic": gd.signal(range=(0, 1))(flip),
    "order_free": gd.signal(range=(0, 1), version=1)(first_seen),
    "missing_answer": gd.signal(range=(0, 1))(no_answer_is_wrong),
    "huge_input": gd.signal(range=(0, 1))(never_ends),
    "hostile_text": gd.signal(range=(0, 1))(chokes_on_hostility),
    "message_form": gd.signal(range=(0, 1))(reads_everything),
    "tool_output": gd.signal(range=(0, 1))(reads_everything),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_check_catches_what_it_is_for(name):
    check = next(c for c in CHECKS if c.name == name)
    if name == "message_form":  # the text of the message list differs from the text alone
        reward = gd.signal(range=(0, 1))(lambda r: float(isinstance(r.completion, str)))
        with pytest.raises(AssertionError, match="as text and as messages"):
            check(reward)
        return
    with pytest.raises(AssertionError):
        check(BROKEN[name], deadline=0.5)


def test_a_made_up_default_for_a_missing_column_is_caught():
    rows = [{"completion": "x", "prompt": "p", "weight": w} for w in (0.1, 0.9)]
    with pytest.raises(CheckFailed, match=r"depends on column 'weight', but is 0\.5 without it"):
        check_reward(gd.signal(range=(0, 1))(default_weight), rows, skip=["fresh_process"])


def test_a_score_that_depends_on_the_process_is_caught():
    with pytest.raises(CheckFailed, match="fresh_process: here and in a fresh interpreter: rollout 0"):
        check_reward(gd.signal(range=(0, 1))(depends_on_hash))


def test_a_parameter_without_a_stable_fingerprint_is_caught():
    @gd.signal(range=(0, 1))
    def odd(rollout, *, thing) -> float:
        return 0.0

    with pytest.raises(CheckFailed, match="no stable fingerprint") as caught:
        check_reward(odd(thing=object()), skip=["fresh_process"])
    assert [r.check for r in caught.value.report.failed] == ["pickling"]


def test_a_group_that_leans_on_other_groups_is_caught():
    @gd.transform("test.whole_batch_mean")
    def whole_batch_mean(x: gd.Scores) -> gd.Scores:
        return gd.Scores.of(x.axis, x.values - x.values.mean(), x.known, x)

    check = next(c for c in CHECKS if c.name == "groups_apart")
    with pytest.raises(AssertionError, match="with others and alone"):
        check(whole_batch_mean(gd.column("x")))


def test_the_message_lists_each_failed_check_with_its_cause():
    with pytest.raises(CheckFailed) as caught:
        check_reward(BROKEN["missing_answer"], skip=["fresh_process"])
    text = str(caught.value)
    assert re.search(r"1 of \d+ checks failed", text)
    assert "missing_answer: " in text
    assert "depends on the reference answer, but is 0 without it" in text
    assert "skipped fresh_process: by request" in text


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="no check determinism; there are sound"):
        check_reward(gd.verify.exact, skip=["determinism"])
    with pytest.raises(TypeError, match=r"make one of a function with @gd\.signal"):
        check_reward(lambda r: 1.0)


def test_example_rollouts_hold_a_number_for_every_column_that_is_read():
    reward = (
        gd.column("a", range=(2, 3))
        + gd.column("b", axis="step").mean()
        + gd.column("c", axis="token").mean(to="rollout")
    )
    scores = reward.score(example_rollouts(reward)).scores
    assert len(scores) == 12
    assert scores.known.all()


def test_the_battery_runs_inside_a_running_loop():
    import asyncio

    async def inside():
        return check_reward(gd.verify.exact, skip=["fresh_process", "huge_input"])

    assert not asyncio.run(inside()).failed
