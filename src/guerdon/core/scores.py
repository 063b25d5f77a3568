"""Scores: one measurement per item of an axis, each a value or unknown with a reason, with evidence behind it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from guerdon.core.axis import Axis, BoolArray, FloatArray, IntArray, finest
from guerdon.core.errors import AxisError, NonFiniteError, UnknownScoreError
from guerdon.core.segments import segment_count, segment_sum

ObjectArray = npt.NDArray[np.object_]
Record = Mapping[str, Any]
UnknownPolicy = Literal["keep", "raise", "group-mean"] | float

POLICIES = ("keep", "raise", "group-mean")


def check_policy(policy: object, choices: Sequence[str] = POLICIES) -> None:
    """Refuse what is no policy for unknown scores: one of ``choices`` or a finite number. Raises ``ValueError``."""
    number = isinstance(policy, (int, float)) and not isinstance(policy, bool) and math.isfinite(policy)
    if policy not in choices if isinstance(policy, str) else not number:
        names = ", ".join(f'"{c}"' for c in choices)
        raise ValueError(f"unknown={policy!r}: choose {names} or a finite number")


NOT_ASKED = "not asked"
"""The reason of an item that the expression's value did not depend on."""


class Score:
    """What a signal says of one item: a value, or unknown with a reason, and the evidence behind it.

    >>> Score(1.0, extracted="18")
    Score(1.0, extracted='18')
    >>> Score.unknown("no reference answer").value is None
    True
    """

    __slots__ = ("evidence", "reason", "value")

    def __init__(self, value: float | None, *, reason: str = "", **evidence: Any) -> None:
        if value is None and not reason:
            raise ValueError("an unknown score needs a reason")
        self.value = value
        self.reason = reason if value is None else ""
        self.evidence: Record | None = evidence or None

    @classmethod
    def unknown(cls, reason: str, **evidence: Any) -> Score:
        """No verdict, and why."""
        return cls(None, reason=reason, **evidence)

    @staticmethod
    def failure(reason: str, **evidence: Any) -> Score:
        """No verdict since the instrument failed (a judge's reply that can't be read), with what there is to show.

        It falls under the signal's failure policy like an exception: asked again, counted, never cached.
        """
        return FailedScore(None, reason=reason, **evidence)

    def __repr__(self) -> str:
        shown = [repr(self.value) if self.value is not None else f"unknown: {self.reason}"]
        return f"Score({', '.join(shown + [f'{k}={v!r}' for k, v in (self.evidence or {}).items()])})"


class FailedScore(Score):
    """What `Score.failure` makes."""

    __slots__ = ()


class Evidence:
    """Records behind scores, one per item that has one; made when asked for."""

    __slots__ = ("_at",)

    def __init__(self, at: Callable[[int], Record | None] | Sequence[Record | None] | None = None) -> None:
        self._at = at

    def __getitem__(self, item: int) -> Record | None:
        if self._at is None:
            return None
        return self._at(item) if callable(self._at) else self._at[item]

    def __bool__(self) -> bool:
        return self._at is not None

    def take(self, indices: IntArray) -> Evidence:
        """The evidence of ``indices``, in that order; a negative index has none."""
        if self._at is None:
            return self
        return Evidence(lambda i: self[int(indices[i])] if indices[i] >= 0 else None)


NO_EVIDENCE = Evidence()


