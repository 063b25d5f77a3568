"""RELC: a language-model critic marks what helped and what hurt, and the marked tokens are paid."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from guerdon import credit
from guerdon.core.interval import Interval
from guerdon.core.reward import Reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.credit._rollouts import whole
from guerdon.methods._registry import method
from guerdon.methods._spans import Span, token_marks

__all__ = ["find_spans", "relc", "span_marks", "token_marks"]


@method(
    "relc",
    family="judge",
    name="RELC: dense rewards from a language-model critic",
    source="Cao et al. 2024, arXiv:2401.07382",
    evidence="secondary",
)
def relc(
    external: Reward,
    praised: Reward,
    criticised: Reward,
    log_ratio: Reward | None = None,
    *,
    external_weight: float = 1.0,
    mark_weight: float = 0.2,
    kl: float = 0.0,
    per: Literal["token", "last", "share"] = "token",
) -> Reward:
    """``r_t = a1 r_ext 1[t = T] + a2 m_t - kl log(pi / pi_ref)_t``, shape ``(tokens,)``.

    ``m_t`` is +1 in a praised span, -1 in a criticised one, 0 in neither or both (our reading). ``praised``,
    ``criticised``: 0/1 per token (see `find_spans`, `token_marks`); ``external``: one per rollout, paid on its last
    token; ``log_ratio``: per token. Length control (our reading): ``per="last"`` pays a span on its last token,
    ``"share"`` divides by the number of spans of the rollout. ``a1``, ``a2`` (``external_weight``, ``mark_weight``)
    were not recovered; the defaults are those of the worked example. PPO with token values follows: `credit.gae`. A
    rollout with an unknown mark or reward is unknown.

    Traps: without length control long praise outweighs the external reward; a critic that is shown the reward may
    merely agree with it; quotes may be paraphrased, or stand several times in the text; token borders cut words.
    Trades bias.
    """
    if per not in ("token", "last", "share"):
        raise ValueError(f'per={per!r}: choose "token", "last" or "share"')
    marks = praised - criticised
    if per != "token":
        marks = span_marks(marks, per=per)
    reward: Reward = credit.pay_last(marks * mark_weight, external, weight=external_weight)
    return reward if log_ratio is None else reward - log_ratio * kl


@transform("methods.span_marks", version=1, groups="rollout", range=lambda x, per="last": x.hull(Interval(0.0, 0.0)))
def span_marks(x: Scores, *, per: Literal["last", "share"] = "last") -> Scores:
    """Marks of tokens reduced to one per span: on its last token, or on all divided by the rollout's spans.

    A span is a run of equal marks other than 0 in one rollout, so two that touch are one.
    """
    rollout = x.axis.owner_in("rollout")
    ends = x.values != 0.0
    ends[:-1] &= (x.values[1:] != x.values[:-1]) | (rollout[1:] != rollout[:-1])
    if per == "last":
        values = np.where(ends, x.values, 0.0)
    else:
        spans = np.bincount(rollout, weights=ends, minlength=x.axis.ancestor("rollout").size)
        values = x.values / np.maximum(spans[rollout], 1.0)
    known, reasons = whole(x)
    return Scores.of(x.axis, np.where(known, values, 0.0), known, None if reasons is None else reasons.copy())


def find_spans(text: str, quotes: Iterable[str]) -> tuple[list[Span], list[str]]:
    """Where the quotes stand in the text, and those that don't: dropped and reported, never an error.

    A quote given twice takes its first two occurrences. Exact match only; a paraphrase is not found.

    >>> find_spans("good, bad, good", ["good", "good", "bad", "ugly"])
    ([(0, 4), (11, 15), (6, 9)], ['ugly'])
    """
    spans: list[Span] = []
    unmatched: list[str] = []
    resume: dict[str, int] = {}
    for quote in quotes:
        at = text.find(quote, resume.get(quote, 0)) if quote.strip() else -1
        if at < 0:
            unmatched.append(quote)
        else:
            resume[quote] = at + len(quote)
            spans.append((at, at + len(quote)))
    return spans, unmatched
