"""The score cache: what went in comes out, from many threads and processes, and damage is never a score."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guerdon.backends.cache import ScoreCache
from guerdon.core.errors import StoreError

KNOWN = (1.0, "", {"extracted": "42", "seconds": 0.1})
UNKNOWN = (None, "timed out after 2 s", None)


def test_known_and_unknown_scores_come_back_as_they_were(tmp_path):
    with ScoreCache(tmp_path / "c.db") as cache:
        cache.put_many([("a", KNOWN), ("b", UNKNOWN)])
        assert cache.get_many(["b", "a", "none"]) == {"a": KNOWN, "b": UNKNOWN}
    with ScoreCache(tmp_path / "c.db") as again:
        assert again.get_many(["a"]) == {"a": KNOWN}
        again.put_many([("a", UNKNOWN)])
        assert again.get_many(["a"]) == {"a": UNKNOWN}
        assert len(again) == 2


@pytest.mark.parametrize("path", [None, ":memory:"])
def test_without_a_path_it_lives_in_memory(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ScoreCache(path) as cache:
        cache.put_many([("a", KNOWN)])
        assert cache.get_many(["a"]) == {"a": KNOWN}
    assert os.listdir(tmp_path) == []


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
values = st.floats(allow_nan=False, allow_infinity=False)
entries = st.tuples(values, st.just(""), st.none() | st.dictionaries(st.text(), json_values, max_size=3)) | st.tuples(
    st.none(), st.text(min_size=1), st.none()
)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(min_size=1), entries, max_size=8))
def test_any_finite_score_and_any_json_evidence_survive(kept):
    with ScoreCache(None) as cache:
        cache.put_many(kept.items())
        assert cache.get_many(list(kept)) == kept


def test_more_keys_than_a_query_may_have_parameters():
    with ScoreCache(None) as cache:
        cache.put_many([(str(i), (float(i), "", None)) for i in range(20_000)])
        found = cache.get_many([str(i) for i in range(0, 40_000, 2)])
    assert len(found) == 10_000
    assert all(found[key][0] == float(key) for key in found)


def test_evidence_of_other_types_is_kept_as_what_json_can_say():
    odd = {"n": 10**30, "path": object, "x": np.float32(0.25), "lone": "\ud800"}
    with ScoreCache(None) as cache:
        cache.put_many(
            [("a", (np.float64(0.5), "", odd)), ("b", (None, "failed on '\ud800'", {"x": np.float32(0.25)}))]
        )
        found = cache.get_many(["a", "b"])
    value, _, evidence = found["a"]
    assert (value, evidence["n"], evidence["lone"]) == (0.5, 10**30, "\ud800")
    assert found["b"] == (None, "failed on '?'", {"x": 0.25})


@pytest.mark.parametrize("entry", [(math.nan, "", None), (math.inf, "", None), (None, "", None)])
def test_what_is_neither_a_finite_score_nor_explained_is_refused_whole(entry):
    with ScoreCache(None) as cache:
        with pytest.raises(ValueError):
            cache.put_many([("good", KNOWN), ("bad", entry)])
        assert len(cache) == 0


def test_a_damaged_entry_is_an_error_not_a_score(tmp_path):
    path = tmp_path / "c.db"
    for column, value in [
        ("value", 0.5),
        ("value", None),
        ("value", "text"),
        ("reason", "x"),
        ("evidence", b"{}"),
        ("key", "b"),
    ]:
        with ScoreCache(path) as cache:
            cache.put_many([("a", KNOWN)])
        db = sqlite3.connect(path)
        db.execute(f"UPDATE scores SET {column} = ?", [value])
        db.commit()
        db.close()
        with ScoreCache(path) as cache, pytest.raises(StoreError, match=r"damaged .*remove it"):
            cache.get_many(["a", "b"])
        path.unlink()


@pytest.mark.parametrize("data", [b"not a database" * 100, os.urandom(8192)])
def test_a_file_that_is_no_database_is_an_error_that_says_what_to_do(data, tmp_path):
    (tmp_path / "c.db").write_bytes(data)
    with pytest.raises(StoreError, match=r"c\.db is damaged .*remove it"):
        ScoreCache(tmp_path / "c.db")


def test_random_damage_never_gives_a_wrong_score(tmp_path):
    path = tmp_path / "c.db"
    kept = {f"{i:032x}": (i / 7, "", {"i": i}) for i in range(300)}
    with ScoreCache(path) as cache:
        cache.put_many(kept.items())
    sound, rng = path.read_bytes(), np.random.default_rng(0)
    errors = 0
    for _ in range(40):
        data = bytearray(sound)
        for at in rng.integers(100, len(data), 60):
            data[at] = rng.integers(256)
        path.write_bytes(data)
        try:
            with ScoreCache(path) as cache:
                found = cache.get_many(list(kept))
        except StoreError:
            errors += 1
        else:
            assert all(kept[key] == entry for key, entry in found.items())
        for rest in tmp_path.glob("c.db-*"):
            rest.unlink()
    assert errors > 20


def test_other_kinds_and_versions_are_refused(tmp_path):
    db = sqlite3.connect(tmp_path / "other.db")
    db.execute("CREATE TABLE t (x)")
    db.close()
    with pytest.raises(StoreError, match="another kind"):
        ScoreCache(tmp_path / "other.db")
    ScoreCache(tmp_path / "new.db").close()
    db = sqlite3.connect(tmp_path / "new.db")
    db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(StoreError, match="format version 99"):
        ScoreCache(tmp_path / "new.db")


def test_old_entries_and_the_oldest_beyond_the_size_are_dropped(tmp_path, monkeypatch):
    big = {"text": "x" * 1000}
    with ScoreCache(tmp_path / "c.db", max_bytes=1 << 20) as cache:
        for start in range(0, 5000, 100):
            cache.put_many([(str(i), (1.0, "", big)) for i in range(start, start + 100)])
        assert cache.prune() > 0
        assert 300 < len(cache) < 1100
        assert cache.get_many(["4999"])
        assert not cache.get_many(["0"])
    assert (tmp_path / "c.db").stat().st_size < 1.2 * (1 << 20)
    with ScoreCache(tmp_path / "c.db", max_age=60.0) as cache:
        assert cache.get_many(["4999"])
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 61.0)
        assert not cache.get_many(["4999"])
        cache.prune()
        assert len(cache) == 0


def test_many_threads_share_one_cache(tmp_path):
    cache, wrong = ScoreCache(tmp_path / "c.db"), []

    def work(n):
        for i in range(30):
            cache.put_many([(f"{n}/{i}/{j}", (float(j), "", None)) for j in range(10)])
            found = cache.get_many([f"{n}/{i}/{j}" for j in range(10)])
            if [found[f"{n}/{i}/{j}"][0] for j in range(10)] != list(range(10)):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(cache) == 1800
    cache.close()


WRITER = """
import sys
from guerdon.backends.cache import ScoreCache
name, rounds = sys.argv[2], int(sys.argv[3])
with ScoreCache(sys.argv[1]) as cache:
    for i in range(rounds):
        cache.put_many([(f"{name}/{i}/{j}", (j / 7, "", {"i": i})) for j in range(20)])
        print(i, flush=True)
