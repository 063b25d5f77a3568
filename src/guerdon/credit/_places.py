"""Comparison across a group at one place: the same position, turn or tree node in every rollout of the prompt."""

from __future__ import annotations

from typing import Literal

import numpy as np

from guerdon.core.axis import Axis, BoolArray, FloatArray
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.credit._kernels import positions, suffix_discounted, unit_interval
from guerdon.credit._rollouts import settled, whole
from guerdon.credit._spread import both_known
from guerdon.shape._finite import measured
from guerdon.shape._groups import Groups
from guerdon.shape._normalise import member_wise

Scale = Literal["std", "none"]


def places(x: Scores, place: Scores | None = None) -> Groups:
    """The groups of ``x`` (steps, turns...): one for each prompt and ``place``, by default the position in the rollout.

    ``place`` holds a label for every item (a turn's kind, a node's number); an item without one takes no part.
    """
    return Groups.of(x, within=place) if place is not None else Groups.of(x, across="label")


@transform("credit.place_relative", version=1, groups=True)
def place_relative(
    x: Scores, place: Scores | None = None, *, scale: Scale = "std", ddof: int = 0, eps: float = 0.0, least: int = 2
) -> Scores:
    """Group-relative advantage at one place: ``A = (x - mean) / (std + eps)`` over the group's items at the same place.

    ``x`` lives on steps (or any axis below the rollout); ``place`` says which items are compared: equal labels, else
    the axis' own labels, else the position in the rollout. ``ddof`` 0 is the population deviation. Exactly 0 without
    spread. Items at a place with fewer than ``least`` known members are unknown; with ``least=1`` a lone item gets 0.
    Unknown items take no part and stay unknown.

    Of returns, with ending as an item of its own, the expected gradient without division is the exact one times
    ``(m - 1) / m`` at a position reached by ``m`` rollouts. Division trades bias.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "s": [1.0, 4.0]}, {"prompt": "p", "s": [3.0, 4.0]}]
    >>> gd.credit.place_relative(gd.column("s", axis="step")).score(rows).scores.values.tolist()
    [-1.0, 0.0, 1.0, 0.0]
    """
    if scale not in ("std", "none"):
        raise ValueError(f'scale={scale!r}: choose "std" or "none"')
    groups = places(x, place)
    if scale == "std":
        off = groups.standardised(ddof, eps)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            off = np.where(groups.at(groups.flat), 0.0, x.values - groups.at(groups.mean))
    return member_wise(Scores.of(x.axis, x.values, groups.known, _parts(x, place), x.evidence), groups, off, least)


def _parts(x: Scores, place: Scores | None) -> Scores | tuple[Scores, ...]:
    return x if place is None else (x, place)


@transform("credit.place_leave_one_out", version=1, groups=True, range=lambda x, place=None: x - x)
def place_leave_one_out(x: Scores, place: Scores | None = None) -> Scores:
    """Score minus the mean of the *other* items at the same place: a baseline that leaves out the own return.

    Shapes, ``place`` and unknowns as in `place_relative`; a lone item has no baseline and is unknown. Of returns, with
    ending as an item of its own, the expected gradient is exact at a place that another rollout reaches; lone items
    add nothing, so that places which few rollouts reach are learnt more slowly.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "s": [1.0]}, {"prompt": "p", "s": [3.0]}, {"prompt": "p", "s": [5.0]}]
    >>> gd.credit.place_leave_one_out(gd.column("s", axis="step")).score(rows).scores.values.tolist()
    [-3.0, 0.0, 3.0]
    """
    groups = places(x, place)
    kept = Scores.of(x.axis, x.values, groups.known, _parts(x, place), x.evidence)
    return member_wise(kept, groups, groups.above_others)


