"""What can be said of a spec before any data: bounds, dead branches, gates that a bonus out-bids, and the like."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from guerdon.core.errors import SignalError
from guerdon.core.interval import UNIT, Interval
from guerdon.core.operators import add, both, divide, either, equal, less, less_equal, subtract, when
from guerdon.core.reward import Reward
from guerdon.core.signal import Signal
from guerdon.core.transform import Apply, Transform
from guerdon.spec._read import Spec

Level = Literal["error", "warning"]
DEAR = ("sandbox", "gpu", "lm", "judge", "embedder")


@dataclass(frozen=True)
class Finding:
    """Something to look at: its kind, what is wrong and what to do, and where (line 0: nowhere in particular)."""

    level: Level
    code: str
    message: str
    line: int = 0
    path: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {k: getattr(self, k) for k in ("level", "code", "message", "line", "path")}


def check(spec: Spec) -> list[Finding]:
    """Findings about ``spec``, errors first; none needs data.

    Errors: the reward can leave its declared range (with the part that pushes it), a signal lacks a parameter.
    Warnings: the reward is not one number per rollout, the range can't be shown to hold, a branch or comparison is
    decided beforehand, a condition that is not 0/1, a gate that a bonus can out-bid, a divisor that can be 0, a dear
    signal that is not cached, unused nodes.

    >>> from guerdon.spec import load_spec
    >>> text = '''
    ... range: [0, 1]
    ... nodes: {right: {column: {name: right, range: [0, 1]}}, neat: {column: {name: neat, range: [0, 1]}}}
    ... reward: {add: [right, {multiply: [0.5, neat]}]}
    ... '''
    >>> print(check(load_spec(text))[0].message)
    the reward can reach 1.5, above the declared 1: right adds up to 1, product(0.5, neat) up to 0.5
    """
    look = _Look(spec)
    found = [*look.whole(), *look.unused(), *(f for node in spec.reward.walk() for f in look.node(node))]
    return sorted(dict.fromkeys(found), key=lambda f: (f.level != "error", f.line))


class _Look:
    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def _at(self, node: Reward, level: Level, code: str, message: str) -> Finding:
        line, path = self.spec.places.get(node.fingerprint, (0, ""))
        return Finding(level, code, message, line, path)

    def unused(self) -> Iterator[Finding]:
        for name in self.spec.unused:
            yield Finding("warning", "unused-node", f"nothing refers to the node {name!r}", path=f"nodes.{name}")

    def whole(self) -> Iterator[Finding]:
        declared, reward = self.spec.range, self.spec.reward
        if problem := axis_problem(reward):
            yield self._at(reward, "warning", "axis", problem)
        if declared is None:
            return
        for side, word in (("high", "above"), ("low", "below")):
            end, limit = getattr(reward.range, side), getattr(declared, side)
            if not (end > limit if side == "high" else end < limit):
                continue
            if math.isinf(end):
                wide = ", ".join(dict.fromkeys(text_of(n) for n in unbounded(reward)))
                text = (
                    f"the reward can't be shown to stay {'below' if side == 'high' else 'above'} the declared {limit:g}"
                )
                fix = f"{wide} has no known range; declare one with within" if wide else "declare one with within"
                yield self._at(reward, "warning", "range-unknown", f"{text}: {fix}")
                continue
            node, culprits = blame(reward, side)
            why = _pushes(node, culprits, side)
            yield self._at(
                node, "error", "range",
                f"the reward can reach {end:g}, {word} the declared {limit:g}: {why}",
            )  # fmt: skip

    def node(self, node: Reward) -> Iterator[Finding]:
        if isinstance(node, Signal):
            yield from self._signal(node)
        if isinstance(node, Apply):
            looks = _LOOKS.get(node.transform)
            if looks is not None:
                yield from (self._at(node, "warning", code, text) for code, text in looks(node))

    def _signal(self, node: Signal) -> Iterator[Finding]:
        try:
            node.ready()
        except SignalError as error:
            yield self._at(node, "error", "missing-parameter", str(error))
        if node.manner.needs in DEAR and not node.cached:
            text = f"{text_of(node)} needs {node.manner.needs} and is not cached: every run asks it again"
            yield self._at(node, "warning", "not-cached", text)
        elif node.manner.needs in DEAR and not node.stable:
            text = (
                f"{text_of(node)} has no stable fingerprint, so its scores are never cached: give the signal a version="
            )
            yield self._at(node, "warning", "not-cached", text)


def axis_problem(reward: Reward) -> str:
    """Why ``reward`` gives no score for each rollout, or ``""`` if it does."""
    if reward.axis in ("prompt", "rollout"):
        return ""
    return (
        f"the reward lies on the axis '{reward.axis}', but a scored file and a trainer need one number per rollout: "
        f"reduce it, as in {{mean: {reward.name or '...'}}}"
    )


def text_of(node: Reward) -> str:
    """A node for people: its name, or what it does with what."""
    return node.name or (text if len(text := repr(node)) <= 60 else f"{text[:57]}...")


def unbounded(node: Reward) -> Iterator[Reward]:
    """The lowest nodes whose own range is open: what a declaration would have to bound."""
    for part in node.walk():
        if not part.range.bounded and all(c.range.bounded for c in part.children):
            yield part


def blame(node: Reward, side: str) -> tuple[Reward, list[Reward]]:
    """The node where the excess arises, and its parts that push it: without any one of them it would stay inside."""
    while isinstance(node, Apply):
        passed = [c for c in node.children if getattr(c.range, side) == getattr(node.range, side) and c.children]
        if _adds(node):
            break
        if len(passed) != 1:
            break
        node = passed[0]
    terms = additive(node) if _adds(node) else _weighing(node, side)
    return node, terms or [node]


def _adds(node: Reward) -> bool:
    return isinstance(node, Apply) and node.transform in (add, subtract)


def _weighing(node: Reward, side: str) -> list[Reward]:
    """Children whose spread moves the end ``side`` of the node's range."""
    if not isinstance(node, Apply):
        return []
    moved = []
    for child in node.children:
        still = (
            Interval(child.range.low, child.range.low)
            if side == "high"
            else Interval(child.range.high, child.range.high)
        )
        if child.range.bounded and getattr(_range_with(node, child, still), side) != getattr(node.range, side):
            moved.append(child)
    return moved


