"""The engine: what is asked, when, how often, and what becomes of failures."""

from __future__ import annotations

import asyncio
import re
import threading
import time
import warnings

import pytest

import guerdon as gd

GATE = gd.column("gate", range=(0, 1))


class Counter:
    """A signal that notes which rollouts it was asked about."""

    def __init__(self, needs="judge", **options):
        self.asked: list[str] = []
        self.most = self.now = 0

        async def judge(rollout):
            self.asked.append(rollout.id)
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.002)
            self.now -= 1
            return rollout.extra.get("value", 0.5)

        self.signal = gd.signal(needs=needs, range=(0, 1), **options)(judge)


def rows(count=8, **more):
    return [{"id": str(i), "prompt": f"p{i // 4}", "completion": f"c{i}", "gate": i % 2, **more} for i in range(count)]


class Memory(dict):
    """The cache contract over a plain dict."""

    def get_many(self, keys):
        return {k: self[k] for k in keys if k in self}

    def put_many(self, entries):
        self.update(entries)


def test_a_dear_signal_behind_when_is_asked_only_where_the_value_depends_on_it():
    judge = Counter()
    scored = gd.when(GATE, judge.signal.named("judge"), otherwise=-1.0).score(rows())
    assert sorted(judge.asked) == ["1", "3", "5", "7"]
    assert scored.scores.values.tolist() == [-1.0, 0.5] * 4
    assert scored.nodes["judge"].unknown_reasons() == {"not asked": 4}
    assert scored.explain(0).parts[1].reason == "not asked"


@pytest.mark.parametrize("build", [lambda g, j: g & j, lambda g, j: j & g, lambda g, j: j * g])
def test_the_cheap_part_is_asked_first_and_decides(build):
    judge = Counter()
    scored = build(GATE, judge.signal).score(rows())
    assert sorted(judge.asked) == ["1", "3", "5", "7"]
    assert scored.scores.values.tolist() == [0.0, 0.5] * 4


def test_or_asks_only_where_the_known_part_is_not_true():
    judge = Counter()
    (GATE | judge.signal).score(rows())
    assert sorted(judge.asked) == ["0", "2", "4", "6"]


def test_a_group_statistic_widens_the_demand_to_whole_groups():
    judge = Counter()
    first = gd.column("first", range=(0, 1))
    data = [{**row, "first": int(i == 0), "value": i / 8} for i, row in enumerate(rows())]
    scored = gd.when(first, gd.shape.centre(judge.signal), otherwise=0.0).score(data)
    assert sorted(judge.asked) == ["0", "1", "2", "3"]
    assert scored.scores.values[0] == pytest.approx(-0.1875)


def test_a_shared_node_is_asked_once_also_when_it_was_built_twice():
    judge = Counter()
    (gd.when(GATE, judge.signal, 0.0) + judge.signal + judge.signal.named("again")).score(rows())
    assert sorted(judge.asked) == [str(i) for i in range(8)]
    calls = []

    def count(rollout):
        calls.append(1)
        return 1.0

    (gd.signal(version=1)(count) + gd.signal(version=1)(count)).score(rows())
    assert len(calls) == 8


def test_later_demand_asks_only_about_what_is_new():
    judge = Counter()
    expression = gd.when(GATE, judge.signal, gd.when(gd.column("late"), judge.signal, 0.0))
    expression.score([{**row, "late": int(i < 4)} for i, row in enumerate(rows())])
    assert sorted(judge.asked) == ["0", "1", "2", "3", "5", "7"]


def test_equal_questions_are_asked_once_and_the_cache_answers_the_second_run():
    judge, cache = Counter(), Memory()
    session = gd.Session(cache=cache)
    data = [{"completion": "same", "prompt": "p", "value": 0.25} for _ in range(5)]
    assert judge.signal.score(data, session=session).scores.values.tolist() == [0.25] * 5
    assert len(judge.asked) == 1
    again = judge.signal.score(data, session=gd.Session(cache=cache))
    assert len(judge.asked) == 1
    assert again.scores.values.tolist() == [0.25] * 5


def test_the_cache_keeps_evidence_and_declared_unknowns_but_no_failures():
    cache, calls = Memory(), []

    @gd.signal(cache=True)
    def check(rollout):
        calls.append(rollout.text)
        if rollout.text == "boom":
            raise ValueError("no")
        return gd.Score.unknown("no reference") if rollout.text == "none" else gd.Score(1.0, found="x")

    data = [{"completion": c} for c in ("ok", "none", "boom")]
    for _ in range(2):
        scored = check.score(data, session=gd.Session(cache=cache))
        assert scored.unknown == {"no reference": 1, "ValueError: no": 1}
        assert scored.scores.evidence[0] == {"found": "x"}
    assert calls == ["ok", "none", "boom", "boom"]


