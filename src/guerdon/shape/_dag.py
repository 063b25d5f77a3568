"""Checklists whose questions depend on each other: no credit for the colour of an object that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from guerdon.core.axis import Axis, BoolArray, IntArray
from guerdon.core.interval import UNIT, Interval
from guerdon.core.scores import Scores
from guerdon.core.transform import transform


@transform(
    "shape.dag_gate",
    version=1,
    groups="rollout",
    axis=lambda answers, child=None, parent=None, **_: answers,
    range=lambda answers, child=None, parent=None, **_: answers * UNIT if answers.unit else Interval(),
)
def dag_gate(
    answers: Scores,
    child: Scores | None = None,
    parent: Scores | None = None,
    *,
    parents: Sequence[Sequence[int]] | None = None,
    need: Literal["all", "any"] = "all",
) -> Scores:
    """Answers of a checklist, each times those it depends on: ``v_i = a_i prod_{p in parents(i)} v_p``.

    ``answers`` in [0, 1] lie on the checklist's axis (criterion). The dependencies are either the same for every
    rollout, ``parents[i]`` listing what item ``i`` depends on, or data: two scores on an axis of their own,
    ``child`` and ``parent``, edge by edge the items' positions from 0. ``need="any"`` takes the greatest parent in
    place of the product.

    A known 0 decides whatever else is unknown; otherwise an unknown answer or parent makes the item unknown. A rollout
    whose edges form a cycle or point outside the list is unknown as a whole.

    >>> import guerdon as gd
    >>> gated = gd.shape.dag_gate(gd.column("yes", axis="criterion"), parents=[[], [0], [1], [2]])
    >>> gated.score([{"yes": [1, 1, 0, 1]}]).values.tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    if need not in ("all", "any"):
        raise ValueError(f'need={need!r}: choose "all" or "any"')
    axis = answers.axis
    if parents is not None:
        source, target, broken = _static_edges(axis, parents)
    elif child is not None and parent is not None:
        source, target, broken = _data_edges(axis, child, parent)
    else:
        raise ValueError("dag_gate needs parents=, or the two scores child and parent")
    values, known = np.where(answers.known, answers.values, 0.0), answers.known.copy()
    outside = known & ((values < 0) | (values > 1))
    known &= ~outside
    waiting, done = np.bincount(target, minlength=len(values)), np.zeros(len(values), dtype=np.bool_)
    ready = waiting == 0
    while ready.any():  # one layer of the graph at a time: its parents are all final
        values, known = _through(values, known, ready, source, target, need)
        done |= ready
        waiting = waiting - np.bincount(target[ready[source]], minlength=len(values))
        ready = (waiting == 0) & ~done
    broken |= np.bincount(axis.owner[~done], minlength=len(broken)) > 0
    bad = broken[axis.owner]
    out = Scores.of(axis, values, known & ~bad, answers)
    if out.reasons is not None:
        out.reasons[answers.known & ~known] = "it depends on an unknown answer"
        out.reasons[outside] = "an answer outside [0, 1]"
        out.reasons[bad] = "the checklist's dependencies have a cycle or point outside the list"
    return out


def _through(
    values: np.ndarray, known: BoolArray, ready: BoolArray, source: IntArray, target: IntArray, need: str
) -> tuple[np.ndarray, BoolArray]:
    """Values and known mask with the items of one layer multiplied by their parents; three-valued."""
    edge = ready[target]
    if not edge.any():
        return values, known
    s, t = source[edge], target[edge]
    size = len(values)
    # Bounds on each parent's value: unknown lies in [0, 1].
    low, high = np.where(known, values, 0.0), np.where(known, values, 1.0)
    by = [np.ones(size), np.ones(size)] if need == "all" else [np.zeros(size), np.zeros(size)]
    join = np.multiply if need == "all" else np.maximum
    for total, bound in zip(by, (low, high), strict=True):
        join.at(total, t, bound[s])
    mine = np.zeros(size, dtype=np.bool_)
    mine[t] = True
    bottom, top = np.where(mine, low * by[0], low), np.where(mine, high * by[1], high)
    sure = np.where(mine, bottom == top, known).astype(np.bool_)
    return np.where(sure, bottom, 0.0), sure


def _static_edges(axis: Axis, parents: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray, BoolArray]:
    """Edges (parent's item, child's item) of every rollout, and which rollouts have another number of items."""
    pairs = np.array([(p, c) for c, ps in enumerate(parents) for p in ps], dtype=np.int64).reshape(-1, 2)
    if pairs.size and not ((pairs >= 0) & (pairs < len(parents))).all():
        raise ValueError(f"parents must be positions from 0 to {len(parents) - 1}")
    assert axis.offsets is not None
    fits = axis.lengths == len(parents)
    start = axis.offsets[:-1][fits]
    source, target = ((start[:, None] + pairs[:, side]).reshape(-1) for side in (0, 1))
    return source, target, ~fits & (axis.lengths > 0)


def _data_edges(axis: Axis, child: Scores, parent: Scores) -> tuple[IntArray, IntArray, BoolArray]:
    """The same from two scores on an edge axis under the same rollouts."""
    if not child.axis.matches(parent.axis):
        raise ValueError("child and parent must lie on one axis, edge by edge")
    assert axis.offsets is not None
    owner = child.axis.owner
    limit = axis.lengths[owner]
    good = child.known & parent.known
    for end in (child.values, parent.values):
        good &= (end >= 0) & (end < limit) & (end == np.floor(end))
    broken = np.bincount(owner[~good], minlength=len(axis.lengths)) > 0
    use = good & ~broken[owner]
    start = axis.offsets[:-1][owner[use]]
    return (
        start + parent.values[use].astype(np.int64),
        start + child.values[use].astype(np.int64),
        np.asarray(broken),
    )
