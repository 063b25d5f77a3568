"""Methods over unit tests: worked examples, recomputed, and every trap named."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import guerdon as gd
from guerdon import shape
from guerdon.backends.sandbox import describe_isolation
from guerdon.methods.specbench import gap, gap_bound, gap_error, gap_trend, specbench, suspicious
from guerdon.methods.verpo import density_weights, verpo
from guerdon.verify.programs import signals
from method_rows import values

C = gd.column


# VeRPO.

P, ID, TURN = (C(k, axis="test") for k in ("p", "unit", "turn"))
FOUR = [[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0]]


def tried(*passes, **more):
    return [{"prompt": "q", "p": p, **more} for p in passes]


def test_hard_tests_weigh_more_and_crowded_ones_share_their_weight():
    rho = np.mean(FOUR, axis=0)
    near = np.exp(-((rho[:, None] - rho) ** 2) / (2 * 0.1**2)).sum(axis=1)
    w = np.exp(-rho) / (near + 1e-6)
    assert rho.tolist() == [1.0, 0.75, 0.75, 0.25]
    assert near == pytest.approx([1.087874, 2.043941, 2.043941, 1.000007], abs=5e-7)
    assert w == pytest.approx([0.338163, 0.231106, 0.231106, 0.778794], abs=5e-7)
    got = values(density_weights(shape.label_statistic(P)), tried(*FOUR))
    assert got == pytest.approx(np.tile(w, 4))
    without = values(density_weights(shape.label_statistic(P), sigma=0.0, delta=0.0), tried(*FOUR))
    assert without[:4] == pytest.approx(np.exp(-rho))


def test_partial_success_and_full_success_are_centred_and_added():
    w = np.array([0.338163, 0.231106, 0.231106, 0.778794])
    turn = np.array(FOUR) @ w
    assert turn == pytest.approx([0.800375, 0.569269, 1.579169, 0.569269], abs=1e-6)
    expected = [-0.264573, -0.380126, 1.024824, -0.380126]
    assert np.array([-0.225, -0.225, 0.675, -0.225]) + 0.5 * (turn - turn.mean()) == pytest.approx(expected, abs=1e-6)
    assert values(verpo(P), tried(*FOUR)) == pytest.approx(expected, abs=5e-7)


def test_tests_are_known_by_name_where_their_places_differ():
    rows = [{"prompt": "q", "p": p, "unit": i} for p, i in (([1, 0], [7, 8]), ([1, 1], [8, 7]), ([0], [8]))]
    by_name = values(verpo(P, ID), rows)
    assert by_name == pytest.approx(values(verpo(P, ID), [{**r, "unit": [-x for x in r["unit"]]} for r in rows]))
    assert by_name != pytest.approx(values(verpo(P), rows))


def test_turns_are_compared_with_all_turns_of_the_group():
    # Two rollouts: two turns that fail and then pass both tests, and one turn that passes one of them.
    rows = [
        {"prompt": "q", "p": [1, 0, 1, 1], "unit": [0, 1, 0, 1], "turn": [0, 0, 1, 1], "s": [0.0, 0.0]},
        {"prompt": "q", "p": [1, 0], "unit": [0, 1], "turn": [0, 0], "s": [0.0]},
    ]
    rho = np.array([1.0, 1 / 3])
    near = np.exp(-((rho[:, None] - rho) ** 2) / 0.02).sum(axis=1)
    w = np.exp(-rho) / (near + 1e-6)
    dense = np.array([w[0], w.sum(), w[0]])
    trajectory = np.array([0.81, 0.0]) - 0.405
    expected = np.repeat(trajectory, [2, 1]) + 0.5 * (dense - dense.mean())
    assert values(verpo(P, ID, TURN, C("s", axis="step")), rows) == pytest.approx(expected)


def test_an_item_of_no_turn_or_a_turn_of_no_item_is_unknown():
    fine = {"prompt": "q", "p": [1, 0], "unit": [0, 0], "turn": [0, 1], "s": [0, 0]}
    rows = [{**fine, "turn": [0, 2]}, {**fine, "p": [1], "unit": [0], "turn": [0]}, fine, {**fine, "p": [1, 1]}]
    got = values(verpo(P, ID, TURN, C("s", axis="step")), rows)
    assert [v is None for v in got] == [True] * 4 + [False] * 4


def test_one_rollout_or_an_unknown_test_is_unknown_and_a_timeout_is_a_fail():
    assert values(verpo(P), tried([1, 0])) == [None]
    rows = tried([1, 1], [1, None], [0, 0])
    got = values(verpo(P), rows)
    assert got[1] is None
    assert got[0] == pytest.approx(-got[2])
    assert got[0] > 0


def test_a_group_without_any_difference_gets_exactly_zero():
    assert values(verpo(P), tried([1, 0], [1, 0])) == [0.0, 0.0]


def test_the_live_rate_moves_with_the_batches_and_its_state_is_plain_data():
    session, rate = gd.Session(), shape.live_rate(P, C("task", axis="prompt"), rate=0.5)
    assert values(rate, tried([1, 0], [1, 1], task=3), session=session) == [1.0, 0.5, 1.0, 0.5]
    assert values(rate, tried([0, 0], task=3), session=session) == [0.5, 0.25]
    assert values(rate, tried([0, 0], task=4), session=session) == [0.0, 0.0]  # another problem
    (state,) = session.state.values()
    assert json.loads(json.dumps(state)) == {"items": {"3/0": 0.5, "3/1": 0.25, "4/0": 0.0, "4/1": 0.0}}
    assert values(rate, tried([None, 1], task=5), session=session) == [None, 1.0]
    assert values(shape.live_rate(P, C("task", axis="prompt")), tried([1])) == [None]  # no name


def test_the_same_tests_pay_differently_as_their_rates_move():
    session = gd.Session()
    live = verpo(P, rates=shape.live_rate(P, C("task", axis="prompt")))
    first, second = (values(live, tried(*FOUR, task=1), session=session) for _ in range(2))
    assert first == pytest.approx(values(verpo(P), tried(*FOUR)))
    assert second == pytest.approx(first)  # the same rates again
    values(live, tried(*[[0, 0, 0, 0]] * 4, task=1), session=session)
    assert values(live, tried(*FOUR, task=1), session=session) != pytest.approx(first)


def test_a_test_that_nobody_passes_weighs_most_until_it_is_taken_out():
    rows = tried([1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0], task=1)
    weights = values(density_weights(shape.label_statistic(P)), rows)[:3]
    assert max(weights) == weights[2]
    session, counts = gd.Session(), shape.ever_positive(P, C("task", axis="prompt"), patience=6)
    fair = verpo(P, counts=counts)
    assert all(v < 0.3 for v in values(fair, rows, session=session))  # nobody passes all
    after = values(fair, rows, session=session)
    assert after == pytest.approx(values(verpo(P), [{**r, "p": r["p"][:2]} for r in rows]))
    values(fair, tried(*[[0, 0, 0]] * 4, task=1), session=session)  # all fail: the state is still kept
    (state,) = session.state.values()
    assert state["items"]["1/2"] == [12.0, 0.0]


def test_a_flaky_test_looks_harder_than_a_steady_one():
    weights = values(density_weights(shape.label_statistic(P)), tried([1, 1], [1, 0], [1, 1], [1, 0]))
    assert weights[1] > weights[0]


@pytest.mark.parametrize("bad", [{"alpha": -1}, {"sigma": -1}, {"gamma": 0.0}])
def test_parameters_out_of_range_are_errors(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        verpo(P, **bad).score(tried(*FOUR))


# SpecBench.

V, H = C("v", axis="test"), C("h", axis="hidden_test")


def suite(passed, n=100):
    return [1] * round(passed * n) + [0] * (n - round(passed * n))


def test_the_gap_is_what_the_hidden_suite_does_not_confirm():
    rows = [
        {"v": suite(0.96), "h": suite(0.62)},
        {"v": suite(0.5), "h": suite(0.8)},
        {"v": [1], "h": []},
        {"v": [1, None], "h": [1]},
    ]
    assert values(gap(V, H), rows) == [pytest.approx(0.34), pytest.approx(-0.3), None, None]
    assert values(specbench(V, H), rows) == [pytest.approx(0.96 - 0.17), 0.5, None, None]
    rates = [C("v", range=(0, 1)), C("h", range=(0, 1))]
    assert values(gap(*rates), [{"v": 0.96, "h": 0.62}]) == pytest.approx([0.34])
    assert gap(*rates).range == gd.Interval(-1, 1)
    assert values(suspicious(*rates), [{"v": 0.97, "h": 0.0}, {"v": 0.97, "h": 0.5}, {"v": 0.8, "h": 0}]) == [1, 0, 0]


def test_small_suites_have_wide_intervals_also_where_the_error_is_zero():
    rows = [{"v": suite(1.0, n), "h": suite(0.0, n)} for n in (4, 400)] + [{"v": suite(0.8, 10), "h": suite(0.4, 10)}]
    error = math.sqrt(0.8 * 0.2 / 10 + 0.4 * 0.6 / 10)
    assert values(gap_error(V, H), rows) == pytest.approx([0.0, 0.0, error])
    low, high = values(gap_bound(V, H, upper=False), rows), values(gap_bound(V, H, upper=True), rows)
    assert low[0] < low[1] < 1.0 == high[0] == pytest.approx(high[1])
    assert low[0] < 0.5
    # Wilson's limits of 8/10 and 4/10: (0.4902, 0.9433) and (0.1682, 0.6873).
    assert low[2] == pytest.approx(0.4 - math.hypot(0.8 - 0.4902, 0.6873 - 0.4), abs=2e-4)
    assert high[2] == pytest.approx(0.4 + math.hypot(0.9433 - 0.8, 0.4 - 0.1682), abs=2e-4)


def test_the_gap_grows_with_the_logarithm_of_the_code_size():
    sizes = [1e3, 1e4, 1e5]
    gaps = [0.1 + 0.28 * (math.log10(n) - 3) for n in sizes]
    trend = gap_trend([*gaps, None, 0.9], [*sizes, 1e6, 0.0])
    assert trend.slope == pytest.approx(0.28)
    assert trend.start + trend.slope * 3 == pytest.approx(0.1)
    assert gap_trend(gaps, [1e3] * 3) is None
    assert gap_trend([], []) is None


MEMORISED = "def parse(s):\n    return {'1': 1, '[]': [], '\"a\"': 'a'}.get(s)"
REAL = "import json\ndef parse(s):\n    return json.loads(s)"
HALF = "def parse(s):\n    return [] if s == '[]' else s[1:-1] if s[:1] == '\"' else int(s)"


@pytest.mark.skipif(not describe_isolation().available, reason=describe_isolation().reason)
def test_a_parser_that_memorises_passes_the_visible_suite_only():
    def task(*texts):
        return {"entry_point": "parse", "cases": [[[t], json.loads(t)] for t in texts]}

    suites = {"seen": task("1", "[]", '"a"'), "unseen": task("[1, 2]", '{"a": []}', '["a", 3]', "7")}
    rows = [{"completion": f"```python\n{code}\n```", **suites} for code in (MEMORISED, REAL, HALF)]
    shown, held_out = (signals.code(tests=column).mean() for column in suites)
    gaps = values(gap(shown, held_out), rows)
    assert gaps == pytest.approx([1.0, 0.0, 0.75])  # honest incompleteness shows as a gap too
    assert values(specbench(shown, held_out), rows) == pytest.approx([0.5, 1.0, 0.625])
