"""Optimal assignment: rows matched with columns, each at most once, so that the sum of their weights is greatest."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import FloatArray, IntArray


def best_assignment(weights: FloatArray) -> IntArray:
    """The column of each row, -1 for a row left over; ``weights`` (rows, columns) of at least 0. Cubic time.

    Shortest augmenting paths over potentials (Kuhn 1955, in the form of Jonker and Volgenant 1987).

    >>> best_assignment(np.array([[0.9, 0.8], [0.8, 0.1]])).tolist()
    [1, 0]
    """
    rows, columns = weights.shape
    if rows > columns:
        back = best_assignment(weights.T)
        out = np.full(rows, -1)
        out[back[back >= 0]] = np.flatnonzero(back >= 0)
        return out
    cost = weights.max(initial=0.0) - weights
    u, v = np.zeros(rows), np.zeros(columns)
    owner = np.full(columns, -1)
    for row in range(rows):
        _augment(row, cost, u, v, owner)
    out = np.full(rows, -1)
    out[owner[owner >= 0]] = np.flatnonzero(owner >= 0)
    return out


def _augment(row: int, cost: FloatArray, u: FloatArray, v: FloatArray, owner: IntArray) -> None:
    """Give ``row`` a column, moving other rows along the cheapest alternating path."""
    columns = cost.shape[1]
    nearest, came_from = np.full(columns, np.inf), np.full(columns, -1)
    done = np.zeros(columns, dtype=np.bool_)
    at, here, path = row, -1, 0.0
    while True:
        reach = path + cost[at] - u[at] - v
        closer = ~done & (reach < nearest)
        nearest[closer], came_from[closer] = reach[closer], here
        here = int(np.argmin(np.where(done, np.inf, nearest)))
        path = float(nearest[here])
        done[here] = True
        if owner[here] < 0:
            break
        at = int(owner[here])
    u[row] += path
    for column in np.flatnonzero(done):
        if column != here:
            u[owner[column]] += path - nearest[column]
            v[column] -= path - nearest[column]
    while here >= 0:
        before = int(came_from[here])
        owner[here] = row if before < 0 else owner[before]
        here = before
