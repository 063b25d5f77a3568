"""Methods over options, receivers, clusters and rubrics: worked examples, recomputed, and every trap named."""

from __future__ import annotations

import math

import pytest

import guerdon as gd
from guerdon import shape
from guerdon.methods.acre import acre, option_shuffle_consistency, reasoning_answer_consistency, shown_option
from guerdon.methods.rltr import cut_length, rltr

C = gd.column


def values(expr, rows, **more):
    """Every item's value in the frame's order, None where unknown."""
    framed = expr.score(rows, **more).framed
    return [float(v) if k else None for v, k in zip(framed.values, framed.known, strict=True)]


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
