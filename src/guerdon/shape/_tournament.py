"""Scores of a group's members from their comparisons with each other.

A comparison matrix is a score on the axis "opponent": each rollout holds one number for every member of its group,
in the group's order, in [0, 1]: how likely (or how often) it beats that member. Its own entry is ignored. Where both
rollouts of a pair judged it, the two are averaged, ``(P_ij + 1 - P_ji) / 2``, so that the order in which a judge saw
them cancels; where one is unknown the other stands; where both are, the pair takes no part. A rollout without any
comparison is unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from guerdon.core.axis import Axis, BoolArray, FloatArray, IntArray
from guerdon.core.interval import UNIT, Interval
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.shape._finite import measured
from guerdon.shape._maps import stable_sigmoid

NO_COMPARISON = "it was compared with no other member of the group"


@dataclass(frozen=True)
class Comparisons:
    """Known ordered pairs: ``i`` beats ``j`` with probability ``win``; both orders of each pair are there."""

    axis: Axis
    i: IntArray
    j: IntArray
    win: FloatArray

    @classmethod
    def of(cls, x: Scores) -> Comparisons:
        """The comparisons that a score on the opponent axis holds; rows of another length than the group don't
        count."""
        rollout = x.axis.parent
        if rollout is None or rollout.parent is None or x.axis.offsets is None or rollout.offsets is None:
            raise ValueError(f"comparisons lie on an axis under the rollout, not on '{x.axis.name}'")
        i = x.axis.owner
        place = np.arange(x.axis.size) - x.axis.offsets[:-1][i]
        size = rollout.lengths[rollout.owner]
        fits = (x.axis.lengths == size)[i]
        j = np.where(fits, rollout.offsets[:-1][rollout.owner[i]] + place, i)
        back = np.where(fits & _row_fits(fits, x.axis, j), _entry(x.axis, rollout, i, j), 0)
        good = x.known & (x.values >= 0) & (x.values <= 1) & fits & (i != j)
        said = np.where(good, x.values, 0.5)
        mutual = good & _row_fits(fits, x.axis, j) & good[back]
        win = np.where(mutual, (said + 1.0 - said[back]) / 2.0, said)
        alone = good & ~mutual
        return cls(
            rollout,
            np.r_[i[good], j[alone]],
            np.r_[j[good], i[alone]],
            np.r_[win[good], 1.0 - win[alone]],
        )

    def per_member(self, weights: FloatArray) -> FloatArray:
        """Sum of ``weights`` over each member's comparisons, shape ``(rollouts,)``."""
        return np.bincount(self.i, weights=weights, minlength=self.axis.size).astype(np.float64, copy=False)

    @property
    def known(self) -> BoolArray:
        """Members that were compared with any other."""
        return np.asarray(np.bincount(self.i, minlength=self.axis.size) > 0)

    def scores(self, values: FloatArray) -> Scores:
        """``values`` of the members that were compared."""
        return Scores.of(self.axis, np.where(self.known, values, 0.0), self.known, NO_COMPARISON)

    def matrix(self, members: IntArray) -> tuple[FloatArray, FloatArray]:
        """Win probabilities and games played (0/1) between ``members`` (groups, n): two arrays (groups, n, n)."""
        group, place = np.full(self.axis.size, -1), np.zeros(self.axis.size, dtype=np.int64)
        group[members], place[members] = np.indices(members.shape)
        mine = group[self.i] >= 0
        at = (group[self.i[mine]], place[self.i[mine]], place[self.j[mine]])
        wins = np.zeros((*members.shape, members.shape[1]))
        played = np.zeros_like(wins)
        wins[at], played[at] = self.win[mine], 1.0
        return wins, played

    def mean(self, weights: FloatArray) -> FloatArray:
        """Mean of ``weights`` over each member's comparisons."""
        return self.per_member(weights) / np.maximum(np.bincount(self.i, minlength=self.axis.size), 1)


