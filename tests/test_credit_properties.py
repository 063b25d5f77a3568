"""Algebra of the credit blocks on random ragged scores with unknowns, against slow obvious references."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guerdon as gd
from guerdon import credit
from shape_strategies import listed

VALUE = st.one_of(
    st.none(),
    st.sampled_from([-1.0, 0.0, 0.5, 1.0, 0.1 + 0.2, 1e-300, 1e308, -1e308]),
    st.floats(-1e6, 1e6, allow_nan=False),
)
SURE = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 0.1 + 0.2])
STEPS = st.lists(VALUE, max_size=5)
ROW = st.fixed_dictionaries({"prompt": st.sampled_from("abc"), "r": VALUE, "s": STEPS})
DATA = st.lists(ROW, min_size=1, max_size=10)
SURE_DATA = st.lists(
    st.fixed_dictionaries({"prompt": st.sampled_from("ab"), "r": SURE, "s": st.lists(SURE, max_size=5)}),
    min_size=1,
    max_size=8,
)
R, S = gd.column("r"), gd.column("s", axis="step")

QUICK = settings(max_examples=20, deadline=None)


def framed(reward, data):
    return reward.score(data).framed


SHIFTED = {
    "group_relative": (credit.group_relative, 0),
    "group_relative: centred": (lambda r: credit.group_relative(r, scale="none"), 1),
    "leave_one_out": (credit.leave_one_out, 1),
    "pass_at_k_advantage": (lambda r: credit.pass_at_k_advantage(r, k=2, eps=0.0), 0),
    "pass_at_k_advantage: centred": (lambda r: credit.pass_at_k_advantage(r, k=2, scale="none"), 1),
    "batch_whiten": (lambda r: credit.batch_whiten(r, eps=0.0), 0),
    "gdpo": (lambda r: credit.gdpo([r], eps=0.0, whiten_eps=0.0), 0),
}
"""Advantages by name, and the power of a reward's scale that they carry."""


@pytest.mark.parametrize("name", SHIFTED)
@QUICK
@given(data=SURE_DATA, shift=st.sampled_from([-3.0, 0.5, 7.0]), scale=st.sampled_from([0.25, 2.0, 8.0]))
def test_advantages_feel_no_shift_and_scale_or_not_as_their_formula_says(name, data, shift, scale):
    advantage, power = SHIFTED[name]
    before, moved = framed(advantage(R), data), framed(advantage(R * scale + shift), data)
    assert (before.known == moved.known).all()
    assert moved.values == pytest.approx(before.values * scale**power, abs=1e-9)


# ---- telescoping and identities ----


@QUICK
@given(SURE_DATA, st.sampled_from([0.5, 0.9, 1.0]))
def test_potential_shaping_telescopes(data, gamma):
    for absorb in (True, False):
        out = framed(credit.potential_shaping(S, R, gamma=gamma, absorb=absorb), data)
        for row, part in zip(ordered(data), by_rollout(out), strict=True):
            total = sum(gamma**t * f for t, f in enumerate(part))
            end = 0.0 if absorb else gamma ** len(part) * row["s"][-1] if len(part) else 0.0
            assert total == pytest.approx((end - row["r"]) if len(part) else 0.0, abs=1e-9)


@QUICK
@given(SURE_DATA)
def test_drops_have_the_score_itself_as_reward_to_go(data):
    assert framed(credit.returns(credit.drop(S)), data).values == pytest.approx(framed(S, data).values, abs=1e-12)


@QUICK
@given(SURE_DATA, st.sampled_from([0.0, 0.9, 1.0]))
def test_gae_is_returns_minus_value_at_lambda_one_and_the_td_error_at_zero(data, gamma):
    paid = framed(credit.returns(credit.pay_last(S * 0.0, R), gamma=gamma), data).values
    value = framed(S, data).values
    assert framed(credit.gae(R, S, gamma=gamma, lam=1.0), data).values == pytest.approx(paid - value, abs=1e-9)
    td = framed(credit.n_step(R, S, n=1, gamma=gamma), data).values
    assert framed(credit.gae(R, S, gamma=gamma, lam=0.0), data).values == pytest.approx(td, abs=1e-9)
    far = framed(credit.n_step(R, S, n=99, gamma=gamma), data).values
    assert far == pytest.approx(paid - value, abs=1e-9)


@QUICK
@given(SURE_DATA, st.integers(1, 4))
def test_n_step_equals_its_definition(data, n):
    out = by_rollout(framed(credit.n_step(R, S, n=n, gamma=0.9), data))
    for row, part in zip(ordered(data), out, strict=True):
        v, last = row["s"], len(row["s"]) - 1
        for t, a in enumerate(part):
            paid = 0.9 ** (last - t) * row["r"] if last - t < n else 0.0
            ahead = 0.9**n * v[t + n] if t + n <= last else 0.0
            assert a == pytest.approx(paid + ahead - v[t], abs=1e-9)


@QUICK
@given(SURE_DATA)
def test_the_soft_minimum_lies_between_minimum_and_mean(data):
    for temperature in (1e-3, 0.1, 10.0):
        sums = rollout_sums(credit.soft_min(S, temperature=temperature), data)
        for part, total in zip(by_rollout(framed(S, data)), sums, strict=True):
            if len(part):
                assert part.min() - 1e-9 <= total <= part.mean() + 1e-9


@QUICK
@given(SURE_DATA)
def test_leave_one_out_is_n_over_n_minus_one_times_centred(data):
    one, other = framed(credit.leave_one_out(R), data), framed(credit.group_relative(R, scale="none"), data)
    size = np.bincount(one.axis.owner)[one.axis.owner]
    factor = size / np.maximum(size - 1, 1)
    assert one.values == pytest.approx(other.values * factor, abs=1e-9)


