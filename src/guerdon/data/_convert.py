"""From a row of the input to a `Rollout`, or to the cause why the row is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from guerdon.core.rollout import Rollout, Text, not_text
from guerdon.data._columns import Columns, reader_of


class Refused(ValueError):
    """The row is not a rollout; the text is the cause."""


class Checked(NamedTuple):
    """The parts of a row that decide whether it is a rollout, and which."""

    completion: Text
    prompt: Text | None
    id: str
    group: str | None
    lists: Mapping[str, Any]


class Converter:
    """Reads rows of one file; ``cell`` gives a type to untyped cells (CSV) outside of texts."""

    def __init__(self, columns: Columns, file: str, cell: Callable[[Any], Any] | None = None) -> None:
        self._completion, self._prompt, self._answer = columns.completion or "", columns.prompt, columns.answer
        self._id_columns, self._cell = columns.id, cell
        self._id = reader_of(columns.id, file) if columns.id else None
        self._group = reader_of(columns.group, file) if columns.group else None
        self._whole = frozenset(columns.given().values())
        self._lists = [(part, column) for part in _FITS if (column := getattr(columns, part))]

    def check(self, row: Mapping[str, Any], number: int) -> Checked:
        """Check a row, whose number (from 0) names it where there is no id; raises `Refused`."""
        said = row.get(self._completion)
        if type(said) is not str:
            said = _messages(said, "completion")
        asked = row.get(self._prompt) if self._prompt else None
        if asked is not None and type(asked) is not str:
            asked = _messages(asked, "prompt")
        name = str(number) if self._id is None else self._id(row)
        if name is None:
            raise Refused(f"id is missing (column {self._id_columns!r})")
        group = self._group(row) if self._group else None
        return Checked(said, asked, name, group, _lists(row, self._lists) if self._lists else {})

    def build(self, row: Mapping[str, Any], checked: Checked) -> Rollout:
        """The rollout of a checked row."""
        said, asked, name, group, lists = checked
        whole, cell = self._whole, self._cell
        extra = {k: v for k, v in row.items() if k not in whole}
        if cell is not None:
            extra = {k: cell(v) for k, v in extra.items()}
        answer = row.get(self._answer) if self._answer else None
        return Rollout(said, asked, name, group, answer, **lists, extra=extra)

    def typed(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The row with the cells as its rollout will hold them."""
        whole, cell = self._whole, self._cell
        return row if cell is None else {k: v if k in whole else cell(v) for k, v in row.items()}


def _messages(value: object, part: str) -> list[Mapping[str, Any]]:
    if value is None:
        raise Refused(f"{part} is missing")
    if isinstance(value, list):  # Parquet fills in keys that other rows have
        value = [{k: v for k, v in m.items() if v is not None} if isinstance(m, dict) else m for m in value]
    if problem := not_text(value, part):
        raise Refused(problem)
    if not isinstance(value, list) or not value:
        raise Refused(f"{part} is an empty list of messages")
    return value


def _lists(row: Mapping[str, Any], parts: list[tuple[str, str]]) -> dict[str, Any]:
    found = {part: row[column] for part, column in parts if row.get(column) is not None}
    for part, value in found.items():
        if not isinstance(value, list) or not all(_FITS[part](item) for item in value):
            raise Refused(f"{part} must be a list of {_MEANING[part]}")
    tokens, logprobs = found.get("tokens"), found.get("logprobs")
    if tokens is not None and logprobs is not None and len(tokens) != len(logprobs):
        raise Refused(f"{len(tokens)} tokens but {len(logprobs)} logprobs")
    return found


def _is_int(value: object) -> bool:
    return type(value) is int


def _is_step(value: object) -> bool:
    pair = isinstance(value, list) and len(value) == 2 and all(type(v) is int and v >= 0 for v in value)
    return isinstance(value, str) or pair


_FITS: Mapping[str, Callable[[object], bool]] = {
    "steps": _is_step,
    "tokens": _is_int,
    "logprobs": lambda value: type(value) in (int, float),
    "step_tokens": lambda value: type(value) is int and value >= 0,
}
_MEANING = {
    "steps": "texts or [start, end] positions",
    "tokens": "token numbers",
    "logprobs": "numbers, one per token",
    "step_tokens": "counts, one per step",
}
