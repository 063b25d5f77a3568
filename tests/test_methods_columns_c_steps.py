"""Traps of step and token methods that are credited from columns: each would fail if it were fallen into."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.admire import admire, milestone_hits
from guerdon.methods.capo import capo
from guerdon.methods.easy_to_hard import easy_to_hard
from guerdon.methods.istar import istar
from guerdon.methods.pica import pica
from guerdon.methods.ppr import ppr, ppr_tokens
from guerdon.methods.red import red
from guerdon.methods.relc import relc, token_marks
from guerdon.methods.rest_mcts import backed_up, rest_mcts_value
from guerdon.methods.step_reducers import reinforce_step_by_step
from guerdon.methods.t_reg import regulariser, t_reg
from guerdon.methods.taco import taco
from guerdon.methods.trace import trace
from guerdon.methods.vpr import vpr
from method_rows import group, values
from plain_python import tokened

C = gd.column
S, OK, R = C("s", axis="step"), C("ok"), C("r")
TOKEN = C("logprobs", axis="token")


# ---- PPR ----


def test_a_process_score_on_another_scale_does_not_become_a_zero_on_tokens():
    paid = ppr_tokens(S, OK, TOKEN)
    rows = [{"prompt": "p", **tokened([1, 1]), "ok": 1, "s": s} for s in ([7.0, 0.5], [None, 0.5], [0.5, 0.5])]
    assert values(paid, rows) == [None, None, 0.0, 1.5, 0.5, 1.5]
    assert values(paid, [{**rows[2], "ok": 3.0}]) == [None, None]


def test_a_fractional_outcome_keeps_the_step_reward_between_minus_one_and_one():
    assert values(ppr(S, OK), [{"s": [0.0, 1.0], "ok": 0.4}]) == pytest.approx([-0.6, 0.4])
    assert ppr(S, OK).range == gd.Interval(-1.0, 1.0)


# ---- iStar ----


def test_summed_log_probabilities_favour_long_actions_and_long_rollouts():
    old = C("old", axis="step")
    action = {"new": [-1.0], "old": [-1.2], "ok": 1.0}
    longer = {"new": [-8.0], "old": [-9.6], "ok": 1.0}  # eight times the tokens, each as much more probable
    reward = gd.methods.istar.implicit_reward(C("new", axis="step"), old)
    assert values(reward, [action, longer]) == pytest.approx([0.01, 0.08])
    rows = group(new=[[0.1] * 9, [-0.1]], old=[[0.0] * 9, [0.0]], ok=[1, 1])
    step = values(istar(OK, C("new", axis="step"), old), rows)
    assert step[0] == pytest.approx(1 / 3)  # nine steps of one rollout pull the mean towards themselves
    assert step[-1] == pytest.approx(-3.0)


def test_the_scale_of_the_implicit_reward_cancels_where_it_is_standardised():
    rows = group(new=[[-1.0, -2.0], [-1.5]], old=[[-1.4, -1.8], [-1.2]], ok=[1, 0])
    one, two = (istar(OK, C("new", axis="step"), C("old", axis="step"), beta=b) for b in (0.05, 5.0))
    assert values(one, rows) == pytest.approx(values(two, rows))


def test_the_episode_part_is_a_population_score_or_leave_one_out():
    rows = group(new=[[0.0]] * 3, old=[[0.0]] * 3, ok=[1, 0, 0])
    columns = [OK, C("new", axis="step"), C("old", axis="step")]
    assert values(istar(*columns), rows)[0] == pytest.approx(math.sqrt(2))
    assert values(istar(*columns, loo=True), rows) == [1.0, -0.5, -0.5]


# ---- PiCA ----


def test_steps_that_are_no_search_earn_nothing_and_count_in_no_budget():
    row = {"s": [0.2, 0.7, None, 0.4, 0.5, 0.3, None], "find": [1, 1, 0, 1, 1, 1, 0], "ok": 1}
    steps = pica(S, OK, search=C("find", axis="step"))
    assert values(steps, [row]) == pytest.approx([0.075, -0.075, 0.0, 0.015, -0.15, -0.1575, 1.5])
    tokens = pica(S, OK, TOKEN, search=C("find", axis="step"))
    short = {**tokened([2, 2]), "s": [0.2, None], "find": [1, 0], "ok": 1}
    assert values(tokens, [short]) == pytest.approx([0.0, 0.075, 0.0, 1.5])


def test_a_rollout_without_search_gets_its_outcome_and_no_step_reward():
    tokens = pica(S, OK, TOKEN, search=C("find", axis="step"))
    assert values(tokens, [{**tokened([2]), "s": [None], "find": [0], "ok": 1}]) == [0.0, 1.5]
    assert values(pica(S, OK), [{"s": [], "ok": 1}]) == []


def test_a_lower_output_of_the_step_model_earns_more():
    low, high = values(pica(S, OK), [{"s": [0.1, 0.9], "ok": 0}])
    assert low > 0 > high


# ---- TRACE ----


def test_without_a_tool_call_there_is_only_the_answer_term():
    rows = group(s=[[], [-1.0]], start=[-1.0, -1.0], ok=[1, 0])
    turns = trace(OK, S, C("start"))
    assert values(turns, rows) == pytest.approx([-1.0 + 0.2 * 2 * 0.8 * -1.0])
    assert values(gd.shape.zscore(OK), rows) == [1.0, -1.0]


def test_the_answer_is_a_step_of_its_own_after_the_calls_and_takes_the_outcome_alone():
    calls = {"s": [-1.2, -1.2, -0.4, None], "start": -2.0, "ok": 1, "call": [1, 1, 1, 0]}
    none = {"s": [None], "start": -1.0, "ok": 0, "call": [0]}
    rows = [{"prompt": "p", **r} for r in (calls, none)]
    turns = trace(OK, S, C("start"), C("call", axis="step"))
    assert values(turns, rows) == pytest.approx([1.294234, 1.340934, 1.511102, 1.0, -1.0], abs=1e-6)
    bare = [{"prompt": "p", **r} for r in ({**calls, "s": calls["s"][:3]}, {**none, "s": []})]
    assert values(turns, rows)[:3] == pytest.approx(values(trace(OK, S, C("start")), bare))
    late = [{"prompt": "p", **calls, "s": [-1.2, None, -0.4, None], "call": [1, 0, 1, 0]}, {"prompt": "p", **none}]
    assert values(turns, late) == [None, 1.0, None, 1.0, -1.0]


def test_the_sample_deviation_would_change_the_balance_of_the_two_terms():
    rows = group(s=[[-1.0], [-1.0]], start=[-1.0, -1.0], ok=[1, 0])
    out = values(trace(OK, S, C("start")), rows)
    assert out == pytest.approx([1.32, -1.32])
    assert out != pytest.approx([x / math.sqrt(2) for x in out])


# ---- VPR ----


def test_a_spread_of_rounding_errors_is_skipped_like_none():
    rows = group(r=[0.1 + 0.2, 0.3, 0.3])
    assert values(vpr(R), rows) == [0.0, 0.0, 0.0]
    assert values(vpr(R, mode="mean_then_batch_whiten"), rows) == [0.0, 0.0, 0.0]


def test_equal_rewards_at_a_turn_divide_by_nothing():
    rows = [{"s": [0.5, 0.5]}] * 4
    assert values(vpr(S, mode="turn", eps=0.0), rows) == [0.0] * 8


# ---- CAPO ----


def test_more_flags_than_critiques_or_steps_than_the_segmenter_has_are_refused():
    rows = group(s=[[5.0, 0.0], [0.0, 0.0]], ok=[1, 0])
    assert values(capo(OK, S), rows)[0] is None
    with pytest.raises(gd.AxisError):
        capo(OK, S).score([{"prompt": "p", "completion": "ab", "steps": ["a", "b"], "s": [0.0], "ok": 1}])


# ---- easy to hard ----


def test_a_response_without_steps_has_its_outcome_on_the_last_token():
    row = {"prompt": "p", "completion": "xy", "logprobs": [-1.0] * 2, "ok": 1.0}
    steps = easy_to_hard(C("t", axis="token") * 0.0 + 1.0, OK, bonus=0.0)
    assert values(steps, [{**row, "t": [0.0, 0.0]}]) == [0.0, 1.0]


# ---- reducers ----


def test_the_mean_pays_padding_the_maximum_ignores_errors_and_the_product_vanishes():
    def scored(reducer, *steps):
        return values(reinforce_step_by_step(S, reducer=reducer), [{"s": list(s)} for s in steps])

    plain, padded = scored("mean", [0.5, 0.5], [0.5, 0.5, *[1.0] * 8])
    assert padded > plain
    assert scored("max", [0.9, 0.9], [0.9, 0.0]) == [0.9, 0.9]
    assert scored("min", [0.9, 0.9], [0.9, 0.0]) == [0.9, 0.0]
    shorter, longer = scored("product", [0.9] * 2, [0.9] * 20)
    assert shorter > longer
    assert scored("product", [1e-5] * 101) == [0.0]
    assert scored("sum_log", [1e-5] * 101) == pytest.approx([101 * math.log(1e-5)])


# ---- RED ----


def test_the_best_response_is_the_same_under_redistributed_and_sparse_rewards():
    """Two steps of two actions: the four returns differ from the sparse ones by one constant."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        empty, first, full = rng.normal(), rng.normal(size=2), rng.normal(size=(2, 2))
        rows = [{"s": [first[a], full[a, b]], "e": empty} for a, b in itertools.product((0, 1), repeat=2)]
        totals = np.array(values(red(S, C("e")).sum(to="rollout"), rows))
        assert totals == pytest.approx(full.ravel() - empty)
        assert totals.argmax() == full.argmax()


