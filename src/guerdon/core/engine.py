"""Evaluation: from an expression and rollouts to scores, asking each signal only what the value depends on.

The engine walks the expression with demand masks. A node used twice is computed once. Independent leaves are asked at
the same time. Inner nodes are pure functions on whole arrays, so when more of a node is demanded later, it is computed
again from its children, while leaves keep every reply and are asked only about what is new.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from guerdon.core.asking import Asker, Replies
from guerdon.core.axis import Axis, IntArray
from guerdon.core.demand import Mask, covers, home, moved, union, widened
from guerdon.core.errors import FailureRateWarning, SpecError
from guerdon.core.frame import Frame
from guerdon.core.interval import Interval
from guerdon.core.reward import Bounded, Column, Constant, Reward
from guerdon.core.rollout import Rollout
from guerdon.core.runtime import in_turn, together
from guerdon.core.scored import Scored
from guerdon.core.scores import (
    NO_EVIDENCE,
    NOT_ASKED,
    Evidence,
    ObjectArray,
    Record,
    Scores,
    UnknownPolicy,
    check_policy,
)
from guerdon.core.session import Session
from guerdon.core.signal import COST, Signal, items_of
from guerdon.core.transform import Apply

ALARM_AFTER = 20
"""The failure-rate alarm stays silent below this many asked items."""


def needs_loop(reward: Reward) -> bool:
    """Whether any signal of the expression waits for something: a model, a process, a sandbox."""
    known = reward.__dict__.get("_needs_loop")
    if known is None:
        nodes = list(reward.walk())
        check_names(nodes)
        known = any(isinstance(n, Signal) and (n.is_async or n.manner.needs != "cpu") for n in nodes)
        reward.__dict__["_needs_loop"] = known
    return bool(known)


def check_names(nodes: Iterable[Reward]) -> None:
    """Refuse two different nodes under one name: each name is one column of the result."""
    named: dict[str, str] = {}
    for node in nodes:
        if node.name and named.setdefault(node.name, node.fingerprint) != node.fingerprint:
            raise SpecError(f"two different nodes are called '{node.name}'; give each its own name")


async def evaluate(
    reward: Reward,
    rollouts: Frame | Iterable[Rollout | Mapping[str, Any]],
    *,
    session: Session | None = None,
    unknown: UnknownPolicy = "keep",
    in_loop: bool | None = None,
) -> Scored:
    """Score ``rollouts`` with ``reward``. See `Reward.score`."""
    check_policy(unknown)  # before anything is asked
    frame, waits = Frame.of(rollouts), needs_loop(reward)
    run = Run(reward, frame, session or Session(), waits if in_loop is None else in_loop)
    await run.everything_certain()
    scores = await run.scores(reward, None)
    if not scores.axis.has("rollout"):
        scores = scores.broadcast(frame.rollout)
    alarms = run.alarms()
    if run.new_state:
        run.session.state = {**run.session.state, **run.new_state}
    return Scored(reward, frame, scores.resolve(unknown), run.session.state, alarms, run.by_node())


class Run:
    """One evaluation of one expression on one frame."""

    def __init__(self, reward: Reward, frame: Frame, session: Session, in_loop: bool) -> None:
        self.reward, self.frame, self.session, self.in_loop = reward, frame, session, in_loop
        self.new_state: dict[str, Mapping[str, Any]] = {}
        self._done: dict[str, tuple[Mask, Scores]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._leaves: dict[str, Leaf] = {}

    async def everything_certain(self) -> None:
        """Evaluate all nodes that are demanded in full whatever the values, children first, leaves at the same time.

        What remains is asked on demand, so that the depth of an expression is not bounded by Python's stack.
        """
        self._fit_axes()
        order: dict[str, Reward] = {}
        stack: list[tuple[Reward, bool]] = [(self.reward, False)]
        while stack:
            node, visited = stack.pop()
            if node.fingerprint in order:
                continue
            if visited:
                order[node.fingerprint] = node
            else:
                stack.append((node, True))
                first = stages(node)[0] if node.children else ()
                stack.extend((node.children[i], False) for i in reversed(first))
        leaves = [n for n in order.values() if not n.children]
        await self._together([self.scores(n, None) for n in leaves])
        for node in order.values():
            await self.scores(node, None)

    def _fit_axes(self) -> None:
        """Take the sizes of finer axes from the expression's columns before any mask on such an axis is made."""
        columns: dict[str, list[str]] = {}
        for node in self.reward.walk():
            if isinstance(node, Column) and node.axis not in ("prompt", "rollout"):
                columns.setdefault(node.axis, []).append(node.source)
        for axis, names in columns.items():
            self.frame.fit_axis(axis, names)

    async def _together(self, work: Sequence[Coroutine[Any, Any, Scores]]) -> list[Scores]:
        return await (together(work) if self.in_loop and len(work) > 1 else in_turn(work))

    async def scores(self, node: Reward, mask: Mask) -> Scores:
        """The node's scores, known or with a reason at least where ``mask`` (on the node's home axis) wants them."""
        async with self._locks.setdefault(node.fingerprint, asyncio.Lock()):
            have = self._done.get(node.fingerprint)
            if have is not None:
                if covers(have[0], mask):
                    return have[1]
                mask = union(have[0], mask)
            scores = await self._compute(node, mask)
            self._done[node.fingerprint] = (mask, scores)
            return scores

    async def _compute(self, node: Reward, mask: Mask) -> Scores:
        match node:
            case Apply():
                return await self._apply(node, mask)
            case Signal():
                leaf = self._leaves.setdefault(node.fingerprint, Leaf(node, self))
                return await leaf.scores(mask)
            case Column():
                return bounded(self.frame.column(node.source, node.axis), node.range)
            case Constant():
                return Scores.constant(self.frame.prompt, node.value)
            case Bounded():
                return bounded(await self.scores(node.children[0], mask), node.bounds)
        raise TypeError(f"{type(node).__name__} is not a kind of node that the engine knows")

    async def _apply(self, node: Apply, mask: Mask) -> Scores:
        traits = node.transform.traits
        place = home(self.frame, node.axis)
        if traits.groups == "batch":
            mask = None
        elif traits.groups:
            mask = widened(self.frame, mask, place, "rollout" if traits.groups == "rollout" else "prompt")
        got: list[Scores | None] = [None] * len(node.children)
        for stage in stages(node):
            wanted = [self._wanted(node, i, got, mask, place) for i in stage]
            found = await self._together(
                [self._operand(node.children[i], w, place) for i, w in zip(stage, wanted, strict=True)]
            )
            for i, scores in zip(stage, found, strict=True):
                got[i] = scores
        operands = [s for s in got if s is not None]
        if traits.initial is None:
            result: Scores = node.compute(operands)
            return result
        state = self.session.state.get(node.fingerprint)
        result, self.new_state[node.fingerprint] = node.compute(
            operands, state=node.initial_state() if state is None else state
        )
        return result

    def _wanted(self, node: Apply, position: int, got: Sequence[Scores | None], mask: Mask, place: str) -> Mask:
        """Which items (on ``place``) the value depends on for one operand, given the operands that are known."""
        lazy = node.transform.traits.lazy
        if lazy is None:
            return mask
        axis = self.frame.axis(place)
        earlier = [s.broadcast(axis) if s is not None and axis.has(s.axis.name) else None for s in got]
        more = lazy.wanted(position, earlier)
        return mask if more is None else (more if mask is None else mask & more)

    async def _operand(self, child: Reward, mask: Mask, place: str) -> Scores:
        target = home(self.frame, child.axis)
        mask = moved(self.frame, mask, place, target)
        if mask is not None and not mask.any() and child.fingerprint not in self._done:
            if self.frame.knows(child.axis):
                return Scores.blank(self.frame.axis(child.axis))
            return Scores.blank(Axis.under(self.frame.axis(target), np.zeros(len(mask)), child.axis))
        return await self.scores(child, mask)

    def by_node(self) -> dict[str, Scores]:
        """Every node's scores, by fingerprint; what was not demanded is unknown, *not asked*."""
        out: dict[str, Scores] = {}
        for node in self.reward.walk():
            mask, scores = self._done.get(node.fingerprint, (np.zeros(0, dtype=np.bool_), None))
            if scores is None:
                at = self.frame.axis(node.axis) if self.frame.knows(node.axis) else self.frame.rollout
                out[node.fingerprint] = Scores.blank(at)
            else:
                out[node.fingerprint] = self._asked_only(scores, mask)
        return out

    def _asked_only(self, scores: Scores, mask: Mask) -> Scores:
        if mask is None:
            return scores
        place = home(self.frame, scores.axis.name)
        seen = mask if place == scores.axis.name else mask[scores.axis.owner_in(place)]
        if seen.all():
            return scores
        reasons: ObjectArray = (
            np.full(len(scores), None, dtype=object) if scores.reasons is None else scores.reasons.copy()
        )
        reasons[~seen] = NOT_ASKED
        return Scores.of(scores.axis, np.where(seen, scores.values, 0.0), scores.known & seen, reasons, scores.evidence)

    def alarms(self) -> tuple[str, ...]:
        """A line for each signal that failed on a larger share of what it was asked than its policy allows."""
        lines = []
        for leaf in self._leaves.values():
            asked, failed, limit = leaf.asker.asked, leaf.asker.failures, leaf.node.manner.failure.alarm
            if asked >= ALARM_AFTER and failed > limit * asked:
                lines.append(f"{leaf.node.label} failed on {failed} of {asked} items (alarm at {limit:.0%})")
                warnings.warn(lines[-1], FailureRateWarning, stacklevel=2)
        return tuple(lines)