@dataclass(frozen=True, eq=False)
class Scores:
    """``values`` (float64, shape ``(axis.size,)``) where ``known``; a reason where not.

    Values of unknown items mean nothing; known values are finite. ``reasons`` is ``None`` while everything is known,
    else an object array with a text for each unknown item.
    """

    axis: Axis
    values: FloatArray
    known: BoolArray
    reasons: ObjectArray | None = None
    evidence: Evidence = field(default=NO_EVIDENCE)

    @classmethod
    def of(
        cls,
        axis: Axis,
        values: npt.ArrayLike,
        known: npt.ArrayLike | None = None,
        reasons: str | ObjectArray | Scores | Sequence[Scores] | None = None,
        evidence: Evidence | Sequence[Record | None] = NO_EVIDENCE,
    ) -> Scores:
        """Checked scores: shapes must fit the axis, known values must be finite, unknown ones get a reason.

        ``reasons`` is one text for all unknown items, an array of texts, or the scores whose reasons are carried on.
        """
        data = np.asarray(values, dtype=np.float64)
        if data.shape != (axis.size,):
            raise AxisError(f"{data.shape} values for the {axis.size} items of axis '{axis.name}'")
        mask = np.ones(axis.size, dtype=np.bool_) if known is None else np.asarray(known, dtype=np.bool_)
        if not np.isfinite(data).all() and not np.isfinite(data[mask]).all():
            bad = int(np.flatnonzero(mask & ~np.isfinite(data))[0])
            raise NonFiniteError(f"score {bad} on axis '{axis.name}' is {data[bad]}; a known score is a finite number")
        proof = evidence if isinstance(evidence, Evidence) else Evidence(evidence)
        return cls(axis, data, mask, None if mask.all() else _reasons(axis.size, mask, reasons), proof)

    @classmethod
    def constant(cls, axis: Axis, value: float) -> Scores:
        """The same known value for every item."""
        return cls.of(axis, np.full(axis.size, value))

    @classmethod
    def blank(cls, axis: Axis, reason: str = NOT_ASKED) -> Scores:
        """Unknown for every item, all for one reason."""
        return cls.of(axis, np.zeros(axis.size), np.zeros(axis.size, dtype=np.bool_), reason)

    def __len__(self) -> int:
        return self.axis.size

    def __repr__(self) -> str:
        head = ", ".join(f"{v:.6g}" if k else "unknown" for v, k in zip(self.values[:6], self.known[:6], strict=True))
        more = ", ..." if len(self) > 6 else ""
        return f"Scores({self.axis.name}[{len(self)}]: {head}{more})"

    def reason(self, item: int) -> str | None:
        """Why ``item`` is unknown, or ``None`` if it is known."""
        return None if self.known[item] or self.reasons is None else str(self.reasons[item])

    def unknown_reasons(self) -> Counter[str]:
        """How many items are unknown for which reason."""
        return Counter() if self.reasons is None else Counter(self.reasons[~self.known].tolist())

    def take(self, indices: IntArray, axis: Axis) -> Scores:
        """The items ``indices``, in that order, as scores on ``axis``."""
        reasons = None if self.reasons is None else self.reasons[indices]
        return Scores(axis, self.values[indices], self.known[indices], reasons, self.evidence.take(indices))

    def broadcast(self, axis: Axis) -> Scores:
        """These scores repeated down to every item of the finer ``axis``; themselves if they are there already."""
        if self.axis.matches(axis):
            return self
        if self.axis.name == axis.name:
            return self._pad(axis)
        offsets = axis.offsets_over(self.axis.name)
        lengths = np.diff(offsets)
        values = np.repeat(self.values, lengths)
        if self.reasons is None:
            known, reasons = np.ones(axis.size, dtype=np.bool_), None
        else:
            known, reasons = np.repeat(self.known, lengths), np.repeat(self.reasons, lengths)
        proof = self.evidence
        if proof:
            proof = Evidence(lambda item: self.evidence[int(np.searchsorted(offsets, item, side="right")) - 1])
        return Scores(axis, values, known, reasons, proof)

    def _pad(self, axis: Axis) -> Scores:
        """Fit scores that hold items of some parents only to ``axis``, which holds more: the others were not asked."""
        if self.axis.parent is None or axis.parent is None or len(self.axis.lengths) != len(axis.lengths):
            raise AxisError(f"scores on two different axes '{axis.name}'")
        mine, theirs = self.axis.lengths, axis.lengths
        if not ((mine == theirs) | (mine == 0)).all():
            clash = int(np.flatnonzero((mine != theirs) & (mine != 0))[0])
            raise AxisError(
                f"axis '{axis.name}': {mine[clash]} items against {theirs[clash]} under {axis.parent.name} {clash}"
            )
        where = np.full(axis.size, -1, dtype=np.int64)
        where[np.repeat(mine > 0, theirs)] = np.arange(self.axis.size)
        found = where >= 0
        known = np.zeros(axis.size, dtype=np.bool_)
        known[found] = self.known[where[found]]
        values = np.zeros(axis.size)
        values[found] = self.values[where[found]]
        reasons = np.full(axis.size, NOT_ASKED, dtype=object)
        if self.reasons is not None:
            reasons[found] = self.reasons[where[found]]
        return Scores.of(axis, values, known, reasons, self.evidence.take(where))

    def resolve(self, policy: UnknownPolicy) -> Scores:
        """These scores under the caller's policy for unknown items.

        ``"keep"`` leaves them unknown; a number stands in for them; ``"group-mean"`` takes the mean of the known
        members of the group (the prompt's rollouts; an all-unknown group stays unknown); ``"raise"`` is an error.
        """
        check_policy(policy)
        if policy == "keep" or self.known.all():
            return self
        if policy == "raise":
            holes = np.flatnonzero(~self.known)
            why = self.reason(int(holes[0]))
            raise UnknownScoreError(f"{len(holes)} of {len(self)} scores are unknown, the first ({holes[0]}): {why}")
        if policy == "group-mean":
            offsets = self.axis.offsets_over("prompt")
            count = segment_count(self.known, offsets)
            mean = segment_sum(np.where(self.known, self.values, 0.0), offsets) / np.maximum(count, 1)
            owner = self.axis.owner_in("prompt")
            fill, known = mean[owner], self.known | (count > 0)[owner]
        else:
            fill, known = np.full(len(self), float(policy)), np.ones(len(self), dtype=np.bool_)
        return Scores.of(self.axis, np.where(self.known, self.values, fill), known, self, self.evidence)