def _range_with(node: Apply, child: Reward, instead: Interval) -> Interval:
    """The node's range if ``child`` lay in ``instead``."""
    rule = node.transform.traits.range
    if rule is None:
        return Interval()
    seen = node.transform.replaced(node.bound, lambda r: instead if r is child else r.range)
    return rule(*seen.args, **seen.kwargs)


def additive(node: Reward) -> list[Reward]:
    """The terms of a sum, through nested unnamed sums; differences are terms of their own."""
    out: list[Reward] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, Apply) and part.transform is add:
            stack.extend(reversed(part.children))
        else:
            out.append(part)
    return out


def _pushes(node: Reward, culprits: list[Reward], side: str) -> str:
    ends = [(c, getattr(c.range, side)) for c in culprits]
    ends = [(c, e) for c, e in ends if e != 0] or ends
    if not _adds(node):
        shown = ", ".join(f"{text_of(c)} lies in {c.range}" for c, _ in ends[:4])
        return shown if culprits[0] is node else f"in {text_of(node)}, {shown}"
    ends.sort(key=lambda pair: -abs(pair[1]))
    first, *rest = [f"{text_of(c)} {{}}{'up to' if side == 'high' else 'down to'} {e:g}" for c, e in ends[:5]]
    return ", ".join([first.format("adds "), *[r.format("") for r in rest]]) + (", ..." if len(ends) > 5 else "")


# What to look at in single operators.

Remarks = Iterator[tuple[str, str]]


def _when(node: Apply) -> Remarks:
    condition, then, otherwise = node.children
    if condition.range in (Interval(1, 1), Interval(0, 0)):
        way, dead = ("otherwise", otherwise) if condition.range.low == 1 else ("then", then)
        always = f"the condition {text_of(condition)} is always {condition.range.low:g}"
        yield "dead-branch", f"{always}: {way} ({text_of(dead)}) is dead"
    elif not condition.range.unit:
        where = f"the condition {text_of(condition)} lies in {condition.range}"
        yield (
            "condition",
            f"{where}; where it is neither 0 nor 1 the reward is unknown: compare it, as in {{less: [0.5, x]}}",
        )


def _comparison(node: Apply) -> Remarks:
    if node.range.low == node.range.high:
        sides = " and ".join(f"{text_of(c)} lies in {c.range}" for c in node.children)
        yield "decided", f"{node.transform.traits.key} is always {node.range.low:g}: {sides}"


def _logic(node: Apply) -> Remarks:
    for child in node.children:
        if not child.range.within(UNIT):
            yield (
                "not-0-1",
                f"{node.transform.traits.key} is for scores in [0, 1]; {text_of(child)} lies in {child.range}",
            )


def _divide(node: Apply) -> Remarks:
    divisor = node.children[1]
    if divisor.range.low <= 0 <= divisor.range.high:
        yield "division", f"the divisor {text_of(divisor)} can be 0, where the result is unknown"


def _sum(node: Apply) -> Remarks:
    """A sum with a gate in it: can a rollout that failed the gate score as much as one that passed it?"""
    terms = additive(node)
    for gate in terms:
        if not isinstance(gate, Apply) or gate.transform is not when:
            continue
        passed, failed = (c.range for c in gate.children[1:])
        others = [t for t in terms if t is not gate and t.range.low != t.range.high]
        bonus = sum(t.range.high - t.range.low for t in others)
        gap = max(passed.low - failed.high, failed.low - passed.high)
        if gap > 0 and bonus >= gap:
            names = ", ".join(text_of(t) for t in others)
            worth = f"the gate {text_of(gate)} is worth {gap:g}, but {names} can add {bonus:g}"
            yield (
                "gate-outbid",
                f"{worth}: a rollout that fails the gate can score as much as one that passes it; "
                "put the bonus inside the gate's branch or make it smaller",
            )


_LOOKS: dict[Transform, Any] = {
    when: _when, less: _comparison, less_equal: _comparison, equal: _comparison, both: _logic, either: _logic,
    divide: _divide, add: _sum,
}  # fmt: skip
