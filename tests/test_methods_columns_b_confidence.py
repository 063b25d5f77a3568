"""Methods over confidence, support and searches: worked examples, recomputed, and every trap named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guerdon as gd
from guerdon import credit, shape
from guerdon.methods.faithrl_step import answer_level, faithrl_step, nearest_earlier, repeat_penalty
from guerdon.methods.progressive_confidence import early_commitment, is_progressive, progressive_confidence
from guerdon.methods.subsearch import (
    accuracy_gate,
    answerability,
    decomposition,
    format_layer,
    intermediate_weight,
    subsearch,
)
from method_rows import values

C = gd.column


# Spearman's correlation, and progressive confidence.

TRAJECTORY = C("c", axis="checkpoint")
RISING, FALLING = [0.1, 0.2, 0.3, 0.6, 0.8, 1.0], [1.0, 0.9, 0.8, 0.6, 0.5, 0.4]


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), max_size=6), min_size=1, max_size=4))
def test_spearman_is_the_correlation_of_mid_ranks(rows):
    def reference(xs):
        ranks = [sum(y < x for y in xs) + (xs.count(x) - 1) / 2 for x in xs]
        if len(set(xs)) < 2:
            return None
        return float(np.corrcoef(ranks, np.arange(len(xs)))[0, 1])

    got = values(shape.spearman(TRAJECTORY), [{"c": xs} for xs in rows])
    assert got == [None if (r := reference(xs)) is None else pytest.approx(r) for xs in rows]


def test_spearman_with_a_second_score_and_unknowns():
    other = shape.spearman(TRAJECTORY, C("d", axis="checkpoint"))
    assert values(other, [{"c": [1, 2, 3], "d": [9, 5, 1]}, {"c": [1, None], "d": [1, 2]}]) == [-1.0, None]


def test_late_confidence_is_rewarded_and_early_commitment_punished():
    rows = [{"c": c, "a": 1.0} for c in (RISING, FALLING, [0.7] * 6)]
    w = [0.5, 0.3, 0.1, -0.1, -0.3, -0.5]
    assert np.dot(RISING, w) == pytest.approx(-0.66)
    assert np.dot(FALLING, w) == pytest.approx(0.44)
    assert values(early_commitment(TRAJECTORY), rows) == pytest.approx([-0.66, 0.44, 0.0])
    assert values(progressive_confidence(C("a"), TRAJECTORY), rows) == pytest.approx([1.66, 0.56, 1.0])
    assert values(shape.spearman(TRAJECTORY), rows) == [pytest.approx(1.0), pytest.approx(-1.0), None]


def test_a_constant_trajectory_is_premature_and_an_unknown_one_is_unknown():
    rows = [{"c": c} for c in (RISING, FALLING, [0.7] * 6, [0.5, None] * 3)]
    assert values(is_progressive(TRAJECTORY), rows) == [1.0, 0.0, 0.0, None]


def test_a_rollout_with_a_checkpoint_missing_has_no_penalty_by_accident():
    rows = [{"c": [1.0, 0.5]}, {"c": []}, {"c": [1.0, None, 0, 0, 0, 0]}]
    assert values(early_commitment(TRAJECTORY), rows) == [None] * 3
    assert values(early_commitment(TRAJECTORY, checkpoints=2), [{"c": [1.0, 0.5]}]) == [0.25]
    with pytest.raises(ValueError, match="at least 2"):
        early_commitment(TRAJECTORY, checkpoints=1)
    assert early_commitment(TRAJECTORY).range.high == pytest.approx(0.9)


def test_a_gold_match_from_the_start_earns_nothing_but_is_called_premature():
    contaminated = [{"c": [1.0] * 6}]
    assert values(early_commitment(TRAJECTORY), contaminated) == pytest.approx([0.0])
    assert values(is_progressive(TRAJECTORY), contaminated) == [0.0]


def test_the_penalty_moves_the_mean_of_the_group_and_reaches_every_token():
    rows = [{"prompt": "p", "c": c, "r": r, "t": [0.0, 0.0]} for c, r in ((RISING, 1.0), (FALLING, 0.0))]
    shaped = progressive_confidence(credit.group_relative(C("r")), TRAJECTORY)
    assert values(shaped, rows) == pytest.approx([1.66, -1.44])
    tokens = [{**r, "tokens": [1, 2], "logprobs": [0.0, 0.0]} for r in rows]
    spread = credit.spread(credit.group_relative(C("r")), C("logprobs", axis="token"))
    penalty = credit.spread(early_commitment(TRAJECTORY), C("logprobs", axis="token"))
    assert values(spread - penalty, tokens) == pytest.approx([1.66, 1.66, -1.44, -1.44])
    assert values(progressive_confidence(spread, TRAJECTORY), tokens) == pytest.approx([1.66, 1.66, -1.44, -1.44])


# FaithRL.

SENTENCE = {k: C(k, axis="step") for k in ("p", "end", "sim", "near")}


def faithful(repetition=None, **params):
    columns = [C("ok"), SENTENCE["p"], SENTENCE["end"], C("f1")]
    return faithrl_step(
        *columns, C("q") if repetition is None else repetition, SENTENCE["sim"], SENTENCE["near"], **params
    )


def chain(p, end=None, sim=None, near=None, ok=1, f1=1.0, q=0.0):
    n = len(p)
    return {"prompt": "q", "p": p, "end": end or [0] * n, "sim": sim or [0] * n, "near": near or [0] * n} | {
        "ok": ok, "f1": f1, "q": q,
    }  # fmt: skip


def test_supported_sentences_earn_and_a_near_copy_earns_less():
    assert values(faithful(), [chain([0.9, 0.1, 0.9], sim=[0, 0, 1.0], near=[0, 0, 0])]) == pytest.approx([1, -1, 0.8])


def test_every_further_copy_of_a_sentence_costs_more_and_the_reward_stops_at_zero():
    copies = chain([0.9] * 8, sim=[0] + [1.0] * 7)
    assert values(faithful(), [copies]) == pytest.approx([1, 0.8, 0.6, 0.4, 0.2, 0, 0, 0], abs=1e-9)
    exact = [{"sim": [0, 0.95, 0.96], "near": [0, 0, 1]}]
    assert values(repeat_penalty(SENTENCE["sim"], SENTENCE["near"]), exact) == [0.0, 0.0, 0.2]


def test_the_answer_is_placed_by_overlap_between_the_extremes_of_the_group():
    rows = [{"prompt": "q", "ok": 1, "f1": f} for f in (0.2, 0.6, 1.0)]
    assert values(answer_level(C("ok"), C("f1")), rows) == pytest.approx([-1, 0, 1])
    same = [{"prompt": "q", "ok": ok, "f1": 0.6} for ok in (1, 1)]
    assert values(answer_level(C("ok"), C("f1")), same) == [1.0, 1.0]
    assert values(answer_level(C("ok"), C("f1")), [{**r, "ok": 0} for r in same]) == [-1.0, -1.0]


def test_repetition_lowers_every_sentence_but_not_below_minus_one():
    text = " ".join("abcdefghij"[i % 10] for i in range(30))
    repeated = gd.verify.repetition(n=10)
    assert values(repeated, [{"completion": text}, {"completion": "nine words are too few"}]) == pytest.approx(
        [1 - 10 / 21, 0.0]
    )
    rows = [
        {**chain([0.9, 0.1, 0.9, 0.9], [0, 0, 0, 1], [0, 0, 1, 0], f1=0.2), "completion": text},
        {**chain([0.9], [1]), "completion": "short"},
    ]
    expected = [0.476190, -1.0, 0.276190, -1.0, 1.0]
    assert values(faithful(repeated), rows) == pytest.approx(expected, abs=5e-7)
    assert values(faithful(), [chain([0.9], q=0.1)]) == [1.0]  # at the ratio itself nothing is lost


def test_a_wrong_answer_wipes_out_faithful_sentences_and_asks_no_entailment():
    assert values(faithful(), [chain([0.9, 0.9], ok=0), chain([None, None], ok=0)]) == [-1.0] * 4
    assert values(faithful(), [chain([0.9, None])]) == [1.0, None]  # a service error is no "no"


def test_padding_pays_without_the_novelty_term_and_not_with_it():
    short, padded = chain([0.9] * 2), chain([0.9] * 12, sim=[0, 0] + [1.0] * 10)
    plain = faithrl_step(C("ok"), SENTENCE["p"], SENTENCE["end"], C("f1"), C("q")).sum(to="rollout")
    assert np.diff(values(plain, [short, padded])) == pytest.approx([10.0])
    assert np.diff(values(faithful().sum(to="rollout"), [short, padded])) == pytest.approx([2.0])


def test_no_reasoning_and_rewards_on_tokens():
    assert values(faithful(), [chain([]), chain([0.9], [1])]) == [1.0]
    rows = [
        {**chain([0.9, 0.1]), "steps": ["a", "b"], "step_tokens": [2, 1], "tokens": [1, 2, 3], "logprobs": [-1.0] * 3}
    ]
    assert values(faithful(tokens=C("logprobs", axis="token")), rows) == [1.0, 1.0, -1.0]


def test_the_nearest_earlier_sentence_is_the_first_of_equals():
    similarity, place = nearest_earlier(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [2.0, 0.0]]))
    assert similarity == pytest.approx([0, 1, 0, 1])
    assert place.tolist() == [0, 0, 0, 0]
    assert [len(x) for x in nearest_earlier(np.zeros((0, 4)))] == [0, 0]


# SubSearch.

SEARCH = [C("em"), C("ans", axis="search"), C("dec", axis="search")]
P = np.array([1.0, 0.0])


def test_decomposition_wants_parts_that_cover_the_question_and_differ():
    both = np.array([[0.8, 0.6], [0.8, -0.6]])
    cosine = 0.8 * 0.8 - 0.6 * 0.6
    assert decomposition(P, both) == pytest.approx(0.5 * 1.0 + 0.5 * 0.8 * (1 - cosine)) == pytest.approx(0.788)
    assert decomposition(P, both[:1]) == pytest.approx(1 - 0.05 / 0.15)
    assert decomposition(P, P[None]) == pytest.approx(0.0)  # a copy
    assert decomposition(P, np.array([[0.0, 1.0], [0.0, -1.0]])) == 0.0  # their mean vanishes


def test_answerability_is_the_closeness_of_the_first_documents_and_an_echo_maximises_it():
    docs = np.array([[0.8, 0.6], [0.6, 0.8], [1.0, 0.0], [-1.0, 0.0]])
    assert answerability(P[None], [docs]) == pytest.approx(0.8)
    assert answerability(np.stack([P, P]), [docs, docs[:0]]) == pytest.approx(0.4)
    assert answerability(P[None], [P[None]]) == 1.0
    assert answerability(P[None], [-P[None]]) == -1.0
    assert answerability(np.zeros((0, 2)), []) == 0.0


def test_only_a_wrong_answer_gains_from_its_searches():
    rows = [
        {"em": 0, "ans": [0.6], "dec": [0.788]},
        {"em": 1, "ans": [0.6], "dec": [0.788]},
        {"em": 0, "ans": [], "dec": []},
    ]
    assert values(subsearch(*SEARCH), rows) == pytest.approx([0.1388, 1.0, 0.0])
    unknown = [
        {"em": 0, "ans": [0.6, None], "dec": [0.1, 0.2]},
        {"em": 1, "ans": [None], "dec": [None]},
        {"ans": [1], "dec": [1]},
    ]
    assert values(subsearch(*SEARCH), unknown) == [None, 1.0, None]


def test_the_weight_warms_up_and_falls_by_cosine():
    steps = [{"t": t} for t in (0, 100, 200, 1200, 2200, 9000)]
    expected = [0.2, 0.182322, 0.15, 0.085, 0.02, 0.02]
    assert expected[1] == pytest.approx(0.2 - 0.05 * 0.5**1.5, abs=5e-7)
    assert values(intermediate_weight(C("t")), steps) == pytest.approx(expected, abs=5e-7)
    assert intermediate_weight(C("t")).range.within(gd.Interval(0.0, 0.2))


def gate_reference(betas, ems, mean=None):
    out = []
    for beta, em in zip(betas, ems, strict=True):
        new = em if mean is None else 0.98 * mean + 0.02 * em
        slope, mean = (0.0 if mean is None else new - mean), new
        change = 0.0
        if mean < 0.65 and abs(slope) <= 5e-4:
            change = 0.2 * (0.65 - mean) * (0.2 - beta)
        if mean > 0.65 and slope > 5e-4:
            change = -0.2 * (mean - 0.65) * (beta - 0.02)
        out.append(min(0.2, max(0.02, beta + min(0.01, max(-0.01, change)))))
    return out, mean


def test_the_gate_is_the_sample_by_sample_rule_and_its_state_goes_on_over_batches():
    rng, session, mean = np.random.default_rng(0), gd.Session(), None
    gate = accuracy_gate(C("b"), C("em"))
    for share in (0.0, 0.1, 0.7, 1.0, 1.0):
        rows = [
            {"b": float(b), "em": float(e < share)}
            for b, e in zip(rng.uniform(0.02, 0.2, 60), rng.random(60), strict=True)
        ]
        expected, mean = gate_reference([r["b"] for r in rows], [r["em"] for r in rows], mean)
        assert values(gate, rows, session=session) == pytest.approx(expected)
        (state,) = session.state.values()
        assert state["ema"] == pytest.approx(mean)
    assert gate.range == gd.Interval(0.02, 0.2)


def test_the_gate_sees_every_batch_and_unknown_samples_move_nothing():
    session = gd.Session()
    full = subsearch(*SEARCH, accuracy_gate(intermediate_weight(C("t")), C("em")))
    right = [{"em": 1, "ans": [0.5], "dec": [0.5], "t": 0}] * 3
    assert values(full, right, session=session) == [1.0] * 3
    assert [s["ema"] for s in session.state.values()] == [1.0]
    assert values(full, [{"ans": [0.5], "dec": [0.5], "t": 0}], session=session) == [None]
    assert [s["ema"] for s in session.state.values()] == [1.0]
    half, whole = gd.Session(), gd.Session()
    rows = [{"b": 0.1, "em": float(i < 3)} for i in range(6)]
    gate = accuracy_gate(C("b"), C("em"))
    parts = values(gate, rows[:3], session=half) + values(gate, rows[3:], session=half)
    assert parts == pytest.approx(values(gate, rows, session=whole))
    assert parts != pytest.approx(values(gate, rows[:3]) + values(gate, rows[3:]))  # workers of their own differ


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ((0.1388, 1, 0, 1), 0.1388), ((0.95, 1, 1, 1), 1.0), ((0.5, 1, 1, 1), 0.6), ((0.1, 0, 1, 1), 0.0),
        ((0.9, 0, 0, 1), 0.7), ((0.0, 1, 0, 1), 0.2), ((-0.3, 1, 1, 1), 0.3), ((0.0, 0, 1, 1), 0.1),
        ((0.5, 1, 1, 0), 0.3), ((0.5, 1, 0, 0), 0.2), ((0.5, 0, 1, 0), 0.0),
    ],
)  # fmt: skip
def test_the_layer_of_form(row, expected):
    rows = [dict(zip(("r", "v", "g", "a"), row, strict=True))]
    assert values(format_layer(C("r"), C("v"), C("g"), C("a")), rows) == pytest.approx([expected])


def test_a_useful_search_costs_reward_unless_the_layer_is_monotone():
    rows = [{"r": r, "v": 1, "g": 0} for r in (0.0, 0.1388, 0.19, 0.5)]
    plain, monotone = (values(format_layer(C("r"), C("v"), C("g"), monotone=m), rows) for m in (False, True))
    assert plain[1] < plain[0] == 0.2
    assert monotone == sorted(monotone) == [0.2, 0.2, 0.2, 0.5]
    assert not math.isnan(sum(plain))
