"""Public entry points: two answers, a completion against its gold answer, a file of gold answers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from .compare import compare
from .dates import compare_times
from .extract import Extraction, extract, extract_gold
from .nodes import MAX_CHARS, Expr, Op, Sym, Unparsable
from .parser import SHORT_WORDS
from .normal import normalise, text_key
from .policy import KINDS, Policy, policy_from
from .scalar import profile
from .symbolic import algebra_pool, equal_by_algebra, worth_algebra
from .units import parse_unit
from .verdict import Outcome, Reason, Verdict, differs, same, undecided
from .words import canonical_text, choice_letters, compare_texts, number_words
from . import statements

__all__ = ["GoldReport", "check_answer", "check_golds", "equivalent", "explain_answer"]


def equivalent(a: str, b: str, **policy: Any) -> Verdict:
    """Whether two answers are the same, under a :class:`Policy` given as keywords.

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
    outcome = _judge(left, right, "math", rules)
    return _verdict(outcome, left, right, started)


def check_answer(gold: str, completion: str, kind: str = "math", **policy: Any) -> Verdict:
    """Whether the answer that ``completion`` states equals ``gold``.

    ``kind``: ``math`` (anything mathematical, also choices and words), ``number``, ``choice``, ``text``, ``units``
    (as math, but a missing unit isn't accepted unless the policy says so). Thinking sections are skipped.
    Errors and unknowns as in :func:`equivalent`. Any thread.

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
        if kind == "math" and right.rule not in ("box", "tag", "hashes", "whole") and _is_choice(left.text, rules):
            right = extract(completion, "choice", rules)
    return _verdict(_judge(left, right, kind, rules), left, right, started)


def _text(value: object) -> str:
    """Answers are strings; whole numbers and floats, as JSON data sets hold them, are written out."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    raise TypeError(f"an answer is a str, not {type(value).__name__}")


def _is_choice(text: str | None, policy: Policy) -> bool:
    if not text or len(text) > 40 or text[-1].isdigit():
        return False
    plain = text.strip(" ()[].*$")
    return (len(plain) == 1 and plain in policy.options) or bool(_STYLED_LETTER.fullmatch(text.strip("$ .\\()[]")))


_STYLED_LETTER = re.compile(r"\\?(?:boxed\{)?\\?(?:text|textbf|mathrm|mathbf)\{\(?[A-J]\)?\}\}?")


def _verdict(outcome: Outcome, left: Extraction, right: Extraction, started: float) -> Verdict:
    return Verdict(
        outcome.equal, outcome.reason, outcome.tier, right.text, time.perf_counter() - started,
        left.text, right.rule, right.span, outcome.detail,
    )  # fmt: skip


# -- tiers ----------------------------------------------------------------------------------------------------------------


def _judge(gold: Extraction, found: Extraction, kind: str, policy: Policy) -> Outcome:
    if gold.text is None or not gold.text.strip():
        return undecided(Reason.GOLD_UNPARSABLE, "extraction", gold.problem or "the gold answer is empty")
    if found.text is None or not found.text.strip():
        return undecided(Reason.NO_ANSWER, "extraction", found.problem or "no answer found")
    if kind == "choice":
        return _choices(gold.text, found.text, policy)
    if kind == "text":
        return compare_texts(normalise(gold.text), normalise(found.text), policy)
    if kind == "math" and _INTEGER.fullmatch(gold.text) and _INTEGER.fullmatch(found.text):
        return same("number") if int(gold.text) == int(found.text) else differs("number")
    if max(len(gold.text), len(found.text)) > MAX_CHARS:
        return _too_long(gold.text, found.text)
    left, right = _normal(gold.text), _normal(found.text)
    if not _something(left) or not _something(right):
        reason = Reason.GOLD_UNPARSABLE if not _something(left) else Reason.NO_ANSWER
        return undecided(reason, "extraction", "nothing but punctuation")
    if left in ("nan", "NaN") or right in ("nan", "NaN"):
        return undecided(Reason.GOLD_UNPARSABLE if left.lower() == "nan" else Reason.PREDICTION_UNPARSABLE, "text", "not a number")
    if left == right and not _UNSURE.search(left):
        return same("text")
    return _parsed(left, right, policy, kind)


