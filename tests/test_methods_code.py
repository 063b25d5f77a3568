"""Methods over running code: worked examples, recomputed, and every trap named; programs run in the real sandbox."""

from __future__ import annotations

import numpy as np
import pytest

import guerdon as gd
from guerdon.backends.sandbox import Result, describe_isolation
from guerdon.methods import find
from guerdon.methods.b_coder import b_coder, conservative_target, q_values, recovered_reward
from guerdon.methods.gated_accumulation import gated_accumulation, gated_steps
from guerdon.methods.orps import execution_score, orps, rank
from guerdon.methods.specbench import specbench
from guerdon.methods.verpo import verpo
from guerdon.verify.programs import signals
from guerdon.verify.programs.metrics import measure

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
RAISES = "def add(a, b):\n    return 5 if a == 2 else 1 / 0"
LOOPS = "def add(a, b):\n    while True: pass"
BROKEN = "def add(a, b:\n    return"


# B-Coder.


@sandboxed
def test_four_levels_by_how_far_a_program_gets():
    got = values(b_coder(seconds=1.0), programs(RIGHT, WRONG, HALF, RAISES, BROKEN, "import no_such_module\n" + RIGHT))
    assert got == [1.0, -0.3, -0.3, -0.6, -1.0, -0.6]


@sandboxed
@pytest.mark.parametrize(
    "tests",
    [
        ADD,
        {"entry_point": "add", "test": "def check(candidate):\n    assert candidate(2, 3) == 5\n"},
        {
            "entry_point": "add",
            "test": "def check(candidate):\n    for a in (2, 9):\n        assert candidate(a, 3) == a + 3\n",
        },
        {"pytest": "from solution import add\ndef test_add():\n    assert add(2, 3) == 5\n    assert add(1, 3) == 4\n"},
        {"test_list": ["assert add(2, 3) == 5", "assert add(1, 3) == 4"]},
    ],
)
def test_the_levels_are_the_same_however_the_tests_are_written(tests):
    got = values(
        b_coder(seconds=1.0), programs(RIGHT, WRONG, "def add(a, b): return a.nothing", BROKEN, "", tests=tests)
    )
    assert got == [1.0, -0.3, -0.6, -1.0, -1.0]


@sandboxed
def test_endless_loops_and_early_ends_are_runtime_errors():
    assert values(b_coder(seconds=0.4), programs(LOOPS, "import os\nos._exit(0)")) == [-0.6, -0.6]
    whole = [{"prompt": "p", "completion": c, "stdio": [["2 3\n", "5\n"]]} for c in ("print(5)", "print(4)", "1 / 0", "print((", "eval('1 +')")]  # fmt: skip  # noqa: E501
    assert values(b_coder(seconds=1.0), whole) == [1.0, -0.3, -0.6, -1.0, -0.6]


@sandboxed
def test_what_its_compiler_refuses_does_not_compile_in_other_languages_too():
    pytest.importorskip("shutil").which("g++") or pytest.skip("no C++ compiler here")
    sources = [
        '#include <cstdio>\nint main() { puts("5"); }',
        "#include <cstdlib>\nint main() { abort(); }",
        "int main( {",
    ]
    task = {"stdio": [["2 3\n", "5\n"]], "language": "cpp"}
    assert values(b_coder(), [{"prompt": "p", "completion": s, "tests": task} for s in sources]) == [1.0, -0.6, -1.0]


@sandboxed
def test_a_sandbox_that_failed_gives_no_level(monkeypatch):
    gone = Result("infrastructure", None, "", "", 0.0, reason="gone")
    monkeypatch.setattr("guerdon.backends.sandbox.zygote.Zygote.answer_calls", lambda *_: gone)
    assert values(b_coder(), [*programs(RIGHT), {"prompt": "p", "completion": RIGHT}]) == [None, None]


