"""Finding the answer in a completion; the rule that fired and where the answer lies are part of the result."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from .boxes import Extraction, boxed_answer, is_negated, unit_behind
from .nodes import Unparsable
from .normal import normalise, undouble
from .policy import DEFAULT, Policy
from .statements import parse
from .words import choice_letters

__all__ = ["Extraction", "extract"]

TAIL = 6_000  # anchors, mathematics and numbers are sought in the last characters only


NOTHING = Extraction(None, "", None, "no answer found")


def extract(completion: str, kind: str = "math", policy: Policy = DEFAULT) -> Extraction:
    """The answer a completion states: tags, boxes, ``####``, the whole text, "the answer is", the last formula.

    Thinking sections are skipped; the last box wins; a negated answer is none. Linear in the completion's length.

    Example:
        >>> extract(r"<think>\\boxed{7}</think> So \\boxed{4}, no, \\boxed{5}.").text
        '5'
    """
    start = visible(completion)
    if start is None:
        return Extraction(None, "", None, "the completion never leaves its thinking section")
    text = completion[start:] if start else completion
    found = _extract(text, kind, policy)
    if found.span is not None and start:
        found = Extraction(found.text, found.rule, (found.span[0] + start, found.span[1] + start), found.problem)
    return found


def visible(text: str) -> int | None:
    """Where the answer part begins: after the last closed thinking section; ``None`` if one is left open."""
    at = 0
    if not ("</" in text or "<think" in text or "<reasoning>" in text or "<scratchpad>" in text):
        return 0
    for name in ("think", "thinking", "reasoning", "scratchpad"):
        close = text.rfind(f"</{name}>")
        if close >= 0:
            at = max(at, close + len(name) + 3)
        opened = text.rfind(f"<{name}>")
        if opened >= 0 and opened > close:
            return None if opened == 0 or not text[:opened].strip() or opened >= at else at
    return at


def _extract(text: str, kind: str, policy: Policy) -> Extraction:
    if "</" in text:
        for tag in policy.tags:
            found = _tagged(text, tag, kind, policy)
            if found is not None:
                return found
    boxed = boxed_answer(text, policy) if "\\boxed" in text or "\\fbox" in text or "\\framebox" in text else None
    if boxed is not None:
        later = _anchored(text[boxed.span[1] :], kind, policy, FINAL) if boxed.span else None
        if later is not None and later.text and policy.which == "last" and boxed.span:
            shift = boxed.span[1]
            span = (later.span[0] + shift, later.span[1] + shift) if later.span else None
            return Extraction(later.text, later.rule, span)
        return boxed
    return _unmarked(text, kind, policy)


def _unmarked(text: str, kind: str, policy: Policy) -> Extraction:
    at = text.rfind("####")
    if at >= 0:
        line = text[at + 4 :].lstrip(" #").split("\n", 1)[0].strip()
        if line:
            return Extraction(line, "hashes", (text.index(line, at), text.index(line, at) + len(line)))
    if not text or text.isspace():
        return NOTHING
    offset = max(0, len(text) - TAIL)
    tail = text[offset:] if offset else text
    tail = _SPECIAL.sub("", tail) if "<|" in tail else tail
    found = (
        _labelled(tail)
        or _whole(text, kind, policy)
        or _anchored(tail, kind, policy, ANCHOR)
        or _line_answer(tail)
        or (_last_choice(tail, policy) if kind == "choice" else _last_value(tail))
        or _short_text(text, kind)
    )
    if found is None:
        return NOTHING
    if found.span and offset and found.rule != "whole":
        return Extraction(found.text, found.rule, (found.span[0] + offset, found.span[1] + offset), found.problem)
    return found


_SPECIAL = re.compile(r"<\|[A-Za-z_]{1,30}\|>(?:\s*(?:user|assistant))?\s*$")


# -- tags ---------------------------------------------------------------------------------------------------


def _tagged(text: str, tag: str, kind: str, policy: Policy) -> Extraction | None:
    end = text.find(f"</{tag}>") if policy.which == "first" else text.rfind(f"</{tag}>")
    start = text.rfind(f"<{tag}>", 0, end) if end >= 0 else -1
    if start < 0:
        return None
    start += len(tag) + 2
    inner = text[start:end]
    if not inner.strip():
        return Extraction(None, "tag", (start, end), "the answer tag is empty")
    if "\\boxed" in inner or "\\fbox" in inner:
        boxed = boxed_answer(inner, policy)
        if boxed is not None and boxed.text:
            span = (boxed.span[0] + start, boxed.span[1] + start) if boxed.span else None
            return Extraction(boxed.text, "tag", span)
    if len(inner) > 300 or not _readable(inner):
        nested = _unmarked(inner, kind, policy)
        if nested.text is not None or nested.problem.startswith(("negated", "hedged")):
            span = (nested.span[0] + start, nested.span[1] + start) if nested.span else None
            return Extraction(nested.text, "tag", span, nested.problem)
    return Extraction(inner.strip(), "tag", (start, end))


# -- unmarked answers -------------------------------------------------------------------------------------------------


def _readable(text: str) -> bool:
    """Whether ``text`` parses as one answer and isn't a lone long word sequence."""
    if len(text) > 1_500:
        return False
    try:
        parse(normalise(text))
    except Unparsable:
        return False
    return True


