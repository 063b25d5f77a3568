"""The journal: killed at any moment and run again, no row is lost and none is doubled."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import tracemalloc

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guerdon.backends.journal import Journal
from guerdon.core.errors import StoreError

RUN = {"spec": "s1", "data": "d1"}


def chunk(rows):
    return pa.table({"row": pa.array(rows, pa.int64()), "reward": [r / 3 for r in rows], "id": [f"r{r}" for r in rows]})


def open_journal(folder, run=RUN):
    return Journal(folder / "out.partial", run_fingerprint=run)


def test_chunks_and_state_are_there_when_it_is_opened_again(tmp_path):
    with open_journal(tmp_path) as journal:
        assert (journal.committed_rows, journal.state, list(journal)) == (0, None, [])
        journal.append(0, chunk([0, 1]), b"one")
        journal.append(2, chunk([4, 2]), b"two")
    with open_journal(tmp_path) as journal:
        assert (journal.committed_rows, journal.state) == (4, b"two")
        assert journal.rows().tolist() == [0, 1, 4, 2]
        assert [t["id"].to_pylist() for t in journal] == [["r0", "r1"], ["r4", "r2"]]


@pytest.mark.parametrize("name", ["out.parquet", "out.jsonl", "out.jsonl.gz"])
@pytest.mark.parametrize("order", [[[0, 1], [2, 3], [4]], [[3, 0], [4, 1], [2]]])
def test_the_finished_file_holds_all_rows_in_order_and_the_journal_is_gone(name, order, tmp_path):
    with open_journal(tmp_path) as journal:
        for rows in order:
            journal.append(0, chunk(rows))
        journal.finish(tmp_path / name)
    assert os.listdir(tmp_path) == [name]
    table = (
        pq.read_table(tmp_path / name) if name.endswith("parquet") else pa.Table.from_pylist(read_json(tmp_path / name))
    )
    assert table.to_pylist() == chunk([0, 1, 2, 3, 4]).to_pylist()


def read_json(path):
    import gzip

    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [orjson.loads(line) for line in data.splitlines()]


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(40)), st.lists(st.integers(1, 12), min_size=1), st.integers(1, 9))
def test_any_order_of_rows_in_any_chunks_comes_out_sorted(tmp_path_factory, rows, sizes, window):
    from guerdon.backends import _scored_file

    folder = tmp_path_factory.mktemp("j")
    before, _scored_file._GROUP_ROWS = _scored_file._GROUP_ROWS, window
    try:
        with open_journal(folder) as journal:
            at = 0
            for size in sizes * 40:
                if at < len(rows):
                    journal.append(0, chunk(rows[at : at + size]))
                    at += size
            journal.finish(folder / "out.parquet")
    finally:
        _scored_file._GROUP_ROWS = before
    assert pq.read_table(folder / "out.parquet").equals(chunk(list(range(40))))


def test_rows_without_a_row_column_count_up_from_the_first(tmp_path):
    with open_journal(tmp_path) as journal:
        journal.append(2, pa.table({"x": ["c"]}))
        journal.append(0, pa.table({"x": ["a", "b"]}))
        journal.finish(tmp_path / "out.jsonl")
    assert read_json(tmp_path / "out.jsonl") == [{"x": "a"}, {"x": "b"}, {"x": "c"}]


def test_columns_that_are_all_null_or_absent_in_some_chunks_fit(tmp_path):
    with open_journal(tmp_path) as journal:
        journal.append(0, pa.table({"row": [0], "reward": pa.nulls(1), "reason": ["timed out"]}))
        journal.append(1, pa.table({"row": [1], "reward": [0.5], "reason": pa.nulls(1), "tidy": [1.0]}))
        with pytest.raises(StoreError, match="do not fit"):
            journal.append(2, pa.table({"row": [2], "reward": ["text"]}))
        journal.append(2, pa.table({"row": [2], "reward": [1.0]}))
        journal.finish(tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [
        {"row": 0, "reward": None, "reason": "timed out", "tidy": None},
        {"row": 1, "reward": 0.5, "reason": None, "tidy": 1.0},
        {"row": 2, "reward": 1.0, "reason": None, "tidy": None},
    ]


def test_a_row_is_committed_once(tmp_path):
    with open_journal(tmp_path) as journal:
        journal.append(0, chunk([0, 5]))
        for rows in ([5], [6, 0], [7, 7], [-1]):
            with pytest.raises(StoreError):
                journal.append(0, chunk(rows))
        assert journal.committed_rows == 2
    with open_journal(tmp_path) as journal, pytest.raises(StoreError, match="row 5 is committed already"):
        journal.append(0, chunk([5]))


def test_another_run_is_refused_and_told_what_differs(tmp_path):
    with open_journal(tmp_path) as journal:
        journal.append(0, chunk([0, 1, 2]))
    with pytest.raises(StoreError, match=r"holds 3 rows of another run \(different: data\).*remove the file"):
        open_journal(tmp_path, {**RUN, "data": "d2"})
    with pytest.raises(StoreError, match="its spec, data or options differ"):
        open_journal(tmp_path, "another")
    with open_journal(tmp_path) as journal:
        assert journal.committed_rows == 3


def test_one_process_at_a_time_holds_a_journal(tmp_path):
    with open_journal(tmp_path) as journal:
        journal.append(0, chunk([0]))
        with pytest.raises(StoreError, match="in use"):
            open_journal(tmp_path)


def test_a_damaged_chunk_is_an_error_and_no_output_appears(tmp_path):
    with open_journal(tmp_path) as journal:
        journal.append(0, chunk([0, 1]))
    db = sqlite3.connect(tmp_path / "out.partial")
    db.execute("UPDATE chunks SET data = zeroblob(length(data))")
    db.commit()
    db.close()
    with open_journal(tmp_path) as journal, pytest.raises(StoreError, match="chunk 0 does not match its checksum"):
        journal.finish(tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
    (tmp_path / "out.partial").write_bytes(b"rubbish" * 1000)
    with pytest.raises(StoreError, match="damaged"):
        open_journal(tmp_path)


def test_a_run_without_rows_gives_an_empty_file(tmp_path):
    with open_journal(tmp_path) as journal:
        journal.finish(tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_an_unknown_output_format_is_an_error_and_keeps_the_journal(tmp_path):
    with open_journal(tmp_path) as journal:
        journal.append(0, chunk([0]))
        with pytest.raises(StoreError, match=r"written as \.parquet, \.jsonl"):
            journal.finish(tmp_path / "out.xlsx")
    with open_journal(tmp_path) as journal:
        assert journal.committed_rows == 1


RUNNER = """
import sys, os, types
sys.modules["pandas"] = old = types.ModuleType("pandas")  # pyarrow would import it and spend most of the time there
old.__version__ = "0.1"
from pathlib import Path
import pyarrow as pa
import pyarrow.compute
from guerdon.backends.journal import Journal