def test_independent_leaves_are_asked_at_the_same_time_within_the_resource_limit():
    judge = Counter()
    judge.signal.score(rows(40), session=gd.Session(limits={"judge": 3}))
    assert judge.most == 3
    barrier = asyncio.Event()

    @gd.signal(needs="lm")
    async def first(rollout):
        await asyncio.wait_for(barrier.wait(), 5)
        return 1.0

    @gd.signal(needs="judge")
    async def second(rollout):
        barrier.set()
        return 1.0

    assert (first + second).score([{}]).scores.values.tolist() == [2.0]


def test_the_deadline_of_an_async_signal_does_not_count_its_queue():
    @gd.signal(needs="judge", timeout=0.25)
    async def slow(rollout):
        await asyncio.sleep(5 if rollout.text == "hang" else 0.05)
        return 1.0

    data = [{"completion": "hang" if i == 3 else str(i)} for i in range(12)]
    scored = slow.score(data, session=gd.Session(limits={"judge": 1}))
    assert scored.unknown == {"timed out after 0.25 s": 1}
    assert int(scored.scores.known.sum()) == 11


def catastrophic(rollout):
    return float(re.match(r"(a+)+$", rollout.text) is None)


def huge_power(rollout):
    return float(len(str(9**9**9)) if rollout.text.startswith("aa") else 1)


@pytest.mark.parametrize("function", [catastrophic, huge_power])
def test_work_stuck_in_c_code_costs_one_deadline_and_nothing_else(function):
    stuck = gd.signal(timeout=1.0)(function)
    assert stuck.manner.needs == "process"
    data = [{"completion": "a" * 40 + "b" if i == 50 else f"b{i}"} for i in range(100)]
    stuck.score(data[:4])  # the first call starts the workers
    box = []

    def work():
        started = time.monotonic()
        box.append((stuck.score(data), time.monotonic() - started))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    scored, seconds = box[0]
    assert scored.unknown == {"timed out after 1 s": 1}
    assert scored.scores.values[scored.scores.known].tolist() == [1.0] * 99
    assert seconds < 5
    started = time.monotonic()
    assert stuck.score(data[:10]).scores.known.all()
    assert time.monotonic() - started < 3


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (float("nan"), "returned nan, which is not a finite number"),
        (float("inf"), "returned inf, which is not a finite number"),
        (1.5, "returned 1.5, outside the declared range [0, 1]"),
        ("1.0", "returned str '1.0', which is not a score"),
        (10**400, "returned a number that is too large"),
        ([1.0], "returned list [1.0], which is not a score"),
    ],
)
def test_what_is_no_score_is_a_failure_with_its_reason(returned, reason):
    @gd.signal(range=(0, 1))
    def odd(rollout):
        return returned

    assert odd.score([{}]).unknown == {reason: 1}


def raising(then="unknown", retries=0):
    calls = []

    @gd.signal(failure=gd.Failure(then=then, retries=retries))
    def fragile(rollout):
        calls.append(rollout.text)
        if rollout.text == "bad" or (rollout.text == "flaky" and calls.count("flaky") < 3):
            raise RuntimeError("no luck")
        return 1.0

    return fragile, calls


def test_the_declared_failure_policy_is_followed():
    data = [{"completion": c} for c in ("good", "bad", "flaky")]
    fragile, calls = raising()
    assert fragile.score(data).unknown == {"RuntimeError: no luck": 2}
    fragile, calls = raising(retries=2)
    assert fragile.score(data).scores.known.tolist() == [True, False, True]
    assert calls == ["good", "bad", "flaky", "bad", "flaky", "bad", "flaky"]
    fragile, _ = raising(then=0.25)
    scored = fragile.score(data)
    assert scored.scores.values.tolist() == [1.0, 0.25, 0.25]
    assert scored.scores.evidence[1] == {"failure": "RuntimeError: no luck"}
    fragile, _ = raising(then="abort")
    with pytest.raises(gd.SignalError, match="fragile failed: RuntimeError: no luck"):
        fragile.score(data)


def test_an_alarm_is_given_when_a_signal_fails_too_often():
    @gd.signal(failure=gd.Failure(alarm=0.2))
    def often(rollout):
        return float("nan") if int(rollout.text) % 4 == 0 else 1.0

    with pytest.warns(gd.FailureRateWarning, match="often failed on 10 of 40 items"):
        scored = often.score([{"completion": str(i)} for i in range(40)])
    assert len(scored.alarms) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        often.score([{"completion": str(i)} for i in range(1, 40, 2)])


