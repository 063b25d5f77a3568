"""Without any extra: what needs one says which, everything else works."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXTRAS = ("httpx", "stamina", "sqlglot", "sqlglotc", "duckdb", "psycopg", "trl", "torch", "numba", "matplotlib")
BARE = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
SPEC = "nodes: {correct: {verify.number: {}}}\nreward: {when: {condition: correct, then: 1, otherwise: 0}}\n"


def bare(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter that has the base install only."""
    return subprocess.run(
        [sys.executable, "-c", BARE + code], capture_output=True, text=True, cwd=folder, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("base")
    (place / "r.yaml").write_text(SPEC)
    rows = [{"id": str(i), "prompt": "6 * 7?", "completion": f"#### {40 + i}", "answer": "42"} for i in range(4)]
    (place / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return place


COMMANDS = [
    ["doctor", "--quick"], ["methods", "list"], ["methods", "show", "hero-hybrid-reward"], ["signals", "list"],
    ["methods", "show", "reasoning-sql"], ["signals", "show", "verify.number"], ["signals", "show", "verify.sql"],
    ["signals", "show", "judge.yes_no"], ["spec", "check", "r.yaml"], ["spec", "graph", "r.yaml"],
    ["spec", "format", "r.yaml"], ["spec", "schema"], ["answer", "1/2", "0.5"], ["check-answers", "d.jsonl"],
    ["explain", "d.jsonl", "-s", "r.yaml", "--row", "2"], ["sandbox", "check", "--no-attacks"],
    ["score", "d.jsonl", "-s", "r.yaml", "-o", "o.parquet"], ["report", "o.parquet"],
    ["explain", "o.parquet", "--row", "2"], ["compare", "o.parquet", "o.parquet"],
]  # fmt: skip


def test_every_command_works(folder):
    code = f"""
from guerdon.cli import main
for command in {COMMANDS!r}:
    try:
        main(command)
    except SystemExit as stop:
        if stop.code and not (command[0] == "sandbox" and stop.code == 1):
            sys.exit(f"{{command}} ended with {{stop.code}}")
"""
    done = bare(code, folder)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(
    ("expression", "extra"),
    [
        ("gd.verify.sql(database='db').score([{'completion': 'select 1', 'answer': 'select 1', 'db': DB}])", "sql"),
        ("gd.verify.sql_runs(database='db').score([{'completion': 'select 1', 'db': DB}])", "sql"),
        ("gd.verify.sql_schema().score([{'completion': 'select a from t', 'answer': 'select a from t'}])", "sql"),
        ("gd.judge.yes_no(question='?', model='openai:http://127.0.0.1:9/v1#m').score([{'completion': 'a'}])", "judge"),
    ],
)  # fmt: skip
def test_what_needs_an_extra_says_which_and_scores_nothing(folder, expression, extra):
    (folder / "db.sqlite").write_bytes(b"")
    done = bare(
        f"""
import guerdon as gd
DB = {str(folder / "db.sqlite")!r}
try:
    print({expression})
except gd.MissingExtraError as error:
    print(error)
""",
        folder,
    )
    assert f"pip install 'guerdon[{extra}]'" in done.stdout, (done.stdout, done.stderr[-2000:])


def test_the_names_of_a_spec_can_be_listed_without_the_parser_of_sql(folder):
    code = "from guerdon.spec._names import public\nprint('verify.sql' in public(), 'sqlglot' in sys.modules)"
    assert bare(code, folder).stdout.split() == ["True", "False"]
