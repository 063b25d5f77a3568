"""Public text-to-SQL items, scored end to end: BIRD with recorded rollouts, Spider 2.0-lite."""

from __future__ import annotations

import ast
import json
import re

import pytest

from guerdon.verify.queries import build_database, check_sql
from guerdon.verify.queries.partial import schema_linking


def rows(folder, name):
    with open(folder / "sql_small" / f"{name}.jsonl") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def bird(shared_data, tmp_path_factory):
    """BIRD items with their databases; the recorded dumps leave rows out, marked by a line of dots."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GUERDON_CACHE", str(tmp_path_factory.mktemp("cache")))
        items = rows(shared_data, "bird_example")
        for item in items:
            dump = "\n".join(line for line in item["sql_context"].splitlines() if line.strip() != "...")
            item["database"] = build_database(dump)
        yield items


def answer(record):
    reply = record["response"]
    reply = ast.literal_eval(reply) if isinstance(reply, str) else reply
    messages = [item for item in reply["output"] if item["type"] == "message"]
    return "".join(part.get("text", "") for message in messages for part in message["content"])


def test_recorded_rollouts_get_the_rewards_recorded_on_the_full_databases(bird, shared_data):
    for item, record in zip(bird, rows(shared_data, "bird_example_rollouts"), strict=True):
        verdict = check_sql(answer(record), gold=item["gt_sql"], database=item["database"])
        assert verdict.passed is bool(record["reward"]), (item["id"], verdict)


def test_gold_statements_pass_themselves_and_fail_as_constants(bird):
    for item in bird:
        ask = {"gold": item["gt_sql"], "database": item["database"], "bare": True}
        assert check_sql(item["gt_sql"], **ask).passed is True
        assert check_sql("SELECT '94609-9999' FROM schools LIMIT 1", **ask).passed is False


def test_spider_golds_run_on_their_schemas_where_no_rows_are_public(shared_data, tmp_path, monkeypatch):
    monkeypatch.setenv("GUERDON_CACHE", str(tmp_path))
    for item in rows(shared_data, "spider2_lite_example"):
        prompt = item["responses_create_params"]["input"][1]["content"]
        schema = re.search(r"<DATABASE_SCHEMA>(.*?)</DATABASE_SCHEMA>", prompt, re.DOTALL)
        verdict = check_sql(item["gold_sql"], gold=item["gold_sql"], database=build_database(schema[1]), bare=True)
        assert verdict.passed is None
        assert "empty" in verdict.reason
        assert schema_linking(item["gold_sql"], item["gold_sql"]) == 1.0
        assert schema_linking("SELECT 1 FROM nowhere", item["gold_sql"]) == 0.0
