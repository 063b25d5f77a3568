"""Trees of rollouts: paths that share their first steps, given by a node's number for every step.

Every rollout is a path from the prompt to a leaf. ``node`` (one number per step) says which node a step is; equal
numbers in one prompt are the same node, so that shared prefixes are counted once. Groups are the children of one
parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from guerdon.core.axis import BoolArray, FloatArray, IntArray
from guerdon.core.interval import Interval
from guerdon.core.scores import ObjectArray, Scores
from guerdon.core.transform import transform
from guerdon.credit._kernels import last_items, positions
from guerdon.credit._rollouts import whole
from guerdon.shape._finite import measured
from guerdon.shape._groups import cells

NO_LEAF = "no leaf below it has a known outcome"


@dataclass(frozen=True)
class Tree:
    """The distinct nodes of all prompts' trees. Arrays have shape ``(nodes,)`` but ``of_item`` and ``of_leaf``."""

    of_item: IntArray
    """The node of each step; -1 in rollouts that have a step without a number, which take no part."""
    of_leaf: IntArray
    """The node at which each rollout ends; -1 for one without steps, or that takes no part."""
    parent: IntArray
    """Each node's parent; a node at the top has its prompt's root, ``len(depth) + prompt``."""
    depth: IntArray
    roots: int

    @classmethod
    def of(cls, node: Scores) -> Tree:
        """The trees that ``node`` describes; an error where a node has two parents."""
        offsets = node.axis.offsets_over("rollout")
        numbered = whole(node)[0]
        prompt, place = node.axis.owner_in("prompt"), positions(offsets)
        item = np.full(len(node), -1, dtype=np.int64)
        item[numbered], size, _ = cells(prompt[numbered], node.values[numbered])
        above = np.where(place == 0, size + prompt, np.append(0, item)[:-1])
        parent, depth = np.full(size, -1, dtype=np.int64), np.full(size, -1, dtype=np.int64)
        parent[item[numbered]], depth[item[numbered]] = above[numbered], place[numbered]
        torn = np.flatnonzero(numbered & (np.append(parent, 0)[item] != above))
        if len(torn):
            raise ValueError(f"node {node.values[torn[0]]:g} of prompt {prompt[torn[0]]} has two parents")
        leaf = np.full(len(offsets) - 1, -1, dtype=np.int64)
        leaf[np.diff(offsets) > 0] = item[last_items(offsets)]
        return cls(item, leaf, parent, depth, node.axis.ancestor("prompt").size)

    def on_items(self, node: Scores, values: FloatArray, known: BoolArray, reason: str) -> Scores:
        """Node values (shape ``(nodes,)`` or longer) for every step; unknown where the node is, or has no number."""
        numbered = self.of_item >= 0
        found = numbered & np.append(known[: len(self.depth)], False)[self.of_item]
        out = np.where(found, np.append(values[: len(self.depth)], 0.0)[self.of_item], 0.0)
        reasons: ObjectArray = np.full(len(node), reason, dtype=object)
        why = whole(node)[1]
        if why is not None:
            reasons[~numbered] = why[~numbered]
        return measured(node.axis, out, found, reasons)

    def means(self, outcome: Scores) -> tuple[FloatArray, BoolArray]:
        """Every node's value, the mean of its children's, from the leaves' known outcomes; and whether it has one."""
        size = len(self.depth)
        total, count = np.zeros(size + self.roots), np.zeros(size + self.roots)
        ends = outcome.known & (self.of_leaf >= 0)
        np.add.at(total, self.of_leaf[ends], outcome.values[ends])
        np.add.at(count, self.of_leaf[ends], 1.0)
        for depth in range(int(self.depth.max(initial=-1)), -1, -1):
            here = np.flatnonzero((self.depth == depth) & (count[:size] > 0))
            np.add.at(total, self.parent[here], total[here] / count[here])
            np.add.at(count, self.parent[here], 1.0)
        return total / np.maximum(count, 1.0), count > 0


@transform(
    "credit.node_value", version=1, groups=True, axis=lambda outcome, node: node, range=lambda outcome, node: outcome
)
def node_value(outcome: Scores, node: Scores) -> Scores:
    """The value of each step's tree node: ``r(v) = (1/|children|) sum_c r(c)``, from the leaves' outcomes up.

    ``outcome``: one per rollout (leaf); ``node``: a number per step. On the step axis; a shared node has the same
    value in every rollout. The mean is over children, not over leaves, so that unequal fan-out does no harm. Unknown
    outcomes take no part; a node without a known leaf is unknown, and so is a rollout with a step without a number.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "n": n, "ok": ok} for n, ok in (([1, 3], 1), ([1, 4], 0), ([2, 5], 1))]
    >>> gd.credit.node_value(gd.column("ok"), gd.column("n", axis="step")).score(rows).scores.values.tolist()
    [0.5, 1.0, 0.5, 0.0, 1.0, 1.0]
    """
    tree = Tree.of(node)
    with np.errstate(over="ignore", invalid="ignore"):
        values, known = tree.means(outcome)
    return tree.on_items(node, values, known, NO_LEAF)


