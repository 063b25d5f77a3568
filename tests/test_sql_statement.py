"""Taking SQL out of completions, and the guard that lets one read-only statement through."""

from __future__ import annotations

import time

import pytest

from guerdon.verify.queries.statement import MAX_STATEMENT, extract_sql, guard

EXTRACTIONS = [
    ("```sql\nSELECT 1\n```", "SELECT 1", "fence"),
    ("first ```sql\nSELECT 1\n``` then\n```sql\nSELECT 2\n```", "SELECT 2", "fence"),
    ("```SQLite\nSELECT 1\n```", "SELECT 1", "fence"),
    ("<think>```sql\nSELECT 0\n```</think>```sql\nSELECT 1\n```", "SELECT 1", "fence"),
    ("<answer>SELECT 1</answer>", "SELECT 1", "tag"),
    ("<answer>\n```\nSELECT 1\n```\n</answer>", "SELECT 1", "tag"),
    ("<sql>SELECT 1", "SELECT 1", "tag"),
    (
        "```python\nprint(1)\n```\n```\nWITH t AS (SELECT 1) SELECT * FROM t\n```",
        "WITH t AS (SELECT 1) SELECT * FROM t",
        "untagged fence",
    ),
    ("SELECT 1;", "SELECT 1;", "bare"),
    ("-- why\n/* how */ (SELECT 1)", "-- why\n/* how */ (SELECT 1)", "bare"),
    ("With the tables above, the query is:\nSELECT a\nFROM b\n\nIt works.", "SELECT a\nFROM b", "line"),
    ("DROP TABLE users", "DROP TABLE users", "bare"),
    ("```sql\nSELECT a FROM b WHERE", "SELECT a FROM b WHERE", "fence"),
    ("I do not know.", None, "none"),
    ("", None, "none"),
    ("```sql\n\n```", None, "fence"),
]


@pytest.mark.parametrize(("completion", "sql", "how"), EXTRACTIONS)
def test_the_answer_is_found_where_chat_models_put_it(completion, sql, how):
    found = extract_sql(completion)
    assert (found.sql, found.how) == (sql, how)


@pytest.mark.parametrize(
    "text",
    ["```" * 70_000, "<answer>" * 25_000, "/**/" * 50_000, "(" * 200_000, "```sql\n" * 30_000, "\n \n" * 60_000 + "x"],
)
def test_extraction_of_a_hostile_completion_takes_no_time(text):
    started = time.perf_counter()
    extract_sql(text)
    assert time.perf_counter() - started < 1.0


