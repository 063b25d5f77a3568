"""Strict reading of a judge's verdict: it says exactly one thing, or it says nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_THOUGHTS = re.compile(r"\s*<think>.*?</think>", re.S)
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.S)
_MAX_REPLY = 100_000


class Verdict(NamedTuple):
    """What a judge decided and why, or (``label`` is ``None``) what is wrong with its reply."""

    label: str | None
    reason: str


def read_verdict(reply: str, labels: Sequence[str], finish: str = "stop") -> Verdict:
    """The verdict of a reply that must be one JSON object ``{"reason": ..., "verdict": <one of labels>}``.

    White space, a code fence around the whole and one leading ``<think>`` block are allowed; case does not matter in
    the label. Anything else is malformed, and then ``label`` is ``None``: other text, other or repeated keys, a label
    that is not one of ``labels`` word for word, a reply that was cut off.

    >>> read_verdict('{"reason": "it is", "verdict": "Yes"}', ["yes", "no"])
    Verdict(label='yes', reason='it is')
    >>> read_verdict("yes and no", ["yes", "no"])
    Verdict(label=None, reason='not JSON')
    """
    if finish not in ("stop", ""):
        return Verdict(None, f"ended by {finish!r}")
    text = reply if len(reply) <= _MAX_REPLY else ""
    thoughts = _THOUGHTS.match(text)
    text = text[thoughts.end() :] if thoughts else text
    fence = _FENCE.fullmatch(text)
    text = (fence[1] if fence else text).strip()
    if not text:
        return Verdict(None, "empty")
    try:
        data = json.loads(text, object_pairs_hook=_single)
    except (ValueError, RecursionError) as error:
        return Verdict(None, "a key comes twice" if isinstance(error, _TwiceError) else "not JSON")
    if not isinstance(data, dict) or not {"verdict"} <= set(data) <= {"verdict", "reason"}:
        return Verdict(None, 'not an object of "verdict" and "reason"')
    label = data["verdict"].strip().casefold() if isinstance(data["verdict"], str) else None
    found = next((own for own in labels if own.casefold() == label), None)
    if found is None:
        return Verdict(None, f"the verdict is none of {', '.join(labels)}")
    return Verdict(found, data["reason"] if isinstance(data.get("reason"), str) else "")


class _TwiceError(ValueError):
    """A JSON object with the same key twice."""


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _TwiceError
    return made
