"""Evidence from beside the item: the earlier steps of a rollout, and the other rollouts of its group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Literal

from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import Group, signal
from guerdon.verify._number import find_number
from guerdon.verify._reading import ParameterError, Part, marked, shown, written
from guerdon.verify._text import normalised

Gram = tuple[str, ...]


@signal(key="verify.step_repeats", version=1, axis="step", per="rollout", range=(0, 1))
def step_repeats(rollout: Rollout, *, n: int = 8) -> Sequence[float]:
    """For each step, the share of its n-grams of words that an earlier step already had, in [0, 1].

    A step shorter than ``n`` words is one n-gram; an empty step repeats nothing.

    >>> step_repeats(Rollout("", steps=["Let x be 2.", "Then y is 4.", "let X be 2."]))
    [0.0, 0.0, 1.0]
    """
    if n < 1:
        raise ParameterError(f"n={n}: give a whole number of at least 1")
    text = rollout.text if rollout.steps else ""
    earlier: set[Gram] = set()
    shares = []
    for step in rollout.steps or ():
        own = step if isinstance(step, str) else text[int(step[0]) : int(step[1])]
        words = own.casefold().split()
        grams = {tuple(words[i : i + n]) for i in range(max(len(words) - n + 1, 1))} if words else set()
        shares.append(len(grams & earlier) / len(grams) if grams else 0.0)
        earlier |= grams
    return shares


@signal(key="verify.distinct", version=1, per="prompt", range=(0, 1))
def distinct(group: Group, *, extract: str = "all", part: Part = "final") -> Sequence[Score | float]:
    """For each rollout, the share of the other rollouts of its group that say something else, in [0, 1].

    Texts are compared after `normalised`; ``extract`` chooses what of them (see `verify.exact`). A rollout in which it
    is not there says something else than any other. Unknown: alone in its group.

    >>> distinct(Group([Rollout("Yes."), Rollout("yes"), Rollout("No")]))
    [0.5, 0.5, 1.0]
    """
    others = len(group) - 1
    if not others:
        return [Score.unknown("alone in its group")] * len(group)
    said = [_said(rollout, extract, part) for rollout in group.rollouts]
    counts = Counter(said)
    return [1.0 if own is None else (others - (counts[own] - 1)) / others for own in said]


@signal(key="verify.majority", version=1, per="prompt", range=(0, 1))
def majority(
    group: Group, *, read: Literal["number", "text"] = "number", extract: str = "auto", part: Part = "final"
) -> Sequence[Score]:
    """1 if the rollout's answer is the one that most rollouts of its group give, else 0.

    Answers are numbers found as in `verify.number` (equal values are one answer) or normalised texts (``read="text"``,
    with ``extract`` as in `verify.exact`). A rollout without an answer has no vote and gets 0. Unknown, for the whole
    group: no rollout has an answer, or several answers have the most votes. Source: majority-vote pseudo-labels, Zuo et
    al., TTRL, 2025 (arXiv 2504.16084).

    >>> [s.value for s in majority(Group([Rollout("so 4"), Rollout("it is 4.0"), Rollout("5"), Rollout("hm")]))]
    [1.0, 1.0, 0.0, 0.0]
    """
    votes = [_vote(rollout, read, extract, part) for rollout in group.rollouts]
    ranking = Counter(answer for answer, _ in votes if answer is not None).most_common(2)
    if not ranking:
        return [Score.unknown("no answer in the group")] * len(votes)
    first, count = ranking[0]
    if len(ranking) > 1 and ranking[1][1] == count:
        return [Score.unknown("no majority in the group", votes=count, of=len(votes))] * len(votes)
    winner = next(text for answer, text in votes if answer == first)
    return [
        Score(float(answer == first), extracted=text, majority=winner, votes=count, of=len(votes))
        for answer, text in votes
    ]


def _vote(rollout: Rollout, read: str, extract: str, part: Part) -> tuple[Hashable | None, str | None]:
    """What a rollout's answer is counted as (``None``: no answer), and how it is written."""
    if read == "number":
        number = find_number(written(rollout, part), extract)  # type: ignore[arg-type]  # find_number checks it
        return (number.value, number.text) if number else (None, None)
    if read != "text":
        raise ParameterError(f'read={read!r}: choose "number" or "text"')
    found = marked(written(rollout, part), "all" if extract == "auto" else extract)
    return (normalised(found.text), shown(found.text)) if found else (None, None)


def _said(rollout: Rollout, extract: str, part: Part) -> str | None:
    found = marked(written(rollout, part), extract)
    return normalised(found.text) if found else None