folder, name, total, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
out = folder / name
if out.exists() and not (folder / "out.partial").exists():
    sys.exit()
order = [r ^ 1 for r in range(total)]
pa.table({"row": [0]})  # imports what the first table needs
with Journal(folder / "out.partial", run_fingerprint="r") as journal:
    done = journal.committed_rows
    assert int(journal.state or b"0") == done
    print("open", done, flush=True)
    while done < total:
        rows = order[done:done + size]
        journal.append(0, pa.table({"row": rows, "reward": [r / 3 for r in rows]}), str(done + len(rows)).encode())
        done += len(rows)
    print("finish", flush=True)
    journal.finish(out)
print("end", flush=True)
"""


def start(folder, name, total, size):
    args = [sys.executable, "-W", "ignore", "-c", RUNNER, str(folder), name, str(total), str(size)]
    return subprocess.Popen(args, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", ["out.parquet", "out.jsonl"])
def test_killed_again_and_again_no_row_is_lost_or_doubled(name, tmp_path):
    rng, total, progress = random.Random(7), 40_000, []
    for _ in range(5):
        process = start(tmp_path, name, total, 20)
        progress += [int(w) for w in process.stdout.readline().split() if w.isdigit()]
        time.sleep(rng.uniform(0.0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert progress == sorted(progress)
    assert progress[-1] > progress[0]
    process = start(tmp_path, name, total, 500)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert os.listdir(tmp_path) == [name]
    rows = pq.read_table(tmp_path / name).to_pylist() if name.endswith("parquet") else read_json(tmp_path / name)
    assert rows == [{"row": r, "reward": r / 3} for r in range(total)]


SUICIDE = """import threading, time, signal
    threading.Thread(target=lambda: (time.sleep(float(sys.argv[5])), os.kill(os.getpid(), signal.SIGKILL))).start()
    journal.finish(out)
    os._exit(0)"""
FINISHER = RUNNER.replace("journal.finish(out)", SUICIDE)


def test_killed_while_it_finishes_the_next_run_gives_the_whole_file(tmp_path):
    for name, delay in [("out.jsonl", 0.004), ("out.parquet", 0.02)]:
        folder = tmp_path / f"{name}{delay}"
        folder.mkdir()
        for pause in (delay, delay * 2, 60.0):
            args = [sys.executable, "-W", "ignore", "-c", FINISHER, str(folder), name, "20000", "500", str(pause)]
            subprocess.run(args, capture_output=True, timeout=60, check=False)
            assert (folder / "out.partial").exists() or (folder / name).exists()
        assert os.listdir(folder) == [name]
        rows = pq.read_table(folder / name).to_pylist() if name.endswith("parquet") else read_json(folder / name)
        assert [r["row"] for r in rows] == list(range(20000))


def test_memory_is_bounded_when_a_long_run_is_finished(tmp_path):
    text = ["x" * 200] * 1000
    pool = pa.default_memory_pool()
    with open_journal(tmp_path) as journal:
        for start in range(0, 200_000, 1000):
            rows = list(range(start, start + 1000))
            journal.append(0, pa.table({"row": rows, "evidence": text}))
        before = pool.bytes_allocated()
        peak = 0
        written = journal._chunk

        def watched(place):
            nonlocal peak
            peak = max(peak, pool.bytes_allocated() - before)
            return written(place)

        journal._chunk = watched
        tracemalloc.start()
        journal.finish(tmp_path / "out.parquet")
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert pq.read_metadata(tmp_path / "out.parquet").num_rows == 200_000
    assert peak < 96 << 20
    assert top < 24 << 20


def test_evidence_survives_as_json_lines(tmp_path):
    nested = [{"node": "correct", "value": 1.0, "why": None, "list": [1, 2]}]
    with open_journal(tmp_path) as journal:
        journal.append(0, pa.table({"evidence": [nested], "reward": pa.array([None], pa.float64())}))
        journal.finish(tmp_path / "out.jsonl")
    assert json.loads((tmp_path / "out.jsonl").read_text()) == {"evidence": nested, "reward": None}
