"""CorVer: a sentence is worth more if a corpus mentions its subject and object together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.credit import spread
from guerdon.methods._registry import method
from guerdon.shape import tiered

STOP_WORDS = frozenset({
    "a", "an", "the", "of", "in", "on", "at", "to", "for", "by", "with", "from", "and", "or", "is", "are", "was",
    "were", "be", "been", "has", "have", "had", "it", "its", "this", "that", "as",
})  # fmt: skip
"""Words that say nothing of a pair, since nearly every passage holds them."""
_WORD = re.compile(r"\w+")


@method(
    "corver",
    family="process",
    name="CorVer: corpus co-occurrence process reward for factual QA",
    source="Fan et al. 2026, arXiv:2605.29648",
    evidence="secondary",
)
def corver(
    advantage: Reward,
    count: Reward,
    pair: Reward | float = 1.0,
    tokens: Reward | None = None,
    *,
    weight: float = 1.0,
    levels: tuple[float, float, float] = (-0.1, 0.05, 0.1),
    often: int = 10,
) -> Reward:
    """Token advantages ``A_t = A_out + weight r_s(t)``: the group's outcome advantage plus the sentence's reward.

    ``advantage``: one per rollout (`credit.group_relative`); sentences are steps; `sentence_reward` has ``count``,
    ``pair``, ``levels``, ``often``. ``tokens``: any token score; without it the result is on steps. Additive form,
    ``weight``, levels and thresholds are *our reading*; that the map is piecewise constant is published. A sentence
    whose count is unknown is unknown, and so are its tokens.

    Traps: co-occurrence is not truth: a popular false pair is rewarded (audit with swapped objects), negation is
    invisible; a rare but true pair counts 0, so keep ``levels[0]`` mild; generic words have huge counts, hence the
    stop words of `co_occurrences`.
    """
    credit = advantage + sentence_reward(count, pair, levels=levels, often=often) * weight
    return credit if tokens is None else spread(credit, tokens)


def sentence_reward(
    count: Reward,
    pair: Reward | float = 1.0,
    *,
    levels: tuple[float, float, float] = (-0.1, 0.05, 0.1),
    often: int = 10,
) -> Reward:
    """``levels[0]`` for a count of 0, ``levels[1]`` below ``often``, ``levels[2]`` from it on; 0 without a ``pair``."""
    if often < 2:
        raise ValueError(f"often={often!r} leaves no count between none and often")
    tier = tiered(count.within(0.0, math.inf), [0.0, often - 1.0], levels)
    return tier if isinstance(pair, (int, float)) and pair == 1.0 else when(pair, tier, 0.0)


def co_occurrences(subject: str, object_: str, passages: Iterable[str]) -> int | None:
    """In how many passages all content words of both occur, as whole lower-case words; ``None`` if either has none.

    What an index over the corpus answers at scale.

    >>> co_occurrences("Paris", "the capital", ["Paris is a capital", "Parisian capital"])
    1
    """
    wanted = [set(_WORD.findall(text.lower())) - STOP_WORDS for text in (subject, object_)]
    if not all(wanted):
        return None
    return sum(wanted[0] | wanted[1] <= set(_WORD.findall(p.lower())) for p in passages)