def test_a_token_that_the_model_does_not_end_on_gets_nothing():
    assert values(red(S, 0.2), [{"s": [0.5, 0.5, 0.9]}]) == pytest.approx([0.3, 0.0, 0.4])


def test_a_baseline_on_the_scale_of_sequences_drowns_the_tokens():
    tokens = red(S, C("e"))
    rows = group(s=[[0.1, 0.2, 3.0], [0.1, 0.2, 0.3]], e=[0.0, 0.0])
    total = tokens.sum(to="rollout")
    baseline = total - gd.credit.leave_one_out(total)
    drowned = values(tokens - baseline, rows)
    assert max(drowned[3:]) < -2.5  # the same large constant on every token of the second response
    assert values(gd.credit.returns(tokens), rows)[3:] == pytest.approx([0.3, 0.2, 0.1])


# ---- T-REG ----


def test_a_model_that_sees_no_difference_gives_no_token_reward():
    assert values(t_reg(S, S), [{"s": [-1.0, -7.0]}]) == [0.0, 0.0]


def test_the_loss_of_a_bad_token_runs_away_unless_its_log_probability_is_clipped():
    bad, logp = C("bad", axis="step"), S
    rows = [{"s": [x], "bad": [-0.5]} for x in (-10.0, -1e4)]
    assert values(regulariser(bad, logp), rows) == pytest.approx([-0.5, -500.0])
    assert values(regulariser(bad, gd.shape.clip(logp, -10.0)), rows) == pytest.approx([-0.5, -0.5])


