"""Running forms and reducers of credit against their formulas, with unknown items passed over or not."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guerdon as gd
from guerdon import credit
from shape_strategies import listed

S = gd.column("s", axis="step")
QUICK = settings(max_examples=30, deadline=None)
CHANCE = st.sampled_from([None, 0.0, 0.25, 0.5, 0.75, 1.0, 0.1 + 0.2, 1 / 3])
CHANCES = st.lists(st.lists(CHANCE, max_size=5), min_size=1, max_size=6)
RUNNING = {
    "prefix_min": lambda before, after: min(before),
    "suffix_min": lambda before, after: min(after),
    "prefix_sum": lambda before, after: math.fsum(before),
    "prefix_mean": lambda before, after: math.fsum(before) / len(before),
    "returns": lambda before, after: math.fsum(after),
}
"""What stands at an item, from the known items up to it and from it on."""
REDUCED = {
    "geometric_mean": lambda s: math.prod(max(x, 1e-6) for x in s) ** (1 / len(s)),
    "harmonic_mean": lambda s: len(s) / sum(1 / max(x, 0.01) for x in s),
    "log_product": lambda s: sum(math.log(max(x, 1e-6)) for x in s),
    "logit_sum": lambda s: sum(math.log(p / (1 - p)) for x in s for p in [min(max(x, 1e-6), 1 - 1e-6)]),
    "position_mean": lambda s: (
        sum((1 + 0.1 * i) * x for i, x in enumerate(s)) / sum(1 + 0.1 * i for i in range(len(s)))
    ),
}


def framed(reward, data):
    return reward.score(data).framed


@pytest.mark.parametrize("name", RUNNING)
@QUICK
@given(rows=CHANCES)
def test_running_forms_read_the_known_items_up_to_or_from_each(name, rows):
    for missing in ("unknown", "skip"):
        expected = []
        for row in rows:
            for t, x in enumerate(row):
                before, after = ([v for v in part if v is not None] for part in (row[: t + 1], row[t:]))
                broken = None in row if missing == "unknown" else x is None
                expected.append(None if broken else pytest.approx(RUNNING[name](before, after)))
        got = framed(getattr(credit, name)(S, missing=missing), [{"s": row} for row in rows])
        assert listed(got) == expected


@QUICK
@given(rows=CHANCES)
def test_a_drop_is_the_item_less_its_successor_and_may_leave_the_last_out(rows):
    for before_last in (False, True):
        expected = []
        for row in rows:
            kept = [*row[:-1], 0.0] if before_last and row else row
            broken = None in row
            expected += [None if broken else a - b for a, b in zip(kept, [*kept[1:], 0.0], strict=False)]
        assert listed(framed(credit.drop(S, before_last=before_last), [{"s": row} for row in rows])) == expected


@QUICK
@given(rows=CHANCES, width=st.integers(1, 4), gamma=st.sampled_from([0.0, 0.5, 1.0]))
def test_a_window_averages_what_is_left_ahead_of_each_item(rows, width, gamma):
    expected = []
    for row in rows:
        for t in range(len(row)):
            ahead = row[t : t + width]
            weights = [gamma**j for j in range(len(ahead))]
            broken = None in row
            expected.append(
                None
                if broken
                else pytest.approx(sum(w * x for w, x in zip(weights, ahead, strict=True)) / sum(weights), abs=1e-12)
            )
    got = framed(credit.window_mean(S, width=width, gamma=gamma), [{"s": row} for row in rows])
    assert listed(got) == expected


@QUICK
@given(rows=CHANCES, temperature=st.sampled_from([0.01, 0.1, 10.0]))
def test_soft_min_weighs_each_step_by_a_softmax_of_its_badness(rows, temperature):
    expected = []
    for row in rows:
        if None in row:
            expected += [None] * len(row)
            continue
        raised = [math.exp(-(x - min(row)) / temperature) for x in row]
        expected += [pytest.approx(x * w / sum(raised), abs=1e-12) for x, w in zip(row, raised, strict=True)]
    assert listed(framed(credit.soft_min(S, temperature=temperature), [{"s": row} for row in rows])) == expected


@pytest.mark.parametrize("name", REDUCED)
@QUICK
@given(rows=CHANCES)
def test_reducers_equal_their_formula_over_the_known_items(name, rows):
    for missing in ("unknown", "skip"):
        expected = []
        for row in rows:
            known = [x for x in row if x is not None]
            broken = not known or (missing == "unknown" and len(known) < len(row))
            expected.append(None if broken else pytest.approx(REDUCED[name](known), rel=1e-9, abs=1e-9))
        assert listed(framed(getattr(credit, name)(S, missing=missing), [{"s": row} for row in rows])) == expected


def test_a_rollout_without_tokens_has_no_weight_among_tokens():
    rows = [{"r": r, "logprobs": [-1.0] * n} for r, n in ((0.1, 2), (0.1, 1), (5.0, 0))]
    reward, token = gd.column("r"), gd.column("logprobs", axis="token")
    assert listed(credit.batch_whiten(reward, token, eps=0.0).score(rows).framed) == [0.0] * 3
    rows[1]["r"] = 0.4
    out = credit.batch_whiten(reward, token, ddof=0, eps=0.0).score(rows).framed
    assert listed(out) == pytest.approx([-(0.5**0.5), -(0.5**0.5), 2**0.5])
