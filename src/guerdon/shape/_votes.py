"""Agreement inside the group: how many members say the same, and who says the same by a judge of pairs."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import IntArray
from guerdon.core.interval import UNIT, Interval
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.shape._groups import Groups
from guerdon.shape._pairs import pairs
from guerdon.shape._tournament import entries


@transform("shape.vote_share", version=1, groups=True, range=lambda x, **_: UNIT)
def vote_share(x: Scores, *, others: bool = False) -> Scores:
    """Share of the group's known members that hold the same value (an answer's or a cluster's number), in [0, 1].

    ``n_same / n``; with ``others``, of the other members: ``(n_same - 1) / (n - 1)``, 0 for a member alone. Unknown
    members have no vote and stay unknown.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "answer_id": a} for a in (7, 7, 3)]
    >>> gd.shape.vote_share(gd.column("answer_id")).score(rows).values.round(6).tolist()
    [0.666667, 0.666667, 0.333333]
    """
    groups, same = Groups.of(x), Groups.of(x, within=x)
    n, votes = groups.at(groups.members), same.at(same.members)
    share = (votes - 1.0) / np.maximum(n - 1.0, 1.0) if others else votes / np.maximum(n, 1.0)
    return Scores.of(x.axis, np.where(x.known, share, 0.0), x.known, x)


@transform("shape.mutual_clusters", version=1, groups=True, axis=lambda x: "rollout", range=lambda x: Interval(0.0))
def mutual_clusters(x: Scores) -> Scores:
    """The group's members joined where each implies the other: a cluster's number is the place of its first member.

    ``x`` lies on the "opponent" axis: 1 where the rollout implies that member of its group, 0 where it does not, one
    entry per member, its own ignored. Links chain: A with B and B with C put all three together, also where A and C
    are not linked. A pair is apart if either side is 0; a pair with neither answer leaves both clusters unknown,
    unless they are one anyhow.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "implies": row} for row in ([1, 1, 0], [1, 1, 0], [1, 0, 1])]
    >>> gd.shape.mutual_clusters(gd.column("implies", axis="opponent")).score(rows).values.tolist()
    [0.0, 0.0, 2.0]
    """
    rollout, i, j, fits = entries(x)
    assert rollout.offsets is not None
    size = rollout.size

    def said(value: float) -> IntArray:
        mine = x.known & fits & (x.values == value)
        return np.asarray(i[mine] * size + j[mine])

    yes, no = said(1.0), said(0.0)
    linked = yes[np.isin(yes, yes % size * size + yes // size)]
    apart = np.concatenate([no, no % size * size + no // size])
    label = np.arange(size)
    while True:
        joined = label.copy()
        np.minimum.at(joined, linked // size, label[linked % size])
        joined = joined[joined]
        if (joined == label).all():
            break
        label = joined
    doubtful = np.zeros(size, dtype=np.bool_)
    for a, b in pairs(rollout.offsets):
        open_pair = (label[a] != label[b]) & ~np.isin(a * size + b, apart)
        doubtful[label[a[open_pair]]] = True
    place = label - rollout.offsets[:-1][rollout.owner]
    return Scores.of(rollout, place.astype(np.float64), ~doubtful[label], "a comparison in the group is unknown")
