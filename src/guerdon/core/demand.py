"""Demand masks: which items of an axis an expression's value depends on. ``None`` stands for all."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import BoolArray, lineage
from guerdon.core.frame import Frame
from guerdon.core.segments import segment_any

Mask = BoolArray | None


def home(frame: Frame, axis: str) -> str:
    """Where demand for scores on ``axis`` is kept: the axis itself, or the nearest above it whose sizes are known."""
    return next(name for name in lineage(axis) if frame.knows(name))


def moved(frame: Frame, mask: Mask, source: str, target: str) -> Mask:
    """The mask on ``source`` seen from ``target``: an item is wanted if any below it is, or if its owner is."""
    if mask is None or source == target:
        return mask
    start, end = frame.axis(source), frame.axis(target)
    if start.has(target):
        return segment_any(mask, start.offsets_over(target))
    if end.has(source):
        return np.asarray(mask[end.owner_in(source)])
    return moved(frame, moved(frame, mask, source, "rollout"), "rollout", target)


def widened(frame: Frame, mask: Mask, axis: str, owner: str) -> Mask:
    """The mask widened to every item of each ``owner`` (a rollout, or a group: its prompt) of which any is wanted."""
    return moved(frame, moved(frame, mask, axis, owner), owner, axis)


def covers(have: Mask, want: Mask) -> bool:
    """Whether everything wanted is there."""
    if have is None:
        return True
    return bool(have.all()) if want is None else bool((have | ~want).all())


def union(one: Mask, two: Mask) -> Mask:
    """What either wants."""
    return None if one is None or two is None else one | two
