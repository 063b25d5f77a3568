"""A reward written as a spec reads back as the same reward."""

from __future__ import annotations

import sys
import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guerdon as gd
from guerdon.core.reward import Reward
from guerdon.core.signal import Failure, Manner, Signal
from guerdon.methods.hero import hero
from guerdon.spec import dump_spec, load_spec
from guerdon.spec._document import parse
from guerdon.spec._layout import layout


def shape_of(reward: Reward) -> set[tuple[str, str | None, Manner | None]]:
    return {(n.fingerprint, n.name, n.manner if isinstance(n, Signal) else None) for n in reward.walk()}


def assert_same(reward: Reward) -> str:
    text = dump_spec(reward)
    again = load_spec(text).reward
    assert shape_of(again) == shape_of(reward)
    assert again.fingerprint == reward.fingerprint
    assert again.name == reward.name
    assert dump_spec(again) == text
    return text


def test_the_readme_example_reads_as_python_would_write_it() -> None:
    spec = load_spec("""
guerdon: 1
data: {completion: solution, answer: gold, id: "{id}/{model}"}
range: [-1, 1]
nodes:
  correct: {verify.number: {}}
  tidy: {verify.format: {tags: [think, answer]}}
reward: {when: {condition: tidy, then: correct, otherwise: -1}}
""")
    correct, tidy = gd.verify.number().named("correct"), gd.verify.format(tags=["think", "answer"]).named("tidy")
    assert shape_of(spec.reward) == shape_of(gd.when(tidy, correct, -1.0))
    assert spec.data == {"completion": "solution", "answer": "gold", "id": "{id}/{model}"}
    assert spec.range == gd.Interval(-1, 1)


def test_sums_are_written_flat_and_read_from_the_left() -> None:
    a, b, c = gd.column("a"), gd.column("b"), gd.column("c")
    assert "add: [{column: a}, {column: b}, {column: c}]" in assert_same(a + b + c)
    assert_same(a + (b + c))
    assert load_spec("reward: {add: [{column: a}, {column: b}, 2]}").reward.fingerprint == (a + b + 2).fingerprint


def test_both_kinds_of_product_survive() -> None:
    unit, wide = gd.column("u", range=(0, 1)), gd.column("w")
    for reward in (unit * unit, unit * wide, unit * 0.5, wide * 2, unit * unit * wide):
        assert "multiply" in assert_same(reward)


def test_operators_without_an_own_node_read_as_their_parts() -> None:
    a, b = gd.column("a"), gd.column("b")
    for text, reward in [
        ("greater: [{column: a}, {column: b}]", a > b),
        ("greater_equal: [{column: a}, {column: b}]", a >= b),
        ("not_equal: [{column: a}, {column: b}]", a != b),
        ("minimum: [{column: a}, {column: b}]", gd.minimum(a, b)),
        ("not: {column: a}", ~a),
        ("mean: {x: {column: {name: a, axis: step}}, missing: skip}", gd.column("a", "step").mean(missing="skip")),
        ("product: {column: {name: a, axis: step}}", gd.column("a", "step").product()),
    ]:
        assert load_spec(f"reward: {{{text}}}\n").reward.fingerprint == reward.fingerprint
        assert_same(reward)


def test_the_manner_of_a_signal_is_part_of_the_spec() -> None:
    slow = gd.verify.number(extract="boxed").using(
        timeout=2.0, failure=Failure(then=0.0, retries=2, alarm=0.5), cache=True, reads=("completion",)
    )
    text = assert_same(slow.named("slow"))
    assert "manner: {timeout: 2.0, cache: true, reads: [completion], then: 0.0, retries: 2, alarm: 0.5}" in text


