"""Step and token methods over columns: the catalogue's worked examples as literals, and every trap named there."""

from __future__ import annotations

import numpy as np
import pytest

import guerdon as gd
from guerdon.methods.corver import co_occurrences, corver, sentence_reward
from guerdon.methods.dg_prm import boxed, dg_prm, dominance_pairs
from guerdon.methods.easy_to_hard import easy_to_hard
from guerdon.methods.perceval import penalised, perceval, span_agreement, span_mask
from guerdon.methods.teacher_forcing import induced_reward, teacher_forcing, token_values
from guerdon.methods.vpr import committed, vpr
from method_rows import values, with_tokens

C = gd.column
R, OK, S = C("r"), C("ok"), C("s", axis="step")
TOKEN = C("logprobs", axis="token")


# ---- VPR ----

STATES = [{"prompt": p, "r": r} for p, rs in (("a", [1, 0, 0, 1]), ("b", [0.5] * 4), ("c", [1, 0.5, 0, 0])) for r in rs]


def test_groups_without_spread_are_skipped_and_the_rest_whitened_over_the_batch():
    centred = values(gd.shape.centre(R), STATES)
    assert centred == [0.5, -0.5, -0.5, 0.5, 0, 0, 0, 0, 0.625, 0.125, -0.375, -0.375]
    got = values(vpr(R, mode="mean_then_batch_whiten"), STATES)
    assert got[:4] == pytest.approx([1.088662, -1.088662, -1.088662, 1.088662], abs=1e-6)
    assert got[4:8] == [0.0] * 4
    assert got[8:] == pytest.approx([1.360828, 0.272166, -0.816497, -0.816497], abs=1e-6)


def test_each_group_whitened_by_itself_is_the_default():
    got = values(vpr(R), STATES)
    assert got[4:8] == [0.0] * 4
    assert got[8:] == pytest.approx([1.507557, 0.301511, -0.904534, -0.904534], abs=1e-6)


def test_turns_are_compared_over_the_batch_and_rare_turns_with_everything():
    rows = [{"s": [1, 1], "ok": 1}, {"s": [0, 0], "ok": 0}, {"s": [1], "ok": 0}, {"s": [0], "ok": 0}]
    out = vpr(S, OK, mode="turn").score(rows).scores.values
    assert out[[0, 2, 4, 5]] == pytest.approx([1, -1, 1, -1], abs=1e-6)
    assert out[[1, 3]] == pytest.approx([1.788854, -0.894427], abs=1e-6)


def test_the_terminal_bonus_is_added_before_normalising():
    rows = [{"prompt": "a", "r": 1, "ok": ok} for ok in (1, 0)]
    assert values(vpr(R, OK), rows) == pytest.approx([1, -1], abs=1e-6)


def test_padding_rows_left_unknown_do_not_enter_the_statistics():
    padded = [*STATES, {"prompt": "c", "r": None}, {"prompt": "d", "r": None}]
    for mode in ("group_whiten", "mean_then_batch_whiten"):
        got = values(vpr(R, mode=mode), padded)
        assert got[:12] == values(vpr(R, mode=mode), STATES)
        assert got[12:] == [None, None]


def test_a_lone_candidate_is_unknown_and_all_flat_groups_are_zero():
    for mode in ("group_whiten", "mean_then_batch_whiten"):
        assert values(vpr(R, mode=mode), [{"prompt": "a", "r": 1}]) == [None]
        assert values(vpr(R, mode=mode), STATES[4:8]) == [0.0] * 4


def test_the_played_candidate_is_a_random_one_of_the_best():
    rng = np.random.default_rng(0)
    assert {committed([1.0, None, 1.0, 0.0], rng) for _ in range(50)} == {0, 2}
    assert committed([None, None], rng) is None


# ---- CorVer ----

CORPUS = ["paris capital france", "berlin capital germany", "paris texas"]
COUNT, PAIRED = C("count", axis="step"), C("pair", axis="step")


