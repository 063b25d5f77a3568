"""Optimal assignment: rows matched with columns, each at most once, so that the sum of their weights is greatest."""

from __future__ import annotations

from collections.abc import Sequence


def best_assignment(weights: Sequence[Sequence[float]]) -> list[int]:
    """The column of each row, -1 for a row left over; ``weights`` (rows of equal length) of at least 0. Cubic time.

    Where the rows want different columns each gets its own best (a row of zeros none); else shortest augmenting paths
    over potentials (Kuhn 1955, in the form of Jonker and Volgenant 1987). Plain lists: the matrices are small.

    >>> best_assignment([[0.9, 0.8], [0.8, 0.1]])
    [1, 0]
    """
    rows, columns = len(weights), len(weights[0]) if weights else 0
    if not columns:
        return [-1] * rows
    wanted = [max(range(columns), key=row.__getitem__) if any(row) else -1 for row in weights]
    taken = [column for column in wanted if column >= 0]
    if len(set(taken)) == len(taken):
        return wanted
    wide = weights if rows <= columns else list(zip(*weights, strict=True))
    owner = _owners([[-w for w in row] for row in wide])
    if rows > columns:
        return owner
    out = [-1] * rows
    for column, row in enumerate(owner):
        if row >= 0:
            out[row] = column
    return out


def _owners(cost: Sequence[Sequence[float]]) -> list[int]:
    """The row that each column goes to at least cost, -1 for none; no more rows than columns."""
    rows, columns = len(cost), len(cost[0])
    u, v, owner = [0.0] * rows, [0.0] * columns, [-1] * columns
    for row in range(rows):
        nearest, came_from = [float("inf")] * columns, [-1] * columns
        left, path = set(range(columns)), []
        at, here, far = row, -1, 0.0
        while at >= 0:
            line, base = cost[at], far - u[at]
            for j in left:
                reach = base + line[j] - v[j]
                if reach < nearest[j]:
                    nearest[j], came_from[j] = reach, here
            here = min(left, key=nearest.__getitem__)
            left.remove(here)
            path.append(here)
            far, at = nearest[here], owner[here]
        u[row] += far
        for j in path[:-1]:
            u[owner[j]] += far - nearest[j]
            v[j] -= far - nearest[j]
        while here >= 0:
            before = came_from[here]
            owner[here] = row if before < 0 else owner[before]
            here = before
    return owner