def _something(text: str) -> bool:
    """Whether anything is left once commands for style and brackets are taken away."""
    return bool(text) and ("\\" not in text or len(text) > 40 or bool(text_key(text).strip(" {}()[]$")))


def _too_long(gold: str, found: str) -> Outcome:
    if gold == found:
        return same("text")
    reason = Reason.GOLD_UNPARSABLE if len(gold) > MAX_CHARS else Reason.PREDICTION_UNPARSABLE
    return undecided(reason, "extraction", f"longer than {MAX_CHARS} characters")


def _normal(text: str) -> str:
    return _normal_cached(text) if len(text) <= 400 else normalise(text)


@lru_cache(maxsize=4096)
def _normal_cached(text: str) -> str:
    return normalise(text)


_UNSURE = re.compile(r"^(?:not\b(?=.{0,40}\d)|nan$)", re.I)
_INTEGER = re.compile(r"-?[0-9]{1,300}")


def _parsed(left: str, right: str, policy: Policy, kind: str) -> Outcome:
    letters = _letters(left, right, policy)
    if letters is not None:
        return letters
    times = compare_times(left, right)
    if times is not None:
        return times
    trees: list[Expr | None] = []
    problems: list[str] = []
    for text in (left, right):
        try:
            trees.append(_tree(text))
        except Unparsable as problem:
            trees.append(None)
            problems.append(str(problem))
    a, b = trees
    if a is None or b is None:
        return _unparsed(left, right, a, b, problems, policy)
    if kind == "number" and not (_is_number(a) and _is_number(b)):
        bad = Reason.GOLD_UNPARSABLE if not _is_number(a) else Reason.PREDICTION_UNPARSABLE
        return undecided(bad, "number", "not a number")
    outcome = compare(a, b, policy)
    if outcome.equal is None and outcome.reason is Reason.UNDECIDED:
        if text_key(left, policy.case == "ignore") == text_key(right, policy.case == "ignore"):
            return same("text")
        if policy.seconds and worth_algebra(a, b):
            return _algebra(a, b, policy, outcome)
    return outcome


def _tree(text: str) -> Expr:
    if len(text) <= 80 and text[:1].isalpha() and (number := number_words(text)) is not None:
        return statements.parse(str(number))
    if _WORDS.fullmatch(text) and (text.lower() in SHORT_WORDS or not _FORMULA_WORD.fullmatch(text)):
        return Op("text:" + text, ())
    soft = _SOFT_UNIT.fullmatch(text)
    if soft and parse_unit(soft[2]) is not None:
        text = rf"{soft[1]}\text{{ {soft[2]}}}"
    return statements.parse(text)


_SOFT_UNIT = re.compile(r"(-?\d[\d.,/]*)\s+([A-Za-z]{1,3}(?:[/*][A-Za-z]{1,3})*(?:\^?\{?[23]\}?)?)")
_WORDS = re.compile(r"[A-Za-z][A-Za-z'’-]+(?: [A-Za-z'’-]+)*")
_FORMULA_WORD = re.compile(r"(?:pi|infinity|inf|oo|infty|[A-Z]{2}|[a-z]{2,3}|alpha|beta|gamma|theta|lambda|mu|sigma|phi|omega|rho|tau)")


def _is_number(expr: Expr) -> bool:
    return not profile(expr).names or (isinstance(expr, Op) and expr.head in ("rel:=", "quantity", "rel:~=", "percent", "either"))


def _letters(left: str, right: str, policy: Policy) -> Outcome | None:
    """A gold option letter: the prediction may repeat the option's text behind it."""
    if not _is_choice(left, policy) and not _is_choice(right, policy):
        return None
    la, lb = choice_letters(left, policy), choice_letters(right, policy)
    if la is None or lb is None:
        return None
    return same("text", "option letters") if la == lb else differs("text", "option letters")


