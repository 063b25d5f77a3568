"""Methods that pay steps and tokens from columns: worked examples, recomputed, and every trap named."""

from __future__ import annotations

import math
import sqlite3

import numpy as np
import pytest

import guerdon as gd
from guerdon import credit, shape
from guerdon.methods.birm import birm, birm_step, head_loss
from guerdon.methods.relc import find_spans, relc, token_marks
from guerdon.methods.reward_sql import present_mean, reward_sql
from guerdon.methods.trade_r1 import semantic_bonus, trade_r1, triangular_consistency
from method_rows import group, values

C = gd.column
STEP = C("s", axis="step")


# Reward-SQL.


def test_good_rollouts_are_paid_by_their_steps_and_bad_ones_by_what_their_steps_lack():
    rows = group(s=[[0.9, 0.8], [0.3, 0.6]])
    assert values(present_mean(STEP), rows) == pytest.approx([0.85, 0.45])
    expected = [0.636394, 0.565683, -0.494973, -0.282842]
    assert values(reward_sql(STEP), rows) == pytest.approx(expected, abs=5e-7)
    a = 0.2 / (math.sqrt(2 * 0.2**2) + 1e-6)
    assert a == pytest.approx(0.707104, abs=5e-7)
    assert expected == pytest.approx([0.9 * a, 0.8 * a, -0.7 * a, -0.4 * a], abs=5e-7)


def test_the_distinct_mean_drops_repeated_equal_steps_and_the_plain_one_keeps_them():
    rows = [{"s": [0.9, 0.9, 0.6]}, {"s": [0.0, 0.0]}, {"s": []}, {"s": [0.5, None]}]
    assert values(present_mean(STEP), rows) == [pytest.approx(0.75), 0.0, None, None]
    assert values(present_mean(STEP, distinct=False), rows) == [pytest.approx(0.8), 0.0, None, None]


def test_bad_steps_of_a_bad_rollout_are_hit_hardest_also_where_its_query_runs():
    rows = group(s=[[0.9, 0.9], [0.1, 0.7]], ok=[1, 1])
    fixed, flipped = reward_sql(STEP, C("ok"), distinct=False), reward_sql(STEP, C("ok"), distinct=False, flip=True)
    _, _, worst, better = values(fixed, rows)
    assert worst < better < 0
    assert [worst, better] == pytest.approx(values(reward_sql(STEP, distinct=False), rows)[2:])
    assert min(values(flipped, rows)[2:]) > 0  # the released sign: 1 - u is negative, and so is the level


def test_a_step_of_zero_counts_as_absent():
    rows = group(s=[[0.0, 0.4], [0.9, 0.9]])
    assert values(present_mean(STEP), rows) == pytest.approx([0.4, 0.9])
    assert values(reward_sql(STEP), rows)[0] == 0.0


def test_a_rollout_alone_gets_zero_and_an_unknown_step_leaves_the_group():
    assert values(reward_sql(STEP), [{"s": [0.9, 0.2]}]) == [0.0, 0.0]
    assert values(reward_sql(STEP), group(s=[[0.9], [None], [0.3]])) == pytest.approx(
        [0.636395, None, -0.494974], abs=2e-6
    )


def test_with_execution_only_the_last_token_carries_the_credit():
    tokens = C("logprobs", axis="token")
    rows = group(s=[[0.9, 0.8], [0.3, 0.6]], ok=[1, 0], steps=[["a", "b"]] * 2, tokens=[[1, 2, 3]] * 2)
    rows = [{**r, "step_tokens": [1, 2], "logprobs": [-1.0] * 3} for r in rows]
    only = values(reward_sql(STEP, C("ok"), tokens, step_weight=0.0), rows)
    assert only == pytest.approx([0, 0, 0.707106, 0, 0, 0], abs=2e-6)
    spread = values(reward_sql(STEP, None, tokens), rows)
    assert spread == pytest.approx([0.636394, 0.565683, 0.565683, -0.494973, -0.282842, -0.282842], abs=5e-7)


def test_the_live_outcome_needs_no_change_and_respects_order_by(tmp_path):
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as db:
        db.executescript("create table t (x int); insert into t values (1), (2), (3);")
    plain, ordered = "SELECT x FROM t", "SELECT x FROM t ORDER BY x DESC"
    rows = [
        {"prompt": gold, "completion": f"```sql\n{said}\n```", "answer": gold, "database": str(path), "s": [p]}
        for gold in (plain, ordered)
        for said, p in ((plain, 0.9), (ordered, 0.8))
    ]
    assert values(gd.verify.sql, rows) == [1.0, 1.0, 0.0, 1.0]
    assert all(v is not None for v in values(reward_sql(STEP, gd.verify.sql), rows))


# BiRM.