def _whole(text: str, kind: str, policy: Policy) -> Extraction | None:
    plain = text.strip()
    if _blank(plain):
        return NOTHING
    if len(plain) > 24_000 or (len(plain) > 400 and (" " in plain[:200] and plain[:200].count(" ") > 20)):
        return None
    at = text.index(plain)
    if kind == "choice":
        return Extraction(plain, "whole", (at, at + len(plain))) if choice_letters(plain, policy) else None
    if kind == "text" and len(plain) <= 60 and "\n" not in plain and not re.search(ANCHOR_WORDS, plain, re.I):
        return Extraction(plain, "whole", (at, at + len(plain)))
    if plain.count("$") > 2 and "\\$" not in plain and not _listed(plain):
        return None
    if "\n" in plain and plain.count("\\begin") == 0 and not plain.startswith(("$", "\\[", "\\(")):
        return None
    if _readable(plain) or (len(plain) > 1_500 and " " not in plain[:100]):
        return Extraction(plain, "whole", (at, at + len(plain)))
    return None


def _blank(plain: str) -> bool:
    """Nothing but punctuation; the empty set written as \\{ \\} is something."""
    return not plain.strip(" $\\{}()[].,;:!?*#`'\"~-_") and not re.fullmatch(r"[$ ]*\\\{\s*\\\}[$ .]*", plain)


def _listed(text: str) -> bool:
    outside = re.sub(r"\$[^$]*\$", " ", text)
    return not re.sub(r"[\s,;.&]|\b(?:and|or)\b", "", outside)


ANCHOR_WORDS = r"\banswer\b|\btherefore\b|\bthus\b|\bhence\b|\bso\b"
_LEAD = (
    r"[\s*_:]*(?:\b(?:is|are|was|equals?|be|would be|should be|must be|will be)\b|[:=：]|\bis:)[\s*_]*"
    r"(?:(?:given|simply|therefore|thus|also|just|exactly|option|choice)\s+(?:by\s+)?)?[:：]?\s*"
)
_OF = r"(?:\s+(?:to|for|of|here|in)\b[^.\n:$]{0,60}?)?"
ANCHOR = re.compile(
    rf"(?:\b(?:final|correct|right|best)\s+(?:answer|option|choice|result)|\banswer|\bresult){_OF}{_LEAD}|答案[是为：:]+\s*",
    re.I,
)
ANCHOR_STEMS = ("nswer", "NSWER", "esult", "ption", "hoice", "答案")
FINAL = re.compile(rf"\bfinal\s+(?:answer|result){_OF}{_LEAD}", re.I)
_END = re.compile(r"\n|[.!?](?=\s|$)(?<!\bvs\.)|\s(?:because|since|as it|which|where|so that|I hope|per)\b|<\|")
_MATH = re.compile(
    r"\$\$(.+?)\$\$|\\\[((?:(?!\\\[).)+?)\\\]|\\\(((?:(?!\\\().)+?)\\\)|(?<![\\$])\$((?:[^$\\]|\\.){1,2000}?)\$", re.S
)