def _unparsed(left: str, right: str, a: Expr | None, b: Expr | None, problems: list[str], policy: Policy) -> Outcome:
    """At least one side isn't in the grammar: equal as text, different as plain words, else unknown."""
    if canonical_text(left, policy) == canonical_text(right, policy) and canonical_text(left, policy) and not _UNSURE.search(left):
        return same("text")
    if text_key(left).replace(" ", "") == text_key(right).replace(" ", "") and text_key(left) and not _UNSURE.search(left):
        return same("text")
    prose = [_prose(left), _prose(right)]
    if all(prose):
        return compare_texts(left, right, policy)
    for text, tree, other in ((left, a, b), (right, b, a)):
        if tree is None and other is not None and _prose(text) and not _is_text(other):
            return differs("text", "words and a value") if len(text.split()) <= 6 else _unread(a, problems)
    return _unread(a, problems)


def _unread(a: Expr | None, problems: list[str]) -> Outcome:
    reason = Reason.GOLD_UNPARSABLE if a is None else Reason.PREDICTION_UNPARSABLE
    return undecided(reason, "structure", problems[0] if problems else "not an answer")


def _is_text(expr: Expr) -> bool:
    return (isinstance(expr, Op) and expr.head.startswith("text:")) or (isinstance(expr, Sym) and len(expr.name) > 1)


def _prose(text: str) -> bool:
    key = text_key(text)
    return len(key) > 1 and not re.search(r"[\d\\^_=<>+*/|{}]", key) and bool(re.search(r"[^\W\d_]{2}", key))


def _choices(gold: str, found: str, policy: Policy) -> Outcome:
    want = choice_letters(normalise(gold), policy) or _gold_letter(gold, policy)
    if want is None and policy.choices:
        want = _by_text(gold, policy)
    if want is None:
        return undecided(Reason.GOLD_UNPARSABLE, "text", "the gold answer names no option")
    got = choice_letters(normalise(found), policy) or (_by_text(found, policy) if policy.choices else None)
    if got is None:
        return undecided(Reason.PREDICTION_UNPARSABLE, "text", "the answer names no option")
    return same("text") if want == got else differs("text")


def _gold_letter(gold: str, policy: Policy) -> frozenset[str] | None:
    lines = [line for line in gold.strip().splitlines() if line.strip()]
    candidates = [lines[0], lines[-1]] if lines else []
    for line in candidates:
        match = re.match(r"\s*\(?([A-Z])\)?[\s.:)]", line)
        if match and match[1] in policy.options:
            return frozenset(match[1])
    return None


def _by_text(text: str, policy: Policy) -> frozenset[str] | None:
    key = canonical_text(normalise(text), policy)
    found = [letter for letter, option in zip(policy.options, policy.choices, strict=False) if canonical_text(option, policy) == key]
    return frozenset(found) if len(found) == 1 else None


def _algebra(a: Expr, b: Expr, policy: Policy, before: Outcome) -> Outcome:
    outcome = algebra_pool().map(equal_by_algebra, [(a, b)], timeout=policy.seconds)[0]
    if outcome.kind == "ok" and outcome.value is not None:
        return same("algebra") if outcome.value else differs("algebra")
    if outcome.kind == "timeout":
        return undecided(Reason.TIMED_OUT, "algebra", f"no result within {policy.seconds:g} s")
    detail = "computer algebra can't tell" if outcome.kind == "ok" else f"computer algebra failed: {outcome.error}"
    return replace(before, tier="algebra", detail=detail)


# -- explanations and gold reports ------------------------------------------------------------------------------------------


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
        return f"parsed as {shape(_tree(normalise(text)))}"
    except Unparsable as problem:
        return f"not in the grammar: {problem}"


def shape(expr: Expr) -> str:
    """One word for what an answer tree is."""
    if isinstance(expr, Op):
        kind = expr.head.split(":", 1)[0]
        return {"rel": "a relation", "either": "a number or a list", "list": "a list without order", "text": "words"}.get(
            kind, kind if kind in ("set", "tuple", "interval", "matrix", "quantity", "percent", "ratio", "record") else "an expression"
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
