"""ToolRL: partial credit for tool calls, by name, parameter and value."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from guerdon.core.reward import Reward
from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import signal
from guerdon.methods._registry import method

Call = Mapping[str, Any]
"""A tool call: ``{"name": ..., "arguments": {...}}``."""
MAX_CALLS = 256
"""More calls than this in one rollout are not compared."""


def jaccard(a: Iterable[Hashable], b: Iterable[Hashable]) -> float:
    """Multiset Jaccard: ``sum min / (|a| + |b| - sum min)``; 1 if both are empty, 0 if one is.

    >>> jaccard(["weather"], ["weather", "weather"])
    0.5
    """
    one, two = Counter(list(a)), Counter(list(b))
    shared = (one & two).total()
    whole = one.total() + two.total() - shared
    return shared / whole if whole else 1.0


def match_share(expected: Sequence[Call], made: Sequence[Call]) -> float:
    """How much of the expected calls was made, in [0, 1]: ``score / (1 + sum_g (1 + |parameters of g|))``.

    ``score = J(names) + sum_g max_p (J(keys of g and p) + number of equal values)``: each expected call, in order,
    takes the best unused call of its name; the first one on ties; one that scores 0 is not taken. Values are equal
    as JSON, so ``1`` is not ``true``. Raises ValueError for a call without name, or that is compared and has no
    parameters object.
    """
    score = jaccard([c["name"] for c in expected], [_name(c) for c in made])
    unused = list(made)
    for wanted in expected:
        best, place = 0.0, -1
        for i, call in enumerate(unused):
            worth = _parameters(wanted, call) if _name(call) == wanted["name"] else 0.0
            if worth > best:
                best, place = worth, i
        if place >= 0:
            unused.pop(place)
        score += best
    return score / (1.0 + sum(1 + len(c["arguments"]) for c in expected))


def _name(call: Call) -> str:
    name = call.get("name") if isinstance(call, Mapping) else None
    if not isinstance(name, str):
        raise ValueError("a call without a name")
    return name


def _parameters(wanted: Call, call: Call) -> float:
    given = call.get("arguments")
    if not isinstance(given, Mapping):
        raise ValueError(f"a call of {call['name']!r} without parameters")
    same = sum(k in given and _text(v) == _text(given[k]) for k, v in wanted["arguments"].items())
    return jaccard(wanted["arguments"], given) + same


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@signal(range=(-3.0, 3.0), key="methods.tool_match", version=1)
def tool_match(
    rollout: Rollout, *, calls: str = "calls", expected: str = "expected_calls", scale: float = 3.0
) -> Score:
    """``2 scale share - scale`` of `match_share`: from ``-scale`` to ``scale``. Reads two columns of calls.

    ``scale`` is at most 3. No call where some are expected, or one that is malformed: ``-scale``, which is a verdict
    on the rollout. No call expected: 0, as released. No column ``expected``: unknown, and so is a column that is no
    list of calls.
    """
    wanted, made = rollout.get(expected), rollout.get(calls)
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        return Score.unknown(f"column '{expected}' holds no list of calls")
    if not isinstance(made, Sequence) or isinstance(made, str):
        return Score.unknown(f"column '{calls}' holds no list of calls")
    if not wanted:
        return Score(0.0, expected=0)
    if not all(
        isinstance(c, Mapping) and isinstance(c.get("arguments"), Mapping) and isinstance(c.get("name"), str)
        for c in wanted
    ):
        return Score.unknown("an expected call without name and arguments")
    if len(made) > MAX_CALLS or not made:
        return Score(-scale, calls=len(made))
    try:
        share = match_share(wanted, made)
    except ValueError as error:
        return Score(-scale, malformed=str(error))
    return Score(2.0 * scale * share - scale, share=share)


@method(
    "toolrl-reward",
    family="verify",
    name="ToolRL: reward is all tool learning needs",
    source="Qian et al. 2025, arXiv:2504.13958",
    evidence="code-read",
)
def toolrl(form: Reward, correctness: Reward | None = None) -> Reward:
    """``R = R_format + R_correct``: 0 or 1 for the expected blocks, -3 to 3 for the calls.

    ``form``: 0/1. ``correctness``: by default `tool_match` over the columns ``calls`` and ``expected_calls``, lists of
    ``{"name", "arguments"}``: names as a multiset, parameter names, and equal values, as a share of all there is to
    get. Shape ``(rollouts,)``, range [-3, 4]. Coarser variants and a length term did worse in the source.

    Traps: the greedy matching depends on the order; a call where none is expected costs nothing; nested parameters
    are compared whole; duplicate calls only lose in the name term; a call of the right name with no parameter in common
    counts as unmatched; two empty parameter lists count as equal.
    """
    return form.within(0.0, 1.0) + (tool_match if correctness is None else correctness)
