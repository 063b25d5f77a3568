"""Reasoning-SQL's traps: what the partial terms can be farmed for, and what a query may not do."""

from __future__ import annotations

import sqlite3

import pytest

import guerdon as gd
from guerdon.methods.reasoning_sql import WEIGHTS
from method_rows import values

GOLD = "select name from users where age > 30"
TABLE = "CREATE TABLE users (name TEXT, age INTEGER); INSERT INTO users VALUES ('a', 20), ('c', 40), ('c', 50);"


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Rollouts that answer the question with these statements."""
    monkeypatch.setenv("GUERDON_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "users.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(TABLE)
    connection.close()

    def rows(*statements, gold=GOLD):
        shown = "<think>so</think><answer>\n```sql\n{}\n```\n</answer>"
        return [{"completion": shown.format(s), "answer": gold, "database": str(path)} for s in statements]

    return rows


def test_copying_the_schema_farms_partial_terms_but_never_reaches_a_right_query(asked):
    farmed, right = values(gd.method("reasoning-sql")(), asked("select name, age from users", GOLD))
    assert farmed >= WEIGHTS["syntax"] + WEIGHTS["schema"] + WEIGHTS["format"]
    assert right - farmed > WEIGHTS["execution"] - WEIGHTS["ngram"]


def test_duplicates_count_and_a_query_that_writes_neither_runs_nor_matches(asked):
    w = WEIGHTS
    whole = w["execution"] + w["syntax"] + w["schema"] + w["ngram"] + w["format"]
    plain, distinct, writes = values(
        gd.method("reasoning-sql")(), asked(GOLD, "select distinct name from users where age > 30", "drop table users")
    )
    assert plain == pytest.approx(whole)
    assert distinct < whole - w["execution"]
    assert writes < w["schema"] + w["ngram"] + w["format"]


def test_an_empty_gold_result_is_no_evidence_and_a_bomb_only_fails(asked):
    none = asked("select name from users where age < age", gold="select name from users where 1 = 0")
    assert values(gd.method("reasoning-sql")(), none) == [None]
    bomb = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    (score,) = values(gd.method("reasoning-sql")(seconds=0.3), asked(bomb))
    assert 0 <= score < WEIGHTS["schema"] + WEIGHTS["ngram"] + WEIGHTS["format"] + 1e-9


def test_a_judge_that_failed_counts_as_zero_and_is_shown(asked):
    @gd.signal(range=(0, 1))
    def silent(rollout):
        return None

    reward = gd.method("reasoning-sql")(judge=silent)
    scored = reward.score(asked("select name from users"))
    without = values(gd.method("reasoning-sql")(), asked("select name from users"))
    assert scored.values.tolist() == pytest.approx(without)
    assert "fallback" in str(scored.explain(0))
