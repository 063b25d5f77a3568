"""Reading scored files back: Parquet or JSON lines, with the record of the run that stands beside them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from guerdon.core.errors import DataError

FIXED = ("id", "group", "row", "reward", "reason", "reward_evidence")
"""The columns that every scored file has; see `guerdon score`."""

NEEDED = ("id", "group", "reward", "reason")


def record_path(out: Path) -> Path:
    """Where the record of a scored file stands: spec, fingerprints, state and summary of its run."""
    return out.with_name(out.name + ".run.json")


class ScoredFile:
    """A scored file. Columns are read when asked for; rows are plain dicts with their evidence decoded."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._json: dict[str, list[Any]] | None = None
        if self.path.suffix == ".parquet":
            self.names: list[str] = self._parquet().schema_arrow.names
            self.count = int(self._parquet().metadata.num_rows)
        else:
            self._json = _columns_of(self.path)
            self.names = list(self._json)
            self.count = len(self._json["id"]) if "id" in self._json else 0
        missing = [n for n in NEEDED if n not in self.names]
        if missing:
            raise DataError(
                str(self.path),
                0,
                f"not a scored file: there is no column {missing[0]!r} (make one with guerdon score -o)",
            )

    def _parquet(self) -> Any:
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self.path)
        except (pa.ArrowInvalid, OSError) as error:
            cause = getattr(error, "strerror", None) or str(error).splitlines()[0]
            raise DataError(str(self.path), 0, f"can't be read: {cause}") from error

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """What ``OUT.run.json`` says of the run; empty where it is missing."""
        path = record_path(self.path)
        try:
            found = orjson.loads(path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError:
            raise DataError(str(path), 0, "is not the record of a run") from None
        return found if isinstance(found, dict) else {}

    @property
    def nodes(self) -> list[str]:
        """The named nodes, in order."""
        return [n for n in self.names if f"{n}_reason" in self.names and f"{n}_evidence" in self.names]

    @property
    def inputs(self) -> list[str]:
        """The kept input columns, in order."""
        made = {*FIXED, *(f"{n}{tail}" for n in self.nodes for tail in ("", "_reason", "_evidence"))}
        return [n for n in self.names if n not in made]

    def column(self, name: str) -> list[Any]:
        """The values of one column."""
        if name not in self.names:
            raise DataError(str(self.path), 0, f"there is no column {name!r}; columns are {', '.join(self.names)}")
        if self._json is not None:
            return self._json[name]
        values: list[Any] = self._parquet().read([name]).column(0).to_pylist()
        return values

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """A column as float64, shape ``(count,)``: NaN where unknown; the mean of a list's known items."""
        return np.array([_number(v) for v in self.column(name)], dtype=np.float64)

    def rows(self, indices: Sequence[int] | None = None) -> Iterator[dict[str, Any]]:
        """Whole rows, at these places or all, with ``*_evidence`` decoded."""
        for row in self._raw(indices):
            for name in (*self.nodes, "reward"):
                row[f"{name}_evidence"] = decoded(row.get(f"{name}_evidence"))
            yield row

    def _raw(self, indices: Sequence[int] | None) -> Iterator[dict[str, Any]]:
        if self._json is not None:
            for i in range(self.count) if indices is None else indices:
                yield {n: c[i] for n, c in self._json.items()}
            return
        wanted = None if indices is None else np.array(sorted(indices), dtype=np.int64)
        found: dict[int, dict[str, Any]] = {}
        start = 0
        for batch in self._parquet().iter_batches(batch_size=4096):
            if wanted is None:
                yield from batch.to_pylist()
            else:
                inside = wanted[(wanted >= start) & (wanted < start + batch.num_rows)]
                if len(inside):
                    found.update(zip(inside.tolist(), batch.take(pa.array(inside - start)).to_pylist(), strict=True))
            start += batch.num_rows
        if indices is not None:
            yield from (found[i] for i in indices)

    def find(self, row: int | None, id: str | None) -> int:
        """The place of the rollout with this id, or with this row in the input."""
        if id is not None:
            places = self.column("id")
            if id in places:
                return places.index(id)
            raise DataError(str(self.path), 0, f"there is no rollout with id {id!r}")
        rows = self.column("row") if "row" in self.names else list(range(self.count))
        if row in rows:
            return rows.index(row)
        there = f"rows go from {min(rows)} to {max(rows)}" if rows else "it is empty"
        raise DataError(str(self.path), 0, f"there is no rollout in row {row}; {there}")


def decoded(cell: Any) -> Any:
    """Evidence from its JSON text; plain data as it is."""
    if not isinstance(cell, str):
        return cell
    try:
        return orjson.loads(cell)
    except ValueError:
        return cell


def _number(value: Any) -> float:
    if isinstance(value, list):
        known = [v for v in value if v is not None]
        return sum(known) / len(known) if known else float("nan")
    return float("nan") if value is None else float(value)


def _columns_of(path: Path) -> dict[str, list[Any]]:
    """The columns of a JSON lines file, in the order in which they first appear."""
    columns: dict[str, list[Any]] = {}
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
            for count, line in enumerate(file):
                row = orjson.loads(line)
                for name in row:
                    if name not in columns:
                        columns[name] = [None] * count
                for name, cells in columns.items():
                    cells.append(row.get(name))
    except (ValueError, TypeError, AttributeError, EOFError, gzip.BadGzipFile) as error:
        raise DataError(str(path), 0, f"not a scored file: {error}") from None
    return columns
