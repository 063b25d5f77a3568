"""A source of rollouts: checked in a first pass, then handed out in file order or in whole groups."""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from guerdon.core.errors import DataError
from guerdon.core.rollout import Rollout
from guerdon.data._bytes import Watch
from guerdon.data._columns import Columns
from guerdon.data._convert import Checked, Converter, Refused
from guerdon.data._files import Part, parts_of, spool
from guerdon.data._kinds import ColumnKinds, Kind
from guerdon.data._rows import csv_rows, json_lines, typed_cell

_BAD_KEPT = 1000
_TOLD = 4096


class BadRow(NamedTuple):
    """A row that is not a rollout: where it stands (``line`` from 1) and why."""

    file: str
    line: int
    cause: str


class Batch(list[Rollout]):
    """Rollouts that make up whole groups; ``rows`` holds each one's row in the input, counted from 0."""

    def __init__(self, rollouts: Iterable[Rollout], rows: list[int]) -> None:
        super().__init__(rollouts)
        self.rows = rows


@dataclass(frozen=True)
class Survey:
    """What the first pass found: how many rollouts, which rows end a group, which repeat an id, which are bad, what
    the columns hold, and a hash of all bytes.
    """

    count: int
    ends: npt.NDArray[np.bool_]
    repeated: frozenset[int]
    bad: tuple[BadRow, ...]
    bad_count: int
    kinds: Mapping[str, Kind]
    fingerprint: str


def read(path: str | Path, columns: Columns | None = None, *, skip_bad: bool = False) -> Source:
    """Rollouts from ``path``: ``.jsonl`` (also ``.gz``, ``.zst``), ``.csv``, ``.parquet``, ``.arrow``, a folder of
    such files or of ``datasets.save_to_disk``, or ``-`` for JSON lines on standard input.

    ``columns`` names the columns; what it leaves open is guessed (see `Columns`; `Source.guessed` tells). Every row is
    checked before the first one is handed out: a bad one raises `DataError` with file, line and cause, or with
    ``skip_bad`` is left out, counted and listed in `Source.bad`.
    """
    if str(path) == "-":
        return Source([Part(spool(sys.stdin.buffer), "stdin", json_lines)], columns or Columns(), skip_bad)
    return Source(parts_of(Path(path)), columns or Columns(), skip_bad)


