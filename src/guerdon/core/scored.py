"""What scoring returns: the scores, every node's scores, and an explanation of any rollout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from guerdon.core.axis import FloatArray
from guerdon.core.frame import Frame
from guerdon.core.reward import Reward
from guerdon.core.scores import Record, Scores


@dataclass(frozen=True)
class Explanation:
    """One node's part in the score of one rollout: value (or values, on a finer axis), reason, evidence, parts."""

    label: str
    axis: str
    value: float | list[float | None] | None
    reason: str | None
    evidence: Record | list[Record | None] | None
    parts: tuple[Explanation, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        mine = {k: getattr(self, k) for k in ("label", "axis", "value", "reason", "evidence")}
        return {**mine, "parts": [p.to_dict() for p in self.parts]}

    def lines(self, depth: int = 0) -> Iterator[str]:
        """The tree as indented lines of text."""
        shown = "unknown" if self.value is None else _shown(self.value)
        why = f"  ({self.reason})" if self.reason else ""
        yield f"{'  ' * depth}{self.label} = {shown}{why}"
        if self.evidence:
            pairs = self.evidence.items() if isinstance(self.evidence, Mapping) else enumerate(self.evidence)
            yield from (f"{'  ' * depth}    {k}: {v}" for k, v in pairs if v is not None)
        for part in self.parts:
            yield from part.lines(depth + 1)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _shown(value: float | list[float | None]) -> str:
    if isinstance(value, list):
        return "[" + ", ".join("unknown" if v is None else f"{v:.6g}" for v in value) + "]"
    return f"{value:.6g}"


@dataclass(frozen=True, eq=False)
class Scored:
    """A scored frame.

    ``scores`` stand in the order the rollouts came in, ``framed`` in the frame's group order (with its axes, for
    ``shape`` and ``credit``). ``nodes`` holds the scores of every named node, in input order. ``state`` is the state of
    rewards with memory after this call. ``alarms`` lists signals that failed too often.
    """

    reward: Reward
    frame: Frame
    framed: Scores
    state: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    alarms: tuple[str, ...] = ()
    by_node: Mapping[str, Scores] = field(default_factory=dict, repr=False)

    @property
    def scores(self) -> Scores:
        """The reward's scores in input order."""
        return self.frame.in_input_order(self.framed)

    @property
    def values(self) -> FloatArray:
        """The values in input order, NaN where unknown."""
        scores = self.scores
        return np.where(scores.known, scores.values, np.nan)

    @property
    def nodes(self) -> dict[str, Scores]:
        """The scores of every named node, in input order."""
        named = {n.name: self.by_node[n.fingerprint] for n in self.reward.walk() if n.name}
        return {name: self.frame.in_input_order(s) for name, s in named.items()}

    @property
    def unknown(self) -> Counter[str]:
        """How many scores are unknown for which reason."""
        return self.framed.unknown_reasons()

    def __len__(self) -> int:
        return len(self.framed)

    def explain(self, item: int) -> Explanation:
        """The whole expression for rollout ``item`` (its input position): every node's value, reason and evidence."""
        if not -len(self.frame) <= item < len(self.frame):
            raise IndexError(f"rollout {item} of {len(self.frame)}")
        place = item % len(self.frame) if self.frame.order is None else int(self.frame.order[item])
        return self._explain(self.reward, place)

    def _explain(self, node: Reward, place: int) -> Explanation:
        scores = self.by_node[node.fingerprint]
        parts = tuple(self._explain(child, place) for child in node.children)
        if not scores.axis.has("rollout"):
            index = int(self.frame.rollout.owner_in(scores.axis.name)[place])
            return Explanation(node.label, node.axis, *_one(scores, index), parts)
        if scores.axis.name == "rollout":
            return Explanation(node.label, node.axis, *_one(scores, place), parts)
        offsets = scores.axis.offsets_over("rollout")
        each = [_one(scores, i) for i in range(int(offsets[place]), int(offsets[place + 1]))]
        reasons = "; ".join(dict.fromkeys(r for _, r, _ in each if r)) or None
        proof = [e for _, _, e in each] if any(e for _, _, e in each) else None
        return Explanation(node.label, node.axis, [v for v, _, _ in each], reasons, proof, parts)

    def __repr__(self) -> str:
        missing = ", ".join(f"{n} unknown: {why}" for why, n in self.unknown.most_common(3))
        return f"Scored({self.framed!r}{'; ' + missing if missing else ''})"


def _one(scores: Scores, item: int) -> tuple[float | None, str | None, Record | None]:
    value = float(scores.values[item]) if scores.known[item] else None
    return value, scores.reason(item), scores.evidence[item]
