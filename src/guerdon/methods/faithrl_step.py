"""FaithRL (stop rewarding hallucinated steps): sentences that the context supports earn, repeats of them less."""

from __future__ import annotations

import numpy as np

from guerdon import credit
from guerdon.core.axis import FloatArray, IntArray
from guerdon.core.interval import Interval
from guerdon.core.operators import maximum, when
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.credit._rollouts import along
from guerdon.methods._registry import method
from guerdon.shape import group_statistic, minmax


@method(
    "faithrl-step",
    family="process",
    name="FaithRL: step rewards for faithful sentences of small reasoning models",
    source="Nie et al. 2026, arXiv:2602.05897",
    evidence="code-read",
)
def faithrl_step(
    correct: Reward,
    supported: Reward,
    answers: Reward,
    overlap: Reward,
    repetition: Reward,
    similarity: Reward | None = None,
    nearest: Reward | None = None,
    tokens: Reward | None = None,
    *,
    faithful: float = 0.5,
    ratio: float = 0.1,
    near: float = 0.95,
    step: float = 0.2,
) -> Reward:
    """``max(-1, s_j - q)`` per sentence ``j``, on steps or on ``tokens`` (any token score); in [-1, 1].

    Reasoning: ``s_j = +1`` if ``supported >= faithful`` (an entailment model, shape ``(steps,)``), else -1; all -1 if
    the answer is wrong (``correct``, 0/1). A supported one falls to ``max(0, 1 - penalty)``, `repeat_penalty` of
    ``similarity`` and ``nearest`` (see `nearest_earlier`). Sentences of the answer (``answers``: 1) get
    `answer_level` of the token F1 ``overlap``. ``q`` is ``repetition`` (`verify.repetition` with ``n=10``) where above
    ``ratio``. GRPO on the sum over the rollout, or per token, follows. Group of 8, KL 0.001.

    The released code takes the extremes of F1 over the rows of one call, here over the group; a service error becomes
    the text "no" there and stays unknown here. Traps: +1 per sentence rewards long chains unless the novelty term
    works; a wrong answer wipes out faithful steps. Trades bias.
    """
    base = when(correct, when(supported >= faithful, 1.0, -1.0), -1.0)
    if similarity is not None and nearest is not None:
        lowered = maximum(1.0 - repeat_penalty(similarity, nearest, near=near, step=step), 0.0)
        base = when(base > 0.0, lowered, base)
    sentence = when(answers, answer_level(correct, overlap), base)
    reward: Reward = maximum(sentence - when(repetition > ratio, repetition, 0.0), -1.0)
    return reward if tokens is None else credit.spread(reward, tokens)


def answer_level(correct: Reward, overlap: Reward) -> Reward:
    """``2 (F - F_min) / (F_max - F_min) - 1`` within the group, ``F`` 0 for wrong answers; without spread the sign."""
    f = when(correct, overlap, 0.0)
    flat = group_statistic(f, "min") == group_statistic(f, "max")
    return when(flat, when(f > 0.0, 1.0, -1.0), minmax(f, low=-1.0, high=1.0))


@transform("methods.repeat_penalty", version=1, groups="rollout", range=lambda x, nearest, **_: Interval(0.0))
def repeat_penalty(x: Scores, nearest: Scores, *, near: float = 0.95, step: float = 0.2) -> Scores:
    """``step * n`` for a sentence more similar than ``near`` to an earlier one; else 0.

    ``x`` is the greatest similarity to any earlier sentence of the rollout, ``nearest`` the place, from 0, of the first
    such; ``n`` counts the hits on that one so far, this included. The first sentence has none earlier: what stands
    there is not read. A rollout with an unknown one is unknown.
    """
    owner = x.axis.owner_in("rollout")
    first = np.ones(len(x), dtype=np.bool_)
    first[1:] = owner[1:] != owner[:-1]
    known = (x.known & nearest.known) | first

    def compute(values: FloatArray, offsets: IntArray) -> FloatArray:
        hit = np.flatnonzero(known & ~first & (values > near))
        order = np.lexsort((hit, nearest.values[hit], owner[hit]))
        target, rollout = nearest.values[hit][order], owner[hit][order]
        opens = np.ones(len(hit), dtype=np.bool_)
        opens[1:] = (target[1:] != target[:-1]) | (rollout[1:] != rollout[:-1])
        place = np.arange(len(hit))
        out = np.zeros(len(values))
        out[hit[order]] = step * (place - np.maximum.accumulate(np.where(opens, place, 0)) + 1.0)
        return out

    read = Scores.of(x.axis, np.where(first, 0.0, x.values), known, (x, nearest))
    return along(read, compute)


def nearest_earlier(vectors: FloatArray) -> tuple[FloatArray, IntArray]:
    """For each sentence its greatest cosine with an earlier one, and that one's place (the first on a tie).

    ``vectors`` has shape ``(sentences, dimensions)``; the cosine with a zero vector is 0, and so are both
    numbers of the first sentence.

    >>> nearest_earlier(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]))[0].tolist()
    [0.0, 0.0, 1.0]
    """
    size = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(size > 0, size, 1.0)
    cosine = np.where(np.tri(len(vectors), k=-1, dtype=bool), unit @ unit.T, -np.inf)
    if len(vectors):
        cosine[0, 0] = 0.0
    return cosine.max(axis=1, initial=-np.inf), cosine.argmax(axis=1) if len(vectors) else np.zeros(0, np.int64)
