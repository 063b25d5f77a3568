"""Line labels by mutation and guided retries: worked examples, recomputed, and every trap named; programs run in the
real sandbox."""

from __future__ import annotations

import math

import pytest

import guerdon as gd
from guerdon.backends.sandbox import Result, describe_isolation
from guerdon.methods.agent_rlvr import (
    Trajectory,
    agent_rlvr,
    guided_retry,
    leaks,
    lift,
    preference_loss,
    preference_pairs,
    resolved,
)
from guerdon.methods.prlcoder import label_lines, prlcoder
from guerdon.verify.programs.mutate import mutations, replaced, units
from guerdon.verify.programs.verdict import TestOutcome, Verdict

sandboxed = pytest.mark.skipif(not describe_isolation().available, reason=describe_isolation().reason)
C = gd.column
ADD = {"entry_point": "add", "cases": [[[2, 3], 5], [[10, -4], 6], [[0, 0], 0], [[7, 8], 15]]}


def values(expr, rows, **more):
    framed = expr.score(rows, **more).framed
    return [float(v) if k else None for v, k in zip(framed.values, framed.known, strict=True)]


def programs(*bodies, tests=ADD, **columns):
    return [{"prompt": "Add two numbers.", "completion": body, "tests": tests, **columns} for body in bodies]


RIGHT = "def add(a, b):\n    return a + b"
HALF = "def add(a, b):\n    return a + b if a > 5 else 1"
WRONG = "def add(a, b):\n    return None"


# PRLCoder.

LINES = "def f(a,b):\n c=a+b\n return c\n"
F = {"entry_point": "f", "cases": [[[2, 3], 5]]}


@sandboxed
def test_a_changed_line_is_labelled_by_running_the_tests():
    done = label_lines(LINES, F, [(2, "c=a-b"), (2, "c=b+a"), (3, "return a+b")], per_line=0)
    assert [(one.first, one.text, one.label) for one in done.lines] == [
        (1, "def f(a,b):", 1),
        (2, " c=a+b", 1),
        (2, " c=a-b", 0),
        (2, " c=b+a", 1),
        (3, " return c", 1),
        (3, " return a+b", 1),
    ]
    assert done.examples("Add.")[2] == {"prompt": "Add.", "prefix": "def f(a,b):\n", "line": " c=a-b", "label": 0}


@sandboxed
def test_nothing_after_a_changed_line_is_labelled():
    done = label_lines(LINES, F)
    for one in done.lines:
        assert one.prefix == "".join(f"{line}\n" for line in LINES.splitlines()[: one.first - 1])
    assert sum(one.original for one in done.lines) == 3
    assert {(one.first, one.text.strip(), one.label) for one in done.lines if not one.original} == {
        (2, "c = a - b", 0), (2, "c = b + a", 1), (2, "pass", 0), (3, "return None", 0), (3, "pass", 0),
    }  # fmt: skip
    assert done.killing_power == 0.8


@sandboxed
def test_weak_tests_do_not_call_bugs_refactorings():
    program = "def f(a, b):\n    c = a * b\n    return c\n"
    weak = {"entry_point": "f", "cases": [[[2, 2], 4]]}
    loose = {"entry_point": "f", "test": "def check(candidate):\n    assert candidate(2, 2) != 5\n"}
    assert label_lines(program, weak, [(2, "c = a + b")]).lines[2].label == 1  # one test alone is fooled
    done = label_lines(program, loose, [(2, "c = a - b")])
    assert done.killing_power < 0.5
    changed = [one for one in done.lines if not one.original]
    assert {one.label for one in changed} <= {None, 0}
    assert any("kill only" in one.reason for one in changed)
    assert all(one.label == 1 for one in done.lines if one.original)


@sandboxed
def test_a_change_that_hangs_or_crashes_is_wrong():
    program = "def f(n):\n    while n > 0:\n        n = n - 1\n    return n\n"
    done = label_lines(program, {"entry_point": "f", "cases": [[[3], 0]]}, [(3, "n = n"), (3, "n = n / 0")], seconds=0.4, per_line=0)  # fmt: skip  # noqa: E501
    assert [one.label for one in done.lines if not one.original] == [0, 0]


