"""Methods over options, receivers, clusters and rubrics: worked examples, recomputed, and every trap named."""

from __future__ import annotations

import math

import numpy as np
import pytest

import guerdon as gd
from guerdon import shape
from guerdon.methods.acre import acre, option_shuffle_consistency, reasoning_answer_consistency, shown_option
from guerdon.methods.craft import citation_f1, craft
from guerdon.methods.csr import answer_confidence, auroc, calibration_error, csr
from guerdon.methods.rltr import cut_length, rltr
from method_rows import values

C = gd.column


# ACRE.

LETTERS = [C("a"), C("b"), C("perm", axis="option"), C("gold")]
SHUFFLE = [1, 0, 3, 2]


def mcq(first, second, perm=SHUFFLE, gold=1):
    return {"prompt": "q", "a": first, "b": second, "perm": perm, "gold": gold}


A, B = 0, 1
ROLLOUTS = [mcq(B, A), mcq(B, B), mcq(A, B), mcq(A, A)]


def test_answers_are_compared_by_content_not_by_letter():
    options = ["cat", "dog", "fox", "owl"]
    shown = values(shown_option(C("b"), LETTERS[2]), ROLLOUTS)
    assert [options[int(i)] for i in shown] == ["dog", "cat", "cat", "dog"]
    assert values(acre(*LETTERS), ROLLOUTS) == [2.0, 1.5, 0.0, 0.0]
    kept = values(option_shuffle_consistency(*LETTERS[:3]), ROLLOUTS)
    assert kept == [1.0, 0.0, 1.0, 0.0]  # OSCR 2/4
    assert kept != values(C("a") == C("b"), ROLLOUTS)  # letters would pick rows 2 and 4


def test_the_same_wrong_option_twice_may_have_its_own_level():
    table = (1.0, 0.5, 0.25, 0.0)
    assert values(acre(*LETTERS, C("f"), table=table, same_wrong=0.1), [{**r, "f": 0.5} for r in ROLLOUTS]) == [
        2.5,
        2.0,
        0.6,
        0.75,
    ]
    for bad in ((0.5, 0.5, 0, 0), (1, 0.2, 0.3, 0), (1, 0.5, 0, -1)):
        with pytest.raises(ValueError, match="CC > CW"):
            acre(*LETTERS, table=bad)


def test_a_missing_answer_is_wrong_and_equal_to_nothing():
    rows = [mcq(-1, -1), mcq(B, -1), mcq(-1, A), mcq(B, 9)]
    assert values(acre(*LETTERS, same_wrong=0.4), rows) == [0.0, 1.5, 0.0, 1.5]
    assert values(option_shuffle_consistency(*LETTERS[:3]), rows) == [0.0] * 4
    assert values(reasoning_answer_consistency(C("a"), C("b")), [mcq(-1, -1), mcq(2, 2), mcq(2, None)]) == [
        0.0,
        1.0,
        None,
    ]


@pytest.mark.parametrize("perm", [[0, 1, 2, 3], [0, 0, 2, 3], [1, 0], [], [1, 0, 3, None], [1.5, 0, 2, 3]])
def test_the_identity_and_what_is_no_permutation_give_no_verdict(perm):
    got = values(acre(*LETTERS), [mcq(B, A, perm), mcq(B, A)])
    assert got[1] == 2.0
    assert got[0] is None or perm == [1, 0]  # two options, swapped, are a fair shuffle
    assert values(acre(*LETTERS), [mcq(B, None)]) == [None]


# RLTR.


def test_reasoning_that_another_model_finishes_earns_more():
    rows = [{"ok": 1, "tr": 1}, {"ok": 1, "tr": 0}, {"ok": 0, "tr": 1}, {"ok": 0, "tr": None}]
    assert values(rltr(C("ok"), C("tr")), rows) == [1.5, 1.0, 0.5, None]
    assert values(rltr(C("ok"), C("tr"), gated=True), rows) == [1.5, 1.0, 0.0, 0.0]
    cuts = rltr(C("ok"), C("trs", axis="cut"), C("f"))
    assert values(cuts, [{"ok": 1, "trs": [1, 0, 1, 1], "f": 0.1}]) == pytest.approx([1.475])


