"""Methods over likelihoods, perplexities, principles and a model's own scores: worked examples and every trap named."""

from __future__ import annotations

import math

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.likelihood_family import likelihood_advantage, likelihood_reward
from guerdon.methods.salmon import principle_label, principle_score, salmon
from guerdon.methods.self_aligned import perplexity, self_aligned
from guerdon.methods.urpo import referee_agreement, urpo
from method_rows import group, values

C = gd.column


# Likelihoods.

LOGP = C("lp", axis="answer")
P = [0.5, 0.25, 0.8]


def logs(*ps):
    return group(lp=[[math.log(x) for x in p] for p in ps])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("prob", 0.1), ("avgprob", 0.516667), ("logprob", -2.302585), ("avglogprob", -0.767528), ("inv_ppl", 0.464159)],
)
def test_each_design_at_the_worked_example(kind, expected):
    assert values(likelihood_reward(LOGP, kind=kind), logs(P)) == pytest.approx([expected], abs=5e-7)


def test_the_group_form_is_the_log_of_the_mean_probability():
    rows = logs([0.1], [0.3])
    assert values(likelihood_reward(LOGP, kind="jepo"), rows) == pytest.approx([-1.609438] * 2, abs=5e-7)
    assert values(likelihood_advantage(LOGP, kind="jepo"), rows) == [0.0, 0.0]


def test_the_advantage_leaves_each_chain_out():
    rows = group(lp=[[-2.0], [-4.0], [-3.0]])
    assert values(likelihood_advantage(LOGP), rows) == [1.5, -1.5, 0.0]
    assert values(likelihood_advantage(LOGP), [{"lp": [-2.0]}]) == [None]
    assert values(likelihood_reward(LOGP), [{"lp": []}]) == [None]


def test_a_probability_of_many_tokens_vanishes_and_its_logarithm_does_not():
    rows = logs([0.5] * 400)
    assert np.float32(values(likelihood_reward(LOGP, kind="prob"), rows)[0]) == 0.0
    assert values(likelihood_reward(LOGP), rows) == pytest.approx([-277.2589], abs=5e-5)
    far = group(lp=[[-2000.0], [-2001.0]])
    assert values(likelihood_reward(LOGP, kind="prob"), far) == [0.0, 0.0]
    assert values(likelihood_reward(LOGP, kind="jepo"), far)[0] == pytest.approx(
        -2000 + math.log((1 + math.exp(-1)) / 2)
    )
    with pytest.raises(ValueError, match="choose one of"):
        likelihood_reward(LOGP, kind="ppl")


# Self-aligned.


def test_the_relative_drop_in_perplexity_is_added_with_a_small_weight():
    rows = [{"ok": 1, "alone": 2.0, "given": 1.5}, {"ok": 1, "alone": 1.5, "given": 4.0}]
    expr = self_aligned(C("ok"), C("alone"), C("given"))
    assert values(expr, rows) == pytest.approx([1.05, 0.8])
    plain = self_aligned(C("ok"), C("alone"), C("given"), form="difference")
    assert values(plain, rows[:1]) == pytest.approx([1.1])
    fading = self_aligned(C("ok"), C("alone"), C("given"), C("step"), over=100)
    assert values(fading, [{**rows[0], "step": 50}]) == pytest.approx([1.025])


def test_perplexity_of_very_improbable_text_is_unknown_not_infinite():
    rows = [{"lp": [math.log(0.5), math.log(0.125)]}, {"lp": [-1e6]}, {"lp": []}]
    assert values(perplexity(C("lp", axis="answer")), rows) == pytest.approx([4.0, None, None])


def test_a_wrong_but_specific_answer_gains_less_than_a_right_one():
    rows = [{"ok": 0, "alone": 100.0, "given": 1.0}, {"ok": 1, "alone": 1.0, "given": 100.0}]
    wrong, right = values(self_aligned(C("ok"), C("alone"), C("given")), rows)
    assert wrong < right


# SALMON.

SALMON = salmon(C("rm"), C("n"), C("cut"))


