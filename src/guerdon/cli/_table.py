"""Scored rollouts as an Arrow table: one row per rollout, with each named node's value, reason and evidence.

Columns: ``id``, ``group``, ``row`` (its row in the input, from 0), ``reward`` (null when unknown), ``reason`` (null
when known), ``reward_evidence``; per named node ``<name>``, ``<name>_reason``, ``<name>_evidence``; then the kept
columns of the input. On axes below the rollout a node's column holds a list. Evidence, messages and columns of mixed
kinds are JSON text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from guerdon.core.errors import NonFiniteError, SpecError
from guerdon.core.fingerprint import digest
from guerdon.core.frame import Frame
from guerdon.core.reward import Reward
from guerdon.core.rollout import Rollout
from guerdon.core.scored import Scored
from guerdon.core.scores import Scores
from guerdon.data import Kind, Source
from guerdon.report.scored_file import FIXED

PARTS = ("prompt", "completion", "answer")
JSON_FIELD = {b"guerdon": b"json"}
"""Metadata of Parquet columns that hold JSON as text."""

_ARROW = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "text": pa.string(), "json": pa.string()}


@dataclass(frozen=True)
class Layout:
    """Which columns a scored file has: the named nodes with their axes, and the kept input columns with their kinds.

    ``parts`` says which kept columns are a field of the rollout (prompt, completion, answer); all others are columns of
    its ``extra``. An input column whose name is a column of the scored file itself is kept as ``input_<name>``;
    ``renamed`` maps those to their names in the input.
    """

    nodes: Mapping[str, str]
    kept: Mapping[str, Kind]
    parts: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {k: dict(getattr(self, k)) for k in ("nodes", "kept", "parts", "renamed")}

    @property
    def schema(self) -> Any:
        """The Arrow schema."""
        fields = [
            pa.field("id", pa.string(), nullable=False), pa.field("group", pa.string(), nullable=False),
            pa.field("row", pa.int64(), nullable=False), pa.field("reward", pa.float64()),
            pa.field("reason", pa.string()), pa.field("reward_evidence", pa.string(), metadata=JSON_FIELD),
        ]  # fmt: skip
        for name, axis in self.nodes.items():
            value = pa.float64() if axis in ("prompt", "rollout") else pa.list_(pa.float64())
            fields += [pa.field(name, value), pa.field(f"{name}_reason", pa.string())]
            fields.append(pa.field(f"{name}_evidence", pa.string(), metadata=JSON_FIELD))
        for name, kind in self.kept.items():
            fields.append(pa.field(name, _ARROW[kind], metadata=JSON_FIELD if kind == "json" else None))
        return pa.schema(fields)


def layout_of(reward: Reward, source: Source, keep: Sequence[str] | None) -> Layout:
    """The layout for scoring ``source``.

    ``keep`` lists the input columns to keep, by their names in the input or as ``prompt``, ``completion``, ``answer``;
    ``None`` for all.
    """
    nodes = {n.name: n.axis for n in reward.walk() if n.name and n.name != "reward"}
    taken = [*FIXED, *[f"{n}{tail}" for n in nodes for tail in ("", "_reason", "_evidence")]]
    double = next((n for i, n in enumerate(taken) if n in taken[:i]), None)
    if double is not None:
        raise SpecError(f"two columns of the scored file would be called {double!r}; rename the node")
    given, kinds = source.columns.given(), source.kinds
    places = {part: given[part] for part in PARTS if given.get(part) in kinds}
    whole = set(given.values())
    _check_kept(keep, [*PARTS, *kinds])
    kept: dict[str, Kind] = {}
    parts, renamed = {}, {}
    for part, column in [*places.items(), *((None, c) for c in kinds if c not in whole)]:
        if keep is not None and column not in keep and part not in keep:
            continue
        plain = part or column
        name = _free(plain, [*taken, *kept])
        kept[name] = kinds[column]
        if part:
            parts[name] = part
        if name != plain:
            renamed[name] = plain
    return Layout(nodes, kept, parts, renamed)


def _check_kept(keep: Sequence[str] | None, columns: Sequence[str]) -> None:
    missing = [k for k in keep or () if k not in columns]
    if missing:
        have = ", ".join(repr(c) for c in dict.fromkeys(columns))
        raise SpecError(f"there is no input column {missing[0]!r} to keep; columns are {have}")


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"input_{name}"
    return name


def table_of(scored: Scored, rollouts: Sequence[Rollout], rows: Sequence[int], layout: Layout) -> Any:
    """The table of one scored batch, in the order of ``rollouts``; ``rows`` are their rows in the input."""
    columns: list[Any] = [
        [r.id for r in rollouts],
        group_names(rollouts),
        list(rows),
        *_node_columns(scored.frame, scored.framed),
    ]
    by_name = {n.name: scored.by_node[n.fingerprint] for n in scored.reward.walk() if n.name in layout.nodes}
    for name in layout.nodes:
        columns += _node_columns(scored.frame, by_name[name])
    for name, kind in layout.kept.items():
        part, column = layout.parts.get(name), layout.renamed.get(name, name)
        cells = (getattr(r, part) for r in rollouts) if part else (r.extra.get(column) for r in rollouts)
        columns.append([_cell(c, kind) for c in cells])
    schema = layout.schema
    arrays = [c if isinstance(c, pa.Array) else pa.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def group_names(rollouts: Sequence[Rollout]) -> list[str]:
    """A name for each rollout's group: its own, or a hash of its prompt, or its id where it has neither."""
    hashes: dict[str, str] = {}

    def name(rollout: Rollout) -> str:
        if rollout.group is not None:
            return rollout.group
        if not isinstance(rollout.prompt, str):
            return rollout.id if rollout.prompt is None else digest(rollout.prompt)[:16]
        if rollout.prompt not in hashes:
            hashes[rollout.prompt] = digest(rollout.prompt)[:16]
        return hashes[rollout.prompt]

    return [name(r) for r in rollouts]