@transform("credit.position_advantage", version=1, groups=True, axis=lambda reward, ended=None, **_: reward)
def position_advantage(
    reward: Scores, ended: Scores | None = None, *, gamma: float = 1.0, limit: int | None = None
) -> Scores:
    """Reward-to-go minus a baseline of its position: ``A_{g,t} = G_{g,t} - b_t``, no division.

    ``b_t`` is the mean of ``G_t`` over the rollouts of the prompt that reach position ``t``. A rollout that ended
    itself (``ended`` = 1, the default) also reaches the position after its last item, with return 0, while that is
    below ``limit`` (the longest path allowed; default: none); its own advantage there is `end_advantage`. A rollout
    without items, with an unknown one or with ``ended`` unknown takes no part. A position that one rollout alone
    reaches gets 0.

    The baseline holds the rollout's own return, so that the expected gradient is ``(m - 1) / m`` times the exact one at
    a position reached by ``m`` rollouts, if ending gets its advantage too (`end_advantage`; without it there is bias).
    It mixes rollouts that reach ``t`` through different prefixes, which costs variance, not bias.
    Source: ProRL, *stepwise reward centering and position-specific advantage* (catalogue).

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "s": s} for s in ([1.0, 2.0], [0.0, 1.0, 3.0], [2.0])]
    >>> gd.credit.position_advantage(gd.column("s", axis="step"), limit=3).score(rows).scores.values.tolist()
    [0.0, 0.0, 1.0, 2.0, 1.5, -1.0]
    """
    path = _Paths(reward, ended, gamma, limit)
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.where(path.known, path.returns - path.baseline[path.place], 0.0)
    return settled(reward.axis, off, *path.verdict)


@transform("credit.end_advantage", version=1, groups=True, axis=lambda *_, **__: "rollout")
def end_advantage(
    reward: Scores, ended: Scores | None = None, *, gamma: float = 1.0, limit: int | None = None
) -> Scores:
    """The advantage of ending: ``0 - b_t`` at the position after the last item; see `position_advantage`.

    One per rollout. A rollout that did not end itself, or stands at ``limit``, has no end action and gets 0; one that
    takes no part in `position_advantage` is unknown.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "s": s} for s in ([1.0, 2.0], [0.0, 1.0, 3.0], [2.0])]
    >>> gd.credit.end_advantage(gd.column("s", axis="step"), limit=3).score(rows).scores.values.tolist()
    [-1.5, 0.0, -2.0]
    """
    path = _Paths(reward, ended, gamma, limit)
    values = np.where(path.ends, -path.baseline[path.end_place], 0.0)
    out = measured(path.rollout, values, path.takes_part, "an unknown step, or none, in the rollout")
    if out.reasons is not None and path.ended is not None and path.ended.reasons is not None:
        out.reasons[~path.ended.known] = path.ended.reasons[~path.ended.known]
    return out


class _Paths:
    """Returns of ragged paths and the mean return at each position of each prompt."""

    def __init__(self, reward: Scores, ended: Scores | None, gamma: float, limit: int | None) -> None:
        unit_interval(gamma=gamma)
        offsets = reward.axis.offsets_over("rollout")
        self.rollout: Axis = reward.axis.ancestor("rollout")
        self.ended = None if ended is None else ended.broadcast(self.rollout)
        self.verdict = whole(reward) if self.ended is None else both_known(reward, self.ended)
        self.known: BoolArray = self.verdict[0]
        lengths = np.diff(offsets)
        self.takes_part = np.zeros(len(lengths), dtype=np.bool_)
        self.takes_part[lengths > 0] = self.known[offsets[:-1][lengths > 0]]
        own_end = np.ones(len(lengths), dtype=np.bool_) if self.ended is None else self.ended.values == 1.0
        self.ends = self.takes_part & own_end & (lengths < (np.inf if limit is None else limit))
        with np.errstate(over="ignore", invalid="ignore"):
            self.returns: FloatArray = suffix_discounted(np.where(self.known, reward.values, 0.0), offsets, gamma)
        width = int(lengths.max(initial=0)) + 1
        prompt = self.rollout.owner_in("prompt")
        self.place = np.repeat(prompt, lengths) * width + positions(offsets)
        self.end_place = prompt * width + lengths
        size = self.rollout.ancestor("prompt").size * width
        total = np.bincount(self.place, weights=np.where(self.known, self.returns, 0.0), minlength=size)
        count = np.bincount(self.place[self.known], minlength=size)
        count = count + np.bincount(self.end_place[self.ends], minlength=size)
        self.baseline: FloatArray = total / np.maximum(count, 1)