def test_the_cut_is_a_whole_number_of_tokens_and_stays_off_the_answer():
    assert [cut_length(37, tau) for tau in (0.25, 0.5, 0.9)] == [9, 18, 33]
    assert math.floor(0.29 * 100) == 28
    assert cut_length(100, 0.29) == 29
    assert cut_length(100, 1.0) == 90
    assert cut_length(100, 1.0, most=1.0) == 100
    assert cut_length(3, 0.1) == 0
    with pytest.raises(ValueError, match="tau"):
        cut_length(10, 0.0)


def test_a_receiver_that_copies_transfers_only_where_the_cut_holds_the_answer():
    @gd.signal(range=(0, 1))
    def finished(rollout, *, tau: float = 0.5):
        said = rollout.completion[: cut_length(len(rollout.completion), tau)]
        found = said.partition("answer is ")[2][:1]
        return float(found == rollout.answer)

    text = "so the answer is 7, as shown above by adding all of the parts up"
    rows = [{"completion": text, "answer": "7", "ok": 1}, {"completion": text[::-1], "answer": "7", "ok": 1}]
    assert values(rltr(C("ok"), finished(tau=0.5)), rows) == [1.5, 1.0]
    assert values(rltr(C("ok"), finished(tau=0.1)), rows) == [1.0, 1.0]  # too little for any receiver: constant
    strong = [{"prompt": "q", "ok": 1, "tr": 1}] * 4
    assert values(shape.group_class(rltr(C("ok"), C("tr"))), strong) == [shape.ALL_PASS] * 4


# CSR, and agreement inside the group.

OK, CLUSTER = C("ok"), C("k")
SIX = [{"prompt": "p", "k": ord(k) - 65, "ok": float(i < 3)} for i, k in enumerate("AAABCB")]


def test_agreement_raises_right_answers_and_lowers_wrong_ones():
    assert values(shape.vote_share(CLUSTER, others=True), SIX) == pytest.approx([0.4, 0.4, 0.4, 0.2, 0, 0.2])
    assert values(csr(OK, CLUSTER), SIX) == pytest.approx([1.2, 1.2, 1.2, -0.1, 0.0, -0.1])
    assert csr(OK, CLUSTER).range == gd.Interval(-0.5, 1.5)


def test_the_share_of_the_cluster_is_the_confidence_and_its_calibration_is_measured():
    confidence = values(answer_confidence(CLUSTER), SIX)
    assert confidence == pytest.approx([0.5, 0.5, 0.5, 1 / 3, 1 / 6, 1 / 3])
    right = [r["ok"] for r in SIX]
    by_hand = 3 / 6 * 0.5 + 2 / 6 * (1 / 3) + 1 / 6 * (1 / 6)
    assert by_hand == pytest.approx(0.388889, abs=5e-7)
    assert calibration_error(confidence, right) == pytest.approx(by_hand)
    assert auroc(confidence, right) == 1.0
    assert math.isnan(auroc([0.5], [1]))
    assert math.isnan(calibration_error([], []))
    edges = np.arange(11) / 10
    assert calibration_error(edges, edges) == 0.0
    assert calibration_error([0.7, 0.70001], [0, 1]) == pytest.approx((0.7 + 0.29999) / 2)  # bins are closed above


def test_one_alone_and_unknown_clusters():
    rows = [{"prompt": "a", "k": 1, "ok": 1}, {"prompt": "b", "k": None, "ok": 1}, {"prompt": "b", "k": 2, "ok": 0}]
    assert values(csr(OK, CLUSTER), rows) == [1.0, None, 0.0]
    assert values(answer_confidence(CLUSTER), rows) == [1.0, None, 1.0]


def test_where_all_are_wrong_the_rarest_answer_is_best():
    rows = [{**r, "ok": 0.0} for r in SIX]
    out = values(csr(OK, CLUSTER), rows)
    assert out.index(max(out)) == 4


def test_a_small_group_has_coarse_confidence():
    assert {round(v, 3) for v in values(answer_confidence(CLUSTER), SIX[2:5])} <= {0.333, 0.667, 1.0}


IMPLIES = shape.mutual_clusters(C("e", axis="opponent"))


def judged(*rows):
    return [{"prompt": "p", "e": list(row), "ok": 1.0} for row in rows]


def test_answers_are_one_only_if_each_implies_the_other():
    assert values(IMPLIES, judged((1, 1, 0), (0, 1, 1), (0, 1, 1))) == [0.0, 1.0, 1.0]


