"""Textual answers: exact equality, equality after normalisation, and token overlap."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable

from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import signal
from guerdon.verify._reading import NO_REFERENCE, Part, marked, references, shown, written

_PUNCTUATION = re.compile(r"[^\w\s]|_")
_NO_SIGNS = {i: " " for i in range(128) if not chr(i).isalnum() and not chr(i).isspace()}
_ARTICLES = frozenset({"a", "an", "the"})
_MAX_REFERENCE_TOKENS = 100_000


@signal(key="verify.exact", version=1, range=(0, 1))
def exact(rollout: Rollout, *, extract: str = "all", reference: str = "answer", part: Part = "final") -> Score:
    """1 if the answer is the reference, character for character, apart from white space around it; else 0.

    ``extract`` says what of the text is the answer: ``"all"``, the last ``"line"``, ``"boxed"``, ``"####"`` or a tag
    such as ``"<answer>"``; 0 if it is not there. A list of references accepts any. Unknown: no reference answer.

    >>> exact(Rollout("<answer> Paris </answer>", answer="Paris"), extract="<answer>")
    Score(1.0, extracted='Paris', rule='<answer>', reference='Paris')
    """
    return _equal(rollout, str.strip, extract, reference, part)


@signal(key="verify.text", version=1, range=(0, 1))
def text(
    rollout: Rollout, *, articles: bool = False, extract: str = "all", reference: str = "answer", part: Part = "final"
) -> Score:
    """1 if the answer equals the reference after `normalised`, else 0; parameters as for `exact`.

    ``articles=True`` keeps *a*, *an* and *the*. Unknown: no reference answer.

    >>> text(Rollout("The Eiffel  Tower!", answer="eiffel tower")).value
    1.0
    """
    return _equal(rollout, lambda raw: normalised(raw, articles), extract, reference, part)


@signal(key="verify.token_f1", version=1, range=(0, 1))
def token_f1(
    rollout: Rollout, *, articles: bool = False, extract: str = "all", reference: str = "answer", part: Part = "final"
) -> Score:
    """Harmonic mean of precision and recall of the answer's tokens against the reference's, in [0, 1].

    With c common tokens (as multisets) of the a in the answer and r in the reference, both `normalised` and split at
    white space: F1 = 2c / (a + r). Of several references the best counts. 0 if there is no answer.
    Unknown: no reference answer. Source: Rajpurkar et al., SQuAD, 2016 (arXiv 1606.05250).

    >>> token_f1(Rollout("in Paris, France", answer="Paris")).value
    0.5
    """
    golds = references(rollout, reference)
    if not golds:
        return Score.unknown(NO_REFERENCE)
    found = marked(written(rollout, part), extract)
    mine = Counter(normalised(found.text, articles).split()) if found else Counter()
    best, against, common = 0.0, golds[0], 0
    for gold in golds:
        theirs = Counter(normalised(gold, articles).split()[:_MAX_REFERENCE_TOKENS])
        shared = (mine & theirs).total()
        f1 = 2 * shared / (mine.total() + theirs.total()) if shared else 0.0
        if f1 > best:
            best, against, common = f1, gold, shared
    return Score(
        best, extracted=shown(found.text) if found else None, rule=extract, reference=shown(against), common=common
    )


def normalised(raw: str, articles: bool = False) -> str:
    """A text in compatible form (NFKC), lower case, without punctuation and (unless kept) articles, spaces single.

    What would leave nothing keeps its articles, and then its punctuation: "A" is "a", "?" is "?".

    >>> normalised("The  “Cat”, sat."), normalised("A"), normalised("?!")
    ('cat sat', 'a', '?!')
    """
    folded = (raw if raw.isascii() else unicodedata.normalize("NFKC", raw)).casefold()
    words = (folded.translate(_NO_SIGNS) if folded.isascii() else _PUNCTUATION.sub(" ", folded)).split()
    if not articles and (short := " ".join([w for w in words if w not in _ARTICLES])):
        return short
    return " ".join(words) or " ".join(folded.split())


def _equal(rollout: Rollout, form: Callable[[str], str], extract: str, reference: str, part: Part) -> Score:
    golds = references(rollout, reference)
    if not golds:
        return Score.unknown(NO_REFERENCE)
    found = marked(written(rollout, part), extract)
    if found is None:
        return Score(0.0, extracted=None, rule=f"no answer ({extract})", reference=shown(golds[0]))
    mine = form(found.text)
    match = next((gold for gold in golds if mine and mine == form(gold)), None)
    against = golds[0] if match is None else match
    return Score(float(match is not None), extracted=shown(found.text), rule=found.rule, reference=shown(against))
