"""ReST-MCTS*: step values inferred from the answers at the leaves of a search tree."""

from __future__ import annotations

import math

import numpy as np

from guerdon.core.axis import FloatArray, IntArray
from guerdon.core.interval import UNIT
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.credit._kernels import positions
from guerdon.credit._tree import Tree
from guerdon.methods._registry import method

_NEVER = np.iinfo(np.int64).max // 2


@method(
    "rest-mcts-star",
    family="process",
    name="ReST-MCTS*: process-reward guided tree search",
    source="Zhang et al. 2024, arXiv:2406.03816",
    evidence="code-read",
)
@transform("methods.rest_mcts_value", version=1, groups=True, axis=lambda correct, node: node, range=lambda *_: UNIT)
def rest_mcts_value(correct: Scores, node: Scores) -> Scores:
    """Value targets of steps: ``v_k = max(v_{k-1} + (1 - v_{k-1}) / (m_k + 1) * (1 - 2 r_k), 0)``, ``v_0 = 0``.

    ``correct``: 0/1 per finished leaf (rollout); ``node``: the step's node number in its prompt's tree, shape
    ``(steps,)``, as the result. ``r_k`` is 0 where a right leaf lies under the step, else 1; ``m_k`` is the least
    number of steps from there to a right leaf. A wrong step takes ``m + 1`` of its nearest ancestor with a right leaf
    under it, the root included. Unfinished leaves are unknown, and a prompt without a right leaf has no sample:
    unknown.

    Traps: equal step texts are not merged, only equal numbers are; `uct` refuses an unvisited parent.
    """
    tree = Tree.of(node)
    wait = _steps_needed(tree, correct)
    own = np.where(tree.of_item >= 0, wait[tree.of_item], _NEVER)
    right = own < _NEVER
    value, still = np.zeros(len(node)), wait[len(tree.depth) + node.axis.owner_in("prompt")]
    place = positions(node.axis.offsets_over("rollout"))
    for depth in range(int(place.max(initial=-1)) + 1):
        at = np.flatnonzero(place == depth)
        before = value[at - 1] if depth else np.zeros(len(at))
        needed = np.where(right[at], own[at], still[at - 1] if depth else still[at])
        still[at] = needed
        value[at] = np.maximum(before + (1.0 - before) / needed * np.where(right[at], 1.0, -1.0), 0.0)
    heard = still < _NEVER
    finished = np.zeros(len(tree.depth) + tree.roots, dtype=np.bool_)
    ends = tree.of_leaf[correct.known & (tree.of_leaf >= 0)]
    while len(ends):
        finished[ends] = True
        ends = np.unique(tree.parent[ends[ends < len(tree.depth)]])
    known = heard & (tree.of_item >= 0) & finished[tree.of_item]
    return Scores.of(
        node.axis, np.where(known, value, 0.0), known, "no right leaf in the tree, or no finished one below"
    )


def _steps_needed(tree: Tree, correct: Scores) -> IntArray:
    """``m + 1`` of every node and root: 1 at a right leaf, else one more than the best child's."""
    wait = np.full(len(tree.depth) + tree.roots, _NEVER)
    wait[tree.of_leaf[correct.known & (correct.values == 1.0) & (tree.of_leaf >= 0)]] = 1
    for depth in range(int(tree.depth.max(initial=-1)), -1, -1):
        here = np.flatnonzero((tree.depth == depth) & (wait[: len(tree.depth)] < _NEVER))
        np.minimum.at(wait, tree.parent[here], wait[here] + 1)
    return wait


def uct(value: float, parent_visits: int, visits: int, *, c: float = 0.7) -> float:
    """``V + c sqrt(2 ln N_parent / N)``; an unvisited child has ``V + 1``. The parent must have been visited."""
    if parent_visits < 1:
        raise ValueError("the parent has no visit yet")
    return value + 1.0 if visits == 0 else value + c * math.sqrt(2.0 * math.log(parent_visits) / visits)


def backed_up(values: FloatArray, visits: FloatArray) -> float:
    """A parent's value: the visit-weighted mean of its children's, ``sum V_c N_c / sum N_c``; one must have a visit."""
    if not visits.sum() > 0:
        raise ValueError("no child has a visit yet")
    return float(values @ visits / visits.sum())


def simulated(value: float, best: float, *, alpha: float = 0.5) -> float:
    """A child's value mixed with the best of its greedy simulation: ``(1 - alpha) V + alpha best``."""
    return (1.0 - alpha) * value + alpha * best
