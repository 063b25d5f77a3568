"""`guerdon score`: the scored file, its summary, and runs that are killed and started again."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from guerdon.cli import main

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "gsm8k"
PROGRAM = Path(sys.executable).with_name("guerdon")
HERO = """
guerdon: 1
nodes:
  correct: {verify.number: {}}
  quality: {column: {name: q, range: [0, 1]}}
reward: {method.hero-hybrid-reward: {correct: correct, quality: quality}}
"""


def guerdon(*arguments: str | Path, code: int = 0) -> str:
    """Run the command line in this process: its output, with its errors where it fails as expected."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    assert (stop.value.code or 0) == code, out.getvalue() + err.getvalue()
    return out.getvalue() if code == 0 else out.getvalue() + err.getvalue()


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        return [json.loads(line) for line in file]


def write_rollouts(path: Path, count: int) -> Path:
    rows = (
        {"id": f"r{i}", "group": f"g{i // 4}", "completion": f"it is {i % 7}", "answer": "3", "q": (i * 37 % 101) / 101}
        for i in range(count)
    )
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "reward.yaml"
    path.write_text(HERO)
    return path


def test_all_5276_published_solutions_agree_with_their_label(shared_data: Path, tmp_path: Path) -> None:
    data, out = shared_data / "gsm8k" / "model_solutions_labelled.jsonl.gz", tmp_path / "scored.parquet"
    guerdon("score", data, "--spec", EXAMPLE / "reward.yaml", "-o", out)
    rows = rows_of(out)
    assert len(rows) == 5276
    assert [r["reward"] for r in rows] == [float(r["is_correct"]) for r in rows]
    assert [r["row"] for r in rows] == list(range(5276))
    assert rows[0]["id"] == "gsm8k-test-0/6b_finetuning"
    assert json.loads(rows[0]["correct_evidence"]) == {"extracted": "26", "rule": "last number", "reference": "18"}
    unfinished = [r for r in rows if r["finished"] == 0.0]
    assert len(unfinished) == 11
    assert {(r["correct"], r["correct_reason"], r["reward"]) for r in unfinished} == {(None, "not asked", 0.0)}
    shown = guerdon("report", out, "--label", "is_correct", "--by", "model", "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "written" in shown
    for accuracy in ("56.3%", "39.0%", "34.7%", "21.7%"):  # of the four models, as published
        assert accuracy in page


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".jsonl.gz"])
def test_every_format_holds_the_same_rows(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"scored{suffix}"
    guerdon("score", EXAMPLE / "solutions.jsonl", "--spec", EXAMPLE / "reward.yaml", "-o", out, "--keep", "model")
    rows = rows_of(out)
    assert len(rows) == 200
    assert list(rows[0]) == [
        "id", "group", "row", "reward", "reason", "reward_evidence", "finished", "finished_reason", "finished_evidence",
        "correct", "correct_reason", "correct_evidence", "model",
    ]  # fmt: skip
    assert sum(r["reward"] for r in rows) == 79.0
    assert not list(tmp_path.glob("*.partial*"))
    record = json.loads((tmp_path / f"scored{suffix}.run.json").read_text())
    assert record["summary"]["rows"] == 200
    assert record["nodes"] == {"finished": "rollout", "correct": "rollout"}


def test_unknown_rewards_are_null_with_a_reason(tmp_path: Path) -> None:
    data = tmp_path / "d.jsonl"
    rows = [
        {"completion": "it is 4", "answer": "4", "group": "a"},
        {"completion": "it is 5", "answer": None, "group": "a"},
    ]
    data.write_text("".join(json.dumps(r) + "\n" for r in rows))
    (tmp_path / "s.yaml").write_text("nodes: {correct: {verify.number: {}}}\nreward: correct\n")
    out = tmp_path / "o.jsonl"
    found = json.loads(guerdon("score", data, "-s", tmp_path / "s.yaml", "-o", out, "--json"))
    assert (found["known"], found["unknown"], found["reasons"]) == (1, 1, {"no reference answer": 1})
    first, second = rows_of(out)
    assert (first["reward"], first["reason"]) == (1.0, None)
    assert (second["reward"], second["reason"]) == (None, "no reference answer")
    assert (
        json.loads(guerdon("score", data, "-s", tmp_path / "s.yaml", "--unknown", "group-mean", "--json"))["known"] == 2
    )
    said = guerdon("score", data, "-s", tmp_path / "s.yaml", "--unknown", "raise", code=2)
    assert "1 of 2 scores are unknown" in said


def test_killed_at_any_moment_it_continues_with_nothing_lost_or_doubled(spec: Path, tmp_path: Path) -> None:
    data = write_rollouts(tmp_path / "d.jsonl", 4000)
    whole, pieces = tmp_path / "whole.parquet", tmp_path / "pieces.parquet"
    words = ["score", str(data), "--spec", str(spec), "--batch", "64"]
    guerdon(*words, "-o", whole)
    kills, partial = 0, tmp_path / "pieces.parquet.partial"
    for _ in range(200):
        run = subprocess.Popen([PROGRAM, *words, "-o", str(pieces)], stdout=subprocess.PIPE, text=True)
        seen = partial.stat().st_mtime_ns if partial.exists() else 0
        deadline = time.monotonic() + 60
        while run.poll() is None and time.monotonic() < deadline:  # kill once it has begun to write again
            log = partial.with_name(partial.name + "-wal")
            if kills < 2 and log.exists() and log.stat().st_size > 200_000 and log.stat().st_mtime_ns > seen:
                time.sleep(0.03 * kills)
                break
            time.sleep(0.005)
        if run.poll() is None and kills < 2:
            os.kill(run.pid, signal.SIGKILL)
            kills += 1
        out, _ = run.communicate(timeout=120)
        if run.returncode == 0:
            break
    assert kills >= 1
    assert "continued after" in out
    assert pq.read_table(pieces).equals(pq.read_table(whole))
    records = [json.loads((tmp_path / f"{n}.parquet.run.json").read_text()) for n in ("whole", "pieces")]
    assert records[0]["state"] == records[1]["state"]  # the running mean of HERO's weights
    assert records[0]["summary"]["groups"] == records[1]["summary"]["groups"]
    assert records[1]["summary"]["signals"]["correct"]["asked"] == 4000
    assert not partial.exists()


def test_an_interrupted_run_of_something_else_is_not_continued(spec: Path, tmp_path: Path) -> None:
    from guerdon.backends.journal import Journal

    data, out = write_rollouts(tmp_path / "d.jsonl", 40), tmp_path / "o.parquet"
    with Journal(tmp_path / "o.parquet.partial", run_fingerprint={"spec": "another"}):
        pass
    assert "--fresh starts over" in guerdon("score", data, "-s", spec, "-o", out, code=2)
    guerdon("score", data, "-s", spec, "-o", out, "--fresh")
    assert len(rows_of(out)) == 40


def test_a_limit_is_rounded_up_to_whole_groups(spec: Path, tmp_path: Path) -> None:
    data = write_rollouts(tmp_path / "d.jsonl", 40)
    guerdon("score", data, "-s", spec, "-o", tmp_path / "o.parquet", "--limit", "6")
    assert [r["id"] for r in rows_of(tmp_path / "o.parquet")] == [f"r{i}" for i in range(8)]


def test_bad_rows_stop_the_run_or_are_counted(spec: Path, tmp_path: Path) -> None:
    data = write_rollouts(tmp_path / "d.jsonl", 8)
    data.write_text(data.read_text() + '{"id": "x", "completion": 5}\n{"id": "y", "completion": "3", "q": NaN}\n')
    said = guerdon("score", data, "-s", spec, code=2)
    assert said.startswith("guerdon: d.jsonl:9: completion must be text")
    found = json.loads(guerdon("score", data, "-s", spec, "--skip-bad", "--json"))
    assert (found["rows"], found["bad_rows"]) == (8, 2)


def test_input_columns_that_clash_are_renamed_not_lost(tmp_path: Path) -> None:
    data = tmp_path / "d.jsonl"
    data.write_text(
        '{"completion": "3", "answer": "3", "reward": 0.25, "correct": "yes", "mixed": 1}\n'
        '{"completion": "3", "mixed": [2]}\n'
    )
    (tmp_path / "s.yaml").write_text("nodes: {correct: {verify.number: {}}}\nreward: correct\n")
    guerdon("score", data, "-s", tmp_path / "s.yaml", "-o", tmp_path / "o.parquet")
    first, second = rows_of(tmp_path / "o.parquet")
    assert (first["input_reward"], first["input_correct"], first["correct"]) == (0.25, "yes", 1.0)
    assert (first["mixed"], second["mixed"]) == ("1", "[2]")


def test_a_column_that_is_called_like_a_part_of_the_rollout_is_kept_beside_it(tmp_path: Path) -> None:
    row = {"solution": "it is 3", "gold": "3", "answer": "three", "prompt": "1+2?", "input_answer": 7}
    (tmp_path / "d.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "s.yaml").write_text(
        "data: {completion: solution, answer: gold, prompt: ''}\nnodes: {right: {verify.number: {}}}\nreward: right\n"
    )
    words = ["score", tmp_path / "d.jsonl", "-s", tmp_path / "s.yaml", "-o", tmp_path / "o.parquet"]
    guerdon(*words)
    [found] = rows_of(tmp_path / "o.parquet")
    assert {k: found[k] for k in ("completion", "answer", "input_answer", "input_input_answer", "prompt")} == {
        "completion": "it is 3", "answer": "3", "input_answer": "three", "input_input_answer": 7, "prompt": "1+2?",
    }  # fmt: skip
    guerdon(*words, "--keep", "gold,completion")  # by the name in the input, or by what it is
    assert set(rows_of(tmp_path / "o.parquet")[0]) >= {"answer", "completion"}
    said = guerdon(*words, "--keep", "gld", code=2)
    assert "there is no input column 'gld' to keep; columns are 'prompt', 'completion', 'answer', 'solution'" in said


def test_a_reward_per_test_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("nodes: {tests: {column: {name: t, axis: test}}}\nreward: tests\n")
    data = write_rollouts(tmp_path / "d.jsonl", 4)
    said = guerdon("score", data, "-s", tmp_path / "s.yaml", code=2)
    assert "the reward lies on the axis 'test'" in said
    assert "reduce it, as in {mean: tests}" in said


def test_an_input_is_read_twice_once_to_check_it_and_once_to_score_it(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from guerdon.data import _bytes

    data, read = write_rollouts(tmp_path / "d.jsonl", 20_000), []

    class Counted(_bytes._Stored):
        def read(self, size: int | None = -1, /) -> bytes:
            block = super().read(size)
            read.append(len(block))
            return block

    monkeypatch.setattr(_bytes, "_Stored", Counted)
    monkeypatch.setattr(_bytes, "_BLOCK", 1 << 16)
    guerdon("score", data, "-s", spec, "-o", tmp_path / "o.parquet")
    assert sum(read) <= 2 * data.stat().st_size + (1 << 16)  # and the first block once more, for the columns' names


def test_an_output_that_cant_be_written_or_is_the_input_is_refused_before_the_work(spec: Path, tmp_path: Path) -> None:
    data = write_rollouts(tmp_path / "d.jsonl", 4)
    before = data.read_bytes()
    assert "output is written as .parquet" in guerdon("score", data, "-s", spec, "-o", tmp_path / "o.csv", code=2)
    assert "would replace the input" in guerdon("score", data, "-s", spec, "-o", data, code=2)
    assert data.read_bytes() == before
    assert not list(tmp_path.glob("*.partial*"))


def test_columns_that_were_guessed_are_said(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text(json.dumps({"Question": "1+2?", "Response": "3", "gold": "3"}) + "\n")
    (tmp_path / "s.yaml").write_text("data: {answer: gold}\nreward: {verify.number: {}}\n")
    words = [PROGRAM, "score", tmp_path / "d.jsonl", "-s", tmp_path / "s.yaml"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr == "columns by their names: completion = 'Response', prompt = 'Question'\n"


def test_an_empty_input_is_scored_with_a_warning(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("")
    done = subprocess.run(
        [PROGRAM, "score", tmp_path / "d.jsonl", "-s", spec], capture_output=True, text=True, check=True
    )
    assert "0 rollouts" in done.stdout
    assert "warning: the input holds no rows" in done.stderr


def test_steps_and_hostile_texts_are_written(tmp_path: Path) -> None:
    data = tmp_path / "d.jsonl"
    rows = [{"completion": "a\ud800 </script>\u2028", "s": [0.5, 1.0]}, {"completion": "\x00" * 50, "s": []}]
    data.write_text("".join(json.dumps(r) + "\n" for r in rows))
    (tmp_path / "s.yaml").write_text("nodes: {steps: {column: {name: s, axis: step}}}\nreward: {mean: steps}\n")
    said = guerdon("score", data, "-s", tmp_path / "s.yaml", "-o", tmp_path / "o.parquet", "--skip-bad")
    assert "rollouts" in said
    found = rows_of(tmp_path / "o.parquet")
    assert found[-1]["reason"] == "it has no steps"
    assert found[-1]["steps"] == []
    guerdon("report", tmp_path / "o.parquet")


def test_the_dear_leaf_is_asked_only_where_needed_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    monkeypatch.syspath_prepend(EXAMPLE)
    words = ["score", EXAMPLE / "solutions.jsonl", "--allow-code", "slow_judge", "--json"]
    lazy = [*words, "-s", EXAMPLE / "careful_where_correct.yaml", "--cache", tmp_path / "c.sqlite"]
    full = [*words, "-s", EXAMPLE / "careful_everywhere.yaml", "--no-cache"]
    asked = [json.loads(guerdon(*w))["signals"]["careful"] for w in (full, lazy, lazy)]
    assert [(t["asked"], t["cached"]) for t in asked] == [(200, 0), (79, 0), (0, 79)]