def entries(x: Scores) -> tuple[Axis, IntArray, IntArray, BoolArray]:
    """The rollout axis above ``x``; for each entry its rollout, the member it is about, and whether its row fits the
    group."""
    rollout = x.axis.parent
    if rollout is None or rollout.parent is None or x.axis.offsets is None or rollout.offsets is None:
        raise ValueError(f"comparisons lie on an axis under the rollout, not on '{x.axis.name}'")
    i = x.axis.owner
    place = np.arange(x.axis.size) - x.axis.offsets[:-1][i]
    fits = (x.axis.lengths == rollout.lengths[rollout.owner])[i]
    return rollout, i, np.where(fits, rollout.offsets[:-1][rollout.owner[i]] + place, i), fits


def _row_fits(fits: BoolArray, axis: Axis, j: IntArray) -> BoolArray:
    """Whether member ``j``'s own row has the group's length."""
    assert axis.offsets is not None
    row = np.zeros(len(axis.lengths), dtype=np.bool_)
    row[axis.owner] = fits
    return row[j]


def _entry(axis: Axis, rollout: Axis, i: IntArray, j: IntArray) -> IntArray:
    """Where member ``j`` keeps its comparison with ``i``."""
    assert axis.offsets is not None
    assert rollout.offsets is not None
    at = axis.offsets[:-1][j] + i - rollout.offsets[:-1][rollout.owner[i]]
    return np.asarray(np.minimum(at, max(axis.size - 1, 0)))


@transform("shape.win_rate", version=1, groups=True, axis=lambda x, **_: "rollout", range=lambda x: UNIT)
def win_rate(x: Scores) -> Scores:
    """Mean probability of beating another member of the group (Borda score), in [0, 1].

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "beats": row} for row in ([0.5, 1, 0.75], [0, 0.5, 1], [0.25, 0, 0.5])]
    >>> gd.shape.win_rate(gd.column("beats", axis="opponent")).score(rows).values.tolist()
    [0.875, 0.5, 0.125]
    """
    games = Comparisons.of(x)
    return games.scores(np.clip(games.mean(games.win), 0.0, 1.0))


@transform("shape.mean_over_others", version=1, groups=True, axis=lambda x: "rollout", range=lambda x: x)
def mean_over_others(x: Scores) -> Scores:
    """Mean of a rollout's own row over the other members of its group: of preference scores of any scale.

    ``x`` lies on the opponent axis; unlike `win_rate`, entries are taken as they are, and not averaged with those of
    the opponent's row. Its own entry and unknown ones are left out; without any other, unknown.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "s": s} for s in ([0.0, 2.0], [-2.0, 0.0])]
    >>> gd.shape.mean_over_others(gd.column("s", axis="opponent")).score(rows).values.tolist()
    [2.0, -2.0]
    """
    rollout, i, j, fits = entries(x)
    use = x.known & fits & (i != j)
    count = np.bincount(i[use], minlength=rollout.size)
    total = np.bincount(i[use], weights=x.values[use], minlength=rollout.size)
    return measured(rollout, total / np.maximum(count, 1), count > 0, NO_COMPARISON)


@transform("shape.copeland", version=1, groups=True, axis=lambda x: "rollout", range=lambda x: Interval(-1, 1))
def copeland(x: Scores) -> Scores:
    """Pairs won less pairs lost, over the pairs played: in [-1, 1]. A pair is won above 0.5; at 0.5 it is a draw.

    How clearly a pair was won does not count, so no single comparison can outweigh the others.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "beats": row} for row in ([0.5, 1, 0.75], [0, 0.5, 1], [0.25, 0, 0.5])]
    >>> gd.shape.copeland(gd.column("beats", axis="opponent")).score(rows).values.tolist()
    [1.0, 0.0, -1.0]
    """
    games = Comparisons.of(x)
    return games.scores(games.mean(np.sign(games.win - 0.5)))