"""


def writer(path, name, rounds):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(rounds)], stdout=subprocess.PIPE, text=True
    )


def test_processes_that_open_a_new_file_together_both_write_it(tmp_path):
    both = [writer(tmp_path / "c.db", name, 30) for name in "ab"]
    for process in both:
        process.communicate(timeout=60)
        assert process.returncode == 0
    with ScoreCache(tmp_path / "c.db") as cache:
        assert len(cache) == 1200


def test_a_writer_that_is_killed_leaves_whole_batches(tmp_path):
    for trial in range(4):
        process = writer(tmp_path / "c.db", str(trial), 100_000)
        said = [process.stdout.readline() for _ in range(5 + 7 * trial)]
        os.kill(process.pid, signal.SIGKILL)
        said += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        done = int(said[-1]) + 1
        with ScoreCache(tmp_path / "c.db") as cache:
            found = cache.get_many([f"{trial}/{i}/{j}" for i in range(done + 2) for j in range(20)])
        assert len(found) % 20 == 0
        assert done * 20 <= len(found) <= (done + 1) * 20


def test_a_forked_child_may_use_the_cache_of_its_parent(tmp_path):
    with ScoreCache(tmp_path / "c.db") as cache:
        cache.put_many([("parent", KNOWN)])

        def child():
            cache.put_many([("child", KNOWN)])
            os._exit(0 if len(cache.get_many(["parent", "child"])) == 2 else 1)

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(20)
        assert process.exitcode == 0
        assert len(cache.get_many(["parent", "child"])) == 2