REFUSED = [
    ("INSERT INTO t VALUES (1)", "sqlite", "INSERT"),
    ("UPDATE t SET a = 1", "sqlite", "UPDATE"),
    ("DELETE FROM t", "sqlite", "DELETE"),
    ("DROP TABLE t", "sqlite", "DROP"),
    ("CREATE TABLE t (a)", "sqlite", "CREATE"),
    ("CREATE TEMP VIEW v AS SELECT 1", "sqlite", "CREATE"),
    ("ALTER TABLE t ADD COLUMN b", "sqlite", "ALTER"),
    ("ATTACH 'x.db' AS x", "sqlite", "ATTACH"),
    ("DETACH x", "sqlite", "DETACH"),
    ("PRAGMA writable_schema = 1", "sqlite", "PRAGMA"),
    ("VACUUM INTO 'x.db'", "sqlite", "not "),
    ("BEGIN", "sqlite", "TRANSACTION"),
    ("COMMIT", "sqlite", "COMMIT"),
    ("EXPLAIN SELECT 1", "sqlite", "EXPLAIN"),
    ("REPLACE INTO t VALUES (1)", "sqlite", "not "),
    ("COPY t TO '/tmp/x'", "duckdb", "COPY"),
    ("COPY (SELECT 1) TO '/tmp/x'", "duckdb", "COPY"),
    ("INSTALL httpfs", "duckdb", "INSTALL"),
    ("LOAD httpfs", "duckdb", "LOAD"),
    ("SET memory_limit = '1TB'", "duckdb", "SET"),
    ("EXPORT DATABASE 'x'", "duckdb", "not"),
    ("SELECT * FROM read_csv('/etc/passwd')", "duckdb", "read_csv()"),
    ("SELECT * FROM query('SELECT 1')", "duckdb", "query()"),
    ("SELECT random()", "duckdb", "not deterministic"),
    ("SELECT * FROM duckdb_settings()", "duckdb", "duckdb_settings()"),
    ("SELECT * FROM information_schema.tables", "duckdb", "not readable"),
    ("WITH t AS (DELETE FROM u RETURNING *) SELECT * FROM t", "postgres", "DELETE"),
    ("WITH t AS (INSERT INTO u VALUES (1) RETURNING *) SELECT * FROM t", "postgres", "INSERT"),
    ("SELECT * INTO copy FROM u", "postgres", "INTO"),
    ("SELECT * FROM u FOR UPDATE", "postgres", "LOCK"),
    ("SET statement_timeout = 0", "postgres", "SET"),
    ("SELECT set_config('statement_timeout', '0', false)", "postgres", "set_config()"),
    ("SELECT pg_sleep(2)", "postgres", "pg_sleep()"),
    ('SELECT "pg_sleep"(2)', "postgres", "pg_sleep()"),
    ("SELECT pg_catalog.pg_sleep(2)", "postgres", "pg_sleep()"),
    ("SELECT lo_import('/etc/passwd')", "postgres", "lo_import()"),
    ("SELECT query_to_xml('DELETE FROM u', true, true, '')", "postgres", "query_to_xml()"),
    ("SELECT * FROM pg_roles", "postgres", "not readable"),
    ("SELECT now()", "postgres", "clock"),
    ("DO $$ BEGIN PERFORM 1; END $$", "postgres", "DO"),
    ("SELECT 1; SELECT 2", "sqlite", "2 statements"),
    ("SELECT 1; DROP TABLE t", "sqlite", "2 statements"),
    ("SELECT 1 --\n; DROP TABLE t", "sqlite", "2 statements"),
    ("SELECT 1 /* a */; /* b */ DROP TABLE t", "sqlite", "2 statements"),
    ("SELECT 1 /* /* */ ; DROP TABLE t -- */", "sqlite", "comment opened inside a comment"),
    ("SELECT 1 /* /* */ ; DROP TABLE t -- */", "postgres", "comment opened inside a comment"),
    ("SELECT 1\0; DROP TABLE t", "sqlite", "NUL"),
    ("", "sqlite", "no statement"),
    ("-- nothing", "sqlite", "no statement"),
    ("SELECT", "sqlite", "without anything"),
    ("hello world", "sqlite", "not a SELECT"),
    ("SELECT " + "(" * 100 + "1" + ")" * 100, "sqlite", "nested 100 deep"),
    ("SELECT " + "NOT " * 3000 + "1", "sqlite", "nested too deeply"),
    ("SELECT " + "- " * 3000 + "1", "sqlite", "nested too deeply"),
    ("SELECT " + "CASE WHEN 1 THEN " * 900 + "1" + " END" * 900, "sqlite", "nested too deeply"),
    ("SELECT '" + "a" * MAX_STATEMENT + "'", "sqlite", "characters"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "dialect", "reason"), REFUSED)
def test_whatever_is_not_one_read_only_statement_is_refused_with_the_reason(sql, dialect, reason):
    refused = guard(sql, dialect).refused
    assert refused is not None
    assert refused.startswith("refused: ")
    assert reason in refused


ALLOWED = [
    "SELECT 1",
    "SELECT 1;",
    "SELECT 1 -- one\n;",
    "(SELECT 1)",
    "VALUES (1), (2)",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 5) SELECT * FROM t",
    "SELECT a FROM t UNION SELECT b FROM u EXCEPT SELECT 1 ORDER BY 1",
    "SELECT 'DROP TABLE t; --' AS text",
    "SELECT replace(name, 'a', 'b') FROM t",
    'SELECT "delete" FROM t WHERE "update" IS NOT NULL',
    "SELECT `Free Meal Count (K-12)` FROM frpm",
    "SELECT " + "+".join(["1"] * 2000),
    "SELECT a FROM t WHERE " + " AND ".join(["a = 1"] * 1000),
]


@pytest.mark.parametrize("sql", ALLOWED)
def test_one_read_only_statement_passes(sql):
    assert guard(sql, "sqlite").refused is None


def test_a_statement_that_reads_no_table_is_told_apart():
    assert not guard("SELECT 42").reads
    assert not guard("WITH t AS (SELECT 1) SELECT * FROM t").reads
    assert guard("SELECT 42 FROM users").reads


def test_what_only_the_parser_of_the_guard_rejects_is_marked_as_syntax():
    odd = guard("SELECT FROM WHERE", "sqlite")
    assert odd.refused is not None
    assert odd.syntax
