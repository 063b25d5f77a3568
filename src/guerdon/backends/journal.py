"""The journal of a scoring run: whole chunks of output and the state behind them, committed together.

Killed at any moment and opened again it holds exactly the chunks whose `Journal.append` had returned (and perhaps the
one that was under way), so a run continues with no row lost and none doubled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from guerdon.backends._scored_file import write_scored
from guerdon.backends._sqlite import checksum, connect, damaged, guarded, transaction
from guerdon.core.errors import StoreError

_KIND, _VERSION = 0x67646A31, 1
_SCHEMA = """
CREATE TABLE run (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE chunks (
  number INTEGER PRIMARY KEY, rows BLOB NOT NULL, data BLOB NOT NULL, size INTEGER NOT NULL, checksum BLOB NOT NULL)
"""

Rows = npt.NDArray[np.int64]


class Journal:
    """Scored output on its way to a file: ``OUT.partial`` until `finish` has written ``OUT``.

    ``run_fingerprint``: what the run is (spec, data, options), as a text or as named parts; a file of another run is
    refused with `StoreError`. One process at a time may hold a journal.

    ```python
    import pyarrow as pa
    from guerdon.backends.journal import Journal

    with Journal("scored.parquet.partial", run_fingerprint={"spec": "a1", "data": "b2"}) as journal:
        journal.append(journal.committed_rows, pa.table({"row": [0, 1], "reward": [1.0, None]}), b"state")
        journal.finish("scored.parquet")
    ```
    """

    def __init__(self, path: str | Path, *, run_fingerprint: str | Mapping[str, str]) -> None:
        self.path = Path(path)
        self._db = connect(str(path), kind=_KIND, version=_VERSION, schema=_SCHEMA, alone=True)
        self._closed = False
        try:
            self._rows = self._read_rows()
            self._schema = self._read_schema()
            self._claim(run_fingerprint if isinstance(run_fingerprint, str) else dict(run_fingerprint))
        except BaseException:
            self.close()
            raise

    @property
    def committed_rows(self) -> int:
        """How many rows of output are committed."""
        return sum(len(rows) for rows in self._rows)

    @property
    def state(self) -> bytes | None:
        """The state that was committed with the last chunk; ``None`` before the first."""
        return self._get("state")

    def rows(self) -> Rows:
        """The row numbers of all committed rows, in the order in which they were committed."""
        return np.concatenate(self._rows) if self._rows else np.empty(0, np.int64)

    def append(self, first_row: int, table: pa.Table, state: bytes = b"") -> None:
        """Commit a chunk of output together with the state after it; all or nothing.

        Row numbers are the column ``row`` where the table has one, otherwise they count up from ``first_row``. Raises
        `StoreError` for a row that is committed already and for columns whose types contradict earlier chunks.
        """
        rows = _row_numbers(first_row, table)
        self._refuse_doubles(rows)
        schema = self._unify(table.schema)
        data, numbers = _pack(table), rows.tobytes()
        record = (numbers, data, table.nbytes, checksum(numbers, data))
        with guarded(str(self.path)), transaction(self._db):
            if len(rows):
                self._db.execute("INSERT INTO chunks(rows, data, size, checksum) VALUES (?,?,?,?)", record)
            self._set("state", state)
            self._set("schema", schema.serialize().to_pybytes())
        self._schema = schema
        if len(rows):
            self._rows.append(rows)
            self._seen[rows] = True

    def __iter__(self) -> Iterator[pa.Table]:
        """The committed chunks in order, one at a time in memory, all with the same columns."""
        return (self._chunk(place) for place in range(len(self._rows)))

    def finish(self, out_path: str | Path) -> None:
        """Write all rows, by row number, to ``.parquet`` or ``.jsonl`` (``.gz``); then remove the journal.

        The file appears whole or not at all. Killed on the way, a new `finish` does it again with the same result.
        """
        columns = self._schema or pa.schema([])
        sizes = [int(row[0]) for row in self._db.execute("SELECT size FROM chunks ORDER BY number")]
        write_scored(Path(out_path), columns, self._rows, sizes, self._chunk)
        self.close()  # leaves one file, without a log that a later journal could take for its own
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file and keep it; may be called twice."""
        if not self._closed:
            self._closed = True
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _claim(self, fingerprint: str | dict[str, str]) -> None:
        ours = json.dumps(fingerprint, sort_keys=True).encode()
        theirs = self._get("fingerprint")
        if theirs is None:
            with guarded(str(self.path)), transaction(self._db):
                self._set("fingerprint", ours)
        elif theirs != ours:
            raise StoreError(
                f"{self.path} holds {self.committed_rows} rows of another run ({_difference(theirs, fingerprint)});"
                " run it again as it was to continue, or remove the file to start over"
            )

    def _read_rows(self) -> list[Rows]:
        with guarded(str(self.path)):
            found = [
                np.frombuffer(row[0], np.int64) for row in self._db.execute("SELECT rows FROM chunks ORDER BY number")
            ]
        rows = np.concatenate(found) if found else np.empty(0, np.int64)
        self._seen = np.zeros(1024, dtype=np.bool_)
        if len(rows) and (rows.min() < 0 or len(np.unique(rows)) < len(rows)):
            raise damaged(str(self.path), "its row numbers contradict each other")
        self._refuse_doubles(rows)
        self._seen[rows] = True
        return found

    def _read_schema(self) -> pa.Schema | None:
        data = self._get("schema")
        return None if data is None else pa.ipc.read_schema(pa.BufferReader(data))

    def _refuse_doubles(self, rows: Rows) -> None:
        if not len(rows):
            return
        top = int(rows.max())
        if top >= len(self._seen):
            self._seen = np.concatenate(
                [self._seen, np.zeros(max(top + 1, 2 * len(self._seen)) - len(self._seen), np.bool_)]
            )
        twice = rows[self._seen[rows]]
        if len(twice):
            raise StoreError(f"{self.path}: row {twice[0]} is committed already")

    def _unify(self, schema: pa.Schema) -> pa.Schema:
        if self._schema is None:
            return schema
        if schema.equals(self._schema):
            return self._schema
        try:
            return pa.unify_schemas([self._schema, schema], promote_options="permissive")
        except pa.ArrowException as error:
            raise StoreError(f"{self.path}: the columns of this chunk do not fit earlier ones: {error}") from error

    def _chunk(self, place: int) -> pa.Table:
        with guarded(str(self.path)):
            query = "SELECT rows, data, checksum FROM chunks WHERE number = ?"  # they are never deleted: 1, 2, 3...
            rows, data, check = self._db.execute(query, [place + 1]).fetchone()
        if check != checksum(rows, data):
            raise damaged(str(self.path), f"chunk {place} does not match its checksum")
        table = pa.ipc.open_stream(data).read_all()
        if self._schema is None or table.schema.equals(self._schema):
            return table
        return pa.concat_tables([self._schema.empty_table(), table], promote_options="permissive")

    def _get(self, name: str) -> bytes | None:
        with guarded(str(self.path)):
            row = self._db.execute("SELECT value FROM run WHERE name = ?", [name]).fetchone()
        return None if row is None else bytes(row[0])

    def _set(self, name: str, value: bytes) -> None:
        self._db.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", [name, value])


def _row_numbers(first_row: int, table: pa.Table) -> Rows:
    if "row" not in table.column_names:
        return np.arange(first_row, first_row + table.num_rows, dtype=np.int64)
    rows = table.column("row").cast(pa.int64()).to_numpy(zero_copy_only=False)
    if table.column("row").null_count or (len(rows) and rows.min() < 0) or len(np.unique(rows)) < len(rows):
        raise StoreError("the column 'row' must hold different row numbers from 0, without nulls")
    return np.ascontiguousarray(rows, dtype=np.int64)


def _pack(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _difference(theirs: bytes, ours: str | dict[str, str]) -> str:
    try:
        before = json.loads(theirs)
    except ValueError:
        before = None
    if not isinstance(before, dict) or not isinstance(ours, dict):
        return "its spec, data or options differ"
    names = sorted(k for k in before.keys() | ours.keys() if before.get(k) != ours.get(k))
    return f"different: {', '.join(names)}"
