"""Graded SQL queries per second on SQLite, beside a plain loop that only executes them.

    python benchmarks/sql.py [--queries 2000]

Prints one line per setting: statements all different, with and without perturbed copies, and groups of 16 rollouts
of a prompt (some the same), each as a ratio to a loop that opens the database, runs both
statements and compares their rows as sets.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import tempfile
import time
from pathlib import Path

import sqlglot.parser

from guerdon.verify.queries import Grading, Limits, SqlTask, check_sql_many
from guerdon.verify.queries.gold import run_gold
from guerdon.verify.queries.run import Job, execute

CITIES = ["Bern", "Basel", "Chur", "Zug", "Genf"]


def make_database(folder: Path) -> str:
    path = folder / "shop.sqlite"
    rng = random.Random(0)
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, city TEXT, age INTEGER);"
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users (id), total REAL);"
        )
        users = [(i, f"u{i % 90}", rng.choice(CITIES), rng.randint(18, 80)) for i in range(200)]
        orders = [(i, rng.randrange(200), round(rng.random() * 90, 2)) for i in range(400)]
        connection.executemany("INSERT INTO users VALUES (?, ?, ?, ?)", users)
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", orders)
    connection.close()
    return str(path)


def statements(count: int) -> list[tuple[str, str]]:
    """(prediction, gold) pairs: joins, aggregates, orders; half of the predictions are wrong."""
    rng = random.Random(1)
    pairs = []
    for index in range(count):
        age, city, floor = 18 + index % 60, rng.choice(CITIES), index % 97
        shapes = [
            f"SELECT name FROM users WHERE age {{}} {age} AND city = '{city}' AND id > {floor}",
            f"SELECT city, COUNT(*) FROM users WHERE age {{}} {age} AND id > {floor} GROUP BY city",
            "SELECT u.name, SUM(o.total) FROM users AS u JOIN orders AS o ON o.user_id = u.id "
            f"WHERE u.age {{}} {age} AND o.total < {floor} GROUP BY u.id ORDER BY SUM(o.total) DESC LIMIT 5",
        ]
        shape = shapes[index % 3]
        pairs.append((shape.format(rng.choice([">", ">="])), shape.format(">")))
    return pairs


def plain(pairs: list[tuple[str, str]], path: str) -> float:
    """Statements per second of the loop that most graders are."""
    started, right = time.perf_counter(), 0
    for prediction, gold in pairs:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        right += set(connection.execute(prediction).fetchall()) == set(connection.execute(gold).fetchall())
        connection.close()
    assert right
    return len(pairs) / (time.perf_counter() - started)


def graded(tasks: list[SqlTask], copies: int) -> tuple[float, dict[str, int]]:
    grading = Grading(limits=Limits(seconds=2.0), copies=copies)
    check_sql_many([SqlTask("SELECT 1 FROM users", "SELECT 1 FROM users", tasks[0].database)] * 8, grading=grading)
    started = time.perf_counter()
    verdicts = check_sql_many(tasks, grading=grading)
    rate = len(tasks) / (time.perf_counter() - started)
    counts = {str(kind): sum(v.passed is kind for v in verdicts) for kind in (True, False, None)}
    return rate, counts


def cpu_per_query(pairs: list[tuple[str, str]], path: str) -> tuple[float, float]:
    """CPU milliseconds to run a prediction, and a new gold with its ties, in one process without any pool."""
    took = []
    for run, chosen in ((execute, 0), (run_gold, 1)):
        started = time.process_time()
        for pair in pairs:
            run(Job(f"{pair[chosen]} -- cpu {chosen}", path))
        took.append((time.process_time() - started) / len(pairs) * 1000)
    return took[0], took[1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=2000)
    count = parser.parse_args().queries
    compiled = str(sqlglot.parser.__file__).endswith(".so")
    print(f"parser: {'compiled (sqlglotc)' if compiled else 'pure Python'}; load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GUERDON_CACHE"] = folder
        path = make_database(Path(folder))
        pairs = statements(count)
        base = plain(pairs, path)
        print(f"plain sqlite3 loop, prediction and gold     {base:8.0f} pairs/s")
        candidate, gold = cpu_per_query(pairs[:500], path)
        print(f"CPU per prediction {candidate:.2f} ms, per new gold {gold:.2f} ms")
        different = [SqlTask(prediction, gold, path) for prediction, gold in pairs]
        few = pairs[: max(count // 16, 1)]
        grouped = [SqlTask(p if i % 2 else g, g, path) for p, g in few for i in range(16)]
        again = [SqlTask(f"{p} -- again", g, path) for p, g in pairs]
        for name, tasks, copies in [
            ("all different, golds new, no copies", different, 0),
            ("all different, golds cached, no copies", again, 0),
            ("groups of 16, golds cached, no copies", grouped, 0),
            ("groups of 16, 2 perturbed copies made", grouped, 2),
            ("groups of 16, 2 perturbed copies there", grouped, 2),
        ]:
            rate, counts = graded(tasks, copies)
            print(f"{name:42s}  {rate:8.0f} graded/s  {rate / base:5.2f} x plain  {counts}")


if __name__ == "__main__":
    main()