def _node_columns(frame: Frame, scores: Scores) -> list[Any]:
    """Values, reasons and evidence (as JSON) of a node, per rollout in input order."""
    if not scores.axis.has("rollout"):
        scores = scores.broadcast(frame.rollout)
    scores = frame.in_input_order(scores)
    if not np.isfinite(scores.values[scores.known]).all():
        raise NonFiniteError("a known score is not finite; nothing of this batch was written")
    if scores.axis.name == "rollout":
        return _per_rollout(scores)
    return _per_item(scores)


def _per_rollout(scores: Scores) -> list[Any]:
    values = _numbers(scores)
    reasons: list[Any] = [None] * len(scores)
    if scores.reasons is not None:
        for i in np.flatnonzero(~scores.known).tolist():
            reasons[i] = scores.reasons[i]
    if not scores.evidence:
        return [values, reasons, [None] * len(scores)]
    return [values, reasons, [_json(scores.evidence[i]) for i in range(len(scores))]]


def _numbers(scores: Scores) -> Any:
    """Values as an Arrow array, null where unknown; made of its buffers, since pyarrow would load pandas for a mask."""
    mask = np.packbits(scores.known, bitorder="little").tobytes()
    data = np.where(scores.known, scores.values, 0.0).tobytes()
    return pa.Array.from_buffers(pa.float64(), len(scores), [pa.py_buffer(mask), pa.py_buffer(data)])


def _per_item(scores: Scores) -> list[Any]:
    ends = scores.axis.offsets_over("rollout").tolist()
    values = np.where(scores.known, scores.values, np.nan).tolist()
    cells = [None if v != v else v for v in values]
    lists, reasons, proofs = [], [], []
    for a, b in pairwise(ends):
        lists.append(cells[a:b])
        why = dict.fromkeys(r for i in range(a, b) if (r := scores.reason(i)) is not None)
        reasons.append("; ".join(why) or None)
        records = [scores.evidence[i] for i in range(a, b)] if scores.evidence else []
        proofs.append(_json(records) if any(records) else None)
    return [lists, reasons, proofs]


def _cell(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if kind == "text":
        return value if value.isprintable() or not _has_surrogate(value) else _clean(value)
    return _json(value) if kind == "json" else value


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _clean(text: str) -> str:
    """The text with what UTF-8 can't hold (lone surrogates) replaced."""
    return text.encode("utf-8", "replace").decode()


def _json(value: Any) -> str | None:
    """JSON text of evidence or of a column of mixed kinds; what JSON lacks becomes text."""
    if value is None:
        return None
    try:
        return orjson.dumps(value, default=_plain, option=_OPTIONS).decode()
    except (TypeError, ValueError):  # lone surrogates, integers beyond 64 bits, odd keys
        return orjson.dumps(_tame(value), option=_OPTIONS).decode()


_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def _plain(value: Any) -> Any:
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def _tame(value: Any) -> Any:
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, Mapping):
        return {_clean(str(k)): _tame(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_tame(v) for v in value]
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    return _clean(str(value))
