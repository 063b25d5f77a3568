"""Grading SQL by execution: verdicts, attacks, bombs, perturbed copies, ties, emptiness."""

from __future__ import annotations

import os
import sqlite3
import time

import pytest

from guerdon.verify.queries import Grading, Limits, SqlTask, check_sql, check_sql_many
from guerdon.verify.queries.databases import build_database, database_hash
from guerdon.verify.queries.perturb import CopyRequest, perturbed_copy
from guerdon.verify.queries.run import Job, execute
from guerdon.verify.queries.worker import execute_all

LIMIT = 0.5


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GUERDON_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("sql") / "people.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, city TEXT, age INTEGER, score REAL);
            CREATE TABLE visits (user_id INTEGER REFERENCES users (id), page TEXT, seconds REAL);
            """
        )
        cities = ["Bern", "Basel", "Chur", None]
        users = [(i, f"u{i % 37}", cities[i % 4], 20 + i % 25, i / 7) for i in range(120)]
        visits = [(i % 120, f"p{i % 9}", (i * 37 % 101) / 3) for i in range(400)]
        connection.executemany("INSERT INTO users VALUES (?, ?, ?, ?, ?)", users)
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", visits)
    connection.close()
    return str(path)


VERDICTS = [
    # prediction, gold, passed, in the reason
    ("SELECT name FROM users WHERE age > 30", "SELECT name FROM users WHERE age > 30", True, "equal on 3"),
    ("SELECT name FROM users WHERE NOT age <= 30", "SELECT name FROM users WHERE age > 30", True, "equal on 3"),
    ("SELECT name AS n FROM users", "SELECT name FROM users", True, "equal"),
    ("SELECT name FROM users WHERE age >= 30", "SELECT name FROM users WHERE age > 30", False, "rows"),
    # a wrong DISTINCT, either way
    ("SELECT city FROM users", "SELECT DISTINCT city FROM users", False, "rows"),
    ("SELECT DISTINCT city FROM users", "SELECT city FROM users", False, "rows"),
    ("SELECT COUNT(DISTINCT name) FROM users", "SELECT COUNT(name) FROM users", False, "values"),
    # a wrong ORDER BY; ties are free; no order asked for
    ("SELECT name FROM users ORDER BY age DESC", "SELECT name FROM users ORDER BY age", False, "order"),
    ("SELECT name FROM users", "SELECT name FROM users ORDER BY age", False, "order"),
    ("SELECT name FROM users ORDER BY age, id DESC", "SELECT name FROM users ORDER BY age", True, "equal"),
    ("SELECT name FROM users ORDER BY age", "SELECT name FROM users", True, "equal"),
    ("SELECT name, age FROM users ORDER BY 2 DESC, name",
     "SELECT name, age a FROM users ORDER BY a DESC, 1", True, "equal"),
    ("SELECT DISTINCT age FROM users ORDER BY age", "SELECT DISTINCT age FROM users ORDER BY age DESC", False, "order"),
    (
        "SELECT city, COUNT(*) FROM users GROUP BY 1 ORDER BY 2 DESC, 1",
        "SELECT city, COUNT(*) AS n FROM users GROUP BY city ORDER BY n DESC",
        True,
        "equal",
    ),
    # columns
    ("SELECT name, age FROM users", "SELECT name FROM users", False, "columns: 2 columns, expected 1"),
    ("SELECT age, name FROM users", "SELECT name, age FROM users", False, "values"),
    # types and numbers
    ("SELECT CAST(COUNT(*) AS TEXT) FROM users", "SELECT COUNT(*) FROM users", False, "values"),
    ("SELECT COUNT(*) * 1.0 FROM users", "SELECT COUNT(*) FROM users", True, "equal"),
    ("SELECT SUM(score) / COUNT(score) FROM users", "SELECT AVG(score) FROM users", True, "equal"),
    ("SELECT COALESCE(city, '') FROM users", "SELECT city FROM users", False, "values"),
    # answers that are right only here
    ("SELECT 120", "SELECT COUNT(*) FROM users", False, "constant"),
    ("SELECT 120 FROM users LIMIT 1", "SELECT COUNT(*) FROM users", False, "database 1"),
    ("SELECT name FROM users LIMIT 120", "SELECT name FROM users", False, "database 2"),
    ("SELECT COUNT(*) FROM users WHERE id < 120", "SELECT COUNT(*) FROM users WHERE id <> -1", False, "database 2"),
    # failing
    ("SELECT nme FROM users", "SELECT name FROM users", False, "no such column"),
    ("SELECT name FROM usrs", "SELECT name FROM users", False, "no such table"),
    ("SELECT name FROM users WHERE", "SELECT name FROM users", False, "incomplete input"),
    ("I cannot answer that.", "SELECT name FROM users", False, "no SQL"),
    ("SELECT name FROM users", "SELECT nme FROM users", None, "gold failed"),
    ("SELECT name FROM users", "DELETE FROM users", None, "gold failed: refused"),
    # nothing to compare
    ("SELECT name FROM users WHERE age < -5", "SELECT name FROM users WHERE id < -4", None, "empty or all NULL"),
    ("SELECT NULL FROM users LIMIT 1", "SELECT MAX(age) FROM users WHERE id < -4", None, "empty or all NULL"),
    ("SELECT name FROM users", "SELECT name FROM users WHERE id < -4", False, "rows"),
]  # fmt: skip


@pytest.mark.parametrize(("prediction", "gold", "passed", "reason"), VERDICTS)
def test_verdicts(database, prediction, gold, passed, reason):
    verdict = check_sql(prediction, gold=gold, database=database)
    assert verdict.passed is passed, verdict
    assert reason in verdict.reason


def test_an_empty_gold_is_worth_what_the_caller_says(database):
    ask = {"gold": "SELECT name FROM users WHERE id < -4", "database": database}
    same = "SELECT name FROM users WHERE id < -5"
    assert [check_sql(same, **ask, empty=policy).passed for policy in ("unknown", "fail", "pass")] == [
        None,
        False,
        True,
    ]


def test_a_limit_that_cuts_a_tie_allows_each_choice_and_says_so(database):
    gold = "SELECT name FROM users ORDER BY age LIMIT 3"
    for prediction, passed in [
        ("SELECT name FROM users ORDER BY age, id DESC LIMIT 3", True),
        ("SELECT name FROM users ORDER BY age, id LIMIT 3", True),
        ("SELECT name FROM users ORDER BY age DESC LIMIT 3", False),
        ("SELECT name FROM users WHERE age = (SELECT MIN(age) FROM users)", None),
    ]:
        verdict = check_sql(prediction, gold=gold, database=database)
        assert verdict.passed is passed, verdict
        assert verdict.evidence["ambiguous"]


def test_order_can_be_demanded_or_waived(database):
    gold, backwards = "SELECT name FROM users ORDER BY id", "SELECT name FROM users ORDER BY id DESC"
    assert check_sql(backwards, gold=gold, database=database, ordered=False).passed is True
    plain = "SELECT name FROM users"
    assert check_sql(backwards, gold=plain, database=database, ordered=True).passed is False
    assert check_sql(plain, gold=plain, database=database, ordered=True).passed is True


def test_a_suite_of_databases_counts_like_perturbed_copies(database, tmp_path):
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE users (id, name, city, age, score)")
        connection.execute("INSERT INTO users VALUES (1, 'x', 'Bern', 50, 1.0)")
    connection.close()
    ask = {"gold": "SELECT MAX(age) FROM users", "database": database, "copies": 0}
    lucky = "SELECT age FROM users WHERE id = 24"
    assert check_sql(lucky, **ask).passed is True
    assert check_sql(lucky, **ask, suite=[other]).passed is False


REFUSED = [
    ("ATTACH '/tmp/guerdon-attack.db' AS x", "ATTACH"),
    ("PRAGMA table_info(users)", "PRAGMA"),
    ("INSERT INTO users (name) VALUES ('x')", "INSERT"),
    ("WITH t AS (SELECT 1) DELETE FROM users", "DELETE"),
    ("WITH t AS (DELETE FROM users RETURNING *) SELECT * FROM t", "DELETE"),
    ("SELECT 1; DROP TABLE users", "2 statements"),
    ("SELECT 1 /* ; */ ; DROP TABLE users --", "2 statements"),
    ("COPY users TO '/tmp/x'", "COPY"),
    ("INSTALL httpfs", "INSTALL"),
    ("VACUUM INTO '/tmp/guerdon-attack.db'", "VACUUM"),
    ("SELECT load_extension('/tmp/x.so')", "load_extension()"),
    ("SELECT printf('%.*c', 900000000, 'x')", "printf()"),
    ("SELECT format('%.*c', 900000000, 'x')", "format()"),
    ("SELECT zeroblob(900000000)", "zeroblob()"),
    ("SELECT randomblob(900000000)", "randomblob()"),
    ("SELECT random() FROM users", "random()"),
    ("SELECT sql FROM sqlite_master", "sqlite_master"),
    ("SELECT * FROM sqlite_schema", "sqlite_"),
    ("SELECT * FROM pragma_table_info('users')", "not allowed"),
    ("SELECT * FROM dbstat", "not allowed"),
    ("SELECT fts3_tokenizer('simple')", "fts3_tokenizer()"),
    ("SELECT readfile('/etc/passwd')", "readfile"),
    ("SELECT writefile('/tmp/x', 'y')", "writefile"),
]  # fmt: skip


@pytest.mark.parametrize(("attack", "reason"), REFUSED)
def test_attacks_are_refused_with_the_reason_and_change_nothing(database, attack, reason):
    before = database_hash(database)
    verdict = check_sql(attack, gold="SELECT COUNT(*) FROM users", database=database, bare=True)
    assert verdict.passed is False
    assert reason in verdict.reason
    assert database_hash(database) == before


@pytest.mark.parametrize(("attack", "reason"), [row for row in REFUSED if "()" in row[1] or "sqlite_" in row[1]])
def test_sqlite_refuses_by_itself_when_the_parser_is_fooled(database, attack, reason):
    from guerdon.verify.queries.lite import run_sqlite

    result = run_sqlite(Job(attack, database), time.monotonic() + LIMIT)
    assert result.state in ("refused", "error")


@pytest.mark.parametrize(
    "attack",
    ["ATTACH ':memory:' AS x", "PRAGMA query_only = 0", "DELETE FROM users", "SELECT 1; DROP TABLE users", "BEGIN"],
)
def test_the_connection_alone_denies_what_the_guard_refuses(database, attack):
    from guerdon.verify.queries.lite import run_sqlite

    assert run_sqlite(Job(attack, database), time.monotonic() + LIMIT).state == "refused"


LONG = "(SELECT GROUP_CONCAT('a', '') FROM users a, users b, (SELECT 1 UNION SELECT 2 UNION SELECT 3) c)"
BOMBS = {
    "recursion": "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT COUNT(*) FROM t",
    "cross join": "SELECT COUNT(*) FROM visits a, visits b, visits c, visits d",
    "sorted cross join": "SELECT * FROM visits a, visits b, visits c ORDER BY a.page || b.page || c.page",
    "distinct cross join": "SELECT COUNT(DISTINCT a.page || b.seconds || c.seconds) FROM visits a, visits b, visits c",
    "huge concatenation": "SELECT GROUP_CONCAT(a.page || b.page) FROM visits a, visits b, visits c, visits d",
    "growing text": "WITH RECURSIVE t(s) AS (SELECT 'a' UNION ALL SELECT s || s FROM t) SELECT MAX(LENGTH(s)) FROM t",
    "hex tower": "SELECT " + "hex(" * 40 + "'aa'" + ")" * 40,
    "nested replace": "SELECT " + "replace(" * 12 + "'aaaaaaaa'" + ", 'a', 'aaaaaaaa')" * 12,
    "quadratic LIKE": f"SELECT SUM({LONG} LIKE '%' || SUBSTR({LONG}, 1, 400) || 'b%') FROM users a, users b",
    "GLOB with stars": f"SELECT {LONG} GLOB '*a*b*a*b*a*b*a*b*a*b' FROM visits a, visits b, visits c",
    "instr in one call": (
        f"WITH s AS MATERIALIZED (SELECT {LONG} AS x), t AS MATERIALIZED (SELECT x||x||x||x||x||x AS y FROM s) "
        "SELECT INSTR(y||y, y||'b') FROM t"
    ),
    "quadratic replace": f"SELECT SUM(LENGTH(REPLACE({LONG}, 'aaaaaaaaab', 'b'))) FROM visits a, visits b",
    "window frames": (
        "SELECT SUM(a.seconds) OVER (ORDER BY a.seconds ROWS BETWEEN UNBOUNDED PRECEDING AND "
        "UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) FROM visits a, visits b, visits c"
    ),
    "compound tower": " UNION ALL ".join(["SELECT 1"] * 900),
    "deep expression": "SELECT " + "+".join(["1"] * 5000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_end_within_the_limit_and_a_fifth_of_a_second(database, name):
    execute_all([Job("SELECT 1", database)] * 8)
    took = []
    for _ in range(3):  # a busy machine may be late
        started = time.perf_counter()
        (result,) = execute_all([Job(BOMBS[name], database, limits=Limits(seconds=LIMIT))])
        took.append(time.perf_counter() - started)
        assert result.state in ("timeout", "error", "memory", "rows", "bytes", "refused"), result
        if took[-1] < LIMIT + 0.2:
            return
    pytest.fail(f"took {took} s with a limit of {LIMIT} s")


def test_a_bomb_fails_and_the_next_query_runs_at_normal_speed(database):
    gold = "SELECT COUNT(*) FROM users"
    assert check_sql(BOMBS["instr in one call"], gold=gold, database=database, seconds=LIMIT).passed is False
    started = time.perf_counter()
    assert check_sql(gold, gold=gold, database=database).passed is True
    assert time.perf_counter() - started < 1.0


def test_results_over_a_cap_fail_and_are_never_cut(database):
    many = Job("SELECT * FROM visits", database, limits=Limits(rows=399))
    assert execute(many).state == "rows"
    assert execute(Job(many.sql, database, limits=Limits(rows=400))).ok
    assert execute(Job(many.sql, database, limits=Limits(bytes=5_000))).state == "bytes"
    verdict = check_sql("SELECT 1", gold=many.sql, database=database, limits=Limits(rows=10))
    assert verdict.passed is None
    assert "gold failed: more than 10 rows" in verdict.reason


def test_now_is_a_fixed_instant_or_refused(database):
    sql = "SELECT DATE('now'), CURRENT_TIMESTAMP, STRFTIME('%Y'), STRFTIME('%Y', 'now', '+1 year'), DATE('2020-02-02')"
    assert execute(Job(sql, database)).rows == (("2024-01-01", "2024-01-01 00:00:00", "2024", "2025", "2020-02-02"),)
    assert "clock" in execute(Job(sql, database, limits=Limits(clock=None))).detail


def test_text_that_is_not_utf8_is_read_without_loss(tmp_path):
    path = tmp_path / "latin.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a TEXT)")
        connection.execute("INSERT INTO t VALUES (CAST(x'e96c' AS TEXT)), (CAST(x'e86c' AS TEXT))")
    connection.close()
    assert execute(Job("SELECT a FROM t", str(path))).rows == (("\\xe9l",), ("\\xe8l",))


def test_a_file_that_is_no_database_is_unknown_not_wrong(tmp_path):
    path = tmp_path / "broken.sqlite"
    path.write_text("this is not a database")
    verdict = check_sql("SELECT 1 FROM t", gold="SELECT 2 FROM t", database=path)
    assert verdict.passed is None


def test_a_missing_database_is_an_error_of_the_caller(tmp_path):
    with pytest.raises(FileNotFoundError, match="no database file"):
        check_sql("SELECT 1", gold="SELECT 1", database=tmp_path / "none.sqlite")


def test_many_predictions_get_the_verdicts_they_get_alone(database):
    tasks = [SqlTask(prediction, gold, database) for prediction, gold, _, _ in VERDICTS] * 2
    verdicts = check_sql_many(tasks, grading=Grading(limits=Limits(seconds=2.0)))
    assert [verdict.passed for verdict in verdicts] == [passed for _, _, passed, _ in VERDICTS] * 2


# Perturbed copies.


def rows_of(path, table):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"SELECT * FROM {table}").fetchall()
    finally:
        connection.close()


def test_a_copy_depends_only_on_content_and_seed(database):
    paths = {seed: perturbed_copy(CopyRequest(database, seed)) for seed in (0, 1)}
    assert paths[0] != paths[1]
    before = rows_of(paths[1], "users")
    os.unlink(paths[1])
    assert rows_of(perturbed_copy(CopyRequest(database, 1)), "users") == before


def test_an_even_copy_has_some_of_the_rows_and_an_odd_one_moves_numbers(database):
    original = rows_of(database, "users")
    even = rows_of(perturbed_copy(CopyRequest(database, 0)), "users")
    assert set(even) < set(original)
    assert len(original) // 2 < len(even)
    odd = rows_of(perturbed_copy(CopyRequest(database, 1)), "users")
    assert {row[2] for row in odd} == {row[2] for row in original}
    assert {row[3:] for row in odd} <= {row[3:] for row in original}
    assert {row[0] for row in original} < {row[0] for row in odd}
    assert set(odd) - set(original)


GROWING = [
    ("t (id INTEGER PRIMARY KEY, kind TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'a'), (9, 'b')", True),
    ("t (name TEXT PRIMARY KEY, n INT); INSERT INTO t VALUES ('Ann', 1), ('Bob', 1), ('Cid', 1)", True),
    ("t (code TEXT PRIMARY KEY); INSERT INTO t VALUES ('A-1'), ('A-2'), ('B-1')", False),
    ("t (id INTEGER PRIMARY KEY, day TEXT); INSERT INTO t VALUES (1, '2020-01-02'), (2, '2021')", False),
    ("u (id INT); CREATE TABLE t (id INT UNIQUE REFERENCES u(id)); INSERT INTO t VALUES (1), (2), (3)", False),
]


@pytest.mark.parametrize(("table", "grows"), GROWING)
def test_a_table_grows_where_new_keys_like_its_own_can_be_made_up(table, grows):
    path = str(build_database("CREATE TABLE " + table))
    sizes = {len(rows_of(perturbed_copy(CopyRequest(path, seed)), "t")) for seed in (1, 3, 5, 7)}
    before = len(rows_of(path, "t"))
    assert (max(sizes) > before) is grows
    assert min(sizes) >= before


def test_rows_are_doubled_only_where_nothing_identifies_them(database):
    copy = perturbed_copy(CopyRequest(database, 0))
    ids = [row[0] for row in rows_of(copy, "users")]
    assert len(ids) == len(set(ids))
    visits = rows_of(copy, "visits")
    assert len(visits) > len(set(visits))


def test_literals_are_planted_beside_their_borders(database):
    copy = perturbed_copy(CopyRequest(database, 0, (("age", 77), ("city", "Zug"))))
    assert {76, 77, 78} <= {row[3] for row in rows_of(copy, "users")}
    assert "Zug" in {row[2] for row in rows_of(copy, "users")}
    path = str(build_database("CREATE TABLE t (day TEXT); INSERT INTO t VALUES " + ", ".join(["('x')"] * 9)))
    days = {row[0] for row in rows_of(perturbed_copy(CopyRequest(path, 0, (("day", "2000-02-29"),))), "t")}
    assert days == {"2000-02-28", "2000-02-29", "2000-03-01", "x"}


def test_a_wrong_border_that_the_database_does_not_show_fails_on_a_copy(tmp_path):
    path = tmp_path / "gap.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE users (name TEXT, age INTEGER)")
        connection.executemany("INSERT INTO users VALUES (?, ?)", [(f"u{i}", 20 + 3 * (i % 9)) for i in range(60)])
    connection.close()
    ask = {"gold": "SELECT name FROM users WHERE age > 30", "database": path}
    assert check_sql("SELECT name FROM users WHERE age >= 30", **ask, copies=0).passed is True
    assert check_sql("SELECT name FROM users WHERE age >= 30", **ask).passed is False
    assert check_sql("SELECT name FROM users WHERE NOT age < 31", **ask).passed is True


def test_a_dump_builds_once_and_a_hostile_one_builds_nothing():
    path = build_database("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);")
    assert path == build_database("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);")
    assert rows_of(path, "t") == [(1,), (2,)]
    dump = "BEGIN TRANSACTION; CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (7);"
    dump += "DELETE FROM sqlite_sequence; INSERT INTO sqlite_sequence VALUES ('t', 7);"
    assert rows_of(build_database(dump + "CREATE VIEW v AS SELECT a + 1 FROM t; COMMIT;"), "v") == [(8,)]
    for script in (
        "ATTACH '/tmp/x.db' AS x;",
        "PRAGMA journal_mode=WAL;",
        "CREATE TABLE t (a); SELECT load_extension('x');",
    ):
        with pytest.raises(ValueError, match="does not build"):
            build_database(script)
    with pytest.raises(ValueError, match="full"):
        build_database("CREATE TABLE t (a); INSERT INTO t VALUES ('" + "a" * 100_000 + "');", max_bytes=50_000)
