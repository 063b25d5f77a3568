"""Answers in words: numbers spelled out, option letters, and plain text."""

from __future__ import annotations

import re
from fractions import Fraction

from .nodes import Rational
from .normal import text_key
from .policy import Policy
from .symbols import words_of
from .verdict import Outcome, Reason, differs, same, undecided

__all__ = ["choice_letter", "choice_letters", "compare_texts", "number_words"]

_ONES = {w: i for i, w in enumerate(
    words_of("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen "
    "eighteen nineteen"))}  # fmt: skip
_TENS = {w: 10 * i for i, w in enumerate(words_of("twenty thirty forty fifty sixty seventy eighty ninety"), 2)}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS = {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4,
          "fifth": 5, "fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10,
          "tenths": 10}  # fmt: skip
_WORDS = re.compile(r"[a-z]+|-")


def number_words(text: str) -> Rational | None:
    """The number spelled out in English, or ``None``.

    Example:
        >>> number_words("one hundred and twenty-five"), number_words("three quarters"), number_words("east")
        (125, Fraction(3, 4), None)
    """
    if len(text) > 120:
        return None
    low = text.strip().casefold().strip(".")
    if not re.fullmatch(r"[a-z][a-z\s-]*", low):
        return None
    words = [w for w in re.split(r"[\s-]+", low) if w]
    negative = words[:1] in (["minus"], ["negative"])
    words = words[1:] if negative else words
    if not words or words[0] == "and":
        return None
    value = _spelled(words)
    return None if value is None else (-value if negative else value)


def _spelled(words: list[str]) -> Rational | None:
    if (
        words[-1] in _PARTS
        and len(words) >= 2
        and not (words[-1] in ("third", "fourth", "fifth") and words[0] not in ("one", "a"))
    ):
        top = 1 if words[:-1] in (["a"], ["one"]) else _spelled(words[:-1])
        return Fraction(top, _PARTS[words[-1]]) if isinstance(top, int) else None
    if words == ["half"]:
        return Fraction(1, 2)
    total, group = 0, None
    for word in words:
        if word == "and" and group is not None:
            continue
        if word in _ONES or word in _TENS:
            group = (group or 0) + (_ONES[word] if word in _ONES else _TENS[word])
        elif word == "a" and group is None:
            group = 1
        elif word == "dozen" and len(words) <= 2:
            return 12 * (group or 1)
        elif word in _SCALES and group is not None:
            if word == "hundred":
                group *= 100
            else:
                total, group = total + group * _SCALES[word], 0
        else:
            return None
    return None if group is None else total + group


_LETTER = re.compile(
    r"^[\s(\[{*\"'$\\]*(?:(?i:option|choice|answer)\s*:?\s*)?[(\[]?\s*([A-Za-z])\s*[)\]]?[*\"'$]*\s*(?:$|[.:)\],]\s*(?:$|\S)|[-–—]\s|\s(?=[A-Z(]))"
)
_LETTERS = re.compile(r"^\s*[(\[{]?\s*([A-Z](?:\s*(?:,|;|&|and|\s)\s*(?:and\s+)?[A-Z])+)\s*[)\]}]?\s*\.?\s*$")


def choice_letters(text: str, policy: Policy) -> frozenset[str] | None:
    """The set of option letters that an answer text consists of (``B``, ``(B) 42``, ``A, C and D``), or ``None``."""
    if len(text) > 2_000:
        return None
    plain = re.sub(r"\\(?:text|textbf|mathrm|mathbf|textit|mbox|boxed|textnormal|rm|bf)\b\s*", "", text)
    plain = plain.replace("{", " ").replace("}", " ").replace("$", " ").replace("\\ ", " ").replace("**", "").strip()
    plain = plain[:200]
    several = _LETTERS.match(plain) if len(plain) < 100 else None
    if several:
        letters = frozenset(re.findall(r"[A-Z]", several[1]))
        return letters if letters <= frozenset(policy.options) else None
    match = _LETTER.match(plain)
    if match is None:
        return None
    letter = match[1]
    if letter.islower():
        if policy.case == "strict" or not re.fullmatch(r"[\s(\[]*[a-z][\s)\].]*", plain):
            return None
        letter = letter.upper()
    return frozenset(letter) if letter in policy.options else None


def choice_letter(text: str, policy: Policy) -> str | None:
    """The single option letter of an answer text, or ``None``."""
    letters = choice_letters(text, policy)
    return next(iter(letters)) if letters and len(letters) == 1 else None


SYNONYMS = (
    frozenset({"undefined", "does not exist", "dne", "not defined", "doesn't exist", "diverges", "divergent"}),
    frozenset(
        {
            "no solution",
            "no solutions",
            "none",
            "empty set",
            "no real solutions",
            "no real solution",
            "there is no solution",
        }
    ),
    frozenset({"yes", "true", "correct"}),
    frozenset({"no", "false", "incorrect"}),
)
_ARTICLES = re.compile(r"^(?:the|a|an)\s+")


def canonical_text(text: str, policy: Policy) -> str:
    """Text with style, articles, final punctuation and (by policy) case removed."""
    key = text_key(text, policy.case == "ignore").replace("-", " ")
    key = " ".join(word.rstrip(".,;:!?") for word in key.split())
    return _ARTICLES.sub("", key).strip()


def compare_texts(a: str, b: str, policy: Policy) -> Outcome:
    """Compare two answers in words: equal keys, equal spelled-out numbers, else different (or unknown when long)."""
    ka, kb = canonical_text(a, policy), canonical_text(b, policy)
    if not ka or not kb:
        return undecided(Reason.NO_ANSWER, "text", "one side is empty")
    if ka == kb or ka.replace(" ", "") == kb.replace(" ", ""):
        return same("text")
    na, nb = number_words(ka), number_words(kb)
    if na is not None and nb is not None:
        return same("number") if na == nb else differs("number")
    for group in SYNONYMS:
        if ka in group and kb in group:
            return undecided(Reason.POLICY, "text", f"{ka!r} and {kb!r} may mean the same")
    if len(ka.split()) > 6 or len(kb.split()) > 6:
        return undecided(Reason.UNDECIDED, "text", "free text that differs in wording")
    if len(ka) <= 3 and len(kb) <= 3 and ka.isalpha() and sorted(ka) == sorted(kb):
        return undecided(Reason.UNDECIDED, "text", "a word or a product of letters")
    return differs("text")
