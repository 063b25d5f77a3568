"""Public entry points: two answers, a completion against its gold answer, a file of gold answers."""

from __future__ import annotations

import time
from typing import Any

from .boxes import Extraction
from .extract import extract, extract_gold
from .judge import is_choice, judge
from .policy import KINDS, policy_from
from .verdict import Outcome, Verdict

__all__ = ["check_answer", "equivalent"]


def equivalent(a: str, b: str, **policy: Any) -> Verdict:
    """Whether two answers are the same, under a `Policy` given as keywords.

    ``equal`` is ``None`` with a reason when that can't be said: unknown never turns into different.
    Symmetric; transitive among answers that state their units, names and precision alike. Any thread.
    Raises ``TypeError`` for a policy option that doesn't exist and ``ValueError`` for a wrong value.

    Example:
        >>> equivalent("1/2", r"\\frac{2}{4}").equal, equivalent("5 m", "5 cm").equal
        (True, False)
        >>> equivalent("1/3", "0.33").reason
        <Reason.POLICY: 'policy'>
    """
    started = time.perf_counter()
    rules = policy_from(policy)
    left, right = extract_gold(_text(a), "math", rules), extract_gold(_text(b), "math", rules)
    outcome = judge(left, right, "math", rules)
    return _verdict(outcome, left, right, started)


def check_answer(gold: str, completion: str, kind: str = "math", **policy: Any) -> Verdict:
    """Whether the answer that ``completion`` states equals ``gold``.

    ``kind``: ``math`` (anything mathematical, also choices and words), ``number``, ``choice``, ``text``, ``units``
    (as math, but a missing unit isn't accepted unless the policy says so). Thinking sections are skipped.
    Errors and unknowns as in `equivalent`. Any thread.

    Example:
        >>> check_answer("4", r"<think>\\boxed{7}</think> \\boxed{5}? No: \\boxed{4}").equal
        True
        >>> v = check_answer("5", "The answer is not 5")
        >>> v.equal, v.reason
        (None, <Reason.NO_ANSWER: 'no answer found'>)
    """
    started = time.perf_counter()
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; it may be {', '.join(KINDS)}")
    if kind == "units":
        policy.setdefault("missing_unit", "unknown")
    rules = policy_from(policy)
    gold, completion = _text(gold), _text(completion)
    left = extract_gold(gold, kind, rules)
    if len(gold) == len(completion) and gold == completion and left.rule == "gold":
        right = left
    else:
        right = extract(completion, kind, rules)
        if kind == "math" and right.rule not in ("box", "tag", "hashes", "whole") and is_choice(left.text, rules):
            right = extract(completion, "choice", rules)
    return _verdict(judge(left, right, kind, rules), left, right, started)


def _text(value: object) -> str:
    """Answers are strings; whole numbers and floats, as JSON data sets hold them, are written out."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    raise TypeError(f"an answer is a str, not {type(value).__name__}")


def _verdict(outcome: Outcome, left: Extraction, right: Extraction, started: float) -> Verdict:
    return Verdict(
        outcome.equal, outcome.reason, outcome.tier, right.text, time.perf_counter() - started,
        left.text, right.rule, right.span, outcome.detail,
    )  # fmt: skip
