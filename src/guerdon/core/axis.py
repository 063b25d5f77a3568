"""Named ragged axes: prompt > rollout > step > token, and rollout > criterion | test | claim | ..."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from guerdon.core.errors import AxisError

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

PARENTS = {"rollout": "prompt", "step": "rollout", "token": "step"}
"""The usual parent of an axis; an axis that is not named here hangs under the rollout."""


def lineage(name: str) -> tuple[str, ...]:
    """The names of an axis and those above it, finest first.

    >>> lineage("step")
    ('step', 'rollout', 'prompt')
    """
    names = [name]
    while names[-1] != "prompt":
        names.append(PARENTS.get(names[-1], "rollout"))
    return tuple(names)


def finest(names: list[str]) -> str:
    """The one axis of ``names`` under which all the others lie; an error if there is none."""
    best = names[0]
    for name in names[1:]:
        if name in lineage(best):
            continue
        if best not in lineage(name):
            raise AxisError(f"scores on '{best}' and '{name}' can't be combined: reduce one of them first")
        best = name
    return best


@dataclass(frozen=True, eq=False)
class Axis:
    """A ragged axis: ``size`` items in order, of which parent ``p`` owns ``offsets[p]:offsets[p + 1]``.

    ``offsets`` has shape ``(parent.size + 1,)`` and starts at 0 and ends at ``size``. ``labels``, shape
    ``(size,)``, says which criterion, test or tree node an item is, where the same label recurs across a group.
    """

    name: str
    size: int
    parent: Axis | None = None
    offsets: IntArray | None = None
    labels: IntArray | None = None

    def __post_init__(self) -> None:
        if (self.parent is None) != (self.offsets is None):
            raise AxisError(f"axis '{self.name}': parent and offsets go together")
        if self.parent is not None and self.offsets is not None:
            ends = self.offsets
            if ends.shape != (self.parent.size + 1,) or ends[0] != 0 or ends[-1] != self.size:
                raise AxisError(
                    f"axis '{self.name}': offsets must be {self.parent.size + 1} numbers from 0 to {self.size}"
                )
            if np.any(np.diff(ends) < 0):
                raise AxisError(f"axis '{self.name}': offsets decrease")
        if self.labels is not None and self.labels.shape != (self.size,):
            raise AxisError(f"axis '{self.name}': {self.labels.shape} labels for {self.size} items")

    @classmethod
    def under(cls, parent: Axis, lengths: npt.ArrayLike, name: str, labels: IntArray | None = None) -> Axis:
        """The axis whose parents own ``lengths`` items each (shape ``(parent.size,)``).

        >>> Axis.under(Axis("prompt", 2), [3, 1], "rollout").offsets.tolist()
        [0, 3, 4]
        """
        offsets = np.zeros(parent.size + 1, dtype=np.int64)
        np.cumsum(np.asarray(lengths, dtype=np.int64), out=offsets[1:])
        return cls(name, int(offsets[-1]), parent, offsets, labels)

    @cached_property
    def lengths(self) -> IntArray:
        """How many items each parent owns, shape ``(parent.size,)``."""
        if self.offsets is None:
            raise AxisError(f"axis '{self.name}' has no parent")
        return np.diff(self.offsets)

    @cached_property
    def owner(self) -> IntArray:
        """The parent's index for every item, shape ``(size,)``."""
        return np.repeat(np.arange(len(self.lengths), dtype=np.int64), self.lengths)

    def ancestor(self, name: str) -> Axis:
        """This axis or the one above it that is called ``name``."""
        axis: Axis | None = self
        while axis is not None:
            if axis.name == name:
                return axis
            axis = axis.parent
        raise AxisError(f"axis '{self.name}' has no '{name}' above it")

    def has(self, name: str) -> bool:
        """Whether ``name`` is this axis or lies above it."""
        axis: Axis | None = self
        while axis is not None and axis.name != name:
            axis = axis.parent
        return axis is not None

    def offsets_over(self, name: str) -> IntArray:
        """Offsets of this axis' items by their ancestor ``name``, shape ``(ancestor.size + 1,)``."""
        axis: Axis = self
        offsets: IntArray | None = None
        while axis.name != name:
            if axis.parent is None or axis.offsets is None:
                raise AxisError(f"axis '{self.name}' has no '{name}' above it")
            offsets = axis.offsets if offsets is None else offsets[axis.offsets]
            axis = axis.parent
        return np.arange(self.size + 1, dtype=np.int64) if offsets is None else offsets

    def owner_in(self, name: str) -> IntArray:
        """The index of the ancestor ``name`` for every item, shape ``(size,)``."""
        if name == self.name:
            return np.arange(self.size, dtype=np.int64)
        if self.parent is not None and name == self.parent.name:
            return self.owner
        offsets = self.offsets_over(name)
        return np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))

    def matches(self, other: Axis) -> bool:
        """Whether both describe the same items: same names, sizes and offsets all the way up."""
        if self is other:
            return True
        if self.name != other.name or self.size != other.size:
            return False
        if self.parent is None or other.parent is None or self.offsets is None or other.offsets is None:
            return self.parent is other.parent
        return np.array_equal(self.offsets, other.offsets) and self.parent.matches(other.parent)