# ---- TACO ----

PROBES = [C("b", axis="step"), C("a", axis="step")]


def test_four_calls_of_a_right_rollout_at_an_outcome_advantage_of_seven_tenths():
    """Of 149 rollouts 100 are right: ``A_out`` is ``sqrt(49 / 100)``; one of them called tools."""
    calls = {"b": [0, 1, 1, 0], "a": [1, 0, 1, 0]}
    rows = group(ok=[1.0] * 100 + [0.0] * 49, b=[calls["b"]] + [[]] * 148, a=[calls["a"]] + [[]] * 148)
    assert values(gd.credit.group_relative(OK, eps=1e-6), rows)[0] == pytest.approx(0.7, abs=2e-6)
    tool = values(taco(OK, *PROBES, weight=1.0), rows)
    assert tool == pytest.approx([2.114214, -1.414214, 0.0, 0.0], abs=5e-6)
    assert values(taco(OK, *PROBES, weight=0.0), rows) == pytest.approx([0.7, 0.0, 0.0, 0.0], abs=2e-6)


def test_the_answer_of_a_tool_using_rollout_takes_the_outcome_advantage():
    rows = group(ok=[1, 0], b=[[0, None], [None]], a=[[1, None], [None]], call=[[1, 0], [0]])
    out = values(taco(OK, *PROBES, C("call", axis="step")), rows)
    assert out == pytest.approx([1.0, 1.0, -1.0], abs=2e-6)  # one call alone has no spread: A_out only
    assert values(taco(OK, *PROBES), rows) == [pytest.approx(1.0, abs=2e-6), None, None]


