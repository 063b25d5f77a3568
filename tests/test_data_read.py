"""Reading rollouts: every format, every bad row with its place and cause, whole groups, bounded memory."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
import os
import sys
import threading
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guerdon.core.errors import DataError
from guerdon.data import BadRow, Columns, _rows, read

ROWS = [
    {"id": "a", "prompt": "1+1?", "completion": "2", "answer": "2", "score": 0.5},
    {"id": "b", "prompt": "1+1?", "completion": "3", "answer": "2", "score": 1},
    {"id": "c", "prompt": "2+2?", "completion": "4", "answer": "4", "score": None},
]


def lines(rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def write(path, data):
    path.write_bytes(data)
    return path


def cause(path, columns=None):
    with pytest.raises(DataError) as caught:
        list(read(path, columns))
    return str(caught.value)


def write_as(kind, folder, rows=ROWS):
    path = folder / f"rollouts.{kind}"
    table = pa.Table.from_pylist(rows)
    if kind == "jsonl":
        return write(path, lines(rows))
    if kind == "jsonl.gz":
        return write(path, gzip.compress(lines(rows)))
    if kind == "jsonl.zst":
        return write(path, pa.Codec("zstd").compress(lines(rows), asbytes=True))
    if kind == "csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        return write(path, text.getvalue().encode())
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=2)
        return path
    if kind == "arrow":
        with pa.ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table)
        return path
    folder = folder / "folder"
    folder.mkdir()
    for i, row in enumerate(rows):
        pq.write_table(pa.Table.from_pylist([row], schema=table.schema), folder / f"part-{i}.parquet")
    return folder


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "jsonl.zst", "csv", "parquet", "arrow", "folder"])
def test_every_format_gives_the_same_rollouts(kind, tmp_path):
    source = read(write_as(kind, tmp_path))
    assert [(r.id, r.prompt, r.completion, r.answer) for r in source] == [
        ("a", "1+1?", "2", "2"),
        ("b", "1+1?", "3", "2"),
        ("c", "2+2?", "4", "4"),
    ]
    assert [r.extra["score"] for r in source] == [0.5, 1, None]
    assert source.count == 3
    assert [[r.id for r in batch] for batch in source.groups(1)] == [["a", "b"], ["c"]]


def test_the_real_solutions_need_an_id_of_two_columns(shared_data):
    path = shared_data / "gsm8k" / "model_solutions_labelled.jsonl.gz"
    assert "id 'gsm8k-test-0' was already used on line 1" in cause(path)
    source = read(path, Columns(id="{id}/{model}"))
    assert source.count == 5276
    assert source.guessed == {"prompt": "question", "completion": "solution", "answer": "gold"}
    assert {len(batch) for batch in source.groups(1)} == {4}
    assert next(iter(source)).id == "gsm8k-test-0/6b_finetuning"


def test_a_saved_dataset_directory_is_read_and_a_dictionary_names_its_splits(tmp_path):
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_list(ROWS)
    datasets.DatasetDict({"train": data, "test": data}).save_to_disk(tmp_path / "d")
    assert [r.id for r in read(tmp_path / "d" / "train")] == ["a", "b", "c"]
    assert "holds several splits; give one" in cause(tmp_path / "d")


def test_the_state_of_a_saved_dataset_cannot_point_outside_its_folder(tmp_path):
    write(tmp_path / "secret.jsonl", lines(ROWS))
    (tmp_path / "d").mkdir()
    write(tmp_path / "d" / "state.json", json.dumps({"_data_files": [{"filename": "../secret.jsonl"}]}).encode())
    assert "can't be read" in cause(tmp_path / "d")


def test_standard_input_is_read_as_often_as_needed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines(ROWS))))
    source = read("-")
    assert [r.id for r in source] == [r.id for r in source] == ["a", "b", "c"]


def test_a_named_pipe_is_copied_first(tmp_path):
    os.mkfifo(tmp_path / "p.jsonl")
    feeder = threading.Thread(target=lambda: (tmp_path / "p.jsonl").write_bytes(lines(ROWS)))
    feeder.start()
    assert read(tmp_path / "p.jsonl").count == 3
    feeder.join()


BAD_LINES = {
    b'{"id": "x"}': "completion is missing",
    b'{"id": "x", "completion": null}': "completion is missing",
    b'{"id": "x", "completion": 3}': "completion must be text or a list of messages, not int",
    b'{"id": "x", "completion": []}': "completion is an empty list of messages",
    b'{"id": "x", "completion": ["hi"]}': "completion message 0 must be an object with role and content, not str",
    b'{"id": "x", "completion": [{"content": "hi"}]}': "completion message 0 has no role",
    b'{"id": "x", "completion": [{"role": "assistant", "content": 1}]}': "content must be text or a list of parts",
    b'{"id": "x", "completion": [{"role": "assistant", "tool_calls": "f()"}]}': "tool_calls must be a list of objects",
    b'{"id": "x", "prompt": 7, "completion": "a"}': "prompt must be text or a list of messages, not int",
    b'{"completion": "a"}': "id is missing (column 'id')",
    b'{"id": "x", "completion": "a", "tokens": [1, 2], "logprobs": [-0.1]}': "2 tokens but 1 logprobs",
    b'{"id": "x", "completion": "a", "logprobs": [-0.1, null]}': "logprobs must be a list of numbers",
    b'{"id": "x", "completion": "a", "steps": [[0, "a"]]}': "steps must be a list of texts or [start, end]",
    b'{"id": "x", "completion": "a"': "not valid JSON",
    b"[1, 2]": "expected a JSON object, not list",
    b'{"id": "x", "completion": "a", "score": NaN}': "not valid JSON",
    b'{"id": "x", "completion": "a", "score": -Infinity}': "not valid JSON",
    b'{"id": "x", "completion": "a", "score": 1e999}': "infinity",
    b'{"id": "x", "completion": "a", "deep": {"list": [1, [2, 1e400]]}}': "infinity",
    b'{"id": "x", "completion": "\xff\xfe"}': "not valid UTF-8",
    b'{"id": "x", "completion": "a", "deep": ' + b"[" * 5000 + b"]" * 5000 + b"}": "depth limit",
    b'{"id": "a", "completion": "again"}': "id 'a' was already used on line 1",
}


@pytest.mark.parametrize("line", BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_bad_row_is_an_error_with_file_line_and_cause_or_is_counted(line, tmp_path):
    columns = Columns("completion", "prompt", "answer", "", "id", "steps", "tokens", "logprobs", "")
    good = [{**row, "steps": None, "tokens": None, "logprobs": None} for row in ROWS]
    data = lines(good[:2]) + b"\n" + line + b"\n" + lines(good[2:])
    path = write(tmp_path / "rollouts.jsonl", data)
    text = cause(path, columns)
    assert text.startswith("rollouts.jsonl:4: ")
    assert BAD_LINES[line] in text
    source = read(path, columns, skip_bad=True)
    assert [(row, r.id) for row, r in source.rows()] == [(0, "a"), (1, "b"), (3, "c")]
    assert (source.count, source.bad_count) == (3, 1)
    assert source.bad[0][:2] == ("rollouts.jsonl", 4)
    assert [batch.rows for batch in source.groups()] == [[0, 1, 3]]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused_at_any_depth(kind, value, tmp_path):
    rows = [{"completion": str(i), "x": {"y": [0.5, 1.0]}, "z": 1.0} for i in range(2000)]
    rows[1500] = {"completion": "n", "x": {"y": [0.5, value]}, "z": 1.0}
    text = cause(write_as(kind, tmp_path, rows))
    assert text == f"rollouts.{kind}:1501: column 'x' holds {value}, which is not a finite number"


def test_the_cells_of_csv_are_checked_and_get_a_type(tmp_path):
    head = b"completion,score,name,empty\n"
    data = head + b'"two\nlines",1.5,007x,\r\n12,-3,1e3, \n'
    first, second = read(write(tmp_path / "r.csv", data))
    assert (first.completion, dict(first.extra)) == ("two\nlines", {"score": 1.5, "name": "007x", "empty": None})
    assert (second.completion, dict(second.extra)) == ("12", {"score": -3, "name": 1000.0, "empty": None})
    for bad, why in {
        b"a,NaN,x,\n": "column 'score' holds NaN, which is not a finite number",
        b"a,-inf,x,\n": "column 'score' holds -inf, which is not a finite number",
        b"a,1\n": "2 cells in a table of 4 columns",
        b"\xff,1,x,\n": "not valid UTF-8: invalid start byte",
    }.items():
        assert f"r.csv:5: {why}" in cause(write(tmp_path / "r.csv", data + bad))


def test_line_ends_byte_order_marks_and_empty_lines_do_not_matter(tmp_path):
    data = b"\xef\xbb\xbf" + lines(ROWS).replace(b"\n", b"\r\n\r\n  \n").rstrip()
    assert [r.id for r in read(write(tmp_path / "r.jsonl", data))] == ["a", "b", "c"]


def test_large_integers_stay_exact(tmp_path):
    path = write(
        tmp_path / "r.jsonl", b'{"completion": "a", "answer": 123456789012345678901234567890, "x": [1, -1e19]}\n'
    )
    (rollout,) = read(path)
    assert rollout.answer == 123456789012345678901234567890
    assert rollout.extra["x"] == [1, -1e19]


def test_an_over_long_line_is_a_bad_row_and_costs_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(_rows.json_lines, "__defaults__", (1 << 20,))
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(lines(ROWS[:1]) + b'{"id": "x", "completion": "')
        for _ in range(64):
            file.write(b"a" * (1 << 20))
        file.write(b'"}\n' + lines(ROWS[1:]))
    tracemalloc.start()
    source = read(path, skip_bad=True)
    assert [r.id for r in source] == ["a", "b", "c"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert source.bad == (BadRow("bomb.jsonl.gz", 2, "the line is longer than 1048576 bytes"),)
    assert peak < 16 << 20


@pytest.mark.parametrize("kind", ["jsonl.gz", "jsonl.zst", "parquet", "arrow"])
def test_a_file_that_ends_early_is_an_error_even_when_bad_rows_are_skipped(kind, tmp_path):
    rows = [{"completion": os.urandom(40).hex()} for _ in range(3000)]
    path = write_as(kind, tmp_path, rows)
    write(path, path.read_bytes()[:-2000])
    with pytest.raises(DataError, match=f"rollouts.{kind}"):
        list(read(path, skip_bad=True))


def test_files_that_are_missing_unknown_or_empty_say_so(tmp_path):
    assert "can't be read: No such file" in cause(tmp_path / "no.jsonl")
    assert "unknown kind of file; known are .jsonl" in cause(write(tmp_path / "r.xlsx", b""))
    (tmp_path / "empty").mkdir()
    assert "holds no file of a known kind" in cause(tmp_path / "empty")
    assert read(write(tmp_path / "e.jsonl", b"")).count == 0
    assert list(read(write(tmp_path / "e.csv", b"")).groups()) == []


def test_columns_are_guessed_named_or_an_error_that_lists_them(tmp_path):
    path = write(tmp_path / "r.jsonl", b'{"Question": "q", "Response": "r", "text": "t", "Label": 1}\n')
    source = read(path)
    assert source.guessed == {"prompt": "Question", "completion": "Response", "answer": "Label"}
    (rollout,) = read(path, Columns(completion="text", answer=""))
    assert (rollout.completion, rollout.answer, rollout.id) == ("t", None, "0")
    assert dict(rollout.extra) == {"Response": "r", "Label": 1}
    assert "no column 'txt' for completion; columns are 'Question', 'Response'" in cause(path, Columns("txt"))
    other = write(tmp_path / "o.jsonl", b'{"a": 1, "b": 2}\n')
    assert "no column looks like the completion; name one of 'a', 'b'" in cause(other)


@pytest.mark.parametrize("template", ["{id.__class__}", "{id[0]}", "{id!r}", "{id:>9}", "{}", "{0}{id"])
def test_templates_hold_plain_names_only(template, tmp_path):
    path = write_as("jsonl", tmp_path)
    assert "template" in cause(path, Columns(id=template)) or "no column" in cause(path, Columns(id=template))


def test_messages_with_tool_calls_are_kept_and_parquets_empty_keys_are_not(tmp_path):
    call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "content": "1"}]
    pq.write_table(
        pa.Table.from_pylist([{"completion": chat, "prompt": [{"role": "user", "content": "q"}]}]),
        tmp_path / "r.parquet",
    )
    (rollout,) = read(tmp_path / "r.parquet")
    assert rollout.completion == [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "1"}]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from("abcdef"), max_size=40), st.integers(1, 10), st.booleans())
def test_groups_are_whole_and_every_row_comes_once(tmp_path_factory, keys, batch, by_prompt):
    path = tmp_path_factory.mktemp("g") / "r.jsonl"
    name = "prompt" if by_prompt else "group"
    write(path, lines({name: key, "completion": str(i)} for i, key in enumerate(keys)))
    batches = list(read(path).groups(batch))
    assert sorted(row for b in batches for row in b.rows) == list(range(len(keys)))
    assert all(int(r.completion) == row for b in batches for r, row in zip(b, b.rows, strict=True))
    assert all(len(b) >= batch for b in batches[:-1])
    for key in set(keys):
        assert sum(any(keys[row] == key for row in b.rows) for b in batches) == 1


def test_rollouts_without_prompt_and_group_are_groups_of_their_own(tmp_path):
    path = write(tmp_path / "r.jsonl", lines({"completion": "same"} for _ in range(5)))
    assert [len(b) for b in read(path).groups(1)] == [1, 1, 1, 1, 1]


def test_the_fingerprint_follows_content_and_columns_not_the_place(tmp_path):
    path = write_as("jsonl", tmp_path)
    (tmp_path / "copy").mkdir()
    copy = write_as("jsonl", tmp_path / "copy")
    assert read(path).fingerprint == read(copy).fingerprint
    others = [read(path, Columns(answer="")), read(path, skip_bad=True), read(write_as("jsonl", tmp_path, ROWS[:2]))]
    assert len({s.fingerprint for s in [read(copy), *others]}) == 4


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "jsonl.zst", "csv", "parquet", "arrow", "folder"])
def test_the_fingerprint_is_a_hash_of_all_bytes_as_they_are_stored(kind, tmp_path):
    path = write_as(kind, tmp_path)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    source = read(path)
    state = hashlib.blake2b(repr((source.columns, False)).encode(), digest_size=16)
    for file in files:
        state.update(f"\0{file.suffix}{file.stat().st_size}\0".encode() + file.read_bytes())
    assert source.fingerprint == state.hexdigest()


def test_the_columns_kinds_are_those_of_the_cells_and_nulls_have_none(tmp_path):
    rows = [{"completion": "a", "n": 1, "m": 1, "x": True, "big": 2**63, "chat": [{"a": 1}], "none": None}] * 2
    path = write(tmp_path / "r.jsonl", lines([*rows, {"completion": "b", "n": 0.5, "m": "one", "late": 1}]))
    assert read(path).kinds == {
        "completion": "text", "n": "float", "m": "json", "x": "bool", "big": "json", "chat": "json", "late": "int",
    }  # fmt: skip
    assert read(write(tmp_path / "r.csv", b"completion,n,m\n1,2,\n3,0.5,x\n")).kinds == {
        "completion": "text", "n": "float", "m": "text",
    }  # fmt: skip


def test_an_input_that_changes_between_the_passes_is_an_error(tmp_path):
    path = write_as("jsonl", tmp_path)
    source = read(path)
    assert source.count == 3
    write(path, lines(ROWS[:2]))
    with pytest.raises(DataError, match="changed while it was read"):
        list(source)


def test_memory_does_not_grow_with_the_file(tmp_path):
    def peak(n):
        path = tmp_path / f"{n}.jsonl"
        with open(path, "wb") as file:
            for i in range(n):
                file.write(b'{"prompt": "q%d", "completion": "%s"}\n' % (i // 8, b"x" * 2000))
        tracemalloc.start()
        for _ in read(path).groups(64):
            pass
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(4000) < peak(1000) + (2 << 20)
