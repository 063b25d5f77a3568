"""Values, sibling advantages and shares of tree nodes, against a recursion over random ragged trees."""

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guerdon as gd
from guerdon import credit
from shape_strategies import listed

OK, NODE = gd.column("ok"), gd.column("node", axis="step")
PATHS = st.lists(
    st.tuples(st.lists(st.integers(0, 2), max_size=3).map(tuple), st.sampled_from([0.0, 0.25, 0.5, 1.0, None])),
    max_size=9,
)
"""Rollouts as the branches they take and their outcomes; some end where others go on."""


class Tree:
    """The obvious recursion: a node is worth the mean of the rollouts that end there and of its children."""

    def __init__(self, rollouts):
        self.rollouts = rollouts
        self.nodes = {path[: t + 1] for path, _ in rollouts for t in range(len(path))}

    def children(self, node):
        return sorted(n for n in self.nodes if n[:-1] == node)

    def value(self, node):
        ends = [ok for path, ok in self.rollouts if path == node and ok is not None and path]
        below = [v for child in self.children(node) if (v := self.value(child)) is not None]
        return statistics.fmean([*ends, *below]) if ends or below else None

    def advantage(self, node, scale, prune, eps):
        siblings = [v for s in self.children(node[:-1]) if (v := self.value(s)) is not None]
        mine = self.value(node)
        if mine is None:
            return None
        width = max(siblings) - min(siblings)
        if width < prune or width == 0:
            return 0.0
        mu = statistics.fmean(siblings)
        unit = {"bernoulli": math.sqrt(mu * (1 - mu) + eps), "std": statistics.pstdev(siblings), "none": 1.0}[scale]
        return (mine - mu) / unit

    def passing(self, node):
        return sum(path[: len(node)] == node for path, _ in self.rollouts)

    def rows(self, prompt):
        number = {node: i for i, node in enumerate(sorted(self.nodes))}
        return [
            {"prompt": prompt, "node": [number[path[: t + 1]] for t in range(len(path))], "ok": ok}
            for path, ok in self.rollouts
        ]


def both(one, two, rule):
    """What a rule gives every step of two prompts' trees, and the rows that hold them."""
    trees = {"a": Tree(one), "b": Tree(two)}
    expected = [
        rule(tree, path[: t + 1]) for tree in trees.values() for path, _ in tree.rollouts for t in range(len(path))
    ]
    return [None if v is None else pytest.approx(v, abs=1e-9) for v in expected], [
        row for prompt, tree in trees.items() for row in tree.rows(prompt)
    ]


@settings(max_examples=40, deadline=None)
@given(PATHS, PATHS)
def test_a_node_is_worth_the_mean_of_its_children_and_shared_by_who_passes_it(one, two):
    expected, rows = both(one, two, Tree.value)
    assert listed(credit.node_value(OK, NODE).score(rows).framed) == expected
    expected, rows = both(one, two, lambda tree, node: 1 / tree.passing(node))
    assert listed(credit.node_share(NODE).score(rows).framed) == expected


@settings(max_examples=60, deadline=None)
@given(PATHS, PATHS, st.sampled_from(["bernoulli", "std", "none"]), st.sampled_from([0.0, 0.25, 0.5]))
def test_an_advantage_compares_siblings_unless_they_are_too_alike(one, two, scale, prune):
    expected, rows = both(one, two, lambda tree, node: tree.advantage(node, scale, prune, 1e-3))
    got = credit.node_relative(OK, NODE, scale=scale, prune=prune, eps=1e-3).score(rows).framed
    assert listed(got) == expected


def test_siblings_just_as_far_apart_as_the_threshold_are_kept():
    rows = [{"prompt": "p", "node": [i], "ok": ok} for i, ok in enumerate((0.5, 1.0))]
    for prune, expected in ((0.5, [-0.25, 0.25]), (0.51, [0.0, 0.0])):
        assert listed(credit.node_relative(OK, NODE, scale="none", prune=prune).score(rows).framed) == expected


def test_a_node_with_two_parents_is_an_error_that_names_it():
    rows = [{"prompt": "p", "node": node, "ok": 1.0} for node in ([1, 3], [2, 3])]
    with pytest.raises(ValueError, match="node 3 of prompt 0 has two parents"):
        credit.node_value(OK, NODE).score(rows)


def test_outcomes_that_are_no_chances_have_no_bernoulli_spread():
    rows = [{"prompt": "p", "node": [i], "ok": ok} for i, ok in enumerate((0.0, 1.0, 1.5))]
    assert listed(credit.node_relative(OK, NODE, eps=0.0).score(rows).framed) == [-1.0, 1.0, None]
    assert listed(credit.node_relative(OK, NODE, scale="none").score(rows).framed)[2] is not None