@QUICK
@given(SURE_DATA)
def test_sharing_keeps_sums(data):
    out = rollout_sums(credit.spread(R, S, how="share"), data)
    last = rollout_sums(credit.spread(R, S, how="last"), data)
    for row, a, b in zip(ordered(data), out, last, strict=True):
        assert a == pytest.approx(row["r"] if row["s"] else 0.0, abs=1e-9)
        assert b == pytest.approx(row["r"] if row["s"] else 0.0, abs=1e-9)


@QUICK
@given(SURE_DATA)
def test_position_advantages_sum_to_zero_at_every_position_with_their_ends(data):
    items = framed(credit.position_advantage(S), data)
    ends = framed(credit.end_advantage(S), data)
    offsets, prompt = items.axis.offsets_over("rollout"), ends.axis.owner
    sums = {}
    for g, (a, b) in enumerate(pairwise(offsets)):
        for t, value in enumerate([*items.values[a:b], ends.values[g]]):
            sums[prompt[g], t] = sums.get((prompt[g], t), 0.0) + value
    assert all(abs(total) < 1e-9 for total in sums.values())


def test_a_path_at_the_limit_or_cut_off_does_not_reach_the_next_position_and_an_unknown_end_takes_no_part():
    data = [{"prompt": "p", "s": s, "r": r} for s, r in (([1.0, 2.0], 1.0), ([0.0, 1.0, 3.0], 1.0), ([4.0], 0.0))]
    free, cut = (by_rollout(framed(credit.position_advantage(S, R, limit=limit), data)) for limit in (None, 2))
    assert np.concatenate(free) == pytest.approx([-2 / 3, -1.0, 1 / 3, 1.0, 1.5, 1 / 3])
    assert np.concatenate(cut) == pytest.approx([-2 / 3, -1.0, 1 / 3, 1.0, 0.0, 1 / 3])
    assert framed(credit.end_advantage(S, R, limit=2), data).values.tolist() == [0.0, 0.0, 0.0]
    data[2]["r"] = None
    out = framed(credit.position_advantage(S, R), data)
    assert listed(out) == [-0.5, -1.0, 0.5, 1.0, 1.5, None]
    ends = framed(credit.end_advantage(S, R), data)
    assert listed(ends) == [-1.5, 0.0, None]
    assert ends.reason(2) == out.reason(5) == "column 'r' is missing"


@QUICK
@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=9), st.integers(1, 5))
def test_pass_at_k_of_binary_rewards_is_chens_estimator(values, k):
    n, c = len(values), int(sum(values))
    out = credit.pass_at_k(R, k=k).score([{"prompt": "p", "r": v} for v in values]).scores
    if n < k:
        assert not out.known.any()
    else:
        assert out.values[0] == pytest.approx(1 - math.comb(n - c, k) / math.comb(n, k))


@QUICK
@given(st.lists(st.one_of(st.none(), SURE), max_size=6), st.integers(1, 4))
def test_pass_at_k_of_graded_rewards_equals_a_walk_over_all_subsets(values, k):
    rows = [{"prompt": "p", "r": v} for v in values]
    at = [i for i, v in enumerate(values) if v is not None]
    subsets = list(combinations(at, k))
    best = [max(values[i] for i in subset) for subset in subsets]
    advantage = framed(credit.pass_at_k_advantage(R, k=k, eps=0.0), rows)
    estimate = credit.pass_at_k(R, k=k).score(rows).scores
    for i, v in enumerate(values):
        assert advantage.known[i] == (v is not None and len(at) >= k)
        if not advantage.known[i]:
            continue
        own = [b for subset, b in zip(subsets, best, strict=True) if i in subset]
        off = np.mean(own) - np.mean(best)
        assert estimate.values[0] == pytest.approx(np.mean(best))
        if min(best) == max(best):
            assert advantage.values[i] == 0.0
        else:
            assert advantage.values[i] == pytest.approx(off / np.std(best), abs=1e-9)


@QUICK
@given(DATA)
def test_one_unknown_step_makes_its_rollout_unknown_and_no_other(data):
    data = moderate(data)
    out = framed(credit.returns(S), data)
    for row, known, part in zip(ordered(data), split(out.known, out), by_rollout(out), strict=True):
        broken = None in row["s"]
        assert not known.any() if broken else known.all()
        if not broken:
            assert part == pytest.approx(np.cumsum(row["s"][::-1])[::-1] if row["s"] else [], rel=1e-9, abs=1e-6)


@QUICK
@given(DATA)
def test_whitening_by_tokens_is_whitening_of_the_tokens(data):
    data = moderate(data)
    short = framed(credit.batch_whiten(R, S), data)
    long = framed(credit.batch_whiten(credit.spread(R, S)), data)
    assert (short.known == long.known).all()
    assert short.values[short.known] == pytest.approx(long.values[long.known], rel=1e-6, abs=1e-9)


def moderate(data):
    def small(v):
        return v if v is None or abs(v) < 1e7 else 0.5

    return [{"prompt": row["prompt"], "r": small(row["r"]), "s": [small(v) for v in row["s"]]} for row in data]


def ordered(data):
    first = list(dict.fromkeys(row["prompt"] for row in data))
    return sorted(data, key=lambda row: first.index(row["prompt"]))


def split(values, scores):
    return np.split(values, scores.axis.offsets_over("rollout")[1:-1])


def by_rollout(scores):
    return split(scores.values, scores)


def rollout_sums(reward, data):
    return [part.sum() for part in by_rollout(framed(reward, data))]
