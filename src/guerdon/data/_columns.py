"""Which column of the input is which part of a rollout: given by the caller, or guessed from the usual names."""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guerdon.core.errors import DataError

USUAL_NAMES: Mapping[str, Sequence[str]] = {
    "completion": [
        "completion",
        "response",
        "solution",
        "output",
        "generation",
        "model_output",
        "answer_text",
        "prediction",
    ],
    "prompt": ["prompt", "question", "problem", "instruction", "query", "input"],
    "answer": [
        "answer",
        "gold",
        "reference",
        "ground_truth",
        "reference_answer",
        "gold_answer",
        "expected",
        "target",
        "label",
    ],
    "group": ["group", "group_id", "prompt_id", "problem_id"],
    "id": ["id", "rollout_id", "uid", "uuid", "sample_id"],
    "steps": ["steps"],
    "tokens": ["tokens", "token_ids", "completion_ids"],
    "logprobs": ["logprobs", "log_probs", "token_logprobs"],
    "step_tokens": ["step_tokens"],
}
"""The names that are looked for, in this order; upper and lower case count as the same."""


@dataclass(frozen=True)
class Columns:
    """The column that each part of a rollout is read from.

    ``None``: guess from `USUAL_NAMES`. ``""``: leave the part out (without ``id``, rows are numbered from 0).
    ``id`` and ``group`` may join columns: ``id="{id}/{model}"``. Columns that no part uses whole land in ``extra``.

    >>> Columns(completion="text", id="{id}/{model}").resolve(["id", "model", "text", "gold"], "f.jsonl").answer
    'gold'
    """

    completion: str | None = None
    prompt: str | None = None
    answer: str | None = None
    group: str | None = None
    id: str | None = None
    steps: str | None = None
    tokens: str | None = None
    logprobs: str | None = None
    step_tokens: str | None = None

    def resolve(self, names: Sequence[str], file: str) -> Columns:
        """Fill in the guesses for a file with columns ``names``; raises `DataError` that lists them."""
        by_lower = {name.lower(): name for name in reversed(names)}
        for part, wanted in self.given().items():
            for column in _fields_of(wanted, file) if part in ("id", "group") else [wanted]:
                if column not in names:
                    parts = " and ".join(p for p, c in self.given().items() if c == wanted)
                    raise DataError(file, 0, f"there is no column {column!r} for {parts}; columns are {_list(names)}")
        taken = set(self.given().values())
        found: dict[str, str] = {}
        for part, usual in USUAL_NAMES.items():
            if getattr(self, part) is not None:
                continue
            candidates = (by_lower[u] for u in usual if u in by_lower)
            found[part] = next((c for c in candidates if c not in taken), "")
            taken.add(found[part])
        resolved = dataclasses.replace(self, **found)
        if not resolved.completion:
            raise DataError(file, 0, f"no column looks like the completion; name one of {_list(names)}")
        return resolved

    def given(self) -> dict[str, str]:
        """The parts that have a column (or template)."""
        return {f.name: v for f in dataclasses.fields(self) if (v := getattr(self, f.name))}


def reader_of(template: str, file: str) -> Callable[[Mapping[str, Any]], str | None]:
    """A function from a row to the text of ``id`` or ``group``: one column, or several joined by a template.

    The function gives ``None`` when a column is missing or null. Fields are plain names: a format string from a spec
    must not reach into objects.
    """
    fields = _fields_of(template, file)
    if fields == [template]:
        return lambda row: None if (value := row.get(template)) is None else str(value)

    def joined(row: Mapping[str, Any]) -> str | None:
        values = {name: row.get(name) for name in fields}
        return None if None in values.values() else template.format_map(values)

    return joined


def _fields_of(template: str, file: str) -> list[str]:
    if "{" not in template:
        return [template]
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise DataError(file, 0, f"the template {template!r} is not well formed: {error}") from error
    fields = [(name, spec, conversion) for _, name, spec, conversion in parsed if name is not None]
    for name, spec, conversion in fields:
        if not name or set(name) & set(".[]") or spec or conversion:
            raise DataError(
                file, 0, f"the template {template!r} may hold plain column names only, as in '{{id}}/{{model}}'"
            )
    return [name for name, _, _ in fields]


def _list(names: Iterable[str]) -> str:
    return ", ".join(repr(n) for n in names) or "(none)"
