"""DuckDB and PostgreSQL behind the same protocol."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
import time

import pytest

from guerdon.verify.queries import Limits, check_sql
from guerdon.verify.queries.run import Job
from guerdon.verify.queries.worker import execute_all

LIMIT = 0.5
ROWS = ", ".join(f"('u{i}', {i % 12}, {i / 7})" for i in range(60))
TABLE = "CREATE TABLE users (name VARCHAR(10), age INTEGER, score DOUBLE PRECISION)"


@pytest.fixture(scope="module")
def duckdb_file(tmp_path_factory):
    duckdb = pytest.importorskip("duckdb", reason="the DuckDB dialect needs duckdb")
    path = tmp_path_factory.mktemp("duck") / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(TABLE)
        connection.execute(f"INSERT INTO users VALUES {ROWS}")
    return str(path)


@pytest.fixture(scope="module")
def postgres_admin():
    """The DSN of a superuser: of the server that GUERDON_TEST_POSTGRES names, else of one started here."""
    given = os.environ.get("GUERDON_TEST_POSTGRES")
    if given:
        yield given
        return
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [os.path.dirname(shutil.which("initdb") or "")]
    if not os.path.exists(f"{programs[-1]}/initdb"):
        pytest.skip("no PostgreSQL server here; install one or set GUERDON_TEST_POSTGRES to a superuser's DSN")
    account = {"user": "postgres"} if os.geteuid() == 0 else {}  # the server refuses to run as root
    folder = tempfile.mkdtemp(prefix="guerdon-pg-")
    if account:
        try:
            shutil.chown(folder, "postgres")
        except LookupError:
            pytest.skip("PostgreSQL does not run as root and there is no user called postgres")
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **account}
    subprocess.run(
        [f"{programs[-1]}/initdb", "-D", f"{folder}/data", "-U", "postgres", "-A", "trust"], check=True, **quiet
    )
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    control = [f"{programs[-1]}/pg_ctl", "-D", f"{folder}/data", "-o", options, "-w"]
    subprocess.run([*control, "start"], check=True, **quiet)
    yield f"host={folder} user=postgres dbname=postgres"
    subprocess.run([*control, "-m", "immediate", "stop"], check=True, **quiet)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def postgres_dsn(postgres_admin):
    """A fresh table, and the DSN of a role that may only read it."""
    psycopg = pytest.importorskip("psycopg", reason="the PostgreSQL dialect needs psycopg")
    with psycopg.connect(postgres_admin, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS users")
        connection.execute(TABLE)
        connection.execute(f"INSERT INTO users VALUES {ROWS}")
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'guerdon_reader'").fetchone():
            connection.execute("CREATE ROLE guerdon_reader LOGIN")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM public")
        connection.execute("GRANT USAGE ON SCHEMA public TO guerdon_reader")
        connection.execute("GRANT SELECT ON users TO guerdon_reader")
        dsn = psycopg.conninfo.make_conninfo(postgres_admin, user="guerdon_reader")
        yield dsn
        connection.execute("DROP TABLE users")


@pytest.fixture(params=["duckdb", "postgres"])
def server(request):
    name = {"duckdb": "duckdb_file", "postgres": "postgres_dsn"}[request.param]
    return request.param, request.getfixturevalue(name)


VERDICTS = [
    ("SELECT name FROM users WHERE NOT age <= 5", "SELECT name FROM users WHERE age > 5", True, "equal on 1"),
    ("SELECT name FROM users WHERE age >= 5", "SELECT name FROM users WHERE age > 5", False, "rows"),
    ("SELECT age FROM users", "SELECT DISTINCT age FROM users", False, "rows"),
    ("SELECT name FROM users ORDER BY age DESC", "SELECT name FROM users ORDER BY age", False, "order"),
    ("SELECT name FROM users ORDER BY age, name DESC", "SELECT name FROM users ORDER BY age", True, "equal"),
    (
        "SELECT name FROM users ORDER BY age, name DESC LIMIT 3",
        "SELECT name FROM users ORDER BY age LIMIT 3",
        True,
        "equal",
    ),
    ("SELECT SUM(score) / COUNT(score) FROM users", "SELECT AVG(score) FROM users", True, "equal"),
    ("SELECT 60", "SELECT COUNT(*) FROM users", False, "constant"),
    ("SELECT nme FROM users", "SELECT name FROM users", False, "nme"),
    ("SELECT name FROM users", "SELECT nme FROM users", None, "gold failed"),
]


@pytest.mark.parametrize(("prediction", "gold", "passed", "reason"), VERDICTS)
def test_verdicts_on_a_server(server, prediction, gold, passed, reason):
    dialect, database = server
    verdict = check_sql(prediction, gold=gold, database=database, dialect=dialect, seconds=3.0)
    assert verdict.passed is passed, verdict
    assert reason in verdict.reason


BOMBS = [
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT COUNT(*) FROM t",
    "SELECT COUNT(*) FROM users a, users b, users c, users d, users e, users f",
    "SELECT LENGTH(REPEAT('x', 900000000))",
    "SELECT * FROM users a, users b, users c ORDER BY a.name || b.name || c.name",
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_end_within_the_limit_and_a_fifth_of_a_second(server, bomb):
    dialect, database = server
    execute_all([Job("SELECT 1", database, dialect)] * 8)
    took = []
    for _ in range(2):  # a busy machine may be late once
        started = time.perf_counter()
        (result,) = execute_all([Job(bomb, database, dialect, limits=Limits(seconds=LIMIT))])
        took.append(time.perf_counter() - started)
        assert result.state in ("timeout", "memory", "rows"), result
        if took[-1] < LIMIT + 0.2:
            return
    pytest.fail(f"took {took} s with a limit of {LIMIT} s")


def test_duckdb_alone_denies_what_the_guard_refuses(duckdb_file, tmp_path):
    from guerdon.verify.queries.duck import run_duckdb

    for attack in (
        "SELECT 1; SELECT 2",
        "DROP TABLE users",
        f"COPY users TO '{tmp_path}/x'",
        "SET memory_limit = '1TB'",
        "INSTALL httpfs",
        f"ATTACH '{tmp_path}/y'",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
    ):
        result = run_duckdb(Job(attack, duckdb_file, "duckdb"), time.monotonic() + LIMIT)
        assert result.state in ("refused", "error"), (attack, result)
    assert list(tmp_path.iterdir()) == []


def test_postgres_alone_denies_what_the_guard_refuses(postgres_dsn):
    from guerdon.verify.queries.postgres import run_postgres

    for attack in (
        "SELECT 1; SELECT 2",
        "DELETE FROM users",
        "WITH t AS (DELETE FROM users RETURNING *) SELECT * FROM t",
        "SELECT 1; COMMIT; DELETE FROM users",
        "COPY users TO '/tmp/x'",
        "SELECT pg_read_file('/etc/hostname')",
        "SELECT set_config('transaction_read_only', 'off', false)",
    ):
        result = run_postgres(Job(attack, postgres_dsn, "postgres"), time.monotonic() + LIMIT)
        assert result.state in ("refused", "syntax", "error"), (attack, result)


def test_postgres_time_out_cannot_be_switched_off(postgres_dsn):
    from guerdon.verify.queries.postgres import run_postgres

    started = time.monotonic()
    job = Job(
        "SELECT set_config('statement_timeout', '0', false), pg_sleep(3)",
        postgres_dsn,
        "postgres",
        Limits(seconds=LIMIT),
    )
    assert run_postgres(job, started + LIMIT).state == "timeout"
    assert time.monotonic() - started < LIMIT + 0.5


def test_a_server_that_is_not_there_is_unknown(tmp_path):
    pytest.importorskip("psycopg", reason="the PostgreSQL dialect needs psycopg")
    dsn = f"host={tmp_path} dbname=none"
    verdict = check_sql("SELECT 1", gold="SELECT 1", database=dsn, dialect="postgres")
    assert verdict.passed is None
    assert "connection" in verdict.reason