def _anchored(tail: str, kind: str, policy: Policy, pattern: re.Pattern[str]) -> Extraction | None:
    if not any(word in tail for word in ANCHOR_STEMS):
        return None
    matches = list(pattern.finditer(tail, max(0, len(tail) - TAIL)))
    if not matches:
        return None
    for match in matches if policy.which == "first" else reversed(matches[-4:]):
        found = _after_anchor(tail, match.end(), kind, policy)
        if found is not None:
            return found
    return None


def _after_anchor(tail: str, at: int, kind: str, policy: Policy) -> Extraction | None:
    rest = tail[at:]
    first = _MATH.match(rest.lstrip('* "'))
    end = _sentence_end(rest)
    content = rest[:end].strip().strip("*_").strip()
    if not content:
        return None
    if re.match(r"(?:not|isn't|never)\b", content, re.I):
        return Extraction(None, "anchor", (at, at + end), "negated: the answer is said not to be this")
    span = (at, at + end)
    if kind == "choice":
        letters = choice_letters(content, policy) or _leading_letter(content, policy)
        return Extraction("".join(sorted(letters)) if letters else content, "anchor", span)
    if _readable(content):
        return Extraction(content, "anchor", span)
    lead = _leading_letter(content, policy)
    if lead:
        return Extraction("".join(lead), "anchor", span)
    for pattern in (r"^.*\b(?:is|are|equals|was|=)\s+(.+)$",):
        inner = re.match(pattern, content, re.S)
        if inner and _readable(inner[1].strip("* ")):
            return Extraction(inner[1].strip("* "), "anchor", span)
    if first is not None:
        return Extraction(next(g for g in first.groups() if g), "anchor", span)
    if kind == "text" or len(content.split()) <= 4:
        return Extraction(content, "anchor", span)
    if re.search(r"\bor\b|\beither\b", content, re.I):
        return Extraction(None, "anchor", span, "hedged: several answers are offered")
    value = _last_value(content)
    if value is not None and value.span:
        return Extraction(value.text, "anchor", (at + value.span[0], at + value.span[1]), value.problem)
    return Extraction(content, "anchor", span)


def _sentence_end(rest: str) -> int:
    """End of the sentence that holds the answer; full stops inside formulas don't count."""
    at = 0
    limit = min(len(rest), 1_500)
    while at < limit:
        end = _END.search(rest, at, limit)
        if end is None:
            return limit
        math = _MATH.search(rest, at, limit)
        if math is None or math.start() >= end.start():
            if end[0] == "\n" and not rest[: end.start()].strip(" *_:"):
                at = end.end()
                continue
            return end.start()
        at = math.end()
    return limit


def _leading_letter(content: str, policy: Policy) -> frozenset[str] | None:
    match = re.match(r"[(\[*\s]*([A-Z])[)\]*]*(?=$|[.,:;)]|\s(?:because|since|as|is|and it|-|–))", content)
    return frozenset(match[1]) if match and match[1] in policy.options else None


_LABEL = re.compile(r"\n(?:A|ANS|Ans|ans)\s?:[ \t]*([^\n]*\S)\s*$")


def _labelled(tail: str) -> Extraction | None:
    """``A: 70`` as the last line."""
    at = tail.rstrip().rfind("\n")
    match = _LABEL.match(tail, at) if at >= 0 else None
    return Extraction(match[1], "anchor", match.span(1)) if match else None


def _line_answer(tail: str) -> Extraction | None:
    """A last line that is an answer by itself, or a bracketed [5] at its end."""
    lines = tail.rstrip().rsplit("\n", 1)
    last, at = lines[-1].strip(), len(tail.rstrip()) - len(lines[-1])
    if len(lines) > 1 and 0 < len(last) <= 100 and _readable(last):
        return Extraction(last, "whole", (at, at + len(last)))
    match = re.search(r"\[([^\[\]\n]{1,80})\]\.?$", last)
    if match and not last[: match.start()].endswith("\\") and "(" not in match[1] and _readable(match[1]):
        return Extraction(match[1], "number", (at + match.start(1), at + match.end(1)))
    return None