def test_the_value_decides_alone_and_the_process_turns_the_order():
    rows = [{"s": [0.9, 0.6, 0.3], "v": [0.1, 0.2, 0.7]}, {"s": [0.9, 0.8, 0.85], "v": [0.9, 0.9, 0.5]}]
    v = C("v", axis="step")
    assert values(birm(STEP, v), rows) == pytest.approx([1.3, 1.35])
    assert values(birm(STEP, v, beta=0.0), rows) == [0.7, 0.5]
    assert values(birm(STEP, v, agg="min"), rows) == pytest.approx([1.0, 1.3])
    assert values(birm(STEP, v, agg="max"), rows) == pytest.approx([1.6, 1.4])
    assert values(birm(STEP, v, agg="last"), rows) == pytest.approx([1.0, 1.35])
    assert values(birm_step(STEP, v, beta=0.5), rows)[:3] == pytest.approx([0.95, 0.7, 0.65])
    with pytest.raises(ValueError, match="choose one of"):
        birm(STEP, v, agg="sum")


def test_labels_that_are_masked_leave_the_loss_also_in_a_batch_of_one():
    loss = head_loss(STEP, C("l", axis="step"))
    assert values(loss, [{"s": [0.5, 0.2], "l": [1, -100]}]) == [0.25]
    assert values(loss, [{"s": [0.5, 0.2], "l": [1, None]}, {"s": [0.5], "l": [-100]}]) == [0.25, None]


def test_no_step_is_unknown_and_raw_heads_declare_no_bounds():
    v = C("v", axis="step")
    assert values(birm(STEP, v), [{"s": [], "v": []}, {"s": [0.5], "v": [None]}]) == [None, None]
    assert not birm(STEP, v).range.bounded
    assert birm(shape.sigmoid(STEP), shape.sigmoid(v)).range == gd.Interval(0, 2)


# Trade-R1.


def test_good_reasoning_enlarges_gains_and_bad_reasoning_losses():
    rows = [{"r": r, "s": s} for r, s in ((0.04, 0.9), (0.04, 0.1), (-0.04, 0.9), (-0.04, 0.1), (0.0, 0.9))]
    gated = trade_r1(C("r"), C("s"))
    assert values(gated, rows) == pytest.approx([0.056, 0.024, -0.044, -0.076, 0.0])
    assert values(trade_r1(C("r"), C("s"), effect="fixed", weight=0.1), rows)[:2] == pytest.approx([0.13, 0.05])
    assert values(trade_r1(C("r"), C("s"), effect="gate"), rows) == [0.04, 0.0, -0.04, 0.0, 0.0]
    with pytest.raises(ValueError, match="effect="):
        trade_r1(C("r"), C("s"), effect="none")


def test_the_result_never_falls_with_the_semantic_score():
    grid = np.linspace(0, 1, 11)
    for r in (0.5, -0.5, 0.0):
        out = values(trade_r1(C("r"), C("s")), [{"r": r, "s": s} for s in grid])
        assert np.diff(out) == pytest.approx([abs(r) * 0.1] * 10)


def test_the_semantic_score_is_a_mean_or_product_of_three_agreements():
    rows = [{"er": 1.0, "rd": 0.5, "ed": 0.0}, {"er": 1.0, "rd": None, "ed": 0.0}]
    parts = [C(k, range=(0, 1)) for k in ("er", "rd", "ed")]
    assert values(triangular_consistency(*parts), rows) == [0.5, None]
    assert values(triangular_consistency(*parts, combine="product"), rows) == [0.0, 0.0]  # a known 0 decides
    returns = C("r", range=(-1, 1))
    assert trade_r1(returns, triangular_consistency(*parts)).range.within(gd.Interval(-2, 2))


def test_pure_noise_pays_the_semantic_score_and_breaks_even_at_three_quarters():
    noise = np.random.default_rng(0).normal(size=4_000)
    for s in (0.0, 0.75, 1.0):
        got = np.mean(values(trade_r1(C("r"), C("s")), [{"r": r, "s": s} for r in noise]))
        expected = values(semantic_bonus(float(np.abs(noise).mean()), C("s")), [{"s": s}])[0]
        assert got == pytest.approx(expected, abs=0.03)
    assert values(semantic_bonus(1.0, C("s")), [{"s": 0.75}]) == [0.0]


