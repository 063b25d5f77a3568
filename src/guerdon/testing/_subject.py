"""The reward under test, and how the battery scores with it: bounded in time, every result looked over."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import orjson

from guerdon.core.frame import Frame
from guerdon.core.reward import Reward
from guerdon.core.rollout import Rollout
from guerdon.core.scored import Scored
from guerdon.core.session import Session
from guerdon.testing._examples import example_rollouts

T = TypeVar("T")
Outcome = tuple[tuple[float | None, str | None], ...]
"""One rollout's scores: value and reason of each of its items (one item, for a reward on the rollout axis)."""


@dataclass(frozen=True)
class Subject:
    """A reward, rollouts of its kind, and how long one call may take."""

    reward: Reward
    rollouts: Sequence[Rollout]
    deadline: float

    @classmethod
    def of(
        cls, reward: Reward, rollouts: Iterable[Rollout | Mapping[str, Any]] | None = None, deadline: float = 20.0
    ) -> Subject:
        """A subject with the given rollouts, or with example rollouts that hold every column the reward reads."""
        if not isinstance(reward, Reward):
            raise TypeError(f"expected a reward, not {type(reward).__name__}; make one of a function with @gd.signal")
        given = list(Frame.of(rollouts).rollouts) if rollouts is not None else example_rollouts(reward)
        if not given:
            raise ValueError("give at least one rollout, better two groups of two")
        return cls(reward, given, deadline)

    def outcomes(self, rollouts: Sequence[Rollout], reward: Reward | None = None) -> list[Outcome]:
        """Score in a fresh session and look the result over: one outcome per rollout, finite, in range."""
        subject = reward if reward is not None else self.reward
        return outcomes(self.within_deadline(lambda: subject.score(rollouts, session=Session())), len(rollouts))

    def within_deadline(self, work: Callable[[], T]) -> T:
        """The result of ``work``, which runs in a thread of its own and must end before the deadline."""
        done: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                done.append(work())
            except BaseException as error:  # noqa: BLE001  # handed to the caller's thread
                errors.append(error)

        thread = threading.Thread(target=run, name="guerdon-check", daemon=True)
        thread.start()
        thread.join(self.deadline)
        if thread.is_alive():
            raise AssertionError(f"still running after {self.deadline:g} s; give the signal a timeout=")
        if errors:
            raise errors[0]
        return done[0]


def outcomes(scored: Scored, count: int) -> list[Outcome]:
    """Each rollout's scores, after the rules that hold for every result were checked."""
    scores, bounds = scored.scores, scored.reward.range
    offsets = range(len(scores) + 1) if scores.axis.name == "rollout" else scores.axis.offsets_over("rollout")
    if len(offsets) - 1 != count:
        raise AssertionError(f"{len(offsets) - 1} scores for {count} rollouts")
    items: list[tuple[float | None, str | None]] = []
    for i in range(len(scores)):
        value = float(scores.values[i]) if scores.known[i] else None
        if value is None and not scores.reason(i):
            raise AssertionError(f"item {i} is unknown without a reason")
        if value is not None and not math.isfinite(value):
            raise AssertionError(f"item {i} scored {value}; a known score is a finite number")
        if value is not None and not bounds.low - _SLACK <= value <= bounds.high + _SLACK:
            raise AssertionError(f"item {i} scored {value:g}, outside the declared range {bounds}")
        items.append((value, scores.reason(i)))
    return [tuple(items[a:b]) for a, b in pairwise(offsets)]


def plain_evidence(scored: Scored) -> None:
    """Raise unless the evidence of every node can be written as JSON in UTF-8."""
    for node in scored.reward.walk():
        scores = scored.by_node[node.fingerprint]
        for i in range(len(scores)) if scores.evidence else ():
            record = scores.evidence[i]
            try:
                orjson.dumps(record)
            except TypeError as error:
                raise AssertionError(f"{node.label}: evidence of item {i} can't be written as JSON: {error}") from None


def alike(one: Sequence[Outcome], two: Sequence[Outcome], what: str, *, reasons: bool = False) -> None:
    """Raise unless both give the same values (to 1e-9) and unknowns, and with ``reasons`` the same reasons."""
    for i, (a, b) in enumerate(zip(one, two, strict=True)):
        same = len(a) == len(b) and all(
            _same_value(x, y) and (not reasons or r == s) for (x, r), (y, s) in zip(a, b, strict=True)
        )
        if not same:
            raise AssertionError(f"{what}: rollout {i} scored {_shown(a)} and then {_shown(b)}")


def _same_value(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def _shown(outcome: Outcome) -> str:
    parts = [f"unknown ({reason})" if value is None else f"{value:.12g}" for value, reason in outcome[:4]]
    return parts[0] if len(outcome) == 1 else "[" + ", ".join(parts) + (", ...]" if len(outcome) > 4 else "]")


_SLACK = 1e-9