_NUMBER = re.compile(
    r"[(\[]\s*-?[\d./]{1,20}(?:\s*,\s*-?[\d./]{1,20}){1,8}\s*[)\]]|"
    r"(?<![\w.,/^])(?:[-−]\s?)?[$€£]?\d+(?:[.,]\d+)*(?:\s?/\s?\d+(?!\d|\.\d))?(?:\^\{?\d+\}?)?"
    r"(?:\s*(?:\\?%|percent\b|pct\b|degrees\b|°)|\s?(?:€|m²|m\^2|cm²))?"
)


def _last_match(pattern: re.Pattern[str], text: str, start: int) -> re.Match[str] | None:
    last: re.Match[str] | None = None
    for match in pattern.finditer(text, start):
        last = match
    return last


def _last_value(tail: str) -> Extraction | None:
    """The last formula or plain number, whichever comes later."""
    formula = _last_match(_MATH, tail, 0)
    number = _last_match(_NUMBER, tail, formula.end() if formula else 0)
    best = number or formula
    if best is None:
        return None
    text = best[0] if best is number else next(g for g in best.groups() if g)
    before = tail[max(0, best.start() - 40) : best.start()]
    if is_negated(tail, best.start()):
        return Extraction(None, "number", best.span(), "negated: the last value follows a not")
    if re.search(r"\d[\s$]*\bor\s*\$?$", before):
        return Extraction(None, "number", best.span(), "hedged: several answers are offered")
    if best is formula:
        text += unit_behind(tail, best.end())
    return Extraction(text, "math" if best is formula else "number", best.span())


def _last_choice(tail: str, policy: Policy) -> Extraction | None:
    last: re.Match[str] | None = None
    for match in re.finditer(r"(?<![\w'’])\(?([A-Z])\)?(?![\w'’])(?!\s[a-z]+\b(?<!\bbecause)(?<!\bsince))", tail):
        if match[1] in policy.options and not is_negated(tail, match.start()):
            last = match
    return Extraction(last[1], "choice", last.span(1)) if last else None


def _short_text(text: str, kind: str) -> Extraction | None:
    plain = text.strip()
    if re.match(r"I\b|I'|sorry\b", plain, re.I):
        return Extraction(None, "whole", None, "no answer: the completion declines")
    if len(plain) <= 60 and kind != "choice":
        at = text.index(plain)
        return Extraction(plain, "whole", (at, at + len(plain)))
    return None


def extract_gold(gold: str, kind: str = "math", policy: Policy = DEFAULT) -> Extraction:
    """The answer of a gold string: its box or tag if it has one, the whole string if short, else as for completions."""
    return _gold_cached(gold, kind, policy) if len(gold) <= 400 else _gold(gold, kind, policy)


@lru_cache(maxsize=4096)
def _gold_cached(gold: str, kind: str, policy: Policy) -> Extraction:
    return _gold(gold, kind, policy)


def _gold(gold: str, kind: str, policy: Policy) -> Extraction:
    plain = gold.strip()
    if _blank(plain):
        return NOTHING
    if "\\boxed" in gold or "\\fbox" in gold or any(f"</{t}>" in gold for t in policy.tags) or "####" in gold:
        lenient = replace(policy, unclosed_box=True)
        found = boxed_answer(undouble(gold), lenient, gold=True) if "boxed" in gold else None
        found = found or extract(gold, kind, lenient)
        if found.text or found.rule in ("box", "tag"):
            return found
    if len(plain) > 150 and "nswer" in plain and "$" in plain:
        found = extract(gold, kind, policy)
        if found.text and found.rule in ("anchor", "box"):
            return found
    at = gold.index(plain)
    return Extraction(plain, "gold", (at, at + len(plain)))
