"""Floors on the public data: labelled pairs, bug reports, adversarial cases, real model outputs, gold answers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from guerdon.verify.answers import check_answer, check_golds

# Named label errors of the sources: best-of-8 problem 72, sample 7 answers 10000 to the gold 10{,}000.
MISLABELLED = {(72, 7)}


def rows_of(path: Path) -> list[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", errors="surrogatepass") as lines:
        return [json.loads(line) for line in lines]


def tally(rows: list[tuple[str, str, bool, str]]) -> tuple[list[Any], list[Any]]:
    missed, false = [], []
    for gold, prediction, expected, kind in rows:
        verdict = check_answer(gold, prediction, kind=kind)
        if expected and verdict.equal is not True:
            missed.append((gold, prediction[-80:], verdict.reason, verdict.detail))
        if not expected and verdict.equal is True:
            false.append((gold, prediction[-80:], verdict.tier))
    return missed, false


def test_public_test_pairs_are_right_in_97_of_100(shared_data: Path) -> None:
    rows = [
        (r["gold"], r["prediction"], bool(r["expected"]), "choice" if r["kind"] == "mcq" else "math")
        for r in rows_of(shared_data / "answers" / "answer_pairs.jsonl")
        if r["kind"] in ("math", "mcq") and not r.get("params") and not r.get("dispute")
    ]
    missed, false = tally(rows)
    assert len(missed) + len(false) <= 0.03 * len(rows), (missed, false)
    assert len(false) <= 1, false


def test_reported_bugs_are_at_most_5_of_100_missed_and_never_accepted(shared_data: Path) -> None:
    rows = [
        (r["gold"], r["prediction"], bool(r["expected"]), "math")
        for r in rows_of(shared_data / "answers" / "answer_pairs_from_issues.jsonl")
        if r["expected"] is not None
    ]
    missed, false = tally(rows)
    assert not false
    assert len(missed) <= 0.05 * sum(r[2] for r in rows), missed


def test_adversarial_answers_are_at_most_5_of_100_missed_and_never_accepted(shared_data: Path) -> None:
    rows = [
        (r["gold"], r["prediction"], bool(r["expected"]), "math")
        for r in rows_of(shared_data / "answers" / "adversarial_pairs.jsonl")
        if r["expected"] is not None and r["cat"] in ("value", "extraction", "failopen")
    ]
    missed, false = tally(rows)
    assert not false
    assert len(missed) <= 0.05 * sum(r[2] for r in rows), missed


def test_gold_answers_equal_themselves(shared_data: Path) -> None:
    report = check_golds(r["gold"] for r in rows_of(shared_data / "gold_answers" / "golds.jsonl.gz"))
    assert report.total > 11_000
    assert not report.different
    assert report.equal >= 0.999 * report.total, report.unknown


def test_math500_answers_equal_themselves(shared_data: Path) -> None:
    golds = [r["answer"] for r in rows_of(shared_data / "math500" / "test500.jsonl.gz")]
    assert check_golds(golds).sound


def test_labelled_gsm8k_solutions_get_their_label(shared_data: Path) -> None:
    rows = rows_of(shared_data / "gsm8k" / "model_solutions_labelled.jsonl.gz")
    missed, false = tally([(r["gold"], r["solution"], bool(r["is_correct"]), "math") for r in rows])
    assert not missed
    assert not false


def test_best_of_8_solutions_get_their_label(shared_data: Path) -> None:
    rows = rows_of(shared_data / "qwen_bon100" / "math_cot_100.jsonl.gz")
    wrong = {
        (i, j)
        for i, r in enumerate(rows)
        for j, (text, label) in enumerate(zip(r["code"], r["score"], strict=True))
        if (check_answer(r["gt"], text).equal is True) != bool(label)
    }
    assert wrong <= MISLABELLED


@pytest.mark.parametrize("category", ["resource", "nesting", "size"])
def test_hostile_answers_cost_at_most_one_deadline(shared_data: Path, category: str) -> None:
    for r in rows_of(shared_data / "answers" / "adversarial_pairs.jsonl"):
        if r["cat"] != category or r["expected"] is None:
            continue
        text = r["prediction"] if r.get("prediction") is not None else long_text(r["prediction_py"])
        verdict = check_answer(r["gold"], text, seconds=0)
        assert verdict.equal is True or not r["expected"], (r["id"], verdict.reason, verdict.detail)
        assert not (verdict.equal and not r["expected"]), r["id"]
        assert verdict.seconds < 2.0, r["id"]


def long_text(recipe: str) -> str:
    """The value of a recipe such as ``'a'*1000000``: literals, + and * only."""
    import ast
    import operator

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        assert isinstance(node, ast.BinOp)
        do = {ast.Add: operator.add, ast.Mult: operator.mul}[type(node.op)]
        return do(value(node.left), value(node.right))

    return value(ast.parse(recipe, mode="eval").body)