def _reasons(size: int, known: BoolArray, given: str | ObjectArray | Scores | Sequence[Scores] | None) -> ObjectArray:
    """One text per unknown item: the one given, or those of the parts joined."""
    if isinstance(given, np.ndarray):
        return given
    out = np.full(size, None, dtype=object)
    if isinstance(given, str) or given is None:
        out[~known] = given or "unknown"
        return out
    for part in [given] if isinstance(given, Scores) else given:
        if part.reasons is None or part.axis.size != size:
            continue
        mine = ~known & ~part.known
        fresh = mine & _blank(out)
        both = np.flatnonzero(mine & ~fresh & (out != part.reasons))
        out[fresh] = part.reasons[fresh]
        for item in both:
            texts = out[item].split("; ")
            if part.reasons[item] not in texts and part.reasons[item] != NOT_ASKED:
                out[item] = part.reasons[item] if texts == [NOT_ASKED] else "; ".join([*texts, part.reasons[item]])
    out[~known & _blank(out)] = "unknown"
    return out


def _blank(reasons: ObjectArray) -> BoolArray:
    """Where no reason is given yet."""
    return np.array([r is None for r in reasons], dtype=np.bool_)


def aligned(*parts: Scores) -> tuple[Scores, ...]:
    """All ``parts`` on the finest axis among them, coarser ones repeated down.

    Scores that only hold items of the rollouts they were asked about are padded with *not asked*.
    """
    name = finest([p.axis.name for p in parts])
    axes = [p.axis for p in parts if p.axis.name == name]
    axis = axes[0]
    for other in axes[1:]:
        axis = _union(axis, other)
    return tuple(p.broadcast(axis) for p in parts)


def _union(one: Axis, two: Axis) -> Axis:
    """The axis that holds the items of both, where each may lack those of some parents."""
    if one.matches(two) or one.parent is None or two.parent is None:
        return one
    if one.parent.size != two.parent.size:
        raise AxisError(f"axis '{one.name}' lies under {one.parent.size} and under {two.parent.size} parents")
    lengths = np.maximum(one.lengths, two.lengths)
    return one if np.array_equal(lengths, one.lengths) else Axis.under(one.parent, lengths, one.name)
