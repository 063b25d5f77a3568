"""Signals that compare a rollout's answer with its reference mathematically."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import signal
from guerdon.verify._reading import NO_REFERENCE, Part, references, shown, written
from guerdon.verify.answers import Reason, Verdict, check_answer

__all__ = ["math", "units"]


@signal(key="verify.math", version=1, range=(0, 1))
def math(
    rollout: Rollout,
    *,
    missing_unit: Literal["accept", "reject", "unknown"] = "accept",
    percent: Literal["fraction", "number", "strict"] = "fraction",
    rounding: Literal["unknown", "accept", "reject"] = "unknown",
    decimal_places: int | None = None,
    tuple_order: Literal["strict", "free"] = "strict",
    constant: Literal["free", "literal"] = "free",
    which: Literal["last", "first", "all"] = "last",
    tags: tuple[str, ...] = ("answer",),
    seconds: float = 1.0,
    no_answer: float | None = 0.0,
    unparsable: float | None = None,
    reference: str = "answer",
    part: Part = "final",
) -> Score:
    r"""1 if the answer that the text states equals the reference mathematically, 0 if it differs.

    The answer is sought in tags, boxes, behind ``####``, after "the answer is", in the last formula; thinking sections
    are skipped. Numbers, expressions, equations, intervals, sets, tuples, matrices, units, choices and words are
    compared; the options are those of `guerdon.verify.answers.Policy`. A list of references accepts any of them.

    ``no_answer`` is the score of a text that states no answer (or negates or hedges it), ``unparsable`` that of an
    answer outside the grammar; ``None`` leaves them unknown. Unknown as well: no reference, an unparsable reference,
    the algebra step timed out after ``seconds``, and matters of policy such as a rounding nobody asked for.

    >>> math(Rollout(r"So \boxed{\frac{2}{4}}", answer="0.5")).value
    1.0
    >>> math(Rollout(r"About \boxed{0.33}", answer="1/3")).reason
    'policy: one is a rounding of the other and no precision was stated'
    """
    rules = {
        "missing_unit": missing_unit, "percent": percent, "rounding": rounding, "decimal_places": decimal_places,
        "tuple_order": tuple_order, "constant": constant, "which": which, "tags": tuple(tags), "seconds": seconds,
    }  # fmt: skip
    return _scored(rollout, "math", rules, {Reason.NO_ANSWER: no_answer, Reason.PREDICTION_UNPARSABLE: unparsable},
                   reference, part)  # fmt: skip


@signal(key="verify.units", version=1, range=(0, 1))
def units(
    rollout: Rollout,
    *,
    missing_unit: Literal["accept", "reject", "unknown"] = "reject",
    seconds: float = 1.0,
    no_answer: float | None = 0.0,
    unparsable: float | None = None,
    reference: str = "answer",
    part: Part = "final",
) -> Score:
    r"""1 if the answer is the same quantity as the reference (5 m is 500 cm, not 5 cm), 0 if it differs.

    Like `math`, except that a unit stated on one side only counts as different by default (``missing_unit``).

    >>> units(Rollout(r"\boxed{500\text{ cm}}", answer="5 m")).value, units(Rollout("5", answer="5 m")).value
    (1.0, 0.0)
    """
    rules = {"missing_unit": missing_unit, "seconds": seconds}
    return _scored(rollout, "units", rules, {Reason.NO_ANSWER: no_answer, Reason.PREDICTION_UNPARSABLE: unparsable},
                   reference, part)  # fmt: skip


def _scored(
    rollout: Rollout,
    kind: str,
    rules: Mapping[str, Any],
    given: Mapping[Reason, float | None],
    reference: str,
    part: Part,
) -> Score:
    """The verdict on the first reference that is met, else on the one that leaves most open."""
    golds = references(rollout, reference)
    if not golds:
        return Score.unknown(NO_REFERENCE)
    text = written(rollout, part)
    verdicts: list[Verdict] = []
    for gold in golds:
        verdict = check_answer(gold, text, kind, **rules)
        if verdict.equal:
            return _score(verdict, 1.0)
        verdicts.append(verdict)
    open_ones = [v for v in verdicts if v.equal is None]
    if not open_ones:
        return _score(verdicts[0], 0.0)
    return _score(open_ones[0], given.get(open_ones[0].reason))


def _score(verdict: Verdict, value: float | None) -> Score:
    evidence: dict[str, Any] = {
        "extracted": None if verdict.extracted is None else shown(verdict.extracted),
        "rule": verdict.rule, "reference": shown(verdict.gold or ""), "tier": verdict.tier,
    }  # fmt: skip
    if value is None:
        return Score.unknown(f"{verdict.reason}: {verdict.detail}", **evidence)
    return Score(value, **evidence)
