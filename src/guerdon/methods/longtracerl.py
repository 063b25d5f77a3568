"""LongTraceRL: the entities on the gold path count, but only for right answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import signal
from guerdon.methods._registry import method
from guerdon.shape import only, over_best
from guerdon.verify._reading import Part, written

Mode = Literal["positive", "negative", "plain"]
_TOKEN = re.compile(r"[a-z0-9_]+|[㐀-䶿一-鿿豈-﫿]")
MAX_ENTITIES = 10_000
"""More gold entities than this are not looked for."""


@method(
    "longtracerl",
    family="process",
    name="LongTraceRL: entity rubric reward, positive-only",
    source="Lin et al. 2026, arXiv:2605.31584",
    evidence="code-read",
)
def longtracerl(
    correct: Reward,
    rubric: Reward | None = None,
    *,
    eta: float = 0.3,
    mode: Mode = "positive",
    relative: bool = True,
    among_right: bool = False,
) -> Reward:
    """``R = (1 - eta) out + eta rub'`` for right answers, 0 for wrong ones; in [0, 1], shape ``(rollouts,)``.

    ``correct`` ``out``: 0/1 of the text after the thinking. ``rubric``: share of gold entities found, by default
    `entity_share`; ``rub'`` divides it by the group's best (``relative``). ``mode="negative"`` pays ``eta rub'`` to
    wrong answers only, ``"plain"`` to all. ``eta`` is 0.3 in training, 0 in evaluation. Published defaults.

    Traps: the best is taken over the whole group, wrong answers included; ``among_right`` (ours) takes it over the
    right ones. Stuffing an answer with entities raises ``rub``; positive-only limits that and does not remove it.
    """
    if mode not in ("positive", "negative", "plain"):
        raise ValueError(f'mode={mode!r}: choose "positive", "negative" or "plain"')
    if not 0.0 <= eta <= 1.0:
        raise ValueError(f"eta={eta!r} must lie in [0, 1]")
    share = (entity_share if rubric is None else rubric).within(0.0, 1.0)
    if relative:
        share = over_best(only(share, where=correct) if among_right and mode == "positive" else share)
    right = correct.within(0.0, 1.0) > 0.0
    mixed = correct.within(0.0, 1.0) * (1.0 - eta) + share * eta
    if mode == "positive":
        return when(right, mixed, 0.0)
    return mixed if mode == "plain" else when(right, correct.within(0.0, 1.0), share * eta)


def longtracerl_chunks(correct: Reward, citation: Reward, *, eta: float = 0.3) -> Reward:
    """For data with cited chunks: ``R = out + eta F + (1 - eta) out F``, in [0, 2]; ``citation``: `f_beta`.

    Unlike `longtracerl` it pays wrong answers. The released code can also divide ``F`` by the group's best
    (`shape.over_best`); the formula does not.
    """
    out, f = correct.within(0.0, 1.0), citation.within(0.0, 1.0)
    return out + f * eta + out * f * (1.0 - eta)


def f_beta(precision: Reward, recall: Reward, *, beta: float = 2.0) -> Reward:
    """``(1 + b^2) P R / (b^2 P + R)``, 0 where nothing is cited or nothing matches; ``beta`` 2 favours recall."""
    p, r = precision.within(0.0, 1.0), recall.within(0.0, 1.0)
    below = p * beta**2 + r
    return when(below > 0.0, p * r * (1.0 + beta**2) / below, 0.0)


def norm(text: str) -> str:
    """Lower-case tokens joined by spaces: runs of ASCII letters, digits and underscore, or one CJK character each.

    >>> norm("The U.S. (東京), 2024")
    'the u s 東 京 2024'
    """
    return " ".join(_TOKEN.findall(text.lower()))


@signal(key="methods.entity_share", version=1, range=(0, 1))
def entity_share(
    rollout: Rollout, *, entities: str = "entities", part: Part = "final", whole_tokens: bool = True
) -> Score:
    """Share of the gold entities in column ``entities`` that occur in the text, both through `norm`.

    A whole run of tokens must match (our reading); ``whole_tokens=False`` takes any substring, as released, so that
    "US" is found in "bus". An entity of which `norm` leaves nothing is a miss. No entities: 0. No such column: unknown.
    """
    wanted = rollout.get(entities)
    if not isinstance(wanted, Sequence) or isinstance(wanted, str) or not all(isinstance(e, str) for e in wanted):
        return Score.unknown(f"column '{entities}' holds no list of texts")
    if len(wanted) > MAX_ENTITIES:
        return Score.unknown(f"more than {MAX_ENTITIES:,} entities")
    pad = " " if whole_tokens else ""
    text = f"{pad}{norm(written(rollout, part))}{pad}"
    found = [e for e in wanted if (key := norm(e)) and f"{pad}{key}{pad}" in text]
    return Score(len(found) / len(wanted) if wanted else 0.0, found=len(found), entities=len(wanted))