def test_sentences_are_rewarded_by_how_often_the_corpus_has_the_pair():
    counts = [co_occurrences("Paris", o, CORPUS) for o in ("France", "Germany", "capital")]
    assert counts == [1, 0, 1]
    row = with_tokens([2, 1, 1], count=counts, a=0.5)
    assert values(sentence_reward(COUNT), [row]) == [0.05, -0.1, 0.05]
    assert values(corver(C("a"), COUNT, tokens=TOKEN), [row]) == pytest.approx([0.55, 0.55, 0.4, 0.55])


def test_the_map_is_piecewise_constant_and_bounded():
    assert values(sentence_reward(COUNT), [{"count": [0, 1, 9, 10, 10**9]}]) == [-0.1, 0.05, 0.05, 0.1, 0.1]
    assert str(sentence_reward(COUNT).range) == "[-0.1, 0.1]"


def test_a_sentence_without_pair_gets_nothing_and_an_unknown_count_stays_unknown():
    row = {"count": [None, None, 3], "pair": [0, 1, 1], "a": 0.0}
    out = corver(C("a"), COUNT, PAIRED).score([row]).scores
    assert out.known.tolist() == [True, False, True]
    assert out.values[[0, 2]].tolist() == [0.0, 0.05]


def test_stop_words_and_inner_matches_make_no_pair():
    assert co_occurrences("the", "Paris", CORPUS) is None
    assert co_occurrences("Par", "France", CORPUS) == 0
    assert co_occurrences("the Paris", "a Capital", CORPUS) == 1


def test_popular_false_pairs_and_negations_are_rewarded_rare_truths_punished():
    corpus = ["Sydney is not the capital of Australia"] * 12
    assert co_occurrences("Sydney", "capital of Australia", corpus) == 12
    assert co_occurrences("Canberra", "capital of Australia", corpus) == 0
    assert values(sentence_reward(COUNT), [{"count": [12, 0]}]) == [0.1, -0.1]


# ---- Perceval ----

FLAG = C("flag", axis="token")


def test_flagged_tokens_lose_a_share_whatever_the_sign():
    rows = [{"a": 1.0, "logprobs": [0.0] * 2, "flag": [1, 0]}, {"a": -1.0, "logprobs": [0.0] * 2, "flag": [1, 0]}]
    assert values(penalised(C("a"), FLAG), rows) == pytest.approx([0.9, 1.0, -1.1, -1.0])


def test_the_group_advantage_is_lowered_on_the_claim():
    text = "a red car"
    mask, odd = span_mask(text, ["red"], [(0, 1), (2, 5), (6, 9)])
    assert (mask, odd) == ([0, 1, 0], [])
    rows = [{"prompt": "p", "ok": ok, "flag": f, "logprobs": [0.0] * 3} for ok, f in ((1, mask), (0, [0] * 3))]
    got = values(perceval(OK, FLAG), rows)
    assert got[:3] == pytest.approx([0.707106, 0.636395, 0.707106], abs=1e-6)
    assert got[3:] == pytest.approx([-0.707106] * 3, abs=1e-6)


def test_claims_not_found_or_found_twice_are_reported():
    words = [(0, 3), (4, 7)]
    assert span_mask("red red", ["red"], words) == ([1, 0], ["red"])
    assert span_mask("red red", ["blue", ""], words) == ([0, 0], ["blue", ""])


def test_tokens_that_overlap_a_claim_in_part_are_flagged():
    assert span_mask("bluebird", ["bird"], [(0, 3), (3, 6), (6, 8)])[0] == [0, 1, 1]


def test_groups_of_equal_outcomes_get_no_signal_and_weak_advantages_a_weak_one():
    rows = [{"prompt": "p", "ok": 1, "flag": [1, 0], "logprobs": [0.0] * 2}] * 2
    assert values(perceval(OK, FLAG), rows) == [0.0] * 4
    weak = [{"a": 0.01, "logprobs": [0.0], "flag": [1]}]
    assert values(penalised(C("a"), FLAG), weak) == pytest.approx([0.009])


