"""ProRAG: the outcome's advantage, plus step scores standardised over the group's tokens."""

from __future__ import annotations

from guerdon import credit, shape
from guerdon.core.operators import when
from guerdon.core.reward import Reward, as_reward
from guerdon.methods._registry import method


@method(
    "prorag",
    family="process",
    name="ProRAG: process-supervised RL for RAG with dual-granularity advantage",
    source="Wang et al. 2026, arXiv:2601.21912",
    evidence="code-read",
)
def prorag(outcome: Reward, step: Reward, generated: Reward, *, beta: float = 0.3) -> Reward:
    """Token advantages ``A_out + beta z`` on generated tokens, 0 on retrieved ones; shape ``(tokens,)``.

    ``outcome``: `prorag_outcome`; ``A_out = (R - mean) / (std + 1e-4)``, sample deviation, 0 where all are equal and
    for a group of one. ``step``: `prorag_step`, per step; each generated token holds its step's score, and ``z = (u -
    mu) / sqrt(var + 1e-8)`` over all generated tokens of the group (population; a lone token is unknown).
    ``generated``: 1 for the policy's tokens, 0 for retrieved text. ``beta`` 0.3 in the script, 0.5 in the code. A
    generated token of an unknown step is unknown.

    Traps: token statistics weigh long steps more; the format bonus and the model's score share one scale, so that a
    malformed step (-2) dominates; retrieved text must be in the step model's input and not in the loss. Trades bias.
    """
    episode = credit.place_relative(outcome, as_reward(0.0), ddof=1, eps=1e-4, least=1)
    own = shape.only(credit.spread(step, generated), where=generated)
    spread = shape.power(shape.group_statistic(own, "var") + 1e-8, 0.5)
    return when(generated, episode + shape.centre(own) / spread * beta, 0.0)


def prorag_outcome(f1: Reward, form: Reward, *, least: float = 0.2) -> Reward:
    """``2 F1`` (0 below ``least``), plus 1 for a well-formed rollout or minus 1; in [-1, 3]."""
    score = f1.within(0.0, 1.0)
    return when(score >= least, score * 2.0, 0.0) + when(form, 1.0, -1.0)


def prorag_step(logit: Reward, form: Reward) -> Reward:
    """``sigmoid`` of the step model's logit, plus 1 for an allowed tag pattern or minus 2; in [-2, 2]."""
    return shape.sigmoid(logit) + when(form, 1.0, -2.0)