class Source:
    """Rollouts in file order, read as often as needed; memory is bounded by a row, `groups` apart."""

    def __init__(self, parts: list[Part], columns: Columns, skip_bad: bool) -> None:
        self._parts, self._skip_bad = parts, skip_bad
        names = self._names()
        self.columns = columns.resolve(names, parts[0].name) if names else columns
        given, used = columns.given(), self.columns.given()
        self.guessed: Mapping[str, str] = {part: used[part] for part in used if part not in given}
        self._converters: dict[int, Converter] = {}
        self._survey: Survey | None = None

    @property
    def count(self) -> int:
        """How many rollouts there are (reads the input once)."""
        return self.survey().count

    @property
    def bad(self) -> tuple[BadRow, ...]:
        """The first 1,000 rows that were left out under ``skip_bad``; `bad_count` says how many there are."""
        return self.survey().bad

    @property
    def bad_count(self) -> int:
        """How many rows are left out."""
        return self.survey().bad_count

    @property
    def fingerprint(self) -> str:
        """Identity of what is read: the bytes of all files, the columns and the treatment of bad rows."""
        return self.survey().fingerprint

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """What each column of the input holds, by its name there; columns that hold nothing are left out."""
        return self.survey().kinds

    def __iter__(self) -> Iterator[Rollout]:
        return (rollout for _, rollout in self.rows())

    def rows(self) -> Iterator[tuple[int, Rollout]]:
        """Each rollout with its row in the input, counted from 0, bad rows included."""
        return ((number, rollout) for number, rollout, _ in self._rollouts())

    def _rollouts(self) -> Iterator[tuple[int, Rollout, Checked]]:
        survey, count = self.survey(), 0
        for place, _, number, row, checked in self._read():
            if isinstance(checked, Checked) and number not in survey.repeated:
                count += 1
                yield number, self._converters[place].build(row, checked), checked
        if count != survey.count:
            raise DataError(self._parts[0].name, 0, "the input was changed while it was read")

    def groups(self, batch: int = 512) -> Iterator[Batch]:
        """Batches of at least ``batch`` rollouts (the last may be smaller) that hold whole groups.

        A group is rollouts with one ``group``, or with one prompt where there is none; without a prompt a rollout is
        a group of its own. It comes out with its last member, so groups that stand together need memory for one
        batch, and groups that are spread over the file for their members in between.
        """
        survey = self.survey()
        open_groups: dict[int, list[tuple[int, Rollout]]] = {}
        ready: list[tuple[int, Rollout]] = []
        for index, (number, rollout, checked) in enumerate(self._rollouts()):
            key = _group_key(checked, number)
            open_groups.setdefault(key, []).append((number, rollout))
            if index < survey.count and survey.ends[index]:
                ready += open_groups.pop(key)
                if len(ready) >= batch:
                    yield _batch(ready)
                    ready = []
        if open_groups:
            raise DataError(self._parts[0].name, 0, "the input was changed while it was read")
        if ready:
            yield _batch(ready)

    def survey(self, on_progress: Callable[[int], object] = lambda rows: None) -> Survey:
        """The first pass, made once: check every row, count, find the ends of groups and ids that stand twice.

        ``on_progress`` is told now and then how many rows were seen.
        """
        if self._survey is None:
            self._survey = self._look(on_progress)
        return self._survey

    def _look(self, on_progress: Callable[[int], object]) -> Survey:
        state = hashlib.blake2b(repr((self.columns, self._skip_bad)).encode(), digest_size=16)
        groups, ids, numbers, kinds = array("q"), array("q"), array("q"), ColumnKinds()
        bad: list[BadRow] = []
        bad_count = 0
        for place, line, number, row, checked in self._read(state.update):
            if number % _TOLD == 0:
                on_progress(number)
            if isinstance(checked, Checked):
                groups.append(_group_key(checked, number))
                ids.append(hash(checked.id))
                numbers.append(number)
                kinds.add(self._converters[place].typed(row))
                continue
            bad_count += 1
            file = self._parts[place].name
            if not self._skip_bad:
                raise DataError(file, line, checked)
            if len(bad) < _BAD_KEPT:
                bad.append(BadRow(file, line, checked))
        repeats = self._repeats(np.asarray(ids), np.asarray(numbers)) if self.columns.id else {}
        kept = ~np.isin(np.asarray(numbers), list(repeats)) if repeats else np.ones(len(numbers), dtype=np.bool_)
        bad = sorted([*bad, *repeats.values()][:_BAD_KEPT], key=lambda b: b.line) if repeats else bad
        ends = _last_of_each(np.asarray(groups, dtype=np.int64)[kept])
        found = (frozenset(repeats), tuple(bad), bad_count + len(repeats))
        return Survey(len(ends), ends, *found, kinds.joint(), state.hexdigest())

    def _repeats(self, ids: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> dict[int, BadRow]:
        """The rows whose id stood before; a second pass, only when hashes meet, names both lines."""
        order = np.argsort(ids, kind="stable")
        equal = ids[order][1:] == ids[order][:-1]
        if not equal.any():
            return {}
        suspects = {int(n) for n in numbers[order][np.append(equal, False) | np.append(False, equal)]}
        first: dict[str, tuple[str, int]] = {}
        found: dict[int, BadRow] = {}
        for place, line, number, _, checked in self._read():
            if number not in suspects or not isinstance(checked, Checked):
                continue
            name = self._parts[place].name
            file, before = first.setdefault(checked.id, (name, line))
            if (file, before) == (name, line):
                continue
            where = f"line {before}" if file == name else f"{file}:{before}"
            cause = f"id {checked.id!r} was already used on {where}"
            if not self._skip_bad:
                hint = 'join columns to tell them apart, such as id="{id}/{model}", or give id="" to number the rows'
                raise DataError(name, line, f"{cause}; {hint}")
            found[number] = BadRow(name, line, cause)
        return found

    def _read(self, watch: Watch | None = None) -> Iterator[tuple[int, int, int, Any, Checked | str]]:
        """Place of the file, line, row number, row, and what it holds or the cause why it is no rollout."""
        number = 0
        for place, part in enumerate(self._parts):
            if place not in self._converters:
                cell = typed_cell if part.reader is csv_rows else None
                self._converters[place] = Converter(self.columns, part.name, cell)
            check = self._converters[place].check
            for line, row in part.rows(watch):
                try:
                    yield place, line, number, row, row if isinstance(row, str) else check(row, number)
                except Refused as refusal:
                    yield place, line, number, row, str(refusal)
                number += 1

    def _names(self) -> list[str]:
        """The columns of the first row that can be read."""
        return next((list(row) for part in self._parts for _, row in part.rows() if not isinstance(row, str)), [])


def _group_key(rollout: Checked, number: int) -> int:
    """A 64-bit hash of the group. Two groups that meet in it come out together, which is still whole."""
    if rollout.group is not None:
        return hash(rollout.group)
    if rollout.prompt is None:
        return hash((number,))
    return hash(rollout.prompt if isinstance(rollout.prompt, str) else json.dumps(rollout.prompt, default=str))


def _last_of_each(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    ends = np.zeros(len(keys), dtype=np.bool_)
    ends[len(keys) - 1 - np.unique(keys[::-1], return_index=True)[1]] = True
    return ends


def _batch(members: list[tuple[int, Rollout]]) -> Batch:
    return Batch((rollout for _, rollout in members), [number for number, _ in members])