def test_q_is_the_models_own_policy_and_its_targets_follow_the_frozen_one():
    q = q_values(np.array([2.0, 1.0, 0.0]), 0.5)
    assert q.tolist() == [0.5, -0.5, -1.5]
    assert np.exp(q) / np.exp(q).sum() == pytest.approx([0.665241, 0.244728, 0.090031], abs=5e-7)
    assert q_values(np.array([[2.0, 1.0]]), np.array([3.0])).tolist() == [[1.0, 1.0]]  # capped
    next_q, prior = np.array([0.9, -0.5, 0.1]), np.array([0.2, 0.4, 0.4])
    assert conservative_target(0.0, next_q, prior, terminal=False, gamma=0.99) == pytest.approx(-0.495)
    assert conservative_target(-0.3, next_q, prior, terminal=True, gamma=0.99) == -0.3


GAP, VALUE, BEST = (C(name, axis="token") for name in ("gap", "v", "best"))


def told(gap, v, **more):
    return [{"prompt": "p", "tokens": list(range(len(gap))), "gap": gap, "v": v, **more}]


def test_the_recovered_reward_has_no_second_term_after_the_last_token():
    assert values(recovered_reward(GAP, VALUE, gamma=0.99), told([0.0, -0.2], [0.5, 0.7])) == pytest.approx(
        [-0.193, 0.5]
    )
    assert values(recovered_reward(GAP, VALUE, gamma=0.99), told([0.0], [0.5]) + told([0.0], [9.0])) == [0.5, 9.0]
    assert values(recovered_reward(GAP, VALUE, alpha=2.0), told([-0.25], [0.5])) == [0.0]


def test_the_operator_is_inverted_on_a_random_decision_process():
    rng = np.random.default_rng(5)
    reward, prior, gamma = rng.uniform(-1, 1, (5, 3)), rng.uniform(size=(5, 3)), 0.9
    following = np.array(
        [[min(s + 1 + int(rng.integers(0, 2)), 5) for _ in range(3)] for s in range(5)]
    )  # 5 is the end
    q = np.zeros((5, 3))
    for _ in range(200):
        q = np.array([[float(conservative_target(reward[s, a], q[n] if (n := following[s, a]) < 5 else q[0], prior[n] if n < 5 else prior[0], terminal=n == 5, gamma=gamma)) for a in range(3)] for s in range(5)])  # fmt: skip  # noqa: E501
    for actions in rng.integers(0, 3, (20, 5)):
        state, gap, v, best, expected = 0, [], [], [], []
        for action in actions:
            if state == 5:
                break
            v.append(q[state].max())
            gap.append(q[state, action] - q[state].max())
            best.append(q[state, int(np.argmax(prior[state]))] - q[state].max())
            expected.append(reward[state, action])
            state = following[state, action]
        got = values(recovered_reward(GAP, VALUE, BEST, gamma=gamma), told(gap, v, best=best))
        assert got == pytest.approx(expected, abs=1e-9)


def test_the_sum_depends_on_length_only_with_discounting():
    short, long = told([0.0, 0.0], [0.5, 0.5]), told([0.0] * 6, [0.5] * 6)
    assert values(recovered_reward(GAP, VALUE).sum(), short + long) == pytest.approx([0.5, 0.5])
    assert values(recovered_reward(GAP, VALUE, gamma=0.9).sum(), short + long) == pytest.approx([0.55, 0.75])


def test_unknown_tokens_touch_their_neighbour_alone_and_bad_parameters_are_refused():
    assert values(recovered_reward(GAP, VALUE), told([0.0, 0.0, None, 0.0], [1.0, 0.5, 0.5, 0.5])) == [
        0.5,
        0.0,
        None,
        0.5,
    ]
    assert values(recovered_reward(GAP, VALUE), told([0.0] * 3, [1.0, None, 0.5])) == [None, None, 0.5]
    for wrong in ({"alpha": 0.0}, {"gamma": 1.5}, {"gamma": -0.1}):
        with pytest.raises(ValueError, match=r"alpha|gamma"):
            values(recovered_reward(GAP, VALUE, **wrong), told([0.0], [0.5]))


# ORPS.

SIZES = {name: C(name) for name in ("nodes", "cyclomatic", "cognitive", "lines")}
COSTS = {name: C(name) for name in ("nanoseconds", "instructions", "branch_misses", "page_faults")}
WORKED = {"ok": 0.8, "nodes": 100, "cyclomatic": 1, "cognitive": 10, "lines": 50, "nanoseconds": 1e7, "instructions": 1e5, "branch_misses": 1e3, "page_faults": 100}  # fmt: skip  # noqa: E501


