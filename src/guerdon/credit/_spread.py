"""Between axes: from rollouts and steps down to tokens, and a reward paid at the last item."""

from __future__ import annotations

from typing import Literal

import numpy as np

from guerdon.core.axis import Axis, BoolArray, FloatArray, IntArray
from guerdon.core.interval import Interval
from guerdon.core.scores import ObjectArray, Scores
from guerdon.core.transform import transform
from guerdon.credit._kernels import last_items
from guerdon.credit._rollouts import settled, whole

How = Literal["repeat", "last", "share"]


@transform("credit.spread", version=1, range=lambda x, like, how="repeat": _spread_range(x, how))
def spread(x: Scores, like: Scores, *, how: How = "repeat") -> Scores:
    """Carry a score of rollouts or steps down to the finer axis of ``like`` (whose values play no part).

    ``"repeat"``: every token gets its step's score. ``"last"``: the last token of each step gets it, the others 0.
    ``"share"``: each of a step's ``n`` tokens gets ``1/n`` of it, so that sums are kept. Shape ``(tokens,)``.
    The reward-to-go of ``"last"`` is exact credit, that of ``"share"`` biased: late tokens get less than they decide.

    Unknown scores stay unknown. With ``"last"`` and ``"share"``, a score other than 0 of a step that has no token would
    vanish: the tokens of its rollout are unknown then. Raises `AxisError` if ``like`` does not lie under ``x``.

    >>> import guerdon as gd
    >>> rows = [{"s": [1.0, 3.0], "steps": [(0, 1), (1, 3)], "completion": "abc", "tokens": [7, 8, 9],
    ...          "step_tokens": [1, 2], "logprobs": [-1.0, -1.0, -1.0]}]
    >>> step, token = gd.column("s", axis="step"), gd.column("logprobs", axis="token")
    >>> gd.credit.spread(step, token, how="share").score(rows).scores.values.tolist()
    [1.0, 1.5, 1.5]
    """
    if how not in ("repeat", "last", "share"):
        raise ValueError(f'how={how!r}: choose "repeat", "last" or "share"')
    if how == "repeat":
        return x.broadcast(like.axis)
    if not x.axis.has("rollout"):
        x = x.broadcast(like.axis.ancestor("rollout"))
    offsets = like.axis.offsets_over(x.axis.name)
    lengths = np.diff(offsets)
    carried = _carried(x, like.axis, lengths)
    if how == "share":
        share = Scores(
            x.axis, carried.values / np.maximum(lengths, 1), carried.known, carried.reasons, carried.evidence
        )
        return share.broadcast(like.axis)
    values = np.zeros(like.axis.size)
    filled = lengths > 0
    values[last_items(offsets)] = np.where(carried.known, carried.values, 0.0)[filled]
    return Scores(like.axis, values, *repeated_verdict(carried, like.axis))


def _spread_range(x: Interval, how: str) -> Interval:
    return x if how == "repeat" else x.hull(Interval(0.0, 0.0))


def _carried(x: Scores, axis: Axis, lengths: IntArray) -> Scores:
    """``x``, unknown for whole rollouts where a score other than 0 has no token to stand on."""
    lost = x.known & (lengths == 0) & (x.values != 0.0)
    if not lost.any() or not x.axis.has("rollout"):
        return x
    owner = x.axis.owner_in("rollout")
    hit = np.isin(owner, owner[lost])
    reasons: ObjectArray = np.full(len(x), None, dtype=object) if x.reasons is None else x.reasons.copy()
    reasons[hit & x.known] = f"a {x.axis.name} has no {axis.name} to carry its score"
    return Scores.of(x.axis, np.where(hit, 0.0, x.values), x.known & ~hit, reasons, x.evidence)


@transform(
    "credit.pay_last",
    version=1,
    groups="rollout",
    axis=lambda x, reward, **_: x,
    range=lambda x, reward, weight=1.0: x + _spread_range(reward * Interval(weight, weight), "last"),
)
def pay_last(x: Scores, reward: Scores, *, weight: float = 1.0) -> Scores:
    """``x`` with ``weight * reward`` (one per rollout) added at the last item of each rollout.

    ``reward`` may also live on steps, with ``x`` on tokens: each step is then paid at its last token. A rollout whose
    reward is unknown is unknown. Where a rollout has no item there is nothing to pay, and nothing to credit.

    >>> import guerdon as gd
    >>> rows = [{"s": [0.5, 0.0], "ok": 1}]
    >>> gd.credit.pay_last(gd.column("s", axis="step"), gd.column("ok"), weight=2.0).score(rows).scores.values.tolist()
    [0.5, 2.0]
    """
    paid = reward if reward.axis.has("rollout") else reward.broadcast(x.axis.ancestor("rollout"))
    with np.errstate(over="ignore", invalid="ignore"):
        values = x.values + weight * at_last(paid, x.axis)
    return settled(x.axis, values, *both_known(x, paid))


def at_last(reward: Scores, axis: Axis) -> FloatArray:
    """Coarser scores at the last item that each of them owns on ``axis``, 0 elsewhere and where unknown."""
    out = np.zeros(axis.size)
    offsets = axis.offsets_over(reward.axis.name)
    out[last_items(offsets)] = np.where(reward.known, reward.values, 0.0)[np.diff(offsets) > 0]
    return out


def repeated_verdict(x: Scores, axis: Axis) -> tuple[BoolArray, ObjectArray | None]:
    """Whether coarser scores are known, and why not, for every item of ``axis``: `Scores.broadcast` without values."""
    if x.reasons is None:
        return np.ones(axis.size, dtype=np.bool_), None
    lengths = np.diff(axis.offsets_over(x.axis.name))
    return np.repeat(x.known, lengths), np.repeat(x.reasons, lengths)


def both_known(x: Scores, coarser: Scores) -> tuple[BoolArray, ObjectArray | None]:
    """Where the whole rollout is known on ``x`` and in the ``coarser`` score, and why elsewhere not."""
    parts = [whole(x), whole(coarser)]
    if parts[0][1] is None and parts[1][1] is None:
        return parts[0][0], None
    below = np.diff(x.axis.offsets_over(coarser.axis.name))
    known, other = parts[0][0], np.repeat(parts[1][0], below)
    reasons: ObjectArray = np.full(len(x), None, dtype=object)
    if parts[1][1] is not None:
        reasons[~other] = np.repeat(parts[1][1], below)[~other]
    if parts[0][1] is not None:
        reasons[~known] = parts[0][1][~known]
    return known & other, reasons
