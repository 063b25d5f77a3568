"""A frame: rollouts grouped by prompt, with their axes and columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from guerdon.core.axis import PARENTS, Axis, IntArray
from guerdon.core.errors import AxisError, DataError, NonFiniteError
from guerdon.core.fingerprint import digest
from guerdon.core.rollout import FIELDS, Rollout
from guerdon.core.scores import Scores

_NUMBERS = frozenset({float, int, bool})


class Frame:
    """Rollouts in group order: all rollouts of one prompt stand together.

    ``order`` (shape ``(n,)``, or ``None`` if nothing moved) holds for each input position the place in the frame, so
    that results go back in the order the rollouts came in.
    """

    def __init__(self, rollouts: Sequence[Rollout], sizes: IntArray, order: IntArray | None = None) -> None:
        self.rollouts = rollouts
        self.order = order
        self.prompt = Axis("prompt", len(sizes))
        self.rollout = Axis.under(self.prompt, sizes, "rollout")
        self._axes: dict[str, Axis] = {"prompt": self.prompt, "rollout": self.rollout}

    @classmethod
    def of(cls, rollouts: Frame | Iterable[Rollout | Mapping[str, Any]]) -> Frame:
        """A frame from rollouts or plain mappings, grouped by ``group``, or by the prompt where that is not given.

        A rollout with neither is a group of its own.
        """
        if isinstance(rollouts, Frame):
            return rollouts
        if isinstance(rollouts, (str, bytes, Mapping)):
            raise DataError("rollouts", 0, f"expected a list of rollouts, not one {type(rollouts).__name__}")
        rows = [r if type(r) is Rollout else Rollout.of(r, i) for i, r in enumerate(rollouts)]
        keys = _group_keys(rows)
        first = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        place = np.fromiter(map(first.__getitem__, keys), np.int64, len(rows))
        sizes = np.bincount(place, minlength=len(first))
        if len(rows) < 2 or not (np.diff(place) < 0).any():
            return cls(rows, sizes)
        moved = np.argsort(place, kind="stable")
        order = np.empty(len(rows), dtype=np.int64)
        order[moved] = np.arange(len(rows))
        return cls([rows[i] for i in moved], sizes, order)

    def __len__(self) -> int:
        return self.rollout.size

    def axis(self, name: str) -> Axis:
        """The axis ``name``; steps and tokens come from the rollouts, others exist once a column gave their sizes."""
        if name not in self._axes:
            if name == "step":
                sizes = [len(r.steps) if r.steps is not None else 0 for r in self.rollouts]
                self._axes[name] = Axis.under(self.rollout, sizes, "step")
            elif name == "token":
                self._axes[name] = self._token_axis()
            else:
                raise AxisError(
                    f"axis '{name}' is not given by the rollouts: a column or a signal must bring its sizes"
                )
        return self._axes[name]

    def knows(self, name: str) -> bool:
        """Whether the sizes of axis ``name`` follow from the rollouts alone."""
        return name in self._axes or name in ("step", "token")

    def _token_axis(self) -> Axis:
        tokens = np.array(
            [len(r.tokens if r.tokens is not None else r.logprobs or ()) for r in self.rollouts], np.int64
        )
        if self.rollouts and not any(r.step_tokens is not None for r in self.rollouts):  # no rollouts: either will do
            return Axis.under(self.rollout, tokens, "token")
        per_step: list[int] = []
        for rollout, total in zip(self.rollouts, tokens, strict=True):
            sizes = [int(n) for n in rollout.step_tokens or ()]
            if len(sizes) != len(rollout.steps or ()) or sum(sizes) != total:
                raise AxisError(
                    f"rollout {rollout.id!r}: step_tokens {sizes} must give a number of tokens for each of its "
                    f"{len(rollout.steps or ())} steps and add up to {total}"
                )
            per_step.extend(sizes)
        return Axis.under(self.axis("step"), per_step, "token")

    def column(self, name: str, axis: str = "rollout") -> Scores:
        """A score that the data already holds: the column ``name``, one number (or a list of them) per rollout.

        Missing and ``None`` are unknown (*column 'x' is missing*); NaN, infinities and text are errors.
        """
        cells = [r.get(name) for r in self.rollouts] if name in FIELDS else [r.extra.get(name) for r in self.rollouts]
        if axis == "rollout":
            return _numbers(self.rollout, cells, name)
        if axis == "prompt":
            starts = self.rollout.offsets
            return _numbers(self.prompt, [cells[s] for s in starts[:-1]] if starts is not None else [], name)
        lists = [self._unlisted(axis, i) if c is None else c for i, c in enumerate(cells)]
        for i, cell in enumerate(lists):
            if isinstance(cell, str) or not hasattr(cell, "__len__"):
                raise DataError("rollouts", i + 1, f"column '{name}' on axis '{axis}' needs a list, not {cell!r:.60}")
        sizes = np.array([len(c) for c in lists], dtype=np.int64)
        return _numbers(self._sized(axis, sizes, name), [x for cell in lists for x in cell], name)

    def fit_axis(self, name: str, columns: Sequence[str]) -> None:
        """Give the axis ``name``, if the rollouts don't, the size of the first list that each has in ``columns``.

        A rollout with none of the lists has one item, which is unknown: what is missing is not empty.
        """
        given = name in self._axes if name != "step" else self.axis("step").size > 0
        if given or PARENTS.get(name, "rollout") != "rollout":
            return
        sizes = np.zeros(len(self), dtype=np.int64)
        for i, rollout in enumerate(self.rollouts):
            lists = (rollout.get(column) for column in columns)
            sizes[i] = next((len(x) for x in lists if hasattr(x, "__len__") and not isinstance(x, str)), 1)
        self._axes[name] = Axis.under(self.rollout, sizes, name)

    def _unlisted(self, axis: str, item: int) -> list[None]:
        """What stands for a missing list: an unknown for each item that the rollout has on that axis, if known."""
        if not self.knows(axis) or (axis == "step" and not self.axis("step").size):
            return [None]
        offsets = self.axis(axis).offsets_over("rollout")
        return [None] * int(offsets[item + 1] - offsets[item])

    def _sized(self, name: str, sizes: IntArray, column: str) -> Axis:
        """The axis ``name``, which must have (or is given) ``sizes`` items per rollout."""
        if not self.knows(name) and PARENTS.get(name, "rollout") == "rollout":
            self._axes[name] = Axis.under(self.rollout, sizes, name)
        elif name == "step" and not self.axis("step").size:
            self._axes[name] = Axis.under(self.rollout, sizes, "step")
        axis = self.axis(name)
        have = np.diff(axis.offsets_over("rollout"))
        if not np.array_equal(have, sizes):
            at = int(np.flatnonzero(have != sizes)[0])
            raise AxisError(
                f"column '{column}': {sizes[at]} values for the {have[at]} {name}s of rollout {self.rollouts[at].id!r}"
            )
        return axis

    def in_input_order(self, scores: Scores) -> Scores:
        """Scores with their rollouts in the order they came in; group scores, and frames where nothing moved, as is.

        Groups may then be scattered, so the returned axis knows rollouts but no prompts.
        """
        if self.order is None or not scores.axis.has("rollout"):
            return scores
        rollout = Axis("rollout", len(self))
        if scores.axis.name == "rollout":
            return scores.take(self.order, rollout)
        offsets = scores.axis.offsets_over("rollout")
        axis = Axis.under(rollout, np.diff(offsets)[self.order], scores.axis.name)
        shift = offsets[:-1][self.order] - (axis.offsets[:-1] if axis.offsets is not None else 0)
        return scores.take(np.arange(axis.size) + np.repeat(shift, axis.lengths), axis)


def _group_keys(rows: Sequence[Rollout]) -> Sequence[object]:
    """What two rollouts of one group share: the group, else the prompt; a rollout with neither shares nothing."""
    groups = [r.group for r in rows]
    if None not in groups:
        return groups
    prompts = [r.prompt for r in rows]
    if set(map(type, prompts)) == {str} and set(groups) == {None}:
        return prompts
    return [
        ("group", g) if g is not None else ("prompt", p if isinstance(p, str) else digest(p)) if p is not None else i
        for i, (g, p) in enumerate(zip(groups, prompts, strict=True))
    ]


def _numbers(axis: Axis, cells: Sequence[Any], name: str) -> Scores:
    if set(map(type, cells)) <= _NUMBERS:
        values = np.array(cells, dtype=np.float64)
        if np.isfinite(values).all():
            return Scores(axis, values, np.ones(axis.size, dtype=np.bool_))
    known = np.array([c is not None for c in cells], dtype=np.bool_)
    values = np.array([0.0 if c is None else _number(c, name, i) for i, c in enumerate(cells)], dtype=np.float64)
    return Scores.of(axis, values, known, f"column '{name}' is missing")


def _number(cell: Any, name: str, item: int) -> float:
    if isinstance(cell, (bool, int, float, np.number, np.bool_)):
        value = float(cell)
        if math.isfinite(value):
            return value
        raise NonFiniteError(f"column '{name}', item {item}: {value} is not a score; use null for unknown")
    raise DataError("rollouts", item + 1, f"column '{name}' holds {cell!r:.60}, which is not a number")