def test_success_is_raised_by_small_size_and_cost():
    rows = [WORKED, {**WORKED, "cyclomatic": 3}, {**WORKED, "ok": 0.0}, {**WORKED, "ok": None}]
    static = (0.5 + 1 / (1 + 3) + 0.5 + 0.5) / 4
    assert static == 0.4375
    assert 0.8 * (1 + 0.5 * static + 0.25) == pytest.approx(1.175)
    assert values(orps(C("ok"), SIZES, COSTS), rows) == [pytest.approx(1.2), pytest.approx(1.175), 0.0, None]


def test_a_metric_that_was_not_measured_is_left_out_and_not_taken_as_zero():
    missing = dict.fromkeys(COSTS)
    rows = [{**WORKED, **missing}, {**WORKED, **missing, **dict.fromkeys(SIZES)}, {**WORKED, "page_faults": None}]
    got = values(execution_score(C("ok"), SIZES, COSTS), rows)
    assert got == pytest.approx([1.2, 0.8, 1.2])
    released = 0.8 * (1 + 0.5 * 0.5 + 0.5 * 1.0)
    assert released == pytest.approx(1.4)
    assert values(execution_score(C("ok"), {"lines": C("lines")}, {}), [WORKED]) == pytest.approx([1.2])
    with pytest.raises(ValueError, match="no scale for the metric 'heat'"):
        values(execution_score(C("ok"), {"heat": C("lines")}, {}), [WORKED])


def test_the_search_ranks_by_critic_then_execution_then_creation():
    rows = [
        {"prompt": "p", "c": c, "s": s} for c, s in ((4, 0.2), (None, 2.0), (5, 0.1), (4, 1.1), (4, None), (4, 0.2))
    ]
    assert values(rank(C("c"), C("s")), rows) == [2.0, 5.0, 0.0, 1.0, 4.0, 3.0]
    assert values(rank(C("c"), C("s")) < 3, rows) == [1, 0, 1, 1, 0, 0]


def test_sizes_of_code_are_those_of_the_published_measures():
    nested = "def f(x):\n    for i in x:\n        if i and x or i:\n            return 1\n        elif i > 2:\n            pass\n        else:\n            f(i)\n"  # fmt: skip  # noqa: E501
    # cyclomatic: 1 + for + if + elif + two operators; cognitive: for 1, if 2, elif 1, else 1, sequences 2, recursion 1
    assert [measure(nested, metric) for metric in ("cyclomatic", "cognitive", "lines")] == [6.0, 8.0, 8.0]
    two = "def f(x):\n    return x\n\ndef g(x):\n    while x:\n        x -= 1\n    return x"
    assert [measure(two, metric) for metric in ("cyclomatic", "cognitive")] == [1.5, 0.5]
    assert measure("x = 1", "nodes") == 5.0
    assert measure("x =", "nodes") is None
    assert measure("x = " + "-" * 3000 + "1", "lines") is None or measure("x = " + "-" * 3000 + "1", "lines") == 1.0


def test_comments_docstrings_and_crowded_lines_do_not_change_the_line_count():
    plain = "def f(x):\n    y = x\n    return y\n"
    crowded = "def f(x):\n    y = x; return y\n"
    told_at_length = 'def f(x):\n    """Two\n\n    lines."""\n    # why\n    y = x\n\n    return y\n'
    assert measure(plain, "lines") == measure(crowded, "lines") == measure(told_at_length, "lines") == 3.0


@sandboxed
def test_live_scores_put_the_right_program_first_and_golfing_never_above_correctness():
    padded = (
        "def add(a, b):\n    if a and b:\n        c = a\n        c = c + b\n    else:\n        c = a + b\n    return c"
    )
    got = values(orps(), programs(RIGHT, padded, HALF, WRONG, "def add(a,b):return 1"))
    assert got[0] > got[1] > 1.0
    assert 0.5 < got[2] <= 1.0
    assert got[3] == got[4] == 0.0


