"""What `check` says of a spec before any data is seen; drawings; the JSON Schema."""

from __future__ import annotations

import jsonschema
import pytest

import guerdon as gd
from guerdon.spec import check, graph, load_spec, schema
from guerdon.spec._document import parse
from guerdon.spec._names import ROOMS, find, public

NODES = """
nodes:
  right: {column: {name: right, range: [0, 1]}}
  neat: {column: {name: neat, range: [0, 1]}}
  long: {column: length}
"""


def codes(text: str) -> list[str]:
    return [f.code for f in check(load_spec(NODES + text)) if f.code != "unused-node"]


def test_a_sound_spec_has_no_findings() -> None:
    assert codes("range: [0, 1]\nreward: {when: [neat, right, 0]}") == []


def test_a_weight_that_pushes_the_reward_out_of_its_range_is_named() -> None:
    found = check(load_spec(NODES + "range: [0, 1]\nreward: {add: [right, {multiply: [0.5, neat]}]}"))
    first = next(f for f in found if f.level == "error")
    assert first.code == "range"
    assert first.line == 7
    assert first.message == (
        "the reward can reach 1.5, above the declared 1: right adds up to 1, product(0.5, neat) up to 0.5"
    )


def test_the_branch_that_pushes_the_reward_out_is_named() -> None:
    found = check(load_spec(NODES + "range: [0, 1]\nreward: {when: [neat, right, {add: [right, -3]}]}"))
    error = next(f for f in found if f.level == "error")
    assert "can reach -3, below the declared 0: -3 adds down to -3" in error.message


def test_a_single_part_that_pushes_the_reward_out_is_named() -> None:
    found = check(load_spec(NODES + "range: [0, 1]\nreward: {multiply: [2, right]}"))
    assert next(f.message for f in found if f.code == "range").endswith("in scale(2, right), right lies in [0, 1]")
    found = check(load_spec("range: [0, 1]\nreward: {column: {name: x, range: [0, 2]}}"))
    assert next(f.message for f in found if f.code == "range").endswith('column("x") lies in [0, 2]')


def test_an_unbounded_part_is_named() -> None:
    found = check(load_spec(NODES + "range: [0, 1]\nreward: {multiply: [right, long]}"))
    assert {f.code for f in found} >= {"range-unknown"}
    assert any("long has no known range" in f.message for f in found)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("reward: {when: [{less: [2, 1]}, right, neat]}", "dead-branch"),
        ("reward: {when: [1, right, neat]}", "dead-branch"),
        ("reward: {less: [right, 2]}", "decided"),
        ("reward: {when: [long, right, neat]}", "condition"),
        ("reward: {and: [right, long]}", "not-0-1"),
        ("reward: {divide: [right, neat]}", "division"),
        ("reward: {add: [{when: [right, 1, 0]}, {multiply: [2, neat]}]}", "gate-outbid"),
        ("reward: {add: [{when: [right, 1, 0]}, neat]}", "gate-outbid"),
        ("reward: {verify.regex: {}}", "missing-parameter"),
    ],
)
def test_finds(text: str, code: str) -> None:
    assert code in codes(text)


def test_a_bonus_smaller_than_the_gate_is_fine() -> None:
    assert codes("reward: {add: [{when: [right, 1, 0]}, {multiply: [0.5, neat]}]}") == []


def test_unused_nodes_are_reported_by_name() -> None:
    found = check(load_spec(NODES + "reward: right"))
    assert [f.path for f in found if f.code == "unused-node"] == ["nodes.neat", "nodes.long"]


def test_a_dear_signal_without_cache_is_reported() -> None:
    @gd.signal(needs="judge", range=(0, 1), cache=False, version=1)
    async def judge(rollout: object) -> float:
        return 1.0

    from guerdon.spec import Spec

    assert [f.code for f in check(Spec(judge))] == ["not-cached"]
    assert check(Spec(judge.using(cache=True))) == []


def test_drawings_name_nodes_and_mark_what_is_asked_only_where_needed() -> None:
    spec = load_spec(NODES + "reward: {when: [neat, right, -1]}")
    assert "-.->|then|" in graph(spec)
    assert "right = column('right')" in graph(spec)
    dot = graph(spec, "dot")
    assert dot.startswith("digraph")
    assert dot.endswith("}")
    assert 'style=dashed, label="otherwise"' in dot


def test_every_public_name_is_in_the_schema_and_resolves() -> None:
    document = schema()
    jsonschema.Draft202012Validator.check_schema(document)
    calls = document["$defs"]["expression"]["anyOf"][2]["properties"]
    assert {"add", "when", "column", "verify.number", "shape.zscore", "credit.group_relative"} <= set(calls)
    assert all(find(name) is not None for name in public())
    assert "verify" in ROOMS


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (NODES + "range: [0, 1]\nreward: {when: {condition: neat, then: right, otherwise: -1}}", True),
        ("reward: {verify.number: {extract: last, manner: {timeout: 2, then: unknown}}}", True),
        ("reward: {not: {verify.number: {}}}", True),
        ("reward: {add: [1, {column: a}, {column: {name: b, range: [0, 1]}}]}", True),
        ("reward: {verify.number: {extract: lst}}", False),
        ("reward: {verify.nmber: {}}", False),
        ("reward: {add: [true, 1]}", False),
        ("rewards: 1", False),
    ],
)
def test_the_schema_agrees_with_the_reader(text: str, valid: bool) -> None:
    tree = parse(text, "x").plain()
    assert jsonschema.Draft202012Validator(schema()).is_valid(tree) == valid
    if valid:
        load_spec(text)
    else:
        with pytest.raises(gd.SpecError):
            load_spec(text)