def test_a_published_method_reads_by_key_and_is_written_as_its_parts() -> None:
    correct, quality = gd.column("c", range=(0, 1)).named("correct"), gd.column("q").named("quality")
    by_key = load_spec("""
nodes: {correct: {column: {name: c, range: [0, 1]}}, quality: {column: q}}
reward: {method.hero-hybrid-reward: {correct: correct, quality: quality, alpha: 0.1}}
""")
    assert shape_of(by_key.reward) == shape_of(hero(correct, quality, alpha=0.1))
    assert_same(hero(correct, quality))


def test_shared_parts_are_written_once_and_get_no_name() -> None:
    reward = gd.column("a")
    for _ in range(60):
        reward = reward + reward * 0.5
    text = assert_same(reward)
    assert len(text) < 6000
    assert {n.name for n in load_spec(text).reward.walk()} == {None}


def test_long_and_deep_expressions_are_no_problem() -> None:
    long = deep = gd.column("a")
    for i in range(800):
        long = long + gd.column(f"c{i}")
    for _ in range(800):
        deep = gd.when(deep, 1.0, 0.0)
    assert_same(long)
    assert_same(deep)


def test_containers_of_operands_survive() -> None:
    parts = {"right": gd.column("r").named("right"), "neat": gd.column("n")}
    text = assert_same(gd.shape.weighted_sum(parts, weights={"right": 1.0, "neat": 0.5}))
    assert "weights: {right: 1.0, neat: 0.5}" in text
    assert_same(gd.shape.gate(gd.column("q"), by=[gd.column("p"), gd.column("s")], failed=[-1, 0]))


def test_declared_ranges_survive() -> None:
    assert_same((gd.column("a") * 3).within(-1, 2.5))
    assert_same(gd.column("steps", axis="step", range=(0, float("inf"))).mean(to="prompt"))


def test_two_different_nodes_of_one_name_are_refused() -> None:
    with pytest.raises(gd.SpecError, match="two different nodes are called 'x'"):
        dump_spec(gd.column("a").named("x") + gd.column("b").named("x"))


def test_a_local_signal_is_refused_and_named() -> None:
    @gd.signal(range=(0, 1))
    def local(rollout: gd.Reward) -> float:
        return 1.0

    with pytest.raises(gd.SpecError, match="local function"):
        dump_spec(local)


def test_user_code_is_called_only_with_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("my_rewards_for_test")
    exec_free = gd.signal(range=(0, 1), version=1)(_brief)
    exec_free.function.__module__ = "my_rewards_for_test"
    module.brief = exec_free  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_rewards_for_test", module)
    text = "reward: {code.my_rewards_for_test.brief: {limit: 3}}\n"
    with pytest.raises(gd.SpecError, match="--allow-code my_rewards_for_test"):
        load_spec(text)
    loaded = load_spec(text, allow_code=["my_rewards_for_test"]).reward
    assert loaded.score([{"completion": "abcd"}, {"completion": "ab"}]).values.tolist() == [0.0, 1.0]


def _brief(rollout: gd.Reward, *, limit: int = 10) -> float:
    return float(len(rollout.text) < limit)  # type: ignore[attr-defined]


names = st.sampled_from("abc")
leaf_rewards = st.one_of(
    st.floats(-1e6, 1e6).map(gd.constant),
    st.builds(gd.column, st.text(max_size=12), range=st.none() | st.just((0, 1)) | st.just((-2.5, 7))),
    st.builds(
        lambda tags: gd.verify.format(tags=tags), st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=2)
    ),
)
rewards = st.recursive(
    leaf_rewards,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner), st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner), st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a <= b, inner, inner), st.builds(lambda a: -a, inner),
        st.builds(gd.when, inner, inner, inner), st.builds(lambda a: gd.shape.clip(a, -1, 1), inner),
    ),
    max_leaves=12,
)  # fmt: skip


@given(rewards)
@settings(max_examples=50, deadline=None)
def test_any_expression_survives(reward: Reward) -> None:
    assert_same(reward)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1), values, min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_the_yaml_we_write_is_read_back_exactly(tree: dict[str, object]) -> None:
    again = parse(layout(tree), "x").plain()
    assert repr(again) == repr(tree)