def test_the_length_bonus_is_capped_and_an_unfinished_answer_pays():
    rows = [
        {"rm": 0.7, "n": 0.9 * 1024, "cut": 0},
        {"rm": 0.7, "n": 0.3 * 1024, "cut": 0},
        {"rm": 0.7, "n": 1e4, "cut": 1},
    ]
    assert values(SALMON, rows) == pytest.approx([4.7, 2.2, -1.3])
    assert values(salmon(C("rm"), C("n"), C("cut"), scale=10), rows[:1]) == pytest.approx([47.0])


def test_the_bonus_can_outweigh_the_model():
    short, long = values(SALMON, [{"rm": 2.0, "n": 10, "cut": 0}, {"rm": -1.5, "n": 2000, "cut": 0}])
    assert long > short


D1, D2, VAR = (C(n, axis="principle") for n in ("d1", "d2", "var"))


def test_a_principle_counts_only_where_both_orders_agree_and_by_its_variance():
    rows = [{"d1": [1.0, 1.0, -2.0], "d2": [-0.2, 3.0, -4.0], "var": [1, 4, 2]}]
    assert values(principle_score(D1, D2, VAR), rows) == [0.0, 0.5, -1.5]
    assert values(principle_score(D1, D2, VAR), [{"d1": [1], "d2": [1], "var": [0]}]) == [None]


def test_the_label_is_that_of_the_clearest_principle_turned_where_it_was_negated():
    scores, negated = C("s", axis="principle"), C("neg", axis="principle")
    rows = [{"s": [0.4, -1.5, 0.0], "neg": [0, 1, 0]}, {"s": [0.4, -1.5, 0.0], "neg": [0, 0, 0]}]
    assert values(principle_label(scores, negated), rows) == [1, -1]
    ties = [{"s": [1.0, -1.0]}, {"s": [0.0, 0.0]}, {"s": []}, {"s": [None, 1.0]}]
    assert values(principle_label(scores), ties) == [0, 0, None, None]


# URPO.

SAID, GOLD = C("said", axis="answer"), C("gold", axis="answer")


def test_a_referee_is_paid_for_the_order_it_gives():
    rows = [
        {"said": [8, 6, 7, 3], "gold": [4, 3, 2, 1]},
        {"said": [1, 2], "gold": [1, 2]},
        {"said": [2, 1], "gold": [1, 2]},
    ]
    assert values(referee_agreement(SAID, GOLD), rows) == pytest.approx([0.833333, 1, 0], abs=5e-7)


def test_a_referee_that_scores_all_alike_earns_half_unless_ties_count_against_it():
    rows = [{"said": [5, 5, 5], "gold": [3, 2, 1]}, {"said": [5, 5, 5], "gold": [1, 1, 1]}]
    assert values(referee_agreement(SAID, GOLD), rows) == [0.5, 0.5]
    assert values(referee_agreement(SAID, GOLD, ties="discordant"), rows) == [0.0, 0.5]


def test_an_unparsable_referee_is_unknown_unless_its_format_is_given():
    rows = [{"said": [None, 1], "gold": [1, 2], "parsed": 0}, {"said": [1], "gold": [1], "parsed": 1}]
    assert values(referee_agreement(SAID, GOLD), rows) == [None, None]
    assert values(referee_agreement(SAID, GOLD, C("parsed")), rows) == [0.0, None]


def test_each_kind_of_record_has_its_own_reward():
    expr = urpo(C("kind"), C("ok"), C("agree"), C("own"))
    rows = [{"kind": 0, "ok": 1}, {"kind": 1, "agree": 0.75}, {"kind": 2, "own": 7}]
    assert values(expr, rows) == [1, 0.75, 7]


def test_equal_self_scores_give_no_advantage_and_no_nan():
    rows = group(kind=[2] * 4, own=[7] * 4)
    reward = urpo(C("kind"), C("ok"), C("agree"), C("own"))
    assert values(gd.credit.group_relative(reward, eps=1e-6), rows) == [0.0] * 4
