"""Spec text to a tree of plain values that know their line: no tags, no aliases, no duplicate keys, bounded size.

Scalars follow the YAML 1.2 core schema, so that ``no`` and ``on`` are text and ``1e-3`` is a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, NoReturn

import yaml

from guerdon.core.errors import SpecError

MAX_BYTES = 1_000_000
MAX_DEPTH = 64
MAX_ITEMS = 50_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Only its parser is used; the one in C is ten times as fast."""

_WORDS = {"null": None, "~": None, "": None, "true": True, "false": False}
INT = re.compile(r"[-+]?[0-9]+", re.ASCII)
FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII
)


@dataclass(frozen=True)
class Item:
    """A value of the document: a scalar, a list of items or a mapping to items; where it stands."""

    value: Any
    line: int
    path: str
    source: str

    def fail(self, message: str) -> NoReturn:
        """Raise the error ``message`` at this place."""
        path = self.path if len(self.path) <= 100 else f"...{self.path[-97:]}"
        raise SpecError(f"{self.source}:{self.line}: {path + ': ' if path else ''}{message}")

    @property
    def kind(self) -> str:
        """What it is, for people."""
        if isinstance(self.value, dict):
            return "a mapping"
        if isinstance(self.value, list):
            return "a list"
        return "nothing" if self.value is None else f"{self.value!r:.60}"

    def plain(self) -> Any:
        """The value without its places."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value


def nearest(name: str, known: Any) -> str:
    """``; did you mean ...?`` with the nearest of ``known``, or nothing."""
    known = [str(k) for k in known]
    near = get_close_matches(name, known, n=2, cutoff=0.55)
    if not near:
        short = {k.rsplit(".", 1)[-1]: k for k in known}
        near = [short[n] for n in get_close_matches(name.rsplit(".", 1)[-1], short, n=2, cutoff=0.7)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def parse(text: str, source: str) -> Item:
    """The document in ``text``; ``source`` names it in errors."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise SpecError(f"{source}:{line}: a lone surrogate is not a character") from None
    if len(data) > MAX_BYTES:
        raise SpecError(f"{source}: a spec is at most {MAX_BYTES:,} bytes long")
    events = yaml.parse(text, Loader=_LOADER)
    try:
        return _Builder(events, source).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise SpecError(f"{source}:{line}: not valid YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise SpecError(f"{source}: not valid YAML: {str(error).splitlines()[0]}") from None


class _Builder:
    """Builds the tree from parser events, which come without recursion, so that limits hold before memory is spent."""

    def __init__(self, events: Iterator[Any], source: str) -> None:
        self.events, self.source = events, source
        self.count = 0

    def document(self) -> Item:
        for event in self.events:
            if isinstance(event, yaml.NodeEvent):
                root = self.item(event, "", 0)
                self._nothing_more()
                return root
        raise SpecError(f"{self.source}:1: the spec is empty")

    def _nothing_more(self) -> None:
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise SpecError(f"{self.source}:{line}: a spec is one YAML document, not several")

    def item(self, event: Any, path: str, depth: int) -> Item:
        line = event.start_mark.line + 1
        here = Item(None, line, path, self.source)
        self.count += 1
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            here.fail("anchors and aliases (&, *) are not allowed; name the part under nodes: and use its name")
        if event.tag is not None:
            here.fail(f"the tag {event.tag} is not allowed: a spec holds plain values only")
        if depth > MAX_DEPTH:
            here.fail(f"nested more than {MAX_DEPTH} levels deep; name parts under nodes:")
        if self.count > MAX_ITEMS:
            here.fail(f"a spec holds at most {MAX_ITEMS:,} values")
        if isinstance(event, yaml.ScalarEvent):
            return Item(_scalar(event, here), line, path, self.source)
        if isinstance(event, yaml.SequenceStartEvent):
            return Item(self._list(path, depth), line, path, self.source)
        return Item(self._mapping(path, depth), line, path, self.source)

    def _list(self, path: str, depth: int) -> list[Item]:
        out: list[Item] = []
        for event in self.events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            out.append(self.item(event, f"{path}[{len(out)}]", depth + 1))
        return out

    def _mapping(self, path: str, depth: int) -> dict[Any, Item]:
        out: dict[Any, Item] = {}
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self.item(event, path, depth + 1)
            if isinstance(key.value, (list, dict)) or key.value is None:
                key.fail(f"{key.kind} can't be a key")
            if key.value in out:
                key.fail(f"the key {key.value!r} stands here twice (first on line {out[key.value].line})")
            below = f"{path}.{key.value}" if path else str(key.value)
            out[key.value] = replace(self.item(next(self.events), below, depth + 1), line=key.line)
        return out


def _scalar(event: Any, here: Item) -> Any:
    text: str = event.value
    if event.style in ("'", '"', "|", ">"):
        return text
    if text in _WORDS:
        return _WORDS[text]
    if INT.fullmatch(text):
        if len(text) > 300:
            here.fail("a number of more than 300 digits")
        return int(text)
    if FLOAT.fullmatch(text):
        low = text.lower()
        return float(low.replace(".inf", "inf").replace(".nan", "nan")) if "n" in low else float(text)
    return text