def test_the_branch_goes_by_being_right_and_an_all_right_group_keeps_the_tool_channel():
    rows = group(ok=[1, 1], b=[[0], [1]], a=[[1], [0]])
    assert values(taco(OK, *PROBES), rows) == pytest.approx([1.0, -1.0], abs=2e-6)
    wrong = group(ok=[0, 0, 1], b=[[1, 0, 0], [0], [0]], a=[[0, 1, 0], [0], [0]])
    routed = values(taco(OK, *PROBES, weight=0.0), wrong)
    assert routed[0] < 0 == routed[1] == routed[2]  # only the misleading call carries the failure


def test_greedy_probes_hide_partial_gains_that_sampled_ones_show():
    greedy = group(ok=[1, 0], b=[[0], [0]], a=[[0], [0]])
    sampled = group(ok=[1, 0], b=[[0.2], [0.2]], a=[[0.45], [0.2]])
    routes = taco(OK, *PROBES)
    assert values(routes, greedy) == [0.0, 0.0]
    assert values(routes, sampled) == pytest.approx([1.0, -1.0], abs=1e-4)


# ---- RELC ----


def test_overlapping_spans_of_one_polarity_count_once():
    marks = token_marks([(0, 2), (2, 4), (4, 6)], [(0, 4), (2, 6), (2, 4)])
    assert marks.tolist() == [1.0, 1.0, 1.0]
    row = {"good": marks, "bad": [0.0] * 3, "ext": 0.0}
    paid = relc(C("ext"), C("good", axis="mark"), C("bad", axis="mark"))
    assert values(paid, [row]) == pytest.approx([0.2, 0.2, 0.2])


# ---- ADMIRE ----


def test_narration_is_paid_and_the_floor_of_a_failure_exceeds_a_success_without_a_hit():
    narrated = {"hit": [1.0, 1.0], "k": 2, "ok": 0}
    won = {"hit": [0.0, 0.0], "k": 2, "ok": 1}
    steps = admire(OK, C("hit", axis="step"), C("k"))
    assert values(steps, [narrated, won]) == pytest.approx([0.7, 0.7, 0.0, 1.0])
    assert values(steps, [narrated, won])[0] > values(steps, [narrated, won])[2]


def test_more_hits_than_milestones_are_unknown_and_a_right_other_order_is_not_recognised():
    assert values(admire(OK, C("hit", axis="step"), C("k")), [{"hit": [1, 1, 1], "k": 2, "ok": 0}]) == [None] * 3
    swapped = {"sim": [0.1, 0.9, 0.9, 0.1], "s": [0, 0]}
    assert values(milestone_hits(C("sim", axis="match"), S), [swapped]) == [0.0, 1.0]


# ---- ReST-MCTS* ----


def test_equal_texts_under_different_numbers_stay_different_nodes():
    rows = group(s=[[1, 2], [3, 4]], ok=[1, 0])
    assert values(rest_mcts_value(OK, S), rows) == pytest.approx([0.5, 1.0, 0.0, 0.0])


def test_a_parent_takes_its_childrens_mean_and_none_of_them_visited_is_an_error():
    assert backed_up(np.array([0.2, 0.8]), np.array([1.0, 3.0])) == pytest.approx(0.65)
    with pytest.raises(ValueError, match="visit"):
        backed_up(np.array([0.2, 0.8]), np.array([0.0, 0.0]))