def test_gated_returns_find_the_skilled_arm_more_often_than_raw_ones():
    """Three arms of quality 0.3, 0.5, 0.9, returns ``0.3 q + N(0, 1)``, 600 pulls, 50 seeds: 0.84 against 0.62."""
    rng = np.random.default_rng(1)
    quality, seeds, pulls = np.array([0.3, 0.5, 0.9]), 50, 600
    raw = 0.3 * quality + rng.normal(size=(seeds, pulls, 3))
    semantic = np.clip(quality + rng.normal(0, 0.1, size=raw.shape), 0, 1)
    rows = [{"r": r, "s": s} for r, s in zip(raw.ravel(), semantic.ravel(), strict=True)]
    gated = trade_r1(C("r"), C("s")).score(rows).values.reshape(raw.shape)
    explore, arms = rng.random((seeds, pulls)) < 0.1, rng.integers(3, size=(seeds, pulls))

    def share_of_best(rewards):
        total, count = np.zeros((seeds, 3)), np.zeros((seeds, 3))
        best, every = 0, np.arange(seeds)
        for t in range(pulls):
            greedy = np.where(count == 0, np.inf, total / np.maximum(count, 1)).argmax(axis=1)
            arm = np.where(explore[:, t], arms[:, t], greedy)
            total[every, arm] += rewards[every, t, arm]
            count[every, arm] += 1
            best += (arm == 2).sum()
        return best / (seeds * pulls)

    assert share_of_best(gated) == pytest.approx(0.84, abs=0.04)  # 0.80 to 0.87 over eight such runs
    assert share_of_best(raw) == pytest.approx(0.62, abs=0.1)  # 0.53 to 0.67


# RELC.

PRAISED, CRITICISED, TOKEN = C("good", axis="mark"), C("bad", axis="mark"), C("kl", axis="mark")


def marked(good, bad, n=6, ext=1.0):
    return {"good": [float(t in good) for t in range(n)], "bad": [float(t in bad) for t in range(n)], "ext": ext}


def test_marked_tokens_are_paid_and_the_last_one_carries_the_external_reward():
    out = values(relc(C("ext"), PRAISED, CRITICISED), [marked({1, 2}, {4})])
    assert out == pytest.approx([0, 0.2, 0.2, 0, -0.2, 1.0])
    assert sum(out) == pytest.approx(1.2)


def test_a_token_praised_and_criticised_gets_nothing():
    assert values(relc(C("ext"), PRAISED, CRITICISED), [marked({1, 2}, {2})]) == pytest.approx([0, 0.2, 0, 0, 0, 1])


def test_length_control_pays_a_span_once_or_shares_by_the_number_of_spans():
    rows = [marked({0, 1, 2}, {4})]
    last = relc(C("ext"), PRAISED, CRITICISED, per="last")
    assert values(last, rows) == pytest.approx([0, 0, 0.2, 0, -0.2, 1.0])
    share = relc(C("ext"), PRAISED, CRITICISED, per="share")
    assert values(share, rows) == pytest.approx([0.1, 0.1, 0.1, 0, -0.1, 1.0])
    with pytest.raises(ValueError, match="per="):
        relc(C("ext"), PRAISED, CRITICISED, per="span")


def test_long_praise_outweighs_a_failed_task_unless_spans_are_paid_once():
    wrong, right = marked(set(range(40)), set(), n=40, ext=0.0), marked(set(), set(), n=40, ext=1.0)

    def totals(**params):
        return values(relc(C("ext"), PRAISED, CRITICISED, **params).sum(to="rollout"), [wrong, right])

    assert totals()[0] > totals()[1]
    assert totals(per="last")[0] < totals(per="last")[1]


def test_a_penalty_on_the_log_ratio_and_unknown_marks():
    rows = [
        {**marked({1}, set(), n=3), "kl": [0.5, 0.0, -0.5]},
        {"good": [1, None], "bad": [0, 0], "ext": 1, "kl": [0, 0]},
    ]
    out = values(relc(C("ext"), PRAISED, CRITICISED, TOKEN, kl=0.1), rows)
    assert out == [pytest.approx(-0.05), pytest.approx(0.2), pytest.approx(1.05), None, None]


def test_a_critic_that_only_repeats_the_reward_adds_nothing_to_the_order_of_a_group():
    rows = [
        {"prompt": "p", **marked(set(range(6)) if ok else set(), set() if ok else set(range(6)), ext=ok)}
        for ok in (1.0, 0.0, 1.0)
    ]
    total = relc(C("ext"), PRAISED, CRITICISED).sum(to="rollout")
    assert values(credit.group_relative(total), rows) == pytest.approx(values(credit.group_relative(C("ext")), rows))


def test_quotes_that_do_not_occur_are_reported_and_repeated_ones_take_the_next_place():
    spans, lost = find_spans("the cat sat on the cat", ["the cat", "the cat", "the cat", "a paraphrase", "  "])
    assert spans == [(0, 7), (15, 22)]
    assert lost == ["the cat", "a paraphrase", "  "]


def test_a_token_that_a_span_cuts_is_marked():
    assert token_marks([(0, 4), (4, 6), (6, 12)], [(5, 7)]).tolist() == [0.0, 1.0, 1.0]
    assert token_marks([], [(0, 1)]).tolist() == []
