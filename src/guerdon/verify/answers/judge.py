"""The tiers, cheapest first: text, plain numbers, option letters, times, structure, computer algebra."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from . import statements
from .boxes import Extraction
from .building import SHORT_WORDS
from .compare import compare
from .dates import compare_times
from .exact import Undefined, rational
from .nodes import MAX_CHARS, Expr, Op, Sym, Unparsable
from .normal import normalise, text_key
from .policy import Policy
from .scalar import profile
from .symbolic import algebra_pool, equal_by_algebra, worth_algebra
from .units import parse_unit
from .verdict import Outcome, Reason, differs, same, undecided
from .words import canonical_text, choice_letters, compare_texts, number_words

__all__ = ["is_choice", "judge", "tree_of"]


def is_choice(text: str | None, policy: Policy) -> bool:
    if not text or len(text) > 40 or text[-1].isdigit():
        return False
    plain = text.strip(" ()[].*$")
    return (len(plain) == 1 and plain in policy.options) or bool(_STYLED_LETTER.fullmatch(text.strip("$ .\\()[]")))


_STYLED_LETTER = re.compile(r"\\?(?:boxed\{)?\\?(?:text|textbf|mathrm|mathbf)\{\(?[A-J]\)?\}\}?")


def judge(gold: Extraction, found: Extraction, kind: str, policy: Policy) -> Outcome:
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
        return undecided(
            Reason.GOLD_UNPARSABLE if left.lower() == "nan" else Reason.PREDICTION_UNPARSABLE, "text", "not a number"
        )
    if left == right and not _UNSURE.search(left) and not _BY_ZERO.search(left):
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


_BY_ZERO = re.compile(r"/\s*\(?\s*0|\{\s*0\s*\}|0\s*\^|frac\s*\d\s*0")
_UNSURE = re.compile(r"^(?:not\b(?=.{0,40}\d)|nan$)", re.I)
_INTEGER = re.compile(r"-?[0-9]{1,300}")


def _parsed(left: str, right: str, policy: Policy, kind: str) -> Outcome:
    """The structural tiers, then computer algebra where only that can tell.

    Answers of a group repeat, so recent pairs are remembered; a timed-out algebra check never is.
    """
    short = len(left) + len(right) <= 400
    outcome, hard = (_remembered if short else _structural)(left, right, policy, kind)
    return _algebra(*hard, policy, outcome) if hard is not None and policy.seconds else outcome


Hard = tuple[Expr, Expr] | None


@lru_cache(maxsize=4096)
def _remembered(left: str, right: str, policy: Policy, kind: str) -> tuple[Outcome, Hard]:
    return _structural(left, right, policy, kind)


def _structural(left: str, right: str, policy: Policy, kind: str) -> tuple[Outcome, Hard]:
    """Every tier that runs in this process; with it the trees, if computer algebra may still tell them apart."""
    outcome = _letters(left, right, policy) or compare_times(left, right)
    if outcome is not None:
        return outcome, None
    trees: list[Expr | None] = []
    problems: list[str] = []
    for text in (left, right):
        try:
            trees.append(tree_of(text))
        except Unparsable as problem:
            trees.append(None)
            problems.append(str(problem))
    a, b = trees
    if a is None or b is None:
        return _unparsed(left, right, a, b, problems, policy), None
    if kind == "number" and not (_is_number(a) and _is_number(b)):
        bad = Reason.GOLD_UNPARSABLE if not _is_number(a) else Reason.PREDICTION_UNPARSABLE
        return undecided(bad, "number", "not a number"), None
    if (_BY_ZERO.search(left) and _undefined(a)) or (_BY_ZERO.search(right) and _undefined(b)):
        bad = Reason.GOLD_UNPARSABLE if _undefined(a) else Reason.UNDECIDED
        return undecided(bad, "number", "an undefined value: division by zero"), None
    outcome = compare(a, b, policy)
    if outcome.equal is None and outcome.reason is Reason.UNDECIDED:
        fold = policy.case == "ignore"
        if text_key(left, fold) == text_key(right, fold) and not _undefined(a):
            return same("text"), None
        return outcome, (a, b) if worth_algebra(a, b) else None
    return outcome, None


def _undefined(expr: Expr) -> bool:
    """Whether the value is a division by zero: nothing equals that, not even itself."""
    try:
        rational(expr)
    except Undefined:
        return True
    return False


def tree_of(text: str) -> Expr:
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
_FORMULA_WORD = re.compile(
    r"(?:pi|infinity|inf|oo|infty|[A-Z]{2,3}|[a-z]{2,3}|alpha|beta|gamma|theta|lambda|mu|sigma|phi|omega|rho|tau)"
)


def _is_number(expr: Expr) -> bool:
    return not profile(expr).names or (
        isinstance(expr, Op) and expr.head in ("rel:=", "quantity", "rel:~=", "percent", "either")
    )


def _letters(left: str, right: str, policy: Policy) -> Outcome | None:
    """A gold option letter: the prediction may repeat the option's text behind it."""
    if not is_choice(left, policy) and not is_choice(right, policy):
        return None
    la, lb = choice_letters(left, policy), choice_letters(right, policy)
    if la is None or lb is None:
        return None
    return same("text", "option letters") if la == lb else differs("text", "option letters")


def _unparsed(left: str, right: str, a: Expr | None, b: Expr | None, problems: list[str], policy: Policy) -> Outcome:
    """At least one side isn't in the grammar: equal as text, different as plain words, else unknown."""
    if (
        canonical_text(left, policy) == canonical_text(right, policy)
        and canonical_text(left, policy)
        and not _UNSURE.search(left)
    ):
        return same("text")
    if (
        text_key(left).replace(" ", "") == text_key(right).replace(" ", "")
        and text_key(left)
        and not _UNSURE.search(left)
    ):
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
    found = [
        letter
        for letter, option in zip(policy.options, policy.choices, strict=False)
        if canonical_text(option, policy) == key
    ]
    return frozenset(found) if len(found) == 1 else None


def _algebra(a: Expr, b: Expr, policy: Policy, before: Outcome) -> Outcome:
    outcome = algebra_pool().map(equal_by_algebra, [(a, b)], timeout=policy.seconds)[0]
    if outcome.kind == "ok" and outcome.value is not None:
        return same("algebra") if outcome.value else differs("algebra")
    if outcome.kind == "timeout":
        return undecided(Reason.TIMED_OUT, "algebra", f"no result within {policy.seconds:g} s")
    detail = "computer algebra can't tell" if outcome.kind == "ok" else f"computer algebra failed: {outcome.error}"
    return replace(before, tier="algebra", detail=detail)
