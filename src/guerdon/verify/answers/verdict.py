"""The outcome of comparing two answers, and the reasons for which there may be none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Reason", "Verdict"]


class Reason(StrEnum):
    """Why a verdict is what it is; the last six leave it unknown."""

    EQUAL = "equal"
    DIFFERENT = "different"
    GOLD_UNPARSABLE = "gold unparsable"
    PREDICTION_UNPARSABLE = "prediction unparsable"
    NO_ANSWER = "no answer found"
    TIMED_OUT = "timed out"
    POLICY = "policy"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Verdict:
    """Whether an answer equals the gold one: ``True``, ``False``, or ``None`` with the reason.

    * ``equal``: the verdict; ``None`` is unknown and never counts as wrong by itself.
    * ``reason``: a `Reason`; ``detail`` says it in a sentence.
    * ``tier``: the cheapest comparison that settled it: ``text``, ``number``, ``unit``, ``structure``,
      ``identity`` (exact arithmetic, also modulo primes), ``evaluation`` (rigorous interval arithmetic at
      several points), ``algebra`` (computer algebra) or ``extraction``.
    * ``extracted``: the answer text that was compared; ``rule`` the extraction rule and ``span`` where the
      answer lies in the completion (``completion[span[0]:span[1]]``).
    * ``gold``: the gold answer text after extraction.  ``seconds``: wall time of the whole check.
    """

    equal: bool | None
    reason: Reason
    tier: str = ""
    extracted: str | None = None
    seconds: float = 0.0
    gold: str | None = None
    rule: str = ""
    span: tuple[int, int] | None = None
    detail: str = ""


@dataclass(frozen=True)
class Outcome:
    """A comparison's result before extraction and timing are added."""

    equal: bool | None
    reason: Reason
    tier: str
    detail: str = ""


def same(tier: str, detail: str = "") -> Outcome:
    """Equal, settled by ``tier``."""
    return Outcome(True, Reason.EQUAL, tier, detail)


def differs(tier: str, detail: str = "") -> Outcome:
    """Different, settled by ``tier``."""
    return Outcome(False, Reason.DIFFERENT, tier, detail)


def undecided(reason: Reason, tier: str, detail: str) -> Outcome:
    """Unknown for ``reason``."""
    return Outcome(None, reason, tier, detail)
