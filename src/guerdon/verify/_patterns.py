"""Text patterns: regular expressions in linear time, and keyword coverage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import signal
from guerdon.verify._reading import ParameterError, Part, UngradableError, shown, written

MAX_PATTERN = 2_000
"""Characters of a regular expression."""
MAX_KEYWORDS = 1_000
_MAX_MEMORY = 16 << 20
_WORDS = re.compile(r"\w+|[^\w\s]")
_SIGNS_APART = {i: f" {chr(i)} " for i in range(128) if not chr(i).isalnum() and not chr(i).isspace() and chr(i) != "_"}


@signal(key="verify.regex", version=1, range=(0, 1))
def regex(rollout: Rollout, *, pattern: str, mode: Literal["search", "full"] = "search", part: Part = "final") -> Score:
    r"""1 if the regular expression matches somewhere in the text (``"search"``) or all of it (``"full"``), else 0.

    RE2 syntax: no look-around and no back-references, and in return linear time on any text. A pattern that does not
    compile, or is longer than 2,000 characters, is a `SignalError` that ends the run.

    >>> regex(Rollout("Meet at 14:30."), pattern=r"\b\d{2}:\d{2}\b")
    Score(1.0, matched='14:30', rule='search')
    """
    if mode not in ("search", "full"):
        raise ParameterError(f'mode={mode!r}: choose "search" or "full"')
    found = _matched(_compiled(pattern), written(rollout, part), mode)
    return Score(0.0, matched=None, rule=mode) if found is None else Score(1.0, matched=shown(found), rule=mode)


@signal(key="verify.keywords", version=1, range=(0, 1))
def keywords(
    rollout: Rollout,
    *,
    words: Sequence[str] | None = None,
    column: str = "keywords",
    case: bool = False,
    part: Part = "final",
) -> Score:
    """Share of the keywords that occur in the text as whole words, in [0, 1].

    The keywords (words or phrases) are ``words``, or else each rollout's own list in ``column``. Upper and lower
    case are the same unless ``case`` is set. Unknown: there are no keywords.

    >>> keywords(Rollout("Wash hands, then dry them."), words=["wash", "dry", "soap", "an"]).value
    0.5
    """
    wanted = words if words is not None else rollout.get(column)
    if isinstance(wanted, str) or (wanted is not None and not isinstance(wanted, Sequence)):
        raise UngradableError(f"keywords must be a list of texts, not {type(wanted).__name__}")
    wanted = list(dict.fromkeys(w for w in wanted or () if isinstance(w, str) and w.strip()))
    if not wanted:
        return Score.unknown("no keywords given")
    if len(wanted) > MAX_KEYWORDS:
        raise UngradableError(f"{len(wanted)} keywords, more than {MAX_KEYWORDS}")
    text = _spaced(written(rollout, part), case)
    missing = [shown(w) for w in wanted if _spaced(w, case) not in text]
    return Score((len(wanted) - len(missing)) / len(wanted), missing=missing, of=len(wanted))


def _spaced(text: str, case: bool) -> str:
    """Words and signs with single spaces between and around them."""
    folded = text if case else text.casefold()
    words = folded.translate(_SIGNS_APART).split() if folded.isascii() else _WORDS.findall(folded)
    return f" {' '.join(words)} "


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import re2

    if len(pattern) > MAX_PATTERN:
        raise ParameterError(f"a pattern has at most {MAX_PATTERN} characters, not {len(pattern)}")
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        cause = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else error
        raise ParameterError(f"pattern {pattern!r:.80} is not in RE2 syntax: {cause}") from error


def _matched(compiled: Any, text: str, mode: str) -> str | None:
    """The matched text; lone surrogates, which have no UTF-8 form, are matched as ``?``."""
    data = text.encode("utf-8", "replace")
    match = compiled.fullmatch(data) if mode == "full" else compiled.search(data)
    return None if match is None else match.group().decode("utf-8", "replace")