def test_one_raising_signal_leaves_its_siblings_values():
    fragile, _ = raising()
    scored = (fragile.named("fragile") + gd.column("v").named("v")).score([{"completion": "bad", "v": 2.0}])
    assert scored.nodes["v"].values.tolist() == [2.0]
    assert not scored.nodes["fragile"].known[0]
    assert not scored.scores.known[0]


def test_batch_functions_sync_and_async():
    @gd.signal(batch=True, batch_size=3)
    def lengths(rollouts):
        return [len(r.text) for r in rollouts]

    @gd.signal(batch=True, needs="embedder")
    async def wrong(rollouts):
        return [1.0]

    data = [{"completion": "x" * i} for i in range(7)]
    assert lengths.score(data).scores.values.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert wrong.score(data[:2]).unknown == {"returned 1 scores for 2 items": 2}


def test_signals_on_steps_on_groups_and_on_an_axis_of_their_own():
    @gd.signal(axis="step")
    def size(step):
        return len(step.text)

    @gd.signal(axis="step", per="rollout")
    def place(rollout):
        return list(range(len(rollout.steps)))

    @gd.signal(per="prompt")
    def share(group):
        return [sum(r.text == s.text for s in group.rollouts) / len(group) for r in group.rollouts]

    @gd.signal(axis="test")
    def tests(rollout):
        return [float(c == "1") for c in rollout.extra["bits"]]

    data = [
        {"prompt": "p", "completion": "a", "steps": ["one", "three"], "bits": "110"},
        {"prompt": "p", "completion": "b", "steps": ["x"], "bits": "0"},
        {"prompt": "p", "completion": "a", "steps": [], "bits": ""},
    ]
    assert size.score(data).scores.values.tolist() == [3.0, 5.0, 1.0]
    assert (size * place).sum().score(data[:2]).scores.values.tolist() == [5.0, 0.0]
    assert share.score(data).scores.values == pytest.approx([2 / 3, 1 / 3, 2 / 3])
    passed = tests.mean().score(data)
    assert passed.scores.values[:2] == pytest.approx([2 / 3, 0.0])
    assert passed.unknown == {"it has no tests": 1}
    assert gd.when(gd.column("c"), tests.mean(), -1.0).score(
        [{**d, "c": i} for i, d in enumerate(data[:2])]
    ).scores.values.tolist() == [-1.0, 0.0]


def test_a_wrong_number_of_step_scores_is_a_failure_of_that_rollout_alone():
    @gd.signal(axis="step", per="rollout")
    def one_only(rollout):
        return [1.0]

    scored = one_only.score([{"steps": ["a"]}, {"steps": ["a", "b"]}])
    assert scored.scores.known.tolist() == [True, False, False]
    assert scored.unknown == {"returned 1 scores for 2 steps": 2}


def test_sync_calls_work_inside_a_running_loop_and_async_ones_with_sync_signals():
    @gd.signal
    def plain(rollout):
        return 1.0

    judge = Counter()

    async def main():
        nested = (plain + judge.signal).score(rows(2))
        awaited = await (plain + judge.signal).ascore(rows(2))
        return nested.scores.values.tolist(), awaited.scores.values.tolist()

    assert asyncio.run(main()) == ([1.5, 1.5], [1.5, 1.5])


def test_a_signal_may_score_another_reward():
    inner = Counter()

    @gd.signal(needs="judge")
    async def outer(rollout):
        return inner.signal.score([rollout]).scores.values[0]

    assert outer.score(rows(2)).scores.values.tolist() == [0.5, 0.5]