@transform("credit.node_relative", version=1, groups=True, axis=lambda outcome, node, **_: node)
def node_relative(
    outcome: Scores,
    node: Scores,
    *,
    scale: Literal["bernoulli", "std", "none"] = "bernoulli",
    prune: float = 0.1,
    eps: float = 1e-6,
) -> Scores:
    """Advantage of a tree node among its siblings: ``A_c = (r(c) - mu) / s``, ``mu`` the mean over siblings.

    ``r`` as in `node_value`. ``s = sqrt(mu (1 - mu) + eps)`` (``"bernoulli"``: 0.49 against 0.51 stays small), the
    population deviation (``"std"``) or 1. Siblings that differ by less than ``prune``, or not at all, get exactly 0,
    before any division. One value per step, shared nodes the same in every rollout: where gradients are summed over
    rollouts, multiply by `node_share`. With ``"bernoulli"``, outcomes outside [0, 1] count as unknown.

    With ``scale="none"`` and ``prune=0`` the expected gradient is ``(b - 1) / b`` times the exact one for ``b``
    children; division and pruning trade bias.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "n": n, "ok": ok} for n, ok in (([1, 3], 1), ([1, 4], 0), ([2, 5], 1), ([2, 6], 1))]
    >>> a = gd.credit.node_relative(gd.column("ok"), gd.column("n", axis="step"))
    >>> a.score(rows).scores.values.round(4).tolist()
    [-0.5773, 1.0, -0.5773, -1.0, 0.5773, 0.0, 0.5773, 0.0]
    """
    if scale not in ("bernoulli", "std", "none"):
        raise ValueError(f'scale={scale!r}: choose "bernoulli", "std" or "none"')
    if scale == "bernoulli":
        chances = outcome.known & (outcome.values >= 0.0) & (outcome.values <= 1.0)
        outcome = Scores.of(outcome.axis, np.where(chances, outcome.values, 0.0), chances, outcome)
    tree = Tree.of(node)
    with np.errstate(over="ignore", invalid="ignore"):
        values, known = tree.means(outcome)
        values, known = values[: len(tree.depth)], known[: len(tree.depth)]
        mean, spread, dull = _siblings(tree, values, known, scale, prune, eps)
        off = (values - mean[tree.parent]) / np.where(dull, 1.0, spread)[tree.parent]
    return tree.on_items(node, np.where(dull[tree.parent], 0.0, off), known, NO_LEAF)


def _siblings(
    tree: Tree, values: FloatArray, known: BoolArray, scale: str, prune: float, eps: float
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """For each parent (nodes, then roots): its children's mean, their normaliser, and whether they are too alike."""
    child, parent, size = values[known], tree.parent[known], len(tree.depth) + tree.roots
    count = np.maximum(np.bincount(parent, minlength=size), 1)
    mean = np.bincount(parent, weights=child, minlength=size) / count
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, parent, child)
    np.maximum.at(high, parent, child)
    dull = ~(high - low >= prune) | (high <= low)
    if scale == "bernoulli":
        return mean, np.sqrt(np.maximum(mean * (1.0 - mean), 0.0) + eps), dull
    square = np.bincount(parent, weights=(child - mean[parent]) ** 2, minlength=size) / count
    return mean, np.where(square > 0.0, np.sqrt(square), 1.0) if scale == "std" else np.ones(size), dull


@transform("credit.node_share", version=1, groups=True, range=lambda node: Interval(0.0, 1.0))
def node_share(node: Scores) -> Scores:
    """One over the number of rollouts that pass a step's node, so that shared tokens count once.

    A rollout with a step without a number passes nowhere and is unknown.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "n": n} for n in ([1, 2], [1, 3])]
    >>> gd.credit.node_share(gd.column("n", axis="step")).score(rows).scores.values.tolist()
    [0.5, 1.0, 0.5, 1.0]
    """
    tree = Tree.of(node)
    passing = np.bincount(tree.of_item[tree.of_item >= 0], minlength=len(tree.depth))
    return tree.on_items(node, 1.0 / np.maximum(passing, 1), passing > 0, NO_LEAF)