def stages(node: Reward) -> Sequence[Sequence[int]]:
    """In which order a node's children are asked: positions of one stage at the same time, cheap ones first."""
    count = len(node.children)
    lazy = node.transform.traits.lazy if isinstance(node, Apply) else None
    if lazy is None:
        return [range(count)]
    if not lazy.reorder:
        return lazy.stages(count)
    order = sorted(range(count), key=lambda i: cost(node.children[i]))
    return [[order[i] for i in stage] for stage in lazy.stages(count)]


def cost(reward: Reward) -> int:
    """How dear the dearest signal of an expression is."""
    known = reward.__dict__.get("_cost")
    if known is None:
        known = max((COST[n.manner.needs] for n in reward.walk() if isinstance(n, Signal)), default=0)
        reward.__dict__["_cost"] = known
    return int(known)


def bounded(scores: Scores, bounds: Interval) -> Scores:
    """The scores, unknown where a value lies outside ``bounds``."""
    outside = scores.known & ((scores.values < bounds.low) | (scores.values > bounds.high))
    if not outside.any():
        return scores
    out = Scores.of(scores.axis, scores.values, scores.known & ~outside, scores, scores.evidence)
    assert out.reasons is not None
    for item in np.flatnonzero(outside):
        out.reasons[item] = f"{scores.values[item]:g} lies outside the declared range {bounds}"
    return out