def test_entailment_that_is_not_transitive_chains_and_rewards_the_chain():
    chain = judged((1, 1, 0), (1, 1, 1), (0, 1, 1))
    assert values(IMPLIES, chain) == [0.0, 0.0, 0.0]
    assert values(csr(OK, IMPLIES), chain) == [1.5, 1.5, 1.5]
    long = judged(*[[float(abs(i - j) <= 1) for j in range(9)] for i in range(9)])
    assert values(IMPLIES, long) == [0.0] * 9


def test_an_unknown_comparison_leaves_only_the_clusters_it_could_join_unknown():
    assert values(IMPLIES, judged((1, None, 0), (1, 1, 0), (0, 0, 1))) == [None, None, 2.0]
    assert values(IMPLIES, judged((1, None, 0), (0, 1, 0), (0, 0, 1))) == [0.0, 1.0, 2.0]  # one side says no
    assert values(IMPLIES, judged((1, 1, None), (1, 1, 1), (1, 1, 1))) == [0.0, 0.0, 0.0]  # joined anyhow
    assert values(IMPLIES, judged((1,), (1, 1))) == [None, None]
    assert values(IMPLIES, judged((1,))) == [0.0]


# CRAFT.

FORM, ANSWER, CITED, JUDGED = C("fmt"), C("ans"), C("cite"), C("j", axis="question")
TRACE = [FORM, ANSWER, CITED, JUDGED]


def test_the_parts_add_up_by_their_weights():
    rows = [{"fmt": 1, "ans": 1, "cite": 0.5, "j": [1, 0, 1]}]
    assert values(craft(*TRACE), rows) == pytest.approx([0.8])
    bounded = [C(k, range=(0, 1)) for k in ("fmt", "ans", "cite")]
    assert craft(*bounded, C("j", axis="question", range=(0, 1))).range.within(gd.Interval(0, 1 + 1e-12))
    assert values(craft(*TRACE, weights=(1, 4, 2, 3)), rows) == pytest.approx([0.8])


def test_citations_count_once_and_must_stand_in_the_context():
    assert citation_f1(["d1", "d2"], ["d1", "d4"]) == 0.5
    assert citation_f1(["d1", "d1", "d2"], ["d1", "d4"]) == 0.5
    assert citation_f1([], ["d1"]) == 0.0
    assert citation_f1(["d1", "d9"], ["d1"], context=["d1", "d2"]) == 0.0
    everything = [f"d{i}" for i in range(20)]
    assert citation_f1(everything, ["d1", "d4"]) < 0.2  # perfect recall is worth little


def test_a_missing_or_doubled_answer_tag_fails_the_form_and_the_answer():
    form = gd.verify.format(tags=["reason", "answer"])
    answer = gd.verify.token_f1(extract="<answer>")
    body = "<reason>Paris is in France [d1].</reason>"
    texts = [f"{body}<answer>Paris</answer>", body, f"{body}<answer>Paris</answer><answer>Rome</answer>"]
    rows = [{"completion": t, "answer": "Paris", "cite": 1.0, "j": [1, 1, 1]} for t in texts]
    assert values(form, rows) == [1.0, 0.0, 0.0]
    assert values(answer, rows)[:2] == [1.0, 0.0]
    assert values(craft(form, answer, CITED, JUDGED), rows)[:2] == pytest.approx([1.0, 0.2])


def test_the_judge_is_not_asked_where_the_form_failed():
    asked = []

    @gd.signal(axis="question", range=(0, 1))
    def verdicts(rollout):
        asked.append(rollout.completion)
        return [1.0, 1.0, 0.0]

    rows = [{"completion": t, "fmt": f, "ans": 0.0, "cite": 0.0} for t, f in (("good", 1), ("bad", 0))]
    assert values(craft(FORM, ANSWER, CITED, verdicts), rows) == pytest.approx([0.3, 0.0])
    assert asked == ["good"]
    assert values(craft(FORM, ANSWER, CITED, verdicts, gated=False), rows) == pytest.approx([0.3, 0.2])


def test_no_question_is_no_credit_and_a_question_without_verdict_is_unknown():
    rows = [{"fmt": 1, "ans": 1, "cite": 1, "j": j} for j in ([], [1, None], [1, 1])]
    assert values(craft(*TRACE), rows) == [pytest.approx(0.7), None, pytest.approx(1.0)]
