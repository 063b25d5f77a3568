"""The report page in a real browser: its script runs under its own policy, filters, orders and opens rollouts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import ABSENT, PROGRAM, Browser
from guerdon.cli import main
from guerdon.report import write_report

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=ABSENT)

SPEC = "nodes: {correct: {verify.number: {}}}\nreward: correct\n"
HOSTILE = "<img src=http://127.0.0.1:9/x onerror=alert(1)></script><script>document.title='owned'</script>"
IDS = "[...document.querySelectorAll('#list .id')].map(e => e.textContent)"
COUNT = "document.getElementById('count').textContent"


def rows() -> list[dict[str, object]]:
    """60 rollouts: 30 pass, 20 fail, 10 unknown; three disagree with the label; one is hostile."""
    found: list[dict[str, object]] = []
    for i in range(60):
        said = "it is 1" if i < 30 else f"it is {i}" + "." * (i % 7)
        answer = None if i >= 50 else "1"
        ok = (i < 30) != (i in (3, 4, 40))
        found.append(
            {
                "id": f"r{i:02}",
                "group": f"g{i // 4}",
                "completion": said,
                "answer": answer,
                "model": "ab"[i % 2],
                "ok": ok,
            }
        )
    found[59] |= {"completion": f"{HOSTILE} Zebra", "id": f"r59{HOSTILE}"}
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "d.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows()))
    (folder / "s.yaml").write_text(SPEC)
    with pytest.raises(SystemExit) as stop:
        main(["score", *map(str, (folder / "d.jsonl", "-s", folder / "s.yaml", "-o", folder / "o.parquet")), "--json"])
    assert not stop.value.code
    return write_report(folder / "o.parquet", folder / "r.html", label="ok", by=["model"])


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    browser.problems.clear()
    browser.open(page)
    return browser


def choose(browser: Browser, name: str, value: str) -> list[str]:
    """Set a field of the filters as a user does, and give the ids that the page then lists."""
    field = f"document.getElementById('filters').elements[{json.dumps(name)}]"
    browser.run("[...document.getElementById('list').children].forEach(e => { e.dataset.old = '1'; })")
    browser.run(f"{field}.value = {json.dumps(value)}; {field}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    browser.until("![...document.getElementById('list').children].some(e => e.dataset.old)")
    found: list[str] = browser.run(IDS)
    return found


def test_the_script_runs_under_the_pages_own_policy_and_nothing_is_loaded(opened: Browser) -> None:
    assert opened.run(COUNT) == "60 of 60 rollouts in this page match"
    assert opened.run("document.title") == "Rewards of o.parquet"
    choose(opened, "text", "zebra")
    opened.run("document.querySelector('#list summary').click()")
    opened.until("document.querySelector('#list .body') !== null")
    assert HOSTILE in opened.run("document.querySelector('#list .id').textContent")
    assert opened.run("document.querySelectorAll('img, iframe, script').length") == 2
    assert opened.problems == []


def test_no_script_but_the_pages_own_may_run(opened: Browser) -> None:
    opened.run(
        "const s = document.createElement('script'); s.textContent = 'window.owned = 1'; document.body.append(s)"
    )
    assert opened.run("window.owned === undefined")
    assert any("Content Security Policy" in problem for problem in opened.problems)


@pytest.mark.parametrize(
    ("field", "value", "count"),
    [
        ("outcome", "pass", 30), ("outcome", "fail", 20), ("outcome", "unknown", 10), ("outcome", "disagree", 3),
        ("by:model", "a", 30), ("node:correct", "0", 20), ("node:correct", "unknown", 10), ("text", "R1", 10),
        ("text", "zebra", 1), ("text", "it r01", 1), ("text", "no such text", 0),
    ],
)  # fmt: skip
def test_filters_leave_what_fits(opened: Browser, field: str, value: str, count: int) -> None:
    assert len(choose(opened, field, value)) == min(count, 25)
    assert opened.run(COUNT) == f"{count} of 60 rollouts in this page match"


def test_filters_work_together_and_the_disagreements_are_the_right_ones(opened: Browser) -> None:
    assert choose(opened, "outcome", "disagree") == ["r03", "r04", "r40"]
    assert choose(opened, "by:model", "a") == ["r04", "r40"]
    opened.run("document.querySelector('[data-show=disagree]').click()")  # the link above clears the other filters
    assert opened.run(IDS) == ["r03", "r04", "r40"]


def test_the_order_is_the_files_or_by_reward_or_by_length(opened: Browser) -> None:
    assert choose(opened, "order", "low")[:2] == ["r30", "r31"]
    assert choose(opened, "order", "high")[:2] == ["r00", "r01"]
    assert choose(opened, "order", "long")[0].startswith("r59")
    assert choose(opened, "order", "row")[:2] == ["r00", "r01"]


def test_pages_go_forth_and_back(opened: Browser) -> None:
    place = "document.getElementById('place').textContent"
    assert (opened.run(place), opened.run("back.disabled"), opened.run("next.disabled")) == ("page 1 of 3", True, False)
    opened.run("next.click(); next.click()")
    assert (opened.run(place), opened.run("next.disabled"), len(opened.run(IDS))) == ("page 3 of 3", True, 10)
    opened.run("back.click()")
    assert opened.run(IDS)[0] == "r25"


def test_a_rollout_opens_with_its_nodes_reasons_and_evidence(opened: Browser) -> None:
    choose(opened, "text", "r55")
    opened.run("document.querySelector('#list summary').click()")
    opened.until("document.querySelector('#list .body') !== null")
    head = opened.run("[...document.querySelectorAll('#list thead th')].map(e => e.textContent)")
    body = opened.run(
        "[...document.querySelectorAll('#list tbody tr')].map(r => [...r.cells].map(c => c.textContent.trim()))"
    )
    assert head == ["node", "value", "reason", "evidence"]
    assert body[1][:3] == ["correct", "unknown", "no reference answer"]
    assert opened.run("[...document.querySelectorAll('#list mark')].map(e => e.textContent)") == ["r55"]
    choose(opened, "text", "r00")
    opened.run("document.querySelector('#list summary').click()")
    opened.until("document.querySelector('#list .body') !== null")
    assert "reason" not in opened.run("[...document.querySelectorAll('#list thead th')].map(e => e.textContent)")
    assert "extracted 1" in opened.run("document.querySelector('#list tbody').textContent")


def test_an_example_of_a_kind_of_evidence_is_shown_open(opened: Browser) -> None:
    opened.run("document.querySelector('#evidence [data-row]').click()")
    assert opened.run("document.querySelectorAll('#list details[open] .body').length") == 1


@pytest.mark.parametrize("width", [360, 768, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_sticks_out_at_any_width(browser: Browser, page: Path, width: int, dark: bool) -> None:
    browser.open(page, width=width, dark=dark)
    browser.run("document.querySelectorAll('#list summary').forEach(e => e.click())")
    browser.until("document.querySelectorAll('#list .body').length === 25")
    assert browser.run("document.documentElement.scrollWidth") <= width
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")
