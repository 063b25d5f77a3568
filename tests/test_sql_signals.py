"""SQL signals over rollouts, and the Reasoning-SQL method."""

from __future__ import annotations

import sqlite3

import pytest

import guerdon as gd
from guerdon.methods.reasoning_sql import WEIGHTS, reasoning_sql
from guerdon.verify.queries.signals import sql, sql_ngrams, sql_runs, sql_schema

GOLD = "select name from users where age > 30"
ALMOST = "select name from users where age >= 30"
WITH_30 = "CREATE TABLE users (name TEXT, age INTEGER); INSERT INTO users VALUES ('a', 20), ('b', 30), ('c', 40);"
WITHOUT_30 = "CREATE TABLE users (name TEXT, age INTEGER); INSERT INTO users VALUES ('a', 20), ('c', 40);"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GUERDON_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    for name, script in [("with", WITH_30), ("without", WITHOUT_30)]:
        with sqlite3.connect(tmp_path / f"{name}.sqlite") as connection:
            connection.executescript(script)
        connection.close()
    return tmp_path


def fenced(statement):
    return f"<think>so</think><answer>\n```sql\n{statement}\n```\n</answer>"


def rows(folder, *statements, database="with", gold=GOLD):
    path = str(folder / f"{database}.sqlite")
    return [{"prompt": "q", "completion": fenced(s), "answer": gold, "database": path} for s in statements]


def values(reward, rollouts):
    scores = reward.score(rollouts).scores
    return [value if known else None for value, known in zip(scores.values.tolist(), scores.known, strict=True)]


def test_execution_over_rollouts(folder):
    rollouts = rows(folder, GOLD, ALMOST, "select name from users", "drop table users", "select nme from users")
    assert values(sql(), rollouts) == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert values(sql(), [{**rollouts[0], "completion": "I do not know."}]) == [0.0]


def test_what_is_missing_is_unknown_with_the_reason(folder):
    (whole,) = rows(folder, GOLD)
    rollouts = [
        {key: value for key, value in whole.items() if key != "answer"},
        {key: value for key, value in whole.items() if key != "database"},
        {**whole, "database": str(folder / "none.sqlite")},
        {**whole, "answer": "select nme from users"},
    ]
    scored = sql().score(rollouts)
    assert not scored.scores.known.any()
    reasons = [str(scored.explain(i)) for i in range(4)]
    for reason, text in zip(
        ["no gold statement", "no database", "no database file", "gold failed"], reasons, strict=True
    ):
        assert reason in text


def test_a_database_outside_the_root_is_not_opened(folder):
    rollouts = [{**row, "database": name} for row in rows(folder, GOLD) for name in ("with.sqlite", "../with.sqlite")]
    assert values(sql(root=str(folder)), rollouts) == [1.0, None]


def test_a_database_can_come_as_a_dump():
    rollout = {"completion": fenced(GOLD), "answer": GOLD, "dump": WITH_30}
    assert values(sql(dump="dump"), [rollout, {**rollout, "dump": "ATTACH 'x' AS y;"}]) == [1.0, None]


def test_the_worked_example_of_reasoning_sql(folder):
    for database, copies, right in [("with", 0, 0.0), ("without", 0, 1.0), ("without", 2, 0.0)]:
        rollouts = rows(folder, ALMOST, database=database)
        assert values(sql(copies=copies), rollouts) == [right]
        assert values(sql_runs(), rollouts) == [1.0]
        assert values(sql_schema(), rollouts) == [1.0]
        assert values(sql_ngrams(), rollouts) == [pytest.approx(5 / 9)]


def test_a_statement_that_does_not_run_scores_no_syntax(folder):
    rollouts = rows(folder, GOLD, "select nme from users", "drop table users", "selec", "")
    assert values(sql_runs(), rollouts) == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_reasoning_sql_adds_up_its_terms(folder):
    reward = reasoning_sql()
    rollouts = rows(folder, GOLD, ALMOST, "select nme from users")
    rollouts.append({**rollouts[0], "completion": f"```sql\n{GOLD}\n```"})
    w = WEIGHTS
    assert values(reward, rollouts) == [
        pytest.approx(w["execution"] + w["syntax"] + w["schema"] + w["ngram"] + w["format"]),
        pytest.approx(w["syntax"] + w["schema"] + w["ngram"] * 5 / 9 + w["format"]),
        # users and users.nme against users, users.name, users.age; bigrams: "from users" of 3 + 7 - 1
        pytest.approx(w["schema"] * 1 / 4 + w["ngram"] * 1 / 9 + w["format"]),
        pytest.approx(w["execution"] + w["syntax"] + w["schema"] + w["ngram"]),
    ]


def test_the_judge_is_asked_only_about_wrong_queries_and_never_fills_in(folder):
    asked = []

    @gd.signal(range=(0, 1))
    def judge(rollout):
        asked.append(rollout.final)
        return 0.5 if ">=" in rollout.final else None

    rollouts = rows(folder, GOLD, ALMOST, "select name from users")
    with_judge, without = values(reasoning_sql(judge=judge), rollouts), values(reasoning_sql(), rollouts)
    assert fenced(GOLD) not in asked
    assert len(asked) == 2
    gained = [a - b for a, b in zip(with_judge, without, strict=True)]
    assert gained == [pytest.approx(WEIGHTS["judge"]), pytest.approx(0.5 * WEIGHTS["judge"]), pytest.approx(0.0)]


def test_no_wrong_query_can_beat_a_right_one(folder):
    @gd.signal(range=(0, 1))
    def flatterer(rollout):
        return 1.0

    right, wrong = values(
        reasoning_sql(judge=flatterer), rows(folder, "SELECT u.name FROM users u WHERE NOT u.age<=30", ALMOST)
    )
    assert right > wrong
    with pytest.raises(ValueError, match="must outweigh the others"):
        reasoning_sql(weights={"execution": 1.0})
    with pytest.raises(ValueError, match="no such weight"):
        reasoning_sql(weights={"taste": 1.0})


def test_a_gold_that_fails_leaves_the_whole_reward_unknown(folder):
    assert values(reasoning_sql(), rows(folder, GOLD, gold="select nme from users")) == [None]


def test_the_method_is_in_the_register():
    from guerdon.methods import find

    assert find("reasoning-sql").build is reasoning_sql
    assert {"verify.sql", "verify.sql_runs", "verify.sql_schema"} <= set(find("reasoning-sql").parts)