def test_an_unreadable_verifier_is_unknown_not_a_clean_bill():
    rows = [{"prompt": "p", "ok": ok, "flag": [None, 0], "logprobs": [0.0] * 2} for ok in (1, 0)]
    assert perceval(OK, FLAG).score(rows).scores.known.tolist() == [False, True] * 2


def test_span_agreement_is_an_f1_over_matches_of_half_overlap():
    assert span_agreement([(0, 4), (9, 10)], [(0, 5)]) == pytest.approx(2 / 3)
    assert span_agreement([(0, 2)], [(0, 5)]) == 0.0
    assert span_agreement([], []) is None


# ---- DG-PRM ----

AB = [C(n, axis="step") for n in "ab"]
VECTORS = [{"prompt": "p", "a": [3, 2, 1, 0], "b": [2, 2, 3, 0]}]


def test_steps_are_ranked_by_the_front_they_lie_on():
    assert values(gd.shape.pareto_front(AB), VECTORS) == [0, 1, 0, 2]
    assert values(dg_prm(AB), VECTORS) == pytest.approx([1, 0.5, 1, 1 / 3])
    assert values(dg_prm(AB, scalar="mean"), VECTORS) == [2.5, 2.0, 2.0, 0.0]
    found = dominance_pairs([c.score(VECTORS).framed for c in AB])
    assert {p[:2] for p in found} == {(0, 1), (0, 3), (1, 3), (2, 3)}
    assert [p[2] for p in found] == [2, 2, 1, 1]  # far apart first


def test_a_missing_criterion_is_incomparable_not_zero():
    rows = [{"prompt": "p", "a": [3, 2], "b": [None, 1]}]
    assert values(dg_prm(AB), rows) == [None, 1.0]
    assert dominance_pairs([c.score(rows).framed for c in AB]) == []


def test_many_criteria_dominate_nothing_until_scores_are_boxed():
    rng = np.random.default_rng(1)
    rows = [{"prompt": "p", **{f"c{k}": rng.uniform(0, 1, 12).tolist() for k in range(8)}}]
    many = [C(f"c{k}", axis="step") for k in range(8)]
    assert set(values(dg_prm(many), rows)) == {1.0}
    assert len(set(values(dg_prm(many, grain=0.5), rows))) > 1
    assert values(boxed(AB[0], grain=2.0), VECTORS) == [2, 2, 0, 0]


def test_duplicates_dominate_nothing():
    rows = [{"prompt": "p", "a": [1, 1], "b": [2, 2]}]
    assert values(dg_prm(AB), rows) == [1.0, 1.0]
    assert dominance_pairs([c.score(rows).framed for c in AB]) == []


# ---- Easy to hard ----

P = [0.9, 0.6, 0.8, 0.3]


def test_a_step_pays_only_when_it_lowers_the_worst_so_far():
    got = values(easy_to_hard(S), [{"s": P}])
    assert got == pytest.approx([-0.0375, -0.2375, 0.0625, -0.2375], abs=1e-6)
    assert sum(got) == pytest.approx(-0.45, abs=1e-6)
    assert values(easy_to_hard(S, bonus=0.0), [{"s": P}]) == pytest.approx([-0.1, -0.3, 0.0, -0.3])


def test_the_product_scheme():
    got = values(easy_to_hard(S, scheme="prod"), [{"s": P}])
    assert got == pytest.approx([-0.0375, -0.2975, -0.0455, -0.2399], abs=1e-6)
    bare = values(easy_to_hard(S, scheme="prod", bonus=0.0), [{"s": P}])
    assert bare == pytest.approx([-0.1, -0.36, -0.108, -0.3024])
    assert values(easy_to_hard(S, scheme="prod", bonus=0.0), [{"s": [0.0, 0.5]}]) == pytest.approx([-1, 0])


