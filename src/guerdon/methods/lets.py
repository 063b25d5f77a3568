"""LeTS: searches graded by the documents they bring, without annotation."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from guerdon import credit
from guerdon.core.axis import BoolArray
from guerdon.core.interval import UNIT
from guerdon.core.operators import maximum, when
from guerdon.core.reward import Reward, as_reward
from guerdon.core.scores import Scores
from guerdon.core.segments import segment_count
from guerdon.core.transform import transform
from guerdon.methods._registry import method
from guerdon.shape import gate
from guerdon.shape._assignment import best_assignment

Documents = frozenset[float]
"""What one search brought: the numbers of its documents."""
MAX_SEARCHES = 64
"""More searches than this in one rollout are not graded: matching them takes cubic time."""


@method(
    "lets",
    family="process",
    name="LeTS: think-and-search process and outcome hybrid",
    source="Zhang et al. 2025, arXiv:2505.17447",
    evidence="code-read",
)
def lets(
    outcome: Reward,
    document: Reward,
    turn: Reward,
    steps: Reward,
    tokens: Reward | None = None,
    *,
    gamma: float = 1.0,
    clip: bool = True,
) -> Reward:
    """``A (1 + gamma z_t)`` on the tokens of search ``t`` if ``A >= 0``, ``A (1 - gamma z_t)`` if not; ``A`` elsewhere.

    ``outcome``: `lets_outcome`; ``A``: its GRPO advantage, sample deviation, eps 1e-6. ``steps``: any score on the
    step axis: each search turn is a step, and the last step is the answer. ``z``: `search_worth` standardised over
    the searches of the rollout (sample deviation, eps 1e-6), 0 with fewer than two. ``tokens``: any token score;
    without it the result is on steps. ``gamma`` 1 is the script's.

    Differs from the released code: with ``gamma = 1`` a factor can fall below 0 and turn the advantage round; here it
    stops at 0 (``clip=False`` for theirs). A group of one is unknown, not ``A = R``.

    Traps: without a perfect rollout in the group only the best ones are graded; equal worths give ``z = 0``; turns and
    searches must agree in number, else the rollout is unknown. Trades bias.
    """
    advantage = credit.group_relative(outcome, ddof=1, eps=1e-6)
    factor = search_factor(search_worth(document, turn, outcome, steps), advantage, gamma=gamma)
    scaled = advantage * (maximum(factor, as_reward(0.0)) if clip else factor)
    return scaled if tokens is None else credit.spread(scaled, tokens)


def search_factor(worth: Reward, advantage: Reward, *, gamma: float = 1.0) -> Reward:
    """``1 + gamma z`` for good rollouts, ``1 - gamma z`` for bad ones, 1 on the answer; shape ``(steps,)``."""
    z = credit.rollout_relative(worth, where=credit.left(worth) > 1.0) * gamma
    return 1.0 + when(advantage >= 0.0, z, -z)


def lets_outcome(f1: Reward, form: Reward) -> Reward:
    """0 for a bad format or an answer that is too long, else ``0.1 + 0.9 F1``; in [0, 1]."""
    return gate(f1.within(0.0, 1.0) * 0.9 + 0.1, by=form)


@transform(
    "methods.search_worth",
    version=1,
    groups=True,
    axis=lambda document, turn, score, like: like,
    range=lambda *_: UNIT,
)
def search_worth(document: Scores, turn: Scores, score: Scores, like: Scores) -> Scores:
    """How much each search was worth, in [0, 1], shape ``(steps,)``; 0 on the answer and where nothing is graded.

    ``document`` (a number that stands for its text) and ``turn`` (the search that brought it, from 0) lie on an axis of
    their own; see `document_columns`. ``J(A, B) = |A & B| / |A | B|``, 0 of two empty sets (our reading).

    * Rollouts whose ``score`` is the group's best, above 0: ``p_t = 1 - max_{s < t} J(D_t, D_s)``, ``p_0 = 1``.
    * If that best is 1, other rollouts of score above 0 (well formed): ``p_t`` is the ``J`` of the search matched to
      ``t``, by optimal assignment, in a better rollout; of those, the one of largest sum. Several assignments can
      share the sum: only the sum is determined then.

    Unknown: a rollout with an unknown document or score, without steps, with a document of no search turn, or with too
    many searches. It takes no part.
    """
    rollout = like.axis.ancestor("rollout")
    offsets = like.axis.offsets_over("rollout")
    scores = score.broadcast(rollout)
    searches, usable = _searches(document, turn, np.diff(offsets) - 1)
    known = usable & scores.known
    values = np.zeros(like.axis.size)
    prompts = rollout.offsets_over("prompt")
    for start, end in pairwise(prompts.tolist()):
        members = [i for i in range(start, end) if known[i]]
        best = max((scores.values[i] for i in members), default=0.0)
        for i in members:
            mine = scores.values[i]
            better = [searches[g] for g in members if scores.values[g] > mine]
            p = _novelty(searches[i]) if mine == best else _matched(searches[i], better) if best >= 1.0 else []
            if mine > 0.0:
                values[offsets[i] : offsets[i] + len(p)] = p
    part = Scores.of(rollout, scores.values, known, "its documents do not fit its search turns")
    if part.reasons is not None and scores.reasons is not None:
        part.reasons[~scores.known] = scores.reasons[~scores.known]
    below = part.broadcast(like.axis)
    return Scores(like.axis, values, below.known, below.reasons)


def _searches(document: Scores, turn: Scores, counts: np.ndarray) -> tuple[list[list[Documents]], BoolArray]:
    """The documents of every search of every rollout, and which rollouts can be graded."""
    offsets = document.axis.offsets_over("rollout")
    fits = document.known & turn.known & (turn.values >= 0) & (turn.values < np.repeat(counts, np.diff(offsets)))
    usable = (segment_count(~fits, offsets) == 0) & (counts >= 0) & (counts <= MAX_SEARCHES)
    found: list[list[Documents]] = []
    for i, count in enumerate(counts):
        part = slice(offsets[i], offsets[i + 1])
        turns, numbers = turn.values[part], document.values[part]
        found.append([frozenset(numbers[turns == t].tolist()) for t in range(count)] if usable[i] else [])
    return found, usable


def jaccard(one: Documents, two: Documents) -> float:
    """``|A & B| / |A | B|``; 0 of two empty sets."""
    return len(one & two) / len(one | two) if one or two else 0.0


def _novelty(searches: Sequence[Documents]) -> list[float]:
    return [1.0 - max((jaccard(d, e) for e in searches[:t]), default=0.0) for t, d in enumerate(searches)]


def _matched(searches: Sequence[Documents], better: Sequence[Sequence[Documents]]) -> list[float]:
    """The matched similarity of each search with the better rollout that it matches best."""
    best = [0.0] * len(searches)
    for other in better:
        similar = [[jaccard(d, e) for e in other] for d in searches]
        if sum(max(row, default=0.0) for row in similar) <= sum(best):
            continue
        column = best_assignment(similar)
        matched = [row[c] if c >= 0 else 0.0 for row, c in zip(similar, column, strict=True)]
        if sum(matched) > sum(best):
            best = matched
    return best


def document_columns(searches: Sequence[Sequence[str]]) -> dict[str, list[float]]:
    """The columns ``document`` and ``turn`` of a rollout from the texts that each of its searches brought.

    >>> document_columns([["a", "b"], ["a"]])["turn"]
    [0.0, 0.0, 1.0]
    """
    numbered = [(_number(text), float(t)) for t, found in enumerate(searches) for text in found]
    return {"document": [n for n, _ in numbered], "turn": [t for _, t in numbered]}


def _number(text: str) -> float:
    """48 bits of a hash: exact in a float, and the same in every process."""
    return float(int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest(), "big"))
