"""What holds for every method of credit: numbers whatever comes in, reasons, order of the rollouts, specs, entry."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon.methods import find
from guerdon.methods.denoising import turning_rewards
from guerdon.methods.noisy_reward import flipped
from guerdon.methods.variance_profile import amplification, guarded_zscore
from guerdon.methods.vppo import prefix_rewards
from guerdon.spec import dump_spec, load_spec
from shape_strategies import given, listed, same

A, B, OK = gd.column("a"), gd.column("b"), gd.column("ok", range=(0, 1))
STEP, VALUE = gd.column("s", axis="step"), gd.column("v", axis="step")
TOKEN = gd.column("logprobs", axis="token")

BUILT = {
    "clip-delta-process-reward": (STEP, OK),
    "dapo-overlong": (A, B),
    "densegrpo-stepwise-gain": (STEP, A),
    "dr-grpo": (A,),
    "fapo-flawed-positive-penalty": (OK, A),
    "gae": (OK, VALUE),
    "gdpo": ([A, B], TOKEN),
    "gopo-rank-advantage": (A,),
    "grpo": (A,),
    "mo-grpo-per-reward-normalisation": ([A, B, OK],),
    "noisy-reward-and-rpr": (A, B, OK),
    "passk-training-analytic-advantage": (A,),
    "pure-min-form": (STEP, OK),
    "reinforce-plus-plus": (A, TOKEN),
    "reward-shifting": (A,),
    "rlrr-relative-rewards": (A, OK),
    "rloo": (A,),
    "safer-steer-tcsr": (STEP,),
    "tp-grpo-turning-points": (STEP, A, B),
    "vgpo-value-anchored": (STEP,),
    "vppo-prefix": (OK, STEP, TOKEN, 1.0),
}
GIVEN = {
    "clip-delta-process-reward": {"threshold": 0.5},
    "passk-training-analytic-advantage": {"k": 2},
    "reinforce-plus-plus": {"gamma": 0.9, "group_baseline": True},
    "reward-shifting": {"shift": -0.5},
    "tp-grpo-turning-points": {"balance": False},
}
PARTS = {
    "amplification": amplification(A),
    "guarded": guarded_zscore(A, floor=0.1),
    "prefix rewards": prefix_rewards(OK, STEP, TOKEN, 1.0),
    "prorl ends": find("prorl-stepwise-centering-position-baseline").build([STEP, VALUE], OK)[1],
    "prorl items": find("prorl-stepwise-centering-position-baseline").build([STEP, VALUE], OK)[0],
    "turning": turning_rewards(STEP, A, B),
}
ALL = {**{key: find(key).build(*BUILT[key], **GIVEN.get(key, {})) for key in BUILT}, **PARTS}
ORDERED = {**ALL, "flipped": flipped(OK, share=0.5, seed=1)}

TIED = st.sampled_from([None, -1.0, 0.0, 0.1, 0.5, 1.0, 2.0])
EXTREME = st.sampled_from([None, 0.0, 1.0, 5e-324, -5e-324, 1e-200, 1e200, 1e308, -1e308, 1.7e308, 0.1 + 0.2, 0.3])


@st.composite
def rollouts(draw, numbers=TIED):
    """Rollouts of up to three prompts with steps of 0 to 2 tokens, some numbers unknown."""
    rows = []
    for prompt, size in enumerate(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))):
        for _ in range(size):
            tokens = draw(st.lists(st.integers(0, 2), max_size=3))
            row = {"prompt": str(prompt), "ok": draw(st.sampled_from([0.0, 1.0, 1.0, None]))}
            row |= {name: draw(numbers) for name in "ab"}
            row |= {name: [draw(numbers) for _ in tokens] for name in "sv"}
            row |= {"completion": "x" * sum(tokens), "steps": ["x"] * len(tokens), "step_tokens": tokens}
            row |= {"tokens": list(range(sum(tokens))), "logprobs": [-1.0] * sum(tokens)}
            rows.append(row)
    return rows


def per_rollout(scored):
    flat, axis = listed(scored.scores), scored.scores.axis
    if axis.name == "prompt":
        return [[v] for v in scored.values]
    if axis.name == "rollout":
        return [[v] for v in flat]
    return [flat[a:b] for a, b in itertools.pairwise(axis.offsets_over("rollout").tolist())]


def check(expr, rows):
    framed = expr.score(rows).framed
    got = framed.values[framed.known]
    assert np.isfinite(got).all()
    assert (got >= expr.range.low - 1e-12).all()
    assert (got <= expr.range.high + 1e-12).all()
    assert all(framed.reason(i) for i in np.flatnonzero(~framed.known))


@pytest.mark.parametrize("key", ORDERED)
@given(rows=rollouts(EXTREME), examples=25)
def test_no_number_however_large_or_small_gives_nan_or_an_error(key, rows):
    check(ORDERED[key], rows)


@pytest.mark.parametrize("key", ALL)
@given(rows=rollouts(), seed=st.integers(0, 99), examples=15)
def test_ranges_hold_and_the_order_of_the_rollouts_does_not_matter(key, rows, seed):
    check(ALL[key], rows)
    order = np.random.default_rng(seed).permutation(len(rows))
    plain, mixed = per_rollout(ALL[key].score(rows)), per_rollout(ALL[key].score([rows[i] for i in order]))
    assert all(same(plain[i], mixed[place], 1e-8) for place, i in enumerate(order))


@pytest.mark.parametrize("key", ORDERED)
def test_a_method_is_an_expression_that_can_be_pickled_written_down_and_read_back(key):
    expr = ORDERED[key]
    assert pickle.loads(pickle.dumps(expr)).fingerprint == expr.fingerprint
    assert load_spec(dump_spec(expr)).reward.fingerprint == expr.fingerprint
    assert len(expr.score([])) == 0


@pytest.mark.parametrize(
    "key", [*BUILT, "prorl-stepwise-centering-position-baseline", "variance-profile-amplifier-audit"]
)
def test_an_entry_says_what_it_is_and_where_it_comes_from(key):
    entry = find(key)
    assert entry.key == key
    assert len(entry.text) > 150
    assert entry.usage.startswith("guerdon.")
    assert entry.source


def test_what_overflows_is_unknown_and_says_so():
    rows = [{"prompt": "p", "a": a, "completion": "x", "tokens": [1], "logprobs": [-1.0]} for a in (1.7e308, -1.7e308)]
    out = find("grpo").build(A).score(rows).scores
    assert not out.known.any()
    assert out.reason(0) == "not a finite number"
    wide = [{"prompt": "p", "a": a} for a in (1e200, 1.7e308, -1e308, None)]
    assert "not a finite number" in find("passk-training-analytic-advantage").build(A, k=2).score(wide).unknown


def test_absurd_scores_of_one_group_leave_the_running_spread_of_the_others_alone():
    weight, session = gd.shape.spread_weight(A), gd.Session()
    rows = [{"prompt": p, "a": a} for p, a in (("p", 0.0), ("p", 2.0), ("q", 1.7e308), ("q", -1e308), ("q", 1e200))]
    assert weight.score(rows, session=session).values == pytest.approx([1.7, 1.7, 3.0, 3.0, 3.0])
    assert next(iter(session.state.values())) == {"mean": 1.0, "groups": 1}


def test_the_smallest_floats_still_have_a_least_and_a_greatest():
    rows = [{"prompt": "p", "a": a} for a in (0.0, -5e-324)]
    assert gd.shape.minmax(A).score(rows).values.tolist() == [1.0, 0.0]
