"""Size and repetition of what was written."""

from __future__ import annotations

import math
import re
from typing import Literal

from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import signal
from guerdon.verify._reading import ParameterError, Part, written

Unit = Literal["characters", "words", "tokens"]

_GAP = re.compile(r"\s+")


@signal(key="verify.length", version=1, range=(0, math.inf))
def length(rollout: Rollout, *, unit: Unit = "characters", part: Part = "text") -> float | Score:
    """How many characters, words (split at white space) or tokens the policy wrote; in [0, inf).

    Tokens are those of the whole completion, from ``tokens`` or ``logprobs``. Unknown: tokens asked for and not given.

    >>> length(Rollout("three short words"), unit="words")
    3.0
    """
    count = _count(rollout, unit, part)
    return Score.unknown("the rollout has no tokens") if count is None else float(count)


@signal(key="verify.length_ratio", version=1, range=(0, 1))
def length_ratio(rollout: Rollout, *, max: float, unit: Unit = "characters", part: Part = "text") -> float | Score:
    """`length` as a share of ``max``, at most 1: min(length / max, 1).

    >>> length_ratio(Rollout("abcde"), max=20)
    0.25
    """
    if not 0 < max < math.inf:
        raise ParameterError(f"max={max}: give a number above 0")
    count = _count(rollout, unit, part)
    return Score.unknown("the rollout has no tokens") if count is None else min(count / max, 1.0)


@signal(key="verify.length_within", version=1, range=(0, 1))
def length_within(
    rollout: Rollout, *, low: float = 0, high: float = math.inf, unit: Unit = "characters", part: Part = "text"
) -> Score:
    """1 if ``low <= length <= high``, else 0.

    >>> length_within(Rollout("Too long."), high=5)
    Score(0.0, length=9, low=0, high=5)
    """
    count = _count(rollout, unit, part)
    if count is None:
        return Score.unknown("the rollout has no tokens")
    return Score(float(low <= count <= high), length=count, low=low, high=high)


@signal(key="verify.repetition", version=1, range=(0, 1))
def repetition(
    rollout: Rollout, *, n: int = 3, unit: Literal["words", "characters"] = "words", part: Part = "text"
) -> float:
    """Share of the n-grams that occurred before in the text: 1 - distinct / total, in [0, 1]; 0 without any n-gram.

    Case and white space make no difference. ``unit="characters"`` is for scripts without spaces.

    >>> repetition(Rollout("ha ha ha ha ha"), n=2)
    0.75
    """
    if n < 1:
        raise ParameterError(f"n={n}: give a whole number of at least 1")
    text = written(rollout, part).casefold()
    if unit == "words":
        words = text.split()
        total, distinct = len(words) - n + 1, len(set(zip(*[words[i:] for i in range(n)], strict=False)))
    else:
        text = _GAP.sub(" ", text.strip())
        total = len(text) - n + 1
        distinct = len({text[i : i + n] for i in range(total)})
    return 1.0 - distinct / total if total > 0 else 0.0


def _count(rollout: Rollout, unit: Unit, part: Part) -> int | None:
    if unit == "characters":
        return len(written(rollout, part))
    if unit == "words":
        return len(written(rollout, part).split())
    if unit != "tokens":
        raise ParameterError(f'unit={unit!r}: choose "characters", "words" or "tokens"')
    counted = rollout.tokens if rollout.tokens is not None else rollout.logprobs
    return None if counted is None else len(counted)
