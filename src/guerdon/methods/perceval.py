"""Perceval: the tokens of wrong claims lose a share of the advantage."""

from __future__ import annotations

from collections.abc import Sequence

from guerdon.core.operators import maximum
from guerdon.core.reward import Reward
from guerdon.credit import group_relative
from guerdon.methods._registry import method
from guerdon.methods._spans import Span, token_marks


@method(
    "perceval",
    family="media",
    name="Perceval: perception-centric process reward for vision-language models",
    source="Min et al. 2026, arXiv:2604.24583",
    evidence="code-read",
)
def perceval(outcome: Reward, flagged: Reward, *, alpha: float = 0.1) -> Reward:
    """Token advantages ``A - alpha m_t |A|``: the GRPO advantage, less a share of its size on flagged tokens.

    ``outcome``: 1 if the answer is right and the format valid, else 0 (for mathematics ``1.2 correct + 0.4 form``,
    ``form`` in {0, -1}); ``A = (R - mean) / (std + 1e-6)``, sample deviation. ``flagged``: 1 for tokens inside a claim
    that a verifier found wrong, shape ``(tokens,)``, as the result; `span_mask` makes it. ``alpha`` 0.1 is published
    (0.03 too weak, 0.3 too strong). Differs from the released code: a group of one is unknown, not ``A = R``; an
    unreadable verifier is unknown, not "nothing wrong".

    Traps: groups of equal outcomes have ``A = 0`` and get no signal from the claims at all; the penalty is relative,
    so a weak advantage gets a weak one.
    """
    return penalised(group_relative(outcome, ddof=1, eps=1e-6), flagged, alpha=alpha)


def penalised(advantage: Reward, flagged: Reward, *, alpha: float = 0.1) -> Reward:
    """``A - alpha m |A|``: right or wrong, the flagged tokens come out worse."""
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha={alpha!r} must lie in [0, 1]")
    size: Reward = maximum(advantage, -advantage)
    return advantage - flagged.within(0.0, 1.0) * size * alpha


def span_mask(text: str, claims: Sequence[str], tokens: Sequence[Span]) -> tuple[list[float], list[str]]:
    """1 for each token whose characters overlap the first exact occurrence of a claim; and the claims not found once.

    ``tokens`` are the tokenizer's character offsets. A claim that is empty or missing marks nothing; one that occurs
    again marks its first place. Both are returned, to be looked at.

    >>> span_mask("a red car", ["red"], [(0, 1), (2, 5), (6, 9)])
    ([0.0, 1.0, 0.0], [])
    """
    spans, odd = [], []
    for claim in claims:
        start = text.find(claim) if claim else -1
        if start >= 0:
            spans.append((start, start + len(claim)))
        if start < 0 or text.find(claim, start + 1) >= 0:
            odd.append(claim)
    return token_marks(tokens, spans).tolist(), odd


def span_agreement(found: Sequence[Span], gold: Sequence[Span], *, overlap: float = 0.5) -> float | None:
    """F1 of spans that match one another by intersection over union of at least ``overlap``; ``None`` if both are none.

    >>> span_agreement([(0, 4), (9, 10)], [(0, 5)])
    0.6666666666666666
    """
    if not found and not gold:
        return None
    left, hits = list(gold), 0
    for a, b in found:
        best = max(left, key=lambda g: _overlap((a, b), g), default=None)
        if best is not None and _overlap((a, b), best) >= overlap:
            left.remove(best)
            hits += 1
    return 2.0 * hits / (len(found) + len(gold))


def _overlap(one: Span, two: Span) -> float:
    shared = max(0, min(one[1], two[1]) - max(one[0], two[0]))
    whole = one[1] - one[0] + two[1] - two[0] - shared
    return shared / whole if whole > 0 else 0.0
