"""Every class of answers: labelled pairs in both orders, and completions with what they state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guerdon.verify.answers import check_answer, equivalent

HERE = Path(__file__).parent / "data" / "answers"
PAIRS = [json.loads(line) for line in (HERE / "pairs.jsonl").read_text(encoding="utf-8").splitlines()]
COMPLETIONS = [json.loads(line) for line in (HERE / "completions.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", sorted({row["class"] for row in PAIRS}))
def test_pairs_of_a_class_get_their_verdict_in_both_orders(name: str) -> None:
    wrong = []
    for row in PAIRS:
        if row["class"] != name:
            continue
        for a, b in ((row["a"], row["b"]), (row["b"], row["a"])):
            verdict = equivalent(a, b)
            if verdict.equal is not row["equal"]:
                wrong.append((a, b, row["equal"], verdict))
    assert not wrong


@pytest.mark.parametrize("name", sorted({row["class"] for row in COMPLETIONS}))
def test_completions_of_a_class_get_their_verdict(name: str) -> None:
    wrong = []
    for row in COMPLETIONS:
        if row["class"] != name:
            continue
        verdict = check_answer(row["gold"], row["completion"], kind=row["kind"])
        if verdict.equal is not row["equal"]:
            wrong.append((row, verdict))
    assert not wrong