@transform("shape.bradley_terry", version=1, groups=True, axis=lambda x, **_: "rollout")
def bradley_terry(x: Scores, *, prior: float = 0.1, steps: int = 100, tolerance: float = 1e-9) -> Scores:
    """Log-strengths under Bradley and Terry: the most likely ``b`` with ``P(i beats j) = sigmoid(b_i - b_j)``.

    Maximises ``sum_(i<j) P_ij log sigmoid(b_i - b_j) + P_ji log sigmoid(b_j - b_i) - prior / 2 sum_i b_i^2``. The
    ``prior`` (precision of a normal around 0, above 0) keeps strengths finite where a member wins all its games.
    They add up to 0 over a group. Newton steps, at most ``steps`` of them; a group that has not settled to within
    ``tolerance`` by then is unknown.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "beats": row} for row in ([0.5, 0.8], [0.2, 0.5])]
    >>> strength = gd.shape.bradley_terry(gd.column("beats", axis="opponent"), prior=1e-9).score(rows).values
    >>> strength.round(4).tolist()
    [0.6931, -0.6931]
    """
    if not 0 < prior < math.inf:
        raise ValueError(f"bradley_terry needs a prior above 0, not {prior}")
    games, offsets = Comparisons.of(x), x.axis.ancestor("rollout").offsets
    assert offsets is not None
    b, settled = np.zeros(games.axis.size), np.ones(games.axis.size, dtype=np.bool_)
    sizes = np.diff(offsets)
    for size in np.unique(sizes[sizes > 0]):
        members = offsets[:-1][sizes == size][:, None] + np.arange(size)
        wins, played = games.matrix(members)
        b[members], settled[members] = _strengths(wins, played, prior, steps, tolerance)
    out = games.scores(b)
    if settled.all():
        return out
    fixed = Scores.of(out.axis, out.values, out.known & settled, out)
    assert fixed.reasons is not None
    fixed.reasons[out.known & ~settled] = f"the strengths did not settle in {steps} steps"
    return fixed


def _strengths(
    wins: FloatArray, played: FloatArray, prior: float, steps: int, tolerance: float
) -> tuple[FloatArray, BoolArray]:
    """Log-strengths of groups of one size, shape ``(groups, n)``, from win and game matrices ``(groups, n, n)``."""
    b = np.zeros(wins.shape[:2])
    diagonal = np.arange(wins.shape[1])
    longest = np.full(len(b), np.inf)
    for _ in range(steps):
        chance = stable_sigmoid(b[:, :, None] - b[:, None, :])
        slope = (played * (wins - chance)).sum(axis=2) - prior * b
        curve = -played * chance * (1.0 - chance)
        curve[:, diagonal, diagonal] = prior - curve.sum(axis=2)
        step = np.linalg.solve(curve, slope[:, :, None])[:, :, 0]
        step = step - step.mean(axis=1, keepdims=True)  # the strengths add up to 0; keep rounding from moving them
        longest = np.abs(step).max(axis=1)
        b = b + step / np.maximum(longest, 1.0)[:, None]
        if (longest < tolerance).all():
            break
    return b - b.mean(axis=1, keepdims=True), np.repeat((longest < tolerance)[:, None], wins.shape[1], axis=1)


@transform("shape.elo", version=1, groups=True, axis=lambda x, **_: "rollout")
def elo(x: Scores, *, rounds: int = 100, rate: float = 32.0, scale: float = 400.0) -> Scores:
    """Elo ratings within the group, from 0: ``r_i += rate mean_j (P_ij - 1 / (1 + 10^((r_j - r_i) / scale)))`` each
    round.

    All games of a round count at the same time, so the order of the games, which plain Elo depends on, does not matter.
    With many rounds it tends to `bradley_terry` times ``scale / ln 10``. Sums to 0 over a complete tournament.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "beats": row} for row in ([0.5, 1.0], [0.0, 0.5])]
    >>> gd.shape.elo(gd.column("beats", axis="opponent"), rounds=1).score(rows).values.tolist()
    [16.0, -16.0]
    """
    if rounds < 1 or not rate > 0 or not scale > 0:
        raise ValueError(f"elo needs rounds >= 1, rate > 0 and scale > 0, not {rounds}, {rate}, {scale}")
    games = Comparisons.of(x)
    r = np.zeros(games.axis.size)
    for _ in range(rounds):
        expected = stable_sigmoid((r[games.i] - r[games.j]) * (math.log(10.0) / scale))
        r = r + rate * games.mean(games.win - expected)
    return games.scores(r)
