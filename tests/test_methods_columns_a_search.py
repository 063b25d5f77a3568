"""Search agents over columns, LeTS and ProRAG: worked examples as literals, and every trap named."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guerdon as gd
from guerdon.methods.lets import document_columns, lets, lets_outcome, search_factor, search_worth
from guerdon.methods.prorag import prorag, prorag_outcome, prorag_step
from guerdon.shape._assignment import best_assignment
from method_rows import values, with_tokens

C = gd.column
R, S = C("r"), C("s", axis="step")
TOKEN = C("logprobs", axis="token")


# ---- LeTS ----

DOC, TURN = C("document", axis="document"), C("turn", axis="document")
WORTH = search_worth(DOC, TURN, R, S)


def searched(r, *searches, prompt="p"):
    """A rollout of these searches and an answer."""
    return {"prompt": prompt, "r": r, "s": [0.0] * (len(searches) + 1), **document_columns(searches)}


THREE = [["d1", "d2"], ["d1", "d3"], ["d1", "d2"]]


def test_searches_of_the_best_rollout_are_worth_what_they_bring_anew():
    rows = [searched(1.0, *THREE)]
    assert values(WORTH, rows) == pytest.approx([1.0, 2 / 3, 0.0, 0.0])
    z = gd.credit.rollout_relative(WORTH, where=gd.credit.left(WORTH) > 1)
    assert values(z, rows) == pytest.approx([0.87287, 0.218217, -1.091087, 0.0], abs=1e-6)


def test_good_searches_get_more_of_a_good_rollout_and_less_of_a_bad_ones_penalty():
    good, bad = [{**searched(1.0, *THREE), "a": a} for a in (1.0, -1.0)]
    factor = search_factor(WORTH, C("a"), gamma=0.2)
    assert values(factor, [good]) == pytest.approx([1.174574, 1.043643, 0.781783, 1.0], abs=1e-6)
    assert values(C("a") * factor, [bad]) == pytest.approx([-0.825426, -0.956357, -1.218217, -1.0], abs=1e-6)


def test_the_others_are_matched_with_the_perfect_rollout():
    rows = [searched(1.0, ["d1", "d2"], ["d5", "d6"]), searched(0.55, ["d5", "d6"], ["d9", "d8"], ["d1", "d3"])]
    assert values(WORTH, rows)[3:] == pytest.approx([1.0, 0.0, 1 / 3, 0.0])


def test_outcome_of_half_an_f1():
    rows = [{"f1": f1, "form": form} for f1, form in ((0.5, 1), (0.0, 1), (1.0, 1), (1.0, 0), (None, 0))]
    assert values(lets_outcome(C("f1"), C("form")), rows) == pytest.approx([0.55, 0.1, 1.0, 0.0, 0.0])
    assert values(lets_outcome(C("f1"), C("form")), rows)[2] == 1.0  # exactly, as matching asks for it


def test_without_a_perfect_rollout_only_the_best_are_graded():
    rows = [searched(0.9, *THREE), searched(0.55, ["d1"], ["d2"]), searched(0.9, ["d7"], ["d7"])]
    assert values(WORTH, rows) == pytest.approx([1, 2 / 3, 0, 0, 0, 0, 0, 1, 0, 0])


def test_malformed_rollouts_are_not_graded_even_as_the_best():
    assert values(WORTH, [searched(0.0, *THREE)]) == [0.0] * 4
    assert values(WORTH, [searched(1.0, ["d1"]), searched(0.0, ["d1"], ["d2"])])[2:] == [0.0] * 3


def test_the_better_rollout_of_the_largest_match_is_taken():
    rows = [searched(1.0, ["a"], ["b"]), searched(0.9, ["c"], ["d"]), searched(0.5, ["c"], ["d"], ["a"])]
    assert values(WORTH, rows)[6:] == [1.0, 1.0, 0.0, 0.0]


def test_searches_that_brought_nothing_are_not_alike():
    assert values(WORTH, [searched(1.0, [], [])]) == [1.0, 1.0, 0.0]


def test_a_factor_below_zero_would_turn_the_advantage_round_and_stops_at_zero():
    rows = [searched(1.0, *THREE), searched(0.1, ["d9"])]
    a = 0.707106
    clipped, released = (values(lets(R, DOC, TURN, S, clip=clip), rows)[:4] for clip in (True, False))
    assert clipped[2] == 0.0 > released[2] == pytest.approx(a * (1 - 1.091087), abs=1e-5)
    assert clipped[0] == released[0] == pytest.approx(a * 1.87287, abs=1e-5)


def test_equal_worths_and_single_searches_leave_the_advantage_as_it_is():
    rows = [searched(1.0, ["a"], ["b"], ["c"]), searched(0.1, ["a"])]
    got = values(lets(R, DOC, TURN, S), rows)
    assert got[:4] == [got[0]] * 4
    assert got[4:] == pytest.approx([-got[0]] * 2)


def test_tokens_hold_the_advantage_of_their_turn():
    rows = [with_tokens([2, 1, 1, 3], **{k: v for k, v in searched(1.0, *THREE).items() if k != "prompt"})]
    rows += [with_tokens([1, 1], **{k: v for k, v in searched(0.1, ["d1"]).items() if k != "prompt"})]
    steps, tokens = (values(lets(R, DOC, TURN, S, t), rows) for t in (None, TOKEN))
    assert tokens[:7] == [steps[0]] * 2 + [steps[1], steps[2]] + [steps[3]] * 3


def test_documents_beyond_the_search_turns_and_unknown_ones_make_the_rollout_unknown():
    beyond, hole = searched(1.0, ["a"], ["b"]), searched(1.0, ["a"], ["b"])
    beyond["turn"][1], hole["document"][0] = 2.0, None
    out = WORTH.score([beyond, hole, searched(None, ["a"]), searched(0.9, ["a"], ["a"])]).scores
    assert out.known.tolist() == [False] * 8 + [True] * 3
    assert out.values[8:].tolist() == [1.0, 0.0, 0.0]  # the best of those that are known
    assert out.reason(0) == "its documents do not fit its search turns"
    assert "missing" in str(out.reason(6))


def test_groups_of_other_prompts_are_not_matched():
    rows = [searched(1.0, ["a"], prompt="p"), searched(0.5, ["a"], prompt="q"), searched(0.4, ["a"], prompt="q")]
    assert values(WORTH, rows) == [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 5), st.integers(0, 5), st.randoms(use_true_random=False))
def test_the_assignment_is_the_best_of_all(rows, columns, rng):
    weights = [[rng.choice([0.0, 0.25, 0.5, rng.random()]) for _ in range(columns)] for _ in range(rows)]
    column = best_assignment(weights)
    taken = [c for c in column if c >= 0]
    assert len(column) == rows
    assert len(set(taken)) == len(taken)
    total = sum(weights[r][c] for r, c in enumerate(column) if c >= 0)
    wide = weights if rows <= columns else list(zip(*weights, strict=True))
    places = permutations(range(max(rows, columns)), min(rows, columns))
    assert total == pytest.approx(max(sum(wide[r][c] for r, c in enumerate(p)) for p in places))


# ---- ProRAG ----

F1, FORM, GEN = C("f1"), C("form"), C("gen", axis="token")


def test_outcome_and_step_advantages_add_on_generated_tokens():
    rows = [with_tokens([2, 1], r=3, s=[1.8, 1.5], gen=[1] * 3), with_tokens([2, 1], r=1, s=[1.2, -1.0], gen=[1] * 3)]
    outcome = credit_of(rows)
    assert outcome == pytest.approx([0.707057, -0.707057], abs=1e-6)
    tokens = np.array([1.8, 1.8, 1.5, 1.2, 1.2, -1.0])
    assert (tokens.mean(), tokens.std()) == pytest.approx((1.083333, 0.963356), abs=5e-7)
    assert values(prorag(R, S, GEN), rows) == pytest.approx(
        [0.930235, 0.930235, 0.836811, -0.670725, -0.670725, -1.35583], abs=2e-6
    )


def credit_of(rows):
    return values(prorag(R, S, GEN, beta=0.0), rows)[::3]


def test_outcome_and_step_scores():
    rows = [{"f1": f1, "form": form} for f1, form in ((0.1, 1), (0.5, 1), (0.5, 0), (0.19, 0))]
    assert values(prorag_outcome(F1, FORM), rows) == [1.0, 2.0, 0.0, -1.0]
    assert str(prorag_outcome(F1, FORM).range) == "[-1, 3]"
    steps = [{"s": [0.0, 0.0], "ok2": [1, 0]}]
    assert values(prorag_step(S, C("ok2", axis="step")), steps) == [1.5, -1.5]
    assert str(prorag_step(S, C("ok2", axis="step")).range) == "[-2, 2]"


def test_retrieved_tokens_get_zero_and_move_no_statistic():
    rows = [with_tokens([2, 1], r=3, s=[1.8, 1.5], gen=[1] * 3), with_tokens([2, 1], r=1, s=[1.2, -1.0], gen=[1] * 3)]
    longer = [with_tokens([2, 1, 3], r=3, s=[1.8, 1.5, -9.0], gen=[1] * 3 + [0] * 3), rows[1]]
    got = values(prorag(R, S, GEN), longer)
    assert got[3:6] == [0.0] * 3
    assert got[:3] + got[6:] == pytest.approx(values(prorag(R, S, GEN), rows))


def test_long_steps_weigh_more_in_the_statistics():
    rows = [with_tokens([1], r=1, s=[1.0], gen=[1]), with_tokens([9], r=1, s=[0.0], gen=[1] * 9)]
    got = values(prorag(R, S, GEN, beta=1.0), rows)
    assert got[0] == pytest.approx(3.0)
    assert got[1] == pytest.approx(-1 / 3)


def test_a_malformed_step_dominates_the_shared_scale():
    fine, broken = [with_tokens([1, 1], r=1, s=s, gen=[1, 1]) for s in ([1.9, 1.1], [-1.5, 1.1])]
    got = values(prorag(R, S, GEN, beta=1.0), [fine, broken])
    assert got[0] - got[1] < 0.7 < got[1] - got[2]


def test_a_group_of_one_or_of_equal_rewards_has_no_outcome_advantage():
    one = [with_tokens([1, 1], r=3, s=[1.0, 0.0], gen=[1, 1])]
    assert values(prorag(R, S, GEN), one) == pytest.approx([0.3, -0.3])
    assert values(prorag(R, S, GEN), [with_tokens([1], r=3, s=[1.0], gen=[1])]) == [None]
    flat = [with_tokens([2], r=3, s=[0.1], gen=[1, 1])] * 3
    assert values(prorag(R, S, GEN), flat) == [0.0] * 6


def test_tokens_of_an_unknown_step_are_unknown():
    rows = [with_tokens([1, 1, 1], r=1, s=[1.0, None, 0.0], gen=[1, 1, 0])] * 2
    assert prorag(R, S, GEN).score(rows).scores.known.tolist() == [True, False, True] * 2