class Leaf:
    """One signal's replies within a run: units (what it is called with) already asked, and what they gave."""

    def __init__(self, node: Signal, run: Run) -> None:
        self.node, self.frame = node, run.frame
        self.asker = Asker(node, run.session, run.in_loop)
        self.units = items_of(run.frame, node.per)
        self._static = run.frame.knows(node.axis)
        self._asked = np.zeros(len(self.units), dtype=np.bool_)
        self._replies: list[Replies | None] = []
        self._full: Scores | None = None

    async def scores(self, mask: Mask) -> Scores:
        """Scores on the signal's axis; units that ``mask`` (on the axis' home) touches are asked, each once."""
        place = home(self.frame, self.node.axis)
        want = moved(self.frame, mask, place, self.node.per)
        fresh = np.flatnonzero(~self._asked if want is None else want & ~self._asked)
        offsets = self._offsets()
        items = self.units if len(fresh) == len(self.units) else [self.units[i] for i in fresh.tolist()]
        counts = None if offsets is None else np.diff(offsets)[fresh].tolist()
        replies = await self.asker.ask(items, counts)
        if self.node.per == self.node.axis:
            return self._one_each(fresh, replies)
        return self._several(fresh, replies)

    def _offsets(self) -> IntArray | None:
        if self.node.per == self.node.axis or not self._static:
            return None
        return self.frame.axis(self.node.axis).offsets_over(self.node.per)

    def _one_each(self, fresh: IntArray, replies: list[Replies]) -> Scores:
        axis = self.frame.axis(self.node.axis)
        if not replies:
            return self._full if self._full is not None else Scores.blank(axis)
        block = replies[0]
        self._asked[fresh] = True
        if len(fresh) == axis.size:
            proof = NO_EVIDENCE if block.evidence is None else Evidence(block.evidence)
            self._full = Scores.of(axis, block.values, block.known, block.reasons, proof)
        else:
            self._full = _scattered(self._full or Scores.blank(axis), fresh, block)
        return self._full

    def _several(self, fresh: IntArray, replies: list[Replies]) -> Scores:
        if not self._replies:
            self._replies = [None] * len(self.units)
        for unit, reply in zip(fresh, replies, strict=True):
            self._replies[unit] = reply
            self._asked[unit] = True
        lengths = np.array([0 if r is None else len(r.values) for r in self._replies], dtype=np.int64)
        if self._static:
            axis = self.frame.axis(self.node.axis)
            lengths = np.diff(axis.offsets_over(self.node.per))
        else:
            axis = Axis.under(self.frame.axis(self.node.per), lengths, self.node.axis)
        parts = [r if r is not None else _not_asked(n) for r, n in zip(self._replies, lengths, strict=True)]
        return _joined(axis, parts)


def _not_asked(count: int) -> Replies:
    reasons: ObjectArray = np.full(count, NOT_ASKED, dtype=object)
    return Replies(np.zeros(count), np.zeros(count, dtype=np.bool_), reasons, None)


def _joined(axis: Axis, parts: Sequence[Replies]) -> Scores:
    if not parts:
        return Scores.blank(axis)
    values = np.concatenate([p.values for p in parts])
    known = np.concatenate([p.known for p in parts])
    reasons = np.concatenate([p.reasons if p.reasons is not None else np.full(len(p.values), None) for p in parts])
    records: list[Record | None] = [e for p in parts for e in (p.evidence or [None] * len(p.values))]
    return Scores.of(axis, values, known, reasons, Evidence(records) if any(records) else NO_EVIDENCE)


def _scattered(base: Scores, where: IntArray, block: Replies) -> Scores:
    """``base`` with the items ``where`` replaced by ``block``."""
    values, known = base.values.copy(), base.known.copy()
    reasons = base.reasons.copy() if base.reasons is not None else np.full(len(base), None, dtype=object)
    values[where], known[where] = block.values, block.known
    reasons[where] = block.reasons if block.reasons is not None else None
    proof = base.evidence
    if block.evidence is not None:
        fresh: dict[int, Record | None] = dict(zip(where.tolist(), block.evidence, strict=True))
        old = base.evidence
        proof = Evidence(lambda i: fresh[i] if i in fresh else old[i])
    return Scores.of(base.axis, values, known, reasons, proof)