@sandboxed
def test_no_label_without_a_verdict_a_test_or_a_right_program(monkeypatch):
    wrong = label_lines("def f(a, b):\n    return a\n", F)
    assert wrong.killing_power is None
    assert [(one.label, one.reason[:31]) for one in wrong.lines] == [(None, "the program itself does not pas")] * 2
    assert [one.label for one in label_lines(LINES, {"entry_point": "f", "cases": []}).lines] == [None] * 3
    assert label_lines(LINES, {"entry_point": "f", "cases": []}).examples("p") == []
    with pytest.raises(ValueError, match="no statement starts at line 9"):
        label_lines(LINES, F, [(9, "pass")])
    gone = Result("infrastructure", None, "", "", 0.0, reason="gone")
    monkeypatch.setattr("guerdon.backends.sandbox.zygote.Zygote.answer_calls", lambda *_: gone)
    assert {one.label for one in label_lines(LINES, F).lines} == {None}


def test_statements_over_several_lines_are_one_unit():
    program = "def f(a):\n    '''doc'''\n    b = [\n        a,\n        1,\n    ]\n    if (a and\n            b):\n        return b\n    elif a == 3:\n        return 1\n    return sum(\n        b)\n"  # fmt: skip  # noqa: E501
    spans = [(unit.first, unit.last) for unit in units(program)]
    assert spans == [(1, 1), (3, 6), (7, 8), (9, 9), (10, 10), (11, 11), (12, 13)]
    by_line = {unit.first: mutations(unit) for unit in units(program)}
    assert by_line[7] == ["if not (a and b):", "if a or b:"]
    assert by_line[10] == ["elif not a == 3:", "elif a != 3:", "elif a == 4:"]
    for unit in units(program):
        for text in mutations(unit):
            compile(replaced(program, unit, text), "changed", "exec")
    assert units("def f(") == []


def test_line_rewards_join_the_outcome_at_the_last_line():
    rows = [{"prompt": "p", "line": [0.9, 0.2, 0.75], "ok": 1.0}]
    assert values(prlcoder(C("line", axis="step"), C("ok")), rows) == pytest.approx([0.8, -0.6, 1.5])
    assert values(prlcoder(C("line", axis="step"), C("ok"), signed=False, weight=2.0), rows) == pytest.approx([0.9, 0.2, 2.75])  # fmt: skip  # noqa: E501


def test_an_unknown_line_or_outcome_makes_the_whole_rollout_unknown():
    rows = [{"prompt": "p", "line": [0.9, None], "ok": 1.0}, {"prompt": "p", "line": [0.9, 0.5], "ok": None}]
    assert values(prlcoder(C("line", axis="step"), C("ok")), rows) == [None] * 4


def test_many_lines_of_small_reward_can_outweigh_the_outcome():
    rows = [{"prompt": "p", "line": [0.6] * n, "ok": ok} for n, ok in ((12, 0.0), (2, 1.0))]
    padded, right = values(prlcoder(C("line", axis="step"), C("ok")).sum(), rows)
    assert padded > right


# Agent-RLVR.

TASKS = {
    "fix-add": {"prompt": "Fix add.", "gold": "def add(a, b):\n    return a + b\n", **ADD},
    "fix-sub": {"prompt": "Fix sub.", "entry_point": "sub", "cases": [[[5, 3], 2]]},
}


def scripted(prompt):
    return RIGHT if "operator" in prompt else WRONG


@sandboxed
def test_a_guided_success_and_the_failure_before_it_make_one_pair_without_the_guidance():
    done = guided_retry(
        TASKS, scripted, lambda failed: "Look at the operator." if failed.task == "fix-add" else "Try again."
    )
    assert [(one.task, one.reward, bool(one.guidance)) for one in done.trajectories] == [
        ("fix-add", 0.0, False), ("fix-add", 1.0, True), ("fix-sub", 0.0, False), ("fix-sub", 0.0, True),
    ]  # fmt: skip
    (pair,) = done.pairs
    assert (pair.chosen, pair.rejected, pair.prompt, pair.guided) == (RIGHT, WRONG, "Fix add.", True)
    assert "operator" not in pair.prompt
    assert done.unsolved == ["fix-sub"]


@sandboxed
def test_tasks_that_only_fail_give_no_pair_and_are_named():
    done = guided_retry(TASKS, lambda prompt: WRONG, lambda failed: "Again.", retries=3)
    assert (done.pairs, done.unsolved) == ([], ["fix-add", "fix-sub"])
    assert len(done.trajectories) == 8
    assert guided_retry(TASKS, lambda prompt: WRONG, lambda failed: "").refused == [
        ("fix-add", "empty"),
        ("fix-sub", "empty"),
    ]


