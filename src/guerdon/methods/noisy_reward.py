"""Noisy rewards as a robustness test, and the reasoning-pattern reward as a documented hackable control."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from guerdon.core.interval import Interval
from guerdon.core.operators import minimum, when
from guerdon.core.reward import Reward
from guerdon.core.rollout import Rollout
from guerdon.core.scores import Scores
from guerdon.core.signal import signal
from guerdon.core.transform import State, transform
from guerdon.methods._registry import method


def _start(**_: object) -> State:
    return {"groups": 0}


@transform(
    "methods.flipped", version=1, groups=True, initial=_start, range=lambda x, **_: x.hull(Interval(1.0, 1.0) - x)
)
def flipped(x: Scores, *, share: float, seed: int, state: State | None = None) -> tuple[Scores, State]:
    """A 0/1 verdict, turned to ``1 - r`` for *whole groups* with probability ``share``: ``E[r] = (1 - 2p) acc + p``.

    The draw of a group depends on ``seed`` and on how many groups came before it, which the state counts; the same data
    in the same order flips the same groups. Noise per rollout is another experiment.
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share={share!r} must lie in [0, 1]")
    seen = int((state or _start())["groups"])
    count = x.axis.ancestor("prompt").size
    draws = np.random.Generator(np.random.PCG64(seed).advance(seen)).random(count)
    turned = (draws < share)[x.axis.owner_in("prompt")]
    return Scores.of(x.axis, np.where(turned, 1.0 - x.values, x.values), x.known, x), {"groups": seen + count}


@signal(key="methods.reasoning_pattern", version=1, range=(0, 1), reads=["completion"])
def reasoning_pattern(
    rollout: Rollout, *, phrases: Sequence[str] = (), full: int = 20, n: int = 20, forbidden: str = "user: "
) -> float:
    """``max(0, min(1, phrases found / full) - rep_n - count(forbidden))`` of the text, whatever it says.

    Text and phrases are lower-cased. Different phrases count once each, as plain substrings (``thus`` also hits inside
    ``enthusiast``).
    ``rep_n``: distinct ``n``-grams of words that occur more than once, over all ``n``-grams; 0 for short texts.
    """
    text = rollout.text.lower()
    words = text.split()
    grams = Counter(hash(tuple(words[i : i + n])) for i in range(len(words) - n + 1))
    repeated = sum(c > 1 for c in grams.values()) / sum(grams.values()) if grams else 0.0
    found = sum(p in text for p in {p.lower() for p in phrases} - {""})
    return max(0.0, min(1.0, found / full) - repeated - text.count(forbidden))


@method(
    "noisy-reward-and-rpr",
    family="audit",
    name="Noisy rewards and Reasoning Pattern Reward",
    source="Lv et al. 2025, arXiv:2505.22653",
    evidence="code-read",
)
def calibrated(
    score: Reward, pattern: Reward, valid: Reward | float = 1.0, *, threshold: float = 0.5, weight: float = 0.1
) -> Reward:
    """A noisy reward model, softened where it is low: ``r`` from ``threshold`` on, else ``min(1, r + weight * RPR)``.

    ``score`` in [0, 1]; ``pattern``: `reasoning_pattern` with your list of phrases (about 40 in the source: planning,
    checking, trying again, connectives, examples), asked only where ``score`` is low; the result is multiplied by
    ``valid``, 0/1 for the format. A variant pays the pattern to wrong answers only: ``when(correct, 1.0, pattern)``.
    The robustness test beside it is `flipped`: 40 % of groups flipped still learn.

    Traps: flip groups, not rollouts; RPR alone is trivially hacked and is here as a control; the source's list has a
    misspelled phrase.

    >>> import guerdon as gd
    >>> rows = [{"rm": 0.25, "rpr": 0.5}, {"rm": 0.75, "rpr": 1.0}]
    >>> gd.method("noisy-reward-and-rpr", gd.column("rm"), gd.column("rpr")).score(rows).values.round(6).tolist()
    [0.3, 0.75]
    """
    softened = when(score >= threshold, score, minimum(score + pattern * weight, 1.0))
    return softened * valid
