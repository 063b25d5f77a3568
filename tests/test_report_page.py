"""The report page: right numbers, one file, nothing that loads or runs, hostile text only as text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import guerdon as gd
from guerdon.cli import main
from guerdon.report import ScoredFile, write_report
from guerdon.report._facts import facts_of

HOSTILE = [
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "<!-- <script>",
    "\u2028\u2029\x07 \u202e rtl",    "{{ 7*7 }}{% raw %}", "\"'`\\", "]]>", "x" * 200_000,
]  # fmt: skip


class Page(HTMLParser):
    """Collects elements, their attributes and script contents."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        else:
            self.words.append(data)

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.elements if t == tag]


def scored_file(folder: Path, rows: list[dict[str, Any]], spec: str) -> Path:
    (folder / "d.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (folder / "s.yaml").write_text(spec)
    with pytest.raises(SystemExit) as stop:
        main(
            ["score", str(folder / "d.jsonl"), "-s", str(folder / "s.yaml"), "-o", str(folder / "o.parquet"), "--json"]
        )
    assert not stop.value.code
    return folder / "o.parquet"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [
        {
            "id": f"r{i}{text[:40]}", "group": f"{text[:30]}{i // 4}", "prompt": text,
            "completion": f"{text} it is {i % 3}", "answer": None if i % 9 == 0 else "1",
            "model": text[:40], "is_correct": bool(i % 2), "extra": [text],
        }
        for i, text in enumerate(HOSTILE * 6)
    ]  # fmt: skip
    return scored_file(
        tmp_path_factory.mktemp("hostile"), rows,
        f"about: {json.dumps(HOSTILE[0])}\nnodes: {{correct: {{verify.number: {{}}}}}}\nreward: correct\n",
    )  # fmt: skip


def test_hostile_text_stays_text(hostile: Path, tmp_path: Path) -> None:
    out = write_report(hostile, tmp_path / "r.html", label="is_correct", by=["model"], title=HOSTILE[0])
    text = out.read_text()
    page = Page(text)
    assert [a.get("type") for a in page.attributes("script")] == ["application/json", None]
    assert not page.attributes("img")
    assert "{{ 7*7 }}{% raw %}" in "".join(page.words)
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    data = json.loads(page.scripts[0])
    assert len(data["rows"]) == 48
    assert data["rows"][0]["inputs"]["prompt"] == HOSTILE[0]
    long = data["rows"][7]["inputs"]["completion"]
    assert len(long) < 4000
    assert "197,008 more characters are not in this page" in long


def test_nothing_is_loaded_and_only_our_script_may_run(hostile: Path, tmp_path: Path) -> None:
    page = Page(write_report(hostile, tmp_path / "r.html").read_text())
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "audio", "video")
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
    policy = next(a["content"] for a in page.attributes("meta") if a.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert policy is not None
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in policy
    assert "innerHTML" not in page.scripts[1]
    assert not re.search(r"\b(fetch|eval|XMLHttpRequest|import)\b", page.scripts[1])


ROWS = [
    {"id": f"r{i}", "group": f"g{i // 4}", "completion": f"it is {c}", "answer": "1", "model": "ab"[i % 2], "ok": ok}
    for i, (c, ok) in enumerate(
        [("1", True), ("1", True), ("1", True), ("1", True), ("1", True), ("2", False), ("1", False), ("2", True),
         ("2", False), ("none", False), ("2", False), ("2", None)]
    )
]  # fmt: skip
ROWS.append({"id": "u", "group": "gu", "completion": "it is 1", "answer": None, "model": "a", "ok": True})
SPEC = "nodes: {correct: {verify.number: {}}}\nreward: correct\n"


def test_the_numbers_are_right(tmp_path: Path) -> None:
    facts = facts_of(ScoredFile(scored_file(tmp_path, ROWS, SPEC)), "ok", ["model"])
    assert facts.groups == {"all pass": 1, "mixed": 1, "all fail": 1, "all unknown": 1}
    assert facts.group_sizes == (1, 3.25, 4)
    assert facts.confusion == {
        "pass right": 5, "pass wrong": 1, "pass none": 0, "fail right": 1, "fail wrong": 4, "fail none": 1,
        "unknown right": 1, "unknown wrong": 0, "unknown none": 0,
    }  # fmt: skip
    assert facts.verdicts.disagree.nonzero()[0].tolist() == [6, 7]
    assert facts.reasons == [("reward", "no reference answer", 1), ("correct", "no reference answer", 1)]
    reward = facts.distributions[0]
    assert (reward.bars, reward.known, reward.mean) == ([("0", 6), ("1", 6)], 12, 0.5)
    by = {r["value"]: r for r in facts.splits["model"]}
    assert (by["a"]["count"], by["a"]["known"], by["a"]["pass_rate"]) == (7, 6, 4 / 6)
    assert by["b"]["agreement"] == 4 / 5
    kinds = {k.what["rule"]: (k.count, k.passed) for k in facts.kinds["correct"] if "rule" in k.what}
    assert kinds["no number found"] == (1, 0)


def test_disagreements_and_unknown_ones_are_embedded_first(tmp_path: Path) -> None:
    scored = scored_file(tmp_path, ROWS, SPEC)
    page = Page(write_report(scored, tmp_path / "r.html", label="ok", rows=6).read_text())
    ids = [r["id"] for r in json.loads(page.scripts[0])["rows"]]
    assert len(ids) == 6
    assert {"r6", "r7", "u"} <= set(ids)
    assert "6 of 13 rollouts are in this page" in " ".join(" ".join(page.words).split())


def test_empty_and_all_unknown_files_have_a_page(tmp_path: Path) -> None:
    nothing = [{"completion": "it is 1", "answer": None}]
    write_report(scored_file(tmp_path, nothing, SPEC), tmp_path / "r.html")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(gd.DataError, match="not a scored file"):
        write_report(empty, tmp_path / "r.html")


def test_a_label_that_is_none_is_refused(tmp_path: Path) -> None:
    scored = scored_file(tmp_path, ROWS, SPEC)
    with pytest.raises(gd.DataError, match="may hold 0/1 or true/false"):
        write_report(scored, tmp_path / "r.html", label="model")
    with pytest.raises(gd.DataError, match="there is no column 'lable'"):
        write_report(scored, tmp_path / "r.html", label="lable")
