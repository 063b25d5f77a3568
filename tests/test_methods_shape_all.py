"""What holds for every method built from shaping: ranges, unknowns, order of the rollouts, pickling, specs, its
entry."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import strategies as st

import guerdon as gd
from guerdon.methods import find
from guerdon.spec import dump_spec, load_spec
from shape_strategies import UNIT, given, listed, same

A, B, C, D, E = (gd.column(n, range=(0, 1)) for n in "abcde")
OK, FORM, FLAG = (gd.column(n, range=(0, 1)) for n in ("ok", "form", "flag"))
LENGTH = gd.column("length", range=(1, 1000))
ITEM, HIT = gd.column("item", axis="item", range=(0, 1)), gd.column("hit", axis="step", range=(0, 1))
WEIGHT, KIND = gd.column("weight", axis="item", range=(0, 3)), gd.column("kind", axis="item")
LOGS = gd.column("logs", axis="token_of_answer", range=(-50, 0))

BUILT = {
    "admire-milestone": (OK, HIT, gd.constant(2.0)),
    "alphaalign-dual-safety-helpfulness": (FORM, FLAG, OK, A),
    "arena-t2i-hard-checklist": (A, {"looks": B}),
    "bpmn-reward-composition": (OK, [A, B, C], (3, 1, 1)),
    "carl-simple-reward": (HIT, [HIT * 0.5], HIT),
    "faithrl-geometric": (OK, FLAG),
    "firm-base-bonus": (A, B),
    "gait-conditioned-reward-routing": (OK, {"common": A}, [{}, {"one": B}]),
    "gated-aggregation": ([A, B], {"rich": C, "short": D}, {"rich": 2, "short": 1}),
    "gated-reward-accumulation": ([OK, A, B], [0.0, 0.1]),
    "gpm-general-preference": (gd.column("vector", axis="dimension"),),
    "harmo-hybrid-multiaspect": (OK, A, FLAG, FORM, LENGTH),
    "hero-hybrid-reward": (OK, A),
    "irrl-clipped-linear": (A, 0.1),
    "likelihood-reward-family": (LOGS,),
    "par": (A, ITEM, LENGTH),
    "pow3r-policy-aware-rubric": (ITEM, WEIGHT, KIND),
    "ppr-renorm": (HIT, OK),
    "pspo-wrs": (HIT,),
    "reward-discretization-mcdropout": (ITEM,),
    "router-r1": (FORM, A, LENGTH),
    "rubrics-as-rewards": (ITEM, WEIGHT),
    "salmon-principle-rm": (A, LENGTH, FLAG),
    "scope-rl": (gd.column("bits", axis="sub", range=(0, 1)), OK),
    "search-p1": (A, OK, B, C, FORM),
    "self-aligned-reward": (OK, LENGTH, LENGTH + 1.0),
    "self-paced-grpo-reward-curriculum": ([A, B, C],),
    "ssl-tiered-reward": (OK, A),
    "toolrl-reward": (FORM,),
    "trust-grpo-thinking-reward": (A, B),
    "uncertainty-aware-rlhf": (ITEM, A),
    "urpo-player-referee": (OK, A, B, C),
}
NEEDS = {"faithrl-geometric": {"base_correct": 0.5, "base_wrong": 0.2}}

MAYBE, BIT = st.one_of(st.none(), UNIT), st.sampled_from([0.0, 1.0, 1.0, None])


def built(key):
    return find(key).build(*BUILT[key], **NEEDS.get(key, {}))


@st.composite
def rollouts(draw):
    """Rollouts of up to three prompts with whatever the methods read, some of it unknown."""
    rows = []
    for prompt, size in enumerate(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))):
        for _ in range(size):
            three = st.lists(MAYBE, min_size=3, max_size=3)
            bits = st.lists(BIT, max_size=3)
            row = {"prompt": str(prompt), **{name: draw(MAYBE) for name in "abcde"}}
            row |= {name: draw(BIT) for name in ("ok", "form", "flag")}
            row |= {"length": draw(st.one_of(st.none(), st.integers(1, 1000))), "hit": draw(bits), "bits": draw(bits)}
            row |= {"item": draw(three), "kind": [0, 0, 1], "weight": [1, 0, 3], "logs": [-20 * draw(UNIT)] * 2}
            row |= {"vector": draw(st.lists(MAYBE, min_size=4, max_size=4)), "calls": [], "expected_calls": []}
            rows.append(row)
    return rows


def per_rollout(scored):
    flat, scores = listed(scored.scores), scored.scores
    if scores.axis.name == "rollout":
        return [[v] for v in flat]
    return [flat[a:b] for a, b in itertools.pairwise(scores.axis.offsets.tolist())]


@pytest.mark.parametrize("key", BUILT)
@given(rows=rollouts(), seed=st.integers(0, 99), examples=10)
def test_ranges_hold_nothing_is_nan_and_the_order_of_the_rollouts_does_not_matter(key, rows, seed):
    expr = built(key)
    scored = expr.score(rows)
    got = scored.framed.values[scored.framed.known]
    assert np.isfinite(got).all()
    assert (got >= expr.range.low - 1e-12).all()
    assert (got <= expr.range.high + 1e-12).all()
    assert all(scored.framed.reason(i) for i in np.flatnonzero(~scored.framed.known))
    order = np.random.default_rng(seed).permutation(len(rows))
    plain, mixed = per_rollout(scored), per_rollout(expr.score([rows[i] for i in order]))
    assert all(same(plain[i], mixed[place]) for place, i in enumerate(order))


@pytest.mark.parametrize("key", BUILT)
def test_a_method_is_an_expression_that_can_be_pickled_written_down_and_read_back(key):
    expr = built(key)
    assert pickle.loads(pickle.dumps(expr)).fingerprint == expr.fingerprint
    assert load_spec(dump_spec(expr)).reward.fingerprint == expr.fingerprint
    assert len(expr.score([])) == 0


@pytest.mark.parametrize("key", BUILT)
def test_an_entry_says_what_it_is_where_it_comes_from_and_how_to_use_it(key):
    entry = find(key)
    assert entry.key == key
    assert len(entry.text) > 300
    assert "Trap" in entry.text
    assert "guerdon.methods." in entry.usage
    assert entry.source
