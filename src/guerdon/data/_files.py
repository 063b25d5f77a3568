"""The files behind a path: one file, the files of a folder or of a saved dataset, or a copy of a stream."""

from __future__ import annotations

import json
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guerdon.core.errors import DataError
from guerdon.data._bytes import Watch
from guerdon.data._rows import READERS, Reader, Row, csv_rows, json_lines

_BLOCK = 1 << 20


class Part:
    """One file of a source."""

    def __init__(self, path: Path | Any, name: str, reader: Reader) -> None:
        self.keep = path  # a spooled file is deleted when this goes
        self.path = path if isinstance(path, Path) else Path(path.name)
        self.name, self.reader = name, reader

    def rows(self, watch: Watch | None = None) -> Iterator[Row]:
        """The rows; ``watch`` is shown a mark of the file and all of its bytes."""
        if watch is not None:
            watch(f"\0{self.path.suffix}{self.path.stat().st_size}\0".encode())
        return self.reader(self.path, watch=watch)


def parts_of(path: Path) -> list[Part]:
    if path.is_dir():
        return _folder(path)
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise DataError(str(path), 0, f"can't be read: {error.strerror}") from error
    reader = _reader(path)
    if reader is None:
        raise DataError(path.name, 0, f"unknown kind of file; known are {', '.join(READERS)} (text also .gz, .zst)")
    if not stat.S_ISREG(mode):
        with open(path, "rb") as stream:
            return [Part(spool(stream), path.name, reader)]
    return [Part(path, path.name, reader)]


def _reader(path: Path) -> Reader | None:
    suffixes = [s.lower() for s in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in (".gz", ".zst", ".zstd")
    if packed:
        suffixes.pop()
    reader = READERS.get(suffixes[-1]) if suffixes else None
    return reader if not packed or reader in (json_lines, csv_rows) else None


def _folder(folder: Path) -> list[Part]:
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(p.parent.name for p in folder.glob("*/state.json"))
        raise DataError(str(folder), 0, f"holds several splits; give one: {', '.join(str(folder / s) for s in splits)}")
    state = folder / "state.json"
    if state.is_file():
        files = [folder / name for name in _data_files(state)]
    else:
        files = sorted(p for p in folder.rglob("*") if p.is_file() and _reader(p) and not p.name.startswith("."))
    kinds = {p.suffix for p in files if p.suffix in (".parquet", ".arrow")}
    files = [p for p in files if p.suffix in kinds] if len(kinds) == 1 else files
    parts = [Part(p, str(p.relative_to(folder)), reader) for p in files if (reader := _reader(p))]
    if not parts:
        raise DataError(str(folder), 0, f"holds no file of a known kind ({', '.join(READERS)})")
    return parts


def _data_files(state: Path) -> list[str]:
    """The names that ``save_to_disk`` wrote down, kept inside the folder."""
    try:
        names = [Path(str(file["filename"])).name for file in json.loads(state.read_bytes())["_data_files"]]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(str(state), 0, f"not the state of a saved dataset: {error!r}") from error
    return [name for name in names if name]


def spool(stream: Any) -> Any:
    """A temporary copy, since the input is read more than once; it is deleted with the source."""
    file = tempfile.NamedTemporaryFile(prefix="guerdon-", suffix=".jsonl")  # noqa: SIM115 - lives as long as the source
    shutil.copyfileobj(stream, file, _BLOCK)
    file.flush()
    return file