def test_eight_threads_get_the_same_scores():
    judge = Counter()
    expression = gd.when(GATE, judge.signal, gd.shape.centre(gd.column("gate")))
    expected = expression.score(rows()).scores.values.tolist()
    results = []
    threads = [threading.Thread(target=lambda: results.append(expression.score(rows()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r.scores.values.tolist() for r in results] == [expected] * 8


def test_state_is_explicit_carried_by_the_session_and_never_on_the_reward():
    @gd.transform("counted", initial=lambda: {"seen": 0})
    def counted(x: gd.Scores, *, state=None):
        seen = state["seen"] + len(x)
        return gd.Scores.of(x.axis, x.values + state["seen"], x.known, x), {"seen": seen}

    reward = counted(gd.column("v"))
    batch = [{"v": 0.0}, {"v": 0.0}]
    assert reward.score(batch).scores.values.tolist() == [0.0, 0.0]
    assert reward.score(batch).scores.values.tolist() == [0.0, 0.0]
    session = gd.Session()
    totals = [s.scores.values.tolist() for s in reward.stream([batch, batch, batch[:1]], session=session)]
    assert totals == [[0.0, 0.0], [2.0, 2.0], [4.0]]
    assert session.state == {reward.fingerprint: {"seen": 5}}
    resumed = reward.score(batch, session=gd.Session(state=session.state))
    assert resumed.scores.values.tolist() == [5.0, 5.0]


def test_unknown_at_the_edge_is_the_callers_choice():
    data = [{"prompt": "p", "v": 1.0}, {"prompt": "p"}]
    column = gd.column("v")
    assert column.score(data, unknown=0.5).scores.values.tolist() == [1.0, 0.5]
    assert column.score(data, unknown="group-mean").scores.values.tolist() == [1.0, 1.0]
    with pytest.raises(gd.UnknownScoreError):
        column.score(data, unknown="raise")


def test_a_signal_says_which_parameter_is_missing_or_unknown():
    @gd.signal
    def match(rollout, *, word):
        return word in rollout.text

    assert match(word="a").score([{"completion": "cat"}]).scores.values.tolist() == [1.0]
    assert match(gd.Rollout("cat"), word="t")
    with pytest.raises(gd.SignalError, match="needs word="):
        match.score([{}])
    with pytest.raises(gd.SignalError, match="no parameter 'wrod'; it has word"):
        match(wrod="a")


def test_a_declared_manner_that_cannot_hold_is_refused():
    with pytest.raises(gd.SignalError, match="can't be stopped"):
        gd.signal(needs="gpu", timeout=1.0)(lambda rollout: 1.0)
    with pytest.raises(gd.SignalError, match="above 0"):
        gd.signal(timeout=0)(lambda rollout: 1.0)
    with pytest.raises(ValueError, match="no resource"):
        gd.Session(limits={"jugde": 1})


def test_tallies_and_progress_count_what_was_asked():
    judge, seen = Counter(), []
    session = gd.Session(cache=Memory(), on_progress=lambda done, asked: seen.append((done, asked)))
    for _ in range(2):
        judge.signal.named("judge").score(rows(), session=session)
    tally = session.tallies["judge"]
    assert (tally.asked, tally.cached, tally.failed) == (8, 8, 0)
    assert seen[-1] == (8, 8)


def test_an_abort_is_raised_as_it_is_also_from_work_that_runs_at_the_same_time():
    @gd.signal(needs="judge", failure="abort")
    async def broken(rollout):
        raise RuntimeError("down")

    other = Counter()
    with pytest.raises(gd.SignalError, match="RuntimeError: down"):
        (broken + other.signal).score(rows())


def test_two_different_nodes_of_one_name_are_refused():
    with pytest.raises(gd.SpecError, match="two different nodes are called 'part'"):
        (GATE.named("part") + gd.column("v").named("part")).score(rows())
    assert (GATE.named("part") + GATE.named("part")).score(rows(2)).scores.values.tolist() == [0.0, 2.0]


def test_calls_without_limits_of_their_own_share_one_bound():
    judge, results = Counter(), []
    threads = [threading.Thread(target=lambda: results.append(judge.signal.score(rows(40)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert judge.most <= 32


def test_a_forked_child_scores_with_workers_of_its_own():
    import os

    stuck = gd.signal(needs="process")(huge_power)
    assert stuck.score([{"completion": "b"}]).scores.values.tolist() == [1.0]
    child = os.fork()
    if not child:
        fine = stuck.score([{"completion": "b"}] * 3).scores.values.tolist() == [1.0] * 3
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_statistic_of_the_batch_is_computed_over_the_whole_batch_also_behind_a_gate():
    judge = Counter()
    data = [{**row, "value": i / 8} for i, row in enumerate(rows())]
    whole = gd.credit.batch_whiten(judge.signal).score(data).scores.values
    gated = gd.when(GATE, gd.credit.batch_whiten(judge.signal), otherwise=0.0).score(data).scores.values
    assert gated[1::2].tolist() == whole[1::2].tolist()


def test_an_error_in_one_part_leaves_no_work_behind_unawaited(recwarn):
    with pytest.raises(gd.DataError):
        (gd.column("text") + gd.column("v") + gd.column("gate")).score([{"text": "x", "v": 1.0, "gate": 1}])
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


def test_a_default_pool_that_was_closed_is_renewed():
    from guerdon.core.workers import default_pool

    stuck = gd.signal(needs="process")(huge_power)
    for _ in range(2):
        assert stuck.score([{"completion": "b"}]).scores.values.tolist() == [1.0]
        default_pool().close()
