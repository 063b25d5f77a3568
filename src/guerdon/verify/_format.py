"""Form of a reply: tags in order, JSON that parses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import orjson

from guerdon.core.rollout import Rollout
from guerdon.core.scores import Score
from guerdon.core.signal import signal
from guerdon.verify._reading import ParameterError, Part, shown, written

Kind = Literal["any", "object", "array"]

_NAME = re.compile(r"[A-Za-z][\w.-]{0,63}")
_FENCE = re.compile(r"```[ \t]*(?:json|JSON)?[ \t]*\n(.*?)\n?[ \t]*```", re.S)
_KINDS: Mapping[str, type | tuple[type, ...]] = {"any": object, "object": dict, "array": list}


@signal(key="verify.format", version=1, range=(0, 1))
def format(
    rollout: Rollout,
    *,
    tags: Sequence[Any] = ("think", "answer"),
    outside: bool = False,
    prefill: str = "",
    part: Part = "final",
) -> Score:
    """1 if the text is made of the ``tags``, in this order, each exactly once and with something in it; else 0.

    A tag is a name, or a mapping of a name to the tags inside it (``["think", {"answer": ["final"]}]``). Text beside
    the tags is an error unless ``outside`` allows it. ``prefill`` (``"<think>"``) is what the chat template already
    wrote for the policy; it is put in front. The evidence names the first rule that is broken.

    >>> format(Rollout("<think>1+1</think> <answer>2</answer>")).value
    1.0
    >>> format(Rollout("<answer>2</answer>"))
    Score(0.0, rule='expected <think>, found <answer>')
    """
    broken = _broken(prefill + written(rollout, part), _layout(_frozen(tags)), outside)
    return Score(0.0, rule=broken) if broken else Score(1.0, rule="all tags in order")


@signal(key="verify.json", version=1, range=(0, 1))
def json(
    rollout: Rollout,
    *,
    kind: Kind = "any",
    required: Sequence[str] = (),
    extract: Literal["all", "fence"] = "all",
    part: Part = "final",
) -> Score:
    """1 if the text is valid JSON of this ``kind`` whose object has all ``required`` keys, else 0.

    ``extract="fence"`` takes the last fenced code block. NaN, comments, trailing commas and nesting beyond the parser's
    depth limit are not valid.

    >>> json(Rollout('{"name": "Ada"}'), required=["name", "age"])
    Score(0.0, rule='missing keys', missing=['age'])
    """
    if kind not in _KINDS:
        raise ParameterError(f'kind={kind!r}: choose "any", "object" or "array"')
    source = written(rollout, part)
    if extract == "fence":
        blocks = _FENCE.findall(source)
        if not blocks:
            return Score(0.0, rule="no fenced block")
        source = blocks[-1]
    try:
        value = orjson.loads(source)
    except orjson.JSONDecodeError as error:
        return Score(0.0, rule="not JSON", error=shown(str(error)))
    if not isinstance(value, _KINDS[kind]):
        return Score(0.0, rule=f"expected {kind}, found {type(value).__name__}")
    missing = [key for key in required if not isinstance(value, dict) or key not in value]
    if missing:
        return Score(0.0, rule="missing keys", missing=missing)
    return Score(1.0, rule="valid")


def _broken(text: str, layout: tuple[re.Pattern[str], tuple[tuple[str, str], ...]], outside: bool) -> str:
    """The first rule that a text breaks, or ``""``. ``layout``: how tags look, and each expected tag with what may
    stand before it: ``"space"`` (nothing but white space), ``"some"`` (something), ``"any"``.
    """
    pattern, expected = layout
    at = 0
    for position, match in enumerate(pattern.finditer(text)):
        if position >= len(expected):
            return f"{match.group()} once too often"
        tag, before = expected[position]
        if match.group() != tag:
            return f"expected {tag}, found {match.group()}"
        blank = not text[at : match.start()].strip()
        if before == "some" and blank:
            return f"nothing in <{tag[2:]}"
        if before == "space" and not blank and not outside:
            return f"text before {tag}"
        at = match.end()
        if position == len(expected) - 1:
            last = pattern.search(text, at)
            if last is not None:
                return f"{last.group()} once too often"
            return "" if outside or not text[at:].strip() else f"text after {tag}"
    seen = len(pattern.findall(text))
    return f"{expected[seen][0]} is missing"


@lru_cache(maxsize=256)
def _layout(tags: tuple[Any, ...]) -> tuple[re.Pattern[str], tuple[tuple[str, str], ...]]:
    expected = tuple(_walk(tags, inside=False))
    names = [tag[1:-1] for tag, _ in expected if not tag.startswith("</")]
    if not names or len(set(names)) < len(names) or not all(_NAME.fullmatch(n) for n in names):
        raise ParameterError(f"tags={tags!r}: give different names of letters, digits, '_', '-' and '.'")
    return re.compile(rf"</?(?:{'|'.join(map(re.escape, names))})>"), expected


def _walk(tags: tuple[Any, ...], inside: bool) -> Iterator[tuple[str, str]]:
    for tag in tags:
        name, within = tag if isinstance(tag, tuple) else (tag, ())
        yield f"<{name}>", "any" if inside else "space"
        yield from _walk(within, inside=True)
        yield f"</{name}>", "any" if within else "some"


def _frozen(tags: Sequence[Any]) -> tuple[Any, ...]:
    """Tags as hashable data: a name, or a name with the tags inside it."""
    if isinstance(tags, str):
        raise ParameterError(f"tags={tags!r}: give a list of names")
    frozen: list[Any] = []
    for tag in tags:
        if isinstance(tag, Mapping):
            frozen += [(str(name), _frozen(within)) for name, within in tag.items()]
        else:
            frozen.append(tag)
    return tuple(frozen)