@sandboxed
def test_time_is_that_of_the_passed_tests():
    slow = "def add(a, b):\n    if a == 7:\n        for _ in range(10**7): pass\n        return 0\n    return a + b"
    fine, wrong, partly = values(signals.code_nanoseconds(seconds=5.0), programs(RIGHT, WRONG, slow))
    assert wrong is None
    assert 0 < fine < 1e9
    assert partly < 0.1e9  # the slow test is the failed one
    whole = {"entry_point": "add", "test": "def check(candidate):\n    assert candidate(2, 3) == 5\n    assert candidate(7, 8) == 15\n"}  # fmt: skip  # noqa: E501
    assert values(signals.code_nanoseconds(), programs(slow, tests=whole)) == [None]


def test_a_share_of_tests_outside_its_range_is_unknown_and_so_is_a_rate_for_verpo():
    rows = [{**WORKED, "ok": ok} for ok in (1.0, -1.0, 80.0)]
    assert values(orps(C("ok"), SIZES, COSTS), rows) == [pytest.approx(1.5), None, None]
    graded = [{"prompt": "p", "t": t} for t in ([1, 0], [0, 1], [1, 7])]
    assert [v is None for v in values(verpo(C("t", axis="test")), graded)] == [False, False, True]


def test_shorter_code_scores_higher_by_less_than_correctness():
    long, short = ({**WORKED, "nodes": n, "lines": n / 2} for n in (200, 2))
    scores = values(orps(C("ok"), SIZES, COSTS), [long, short, {**short, "ok": 0.3}])
    assert scores[1] > scores[0] > scores[2]


# Over live code scores.


@sandboxed
def test_gated_accumulation_works_over_code():
    solved, share, parses = signals.code().min(), signals.code().mean(), signals.code_compiles()
    got = values(gated_accumulation([parses, share * 0.5, solved], [0.0, 0.3]), programs(RIGHT, HALF, WRONG, BROKEN))
    assert got == [2.5, 1.25, 1.0, 0.0]
    # the published example: outcome > format > steps
    worked = [{"o": -1.0, "f": 0.1, "s": [0.2, 0.3]}, {"o": 1.0, "f": 0.1, "s": [0.2, 0.3]}]
    assert values(gated_accumulation([C("o"), C("f"), C("s", axis="step").sum()]), worked) == pytest.approx([-1.0, 1.6])
    rows = [{**row, "part": [0.2, 0.3]} for row in programs(RIGHT, WRONG)]
    assert values(gated_steps(solved, C("part", axis="item")), rows) == pytest.approx([0.2, 1.3, 0.0, 0.0])


@sandboxed
def test_verpo_weighs_live_tests_by_how_many_rollouts_pass_them():
    rows = programs(RIGHT, HALF, HALF, WRONG)
    passed = signals.code()
    assert np.reshape(values(passed, rows), (4, 4)).tolist() == [[1, 1, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 0, 0, 0]]
    got = values(verpo(passed), rows)
    assert got[0] > got[1] == got[2] > got[3]
    assert sum(got) == pytest.approx(0.0)
    by_hand = [{"prompt": "q", "p": p} for p in np.reshape(values(passed, rows), (4, 4)).tolist()]
    assert got == pytest.approx(values(verpo(C("p", axis="test")), by_hand))


@sandboxed
def test_specbench_sees_a_program_that_knows_only_the_visible_tests():
    shown, held = ({"entry_point": "add", "cases": cases} for cases in (ADD["cases"][:2], [[[9, 9], 18], [[1, 5], 6]]))
    knows = "def add(a, b):\n    return {(2, 3): 5, (10, -4): 6}.get((a, b))"
    rows = [{"prompt": "p", "completion": c, "shown": shown, "held": held} for c in (RIGHT, knows)]
    visible, hidden = signals.code(tests="shown").mean(), signals.code(tests="held").mean()
    assert values(specbench(visible, hidden), rows) == [1.0, 0.5]
    assert values(signals.code_untampered(tests="shown"), rows) == [1.0, 0.0]


def test_the_methods_are_registered_with_what_they_are_made_of():
    assert "verify.code_level" in find("b-coder").parts
    assert {"methods.execution_score", "verify.code_metric", "verify.code_nanoseconds"} <= set(find("orps").parts)
    assert find("prlcoder").family == "data"
    assert find("agent-rlvr-guided-retry").evidence == "secondary"