def test_good_steps_add_nothing_and_the_bonus_does_not_depend_on_length():
    short, long = ({"s": [0.5]}, {"s": [0.5] + [0.99] * 30})
    sums = [sum(values(easy_to_hard(S), [row])) for row in (short, long)]
    assert sums[0] == pytest.approx(sums[1], abs=1e-6)


def test_halves_lie_on_two_tokens_and_add_up_where_step_ends_are_neighbours():
    row = with_tokens([2, 1, 2], s=[0.9, 0.6, 0.6], ok=1)
    got = values(easy_to_hard(S, OK, TOKEN, bonus=0.0), [row])
    assert got == pytest.approx([0, -0.05, -0.05 - 0.15, -0.15, 0 + 1])


def test_a_half_beyond_the_end_stays_on_the_last_token():
    row = with_tokens([1, 2], s=[0.8, 0.3])
    got = values(easy_to_hard(S, tokens=TOKEN, bonus=0.0), [row])
    assert got == pytest.approx([-0.1, -0.1, -0.5])
    assert sum(got) == pytest.approx(0.3 - 1.0)


def test_a_low_start_ignores_small_drops_and_no_steps_leave_the_outcome():
    assert values(easy_to_hard(S, start=0.5, bonus=0.0), [{"s": [0.9, 0.6]}]) == [0.0, 0.0]
    assert values(easy_to_hard(S), [{"s": []}]) == []
    assert values(easy_to_hard(S), [{"s": [0.9, None, 0.8]}]) == [None] * 3


# ---- Teacher forcing ----

LOGITS = np.array([[2.0, 0.0, -2.0], [1.0, -1.0, 0.0]])
Q, NEXT, BASE = (C(n, axis="token") for n in ("q", "nxt", "base"))


def forced(logits=LOGITS, tokens=(0, 1), value="max"):
    found = token_values(np.asarray(logits), np.array(tokens), value=value)
    return {"logprobs": [0.0] * len(tokens), "q": found.q, "nxt": found.next_value, "base": found.baseline}


@pytest.mark.parametrize(("value", "first"), [("max", 1.0), ("soft", 1.250497), ("next", 1.424790)])
def test_the_induced_reward_of_each_value(value, first):
    assert values(induced_reward(Q, NEXT), [forced(value=value)]) == pytest.approx([first, -1.0], abs=5e-7)


def test_greedy_rewards_telescope_to_the_first_maximum():
    logits = np.random.default_rng(0).normal(size=(6, 9))
    greedy = forced(logits, tuple(logits.argmax(axis=1)))
    assert sum(values(induced_reward(Q, NEXT), [greedy])) == pytest.approx((logits[0] - logits[0].mean()).max())


def test_a_shift_of_all_logits_changes_nothing_and_their_scale_does():
    shifted = forced(LOGITS + np.array([[7.0], [-3.0]]))
    assert values(induced_reward(Q, NEXT), [shifted]) == pytest.approx([1.0, -1.0])
    assert values(induced_reward(Q, NEXT), [forced(LOGITS * 3)]) == pytest.approx([3.0, -3.0])


def test_what_stands_after_the_last_token_does_not_wrap_around():
    row = forced()
    row["nxt"] = np.array([1.0, 99.0])
    assert values(induced_reward(Q, NEXT), [row]) == pytest.approx([1.0, -1.0])


def test_weights_are_returns_less_a_baseline_scaled_and_clipped():
    row = forced()
    base = [float((np.exp(x) / np.exp(x).sum()) @ x) for x in LOGITS]
    assert row["base"] == pytest.approx(base)
    assert values(teacher_forcing(Q, NEXT, BASE), [row]) == pytest.approx([(0 - base[0]) / 100, (-1 - base[1]) / 100])
    assert values(teacher_forcing(Q, NEXT, scale=0.1), [row]) == [0.0, -1.0]
    assert str(teacher_forcing(Q, NEXT).range) == "[-1, 1]"
    assert values(teacher_forcing(Q, NEXT), [{**row, "q": [None, 1.0]}]) == [None, None]
