"""SubSearch: judge-free process scores of a search agent, paid only where a wrong answer leaves room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from guerdon import shape
from guerdon.core.axis import FloatArray
from guerdon.core.interval import Interval
from guerdon.core.operators import maximum, minimum, times, when
from guerdon.core.reward import Reward, as_reward
from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import State, transform
from guerdon.credit._kernels import suffix_discounted
from guerdon.methods._registry import method


@method(
    "subsearch",
    family="consensus",
    name="SubSearch: intrinsic intermediate rewards for query decomposition",
    source="Petcu, Kanoulas and de Rijke 2026, arXiv:2604.07415",
    evidence="code-read",
)
def subsearch(correct: Reward, answerable: Reward, decomposed: Reward, weight: Reward | float = 0.2) -> Reward:
    """``R = R_em + beta (0.5 R_ans + 0.5 R_dec)(1 - R_em)``: a right answer gains nothing from its searches.

    ``correct``: ``R_em``, 0/1 per rollout; ``answerable``, ``decomposed``: one score per search step, see
    `answerability` and `decomposition`; their means over the steps, 0 without a search. ``weight``: ``beta``, by
    default its first value; in training `intermediate_weight` of the step, then `accuracy_gate`. The steps are asked
    of wrong answers only. `format_layer` follows. Groups of 5.

    Traps: cosine answerability rewards an echo of the query (searching for titles), not an answer; it can be
    negative; long documents are cut by the encoder; count steps only up to min(searches, answers of the engine).
    """
    mixed = when(correct, 0.0, _mean_or_zero(answerable) * 0.5 + _mean_or_zero(decomposed) * 0.5)
    # Not the lazy product: the gate behind the weight must see every batch.
    gained: Reward = times(as_reward(weight), mixed)
    return correct + gained


def _mean_or_zero(x: Reward) -> Reward:
    return when(shape.items(x, to="rollout") == 0.0, 0.0, x.mean(to="rollout"))


def intermediate_weight(
    step: Reward, *, start: float = 0.2, low: float = 0.02, warm: float = 200.0, over: float = 2000.0
) -> Reward:
    """``beta`` at a training step: from ``start`` to 0.75 of it as ``(step / warm)^1.5``, then by cosine to ``low``."""
    rise = shape.power(shape.clip(step / warm, 0.0, 1.0), 1.5)
    fall = shape.anneal(step - warm, over=over, kind="cosine", start=0.75 * start, end=low)
    return when(step < warm, start - rise * (0.25 * start), fall)


def _unseen(**_: object) -> State:
    return {"ema": None}


@transform(
    "methods.accuracy_gate",
    version=1,
    groups="batch",
    initial=_unseen,
    range=lambda weight, correct, *, high=0.2, low=0.02, **_: Interval(low, high),
)
def accuracy_gate(
    weight: Scores,
    correct: Scores,
    *,
    high: float = 0.2,
    low: float = 0.02,
    rate: float = 0.02,
    target: float = 0.65,
    flat: float = 5e-4,
    gain: float = 0.2,
    most: float = 0.01,
    state: Mapping[str, Any] | None = None,
) -> tuple[Scores, State]:
    """The weight, raised while accuracy is low and flat, lowered while it is high and rising; one per rollout.

    Sample by sample, ``m <- (1 - rate) m + rate R_em``, slope = new minus old (the first sample sets ``m``, slope 0).
    ``m < target`` and ``|slope| <= flat``: ``+ gain (target - m)(high - beta)``; ``m > target`` and ``slope > flat``:
    ``- gain (m - target)(beta - low)``; a change of at most ``most``, the result in ``[low, high]``. The state is
    ``m``: keep it with the checkpoint. It runs over the samples in the frame's order, so workers with states of
    their own differ; in the released code it is global to the process. Unknown samples move nothing.
    """
    beta, seen = aligned(weight, correct)
    mean, at = (state or _unseen())["ema"], np.flatnonzero(seen.known)
    known = beta.known & seen.known
    if len(at) == 0:
        return Scores.of(beta.axis, beta.values, known, (beta, seen)), {"ema": mean}
    fresh = rate * seen.values[at]
    start = float(seen.values[at[0]]) if mean is None else float(mean)
    fresh[0] += (1.0 - rate) * start
    ema = suffix_discounted(fresh[::-1].copy(), np.array([0, len(at)]), 1.0 - rate)[::-1]
    m, slope = np.zeros(len(beta)), np.zeros(len(beta))
    m[at], slope[at] = ema, np.diff(ema, prepend=start)
    up = np.where((m < target) & (np.abs(slope) <= flat), gain * (target - m) * (high - beta.values), 0.0)
    down = np.where((m > target) & (slope > flat), gain * (m - target) * (beta.values - low), 0.0)
    moved = np.clip(beta.values + np.clip(up - down, -most, most), low, high)
    return Scores.of(beta.axis, np.where(known, moved, 0.0), known, (beta, seen)), {"ema": float(ema[-1])}


def format_layer(
    reward: Reward, valid: Reward, retrieved: Reward, answered: Reward | float = 1.0, *, monotone: bool = False
) -> Reward:
    """The final reward by layout, in [0, 1] for rewards up to 1: a little for form and for the gold text retrieved.

    Valid: ``R`` (+0.1 up to 1 if ``retrieved``) where ``R > 0``, else 0.2 (+0.1); invalid: ``max(0, R - 0.2)``, else
    0.1; without an answer: 0.2 (+0.1) if valid, else 0. All 0/1 but ``reward``; a negative ``R`` counts as 0.

    Trap: not monotone: a wrong answer with a small gain from its searches keeps it (0.14, say), one with none gets
    0.2. ``monotone=True`` pays at least 0.2 there (our reading).
    """
    paid = maximum(reward, 0.2) if monotone else reward
    base = when(retrieved, 0.3, 0.2)
    gained = when(valid, when(retrieved, minimum(paid + 0.1, 1.0), paid), maximum(reward - 0.2, 0.0))
    wrong = when(valid, base, 0.1)
    return when(as_reward(answered), when(reward > 0.0, gained, wrong), when(valid, base, 0.0))


def answerability(queries: FloatArray, documents: Sequence[FloatArray], *, first: int = 3) -> float:
    """Mean over the sub-queries of a step of the mean cosine with their first documents; 0 for one without any.

    ``queries``: unit vectors, shape ``(m, d)``; ``documents``: for each its own, shape ``(k, d)``.
    """
    near = [float((docs[:first] @ q).mean()) if len(docs) else 0.0 for q, docs in zip(queries, documents, strict=True)]
    return sum(near) / len(near) if near else 0.0


def decomposition(question: FloatArray, parts: FloatArray) -> float:
    """How well sub-queries ``c_j`` (unit vectors, shape ``(m, d)``) split a question ``p``.

    One: ``max(0, 1 - |p.c - 0.85| / 0.15)``: a light rephrase, neither copy nor drift. More: half ``p`` times the
    normalised mean of the parts (0 where that vanishes: our reading), half the mean over ``j`` of
    ``(p.c_j)(1 - mean_{i != j} c_i.c_j)``.

    >>> round(decomposition(np.array([1.0, 0.0]), np.array([[0.8, 0.6], [0.8, -0.6]])), 6)
    0.788
    """
    m, near = len(parts), parts @ question
    if m == 1:
        return max(0.0, 1.0 - abs(float(near[0]) - 0.85) / 0.15)
    middle = parts.mean(axis=0)
    size = float(np.linalg.norm(middle))
    covered = float(middle @ question) / size if size > 0 else 0.0
    others = (parts @ parts.sum(axis=0) - (parts * parts).sum(axis=1)) / (m - 1)
    return 0.5 * covered + 0.5 * float((near * (1.0 - others)).mean())