@sandboxed
def test_guidance_is_asked_for_only_where_a_task_failed_and_sees_the_failure():
    seen = []
    done = guided_retry({"fix-add": TASKS["fix-add"]}, lambda prompt: RIGHT, seen.append)
    assert (seen, done.unsolved, [one.reward for one in done.trajectories]) == ([], [], [1.0])
    guided_retry({"fix-add": TASKS["fix-add"]}, lambda prompt: WRONG, lambda failed: seen.append(failed) or "")
    assert "returned None, expected 5" in seen[0].reason


@sandboxed
def test_guidance_that_quotes_the_gold_program_is_refused():
    assert leaks("Use\n\ndef add(a,  b):\n  return a + b", TASKS["fix-add"]["gold"]) == 1.0
    assert leaks("Look at the operator.", TASKS["fix-add"]["gold"]) == leaks("anything", "") == 0.0
    done = guided_retry({"fix-add": TASKS["fix-add"]}, scripted, lambda failed: f"operator: {TASKS['fix-add']['gold']}")
    assert done.refused == [("fix-add", "it quotes 100% of the gold program")]
    assert done.pairs == []


@sandboxed
def test_a_flaky_pass_is_unknown_and_in_no_pair():
    flaky = {"flaky": {"prompt": "p", "entry_point": "f", "cases": [[[n], n] for n in range(12)]}}
    coin = "import random\ndef f(x):\n    return x if random.random() < 0.94 else -1"
    answers = iter([coin] * 60)
    done = guided_retry(flaky, lambda prompt: next(answers), lambda failed: "", samples=60, retries=0, confirm=2)
    rewards = [one.reward for one in done.trajectories]
    assert None in rewards
    assert all("flaky" in one.reason for one in done.trajectories if one.reward is None)
    assert {pair.chosen for pair in done.pairs} <= {coin}
    assert [one for one in done.pairs if one.chosen == one.rejected] == []


def test_pairs_of_unlike_length_and_of_trajectories_that_repeat_their_guidance_are_left_out():
    def one(reward, text, guidance=""):
        return Trajectory("t", "p", text, reward, guidance)

    short, long, lost = one(1.0, "ok"), one(1.0, "o" * 40), one(0.0, "no")
    assert len(preference_pairs([short, long, lost])) == 2
    assert [pair.chosen for pair in preference_pairs([short, long, lost], longest_ratio=2.0)] == ["ok"]
    assert preference_pairs([one(1.0, "As told: use plus.", "use plus."), lost]) == []
    assert preference_pairs([one(None, "unknown"), lost, one(1.0, "no")]) == []
    assert preference_pairs([short, Trajectory("other", "p", "no", 0.0)]) == []


@sandboxed
def test_the_reward_is_all_tests_and_a_failed_one_decides_beside_an_unknown_one():
    assert values(agent_rlvr(), programs(RIGHT, HALF, WRONG)) == [1.0, 0.0, 0.0]
    rows = [{"t": t} for t in ([1, 1], [1, 0], [1, None], [0, None], [None], [])]
    assert values(agent_rlvr(C("t", axis="test")), rows) == [1.0, 0.0, None, 0.0, None, None]


def test_the_loss_is_that_of_the_margin_over_the_reference():
    assert preference_loss(-5.0, -5.0, -5.0, -5.0) == pytest.approx(math.log(2))
    assert preference_loss(-4.0, -6.0, -5.0, -5.0, beta=0.5) == pytest.approx(-math.log(1 / (1 + math.exp(-1.0))))
    assert preference_loss(-1e6, 1e6, 0.0, 0.0) == pytest.approx(2e5)
    assert lift([0, 0, 0, 1], [1, 0, 1, 1], [None]) == {"plain": 0.25, "guided": 0.75, "trained": None}


def test_a_failed_test_decides_beside_an_unknown_one():
    mixed = [TestOutcome("a", None, "worker died"), TestOutcome("b", False)]
    assert resolved(Verdict(None, "", mixed)) == 0.0
    assert resolved(Verdict(None, "", mixed[:1])) is None
    assert resolved(Verdict(True, "", [])) is None
    assert resolved(Verdict(True, "", [TestOutcome("a", True)])) == 1.0
