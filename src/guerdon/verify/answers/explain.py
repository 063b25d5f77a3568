"""Explaining a verdict, and checking gold answers before they are used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .check import check_answer, equivalent
from .judge import tree_of
from .nodes import Expr, Op, Sym, Unparsable
from .normal import normalise

__all__ = ["GoldReport", "check_golds", "explain_answer"]


def explain_answer(gold: str, completion: str, kind: str = "math", **policy: Any) -> dict[str, Any]:
    """The verdict with everything it rests on, as plain data for a command line or a page.

    Example:
        >>> explain_answer("5", "The answer is 5.")["equal"]
        True
    """
    verdict = check_answer(gold, completion, kind, **policy)
    shown: dict[str, Any] = {
        "equal": verdict.equal, "reason": str(verdict.reason), "tier": verdict.tier, "detail": verdict.detail,
        "gold": verdict.gold, "extracted": verdict.extracted, "rule": verdict.rule, "span": verdict.span,
        "seconds": verdict.seconds, "kind": kind,
    }  # fmt: skip
    for name, text in (("gold", verdict.gold), ("extracted", verdict.extracted)):
        shown[f"{name}_normal"] = None if text is None else normalise(text)[:2_000]
        shown[f"{name}_parse"] = None if text is None else _parse_note(text)
    return shown


def _parse_note(text: str) -> str:
    try:
        return f"parsed as {shape(tree_of(normalise(text)))}"
    except Unparsable as problem:
        return f"not in the grammar: {problem}"


def shape(expr: Expr) -> str:
    """One word for what an answer tree is."""
    if isinstance(expr, Op):
        kind = expr.head.split(":", 1)[0]
        return {
            "rel": "a relation",
            "either": "a number or a list",
            "list": "a list without order",
            "text": "words",
        }.get(
            kind,
            kind
            if kind in ("set", "tuple", "interval", "matrix", "quantity", "percent", "ratio", "record")
            else "an expression",
        )
    return "a name" if isinstance(expr, Sym) else "a number"


@dataclass(frozen=True)
class GoldReport:
    """Each gold answer compared with itself: the ones that can't serve as gold, with the reason.

    ``unknown`` and ``different`` hold (index, gold, reason); ``equal`` counts the sound ones.
    """

    total: int
    equal: int
    unknown: tuple[tuple[int, str, str], ...] = field(default=())
    different: tuple[tuple[int, str, str], ...] = field(default=())

    @property
    def sound(self) -> bool:
        """Whether every gold answer equals itself."""
        return self.equal == self.total


def check_golds(golds: Iterable[str], **policy: Any) -> GoldReport:
    """Compare each gold answer with itself, to find the unusable ones before a dataset is trained on.

    Example:
        >>> check_golds(["1/2", "", "x^2"]).unknown
        ((1, '', 'gold unparsable: no answer found'),)
    """
    total = equal = 0
    unknown: list[tuple[int, str, str]] = []
    different: list[tuple[int, str, str]] = []
    for i, gold in enumerate(golds):
        verdict = equivalent(gold, gold, **policy)
        total += 1
        if verdict.equal:
            equal += 1
        else:
            (unknown if verdict.equal is None else different).append((i, gold, f"{verdict.reason}: {verdict.detail}"))
    return GoldReport(total, equal, tuple(unknown), tuple(different))
