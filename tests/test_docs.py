"""What the pages show exists: commands with their options, specs, methods; and every page is in the site's contents.

Their Python runs as tests of its own.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

import guerdon as gd
from guerdon.cli._app import app
from guerdon.methods import all_methods

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(*kinds: str) -> list[tuple[str, str]]:
    """Each code block of a kind, with its page."""
    return [
        (page.name, body)
        for page in PAGES
        for kind, body in re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        if kind in kinds
    ]


COMMANDS = sorted(
    {
        (page, line.split("#")[0].split("|")[0].strip())
        for page, body in blocks("sh", "bash")
        for line in body.splitlines()
        if line.startswith("guerdon ")
    }
)
SPECS = [(page, body) for page, body in blocks("yaml") if re.search(r"^reward:", body, re.MULTILINE)]


def test_there_is_something_to_check():
    assert len(COMMANDS) > 15
    assert len(SPECS) >= 3


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_a_command_and_its_options_exist(page, line):
    words = shlex.split(line)[1:]
    command = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert not getattr(command, "commands", None), f"{page}: {line} stops before a command"
    assert {w for w in words if w.startswith("-") and w != "-"} <= options, f"{page}: {line}"


@pytest.mark.parametrize(("page", "text"), SPECS)
def test_a_spec_reads(page, text):
    assert gd.load_spec(text).reward.range is not None


def test_the_methods_that_pages_name_exist():
    text = "\n".join(page.read_text() for page in PAGES)
    named = set(re.findall(r'gd\.method\("([^"]+)"\)|[{ ]method\.([a-z0-9-]+):|methods show ([a-z0-9-]+)', text))
    table = (ROOT / "docs/howto/methods.md").read_text().split("\n\n")[2]
    keys = {k for found in named for k in found if k} | set(re.findall(r"`([a-z0-9-]+)` \|$", table, re.MULTILINE))
    assert len(keys) >= 4
    assert keys <= {m.key for m in all_methods()}


def test_every_page_is_in_the_contents():
    contents = (ROOT / "mkdocs.yml").read_text()
    listed = {line.strip().split(": ")[-1] for line in contents[contents.index("nav:") :].splitlines() if ".md" in line}
    assert listed == {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.name != "README.md"}
    assert yaml.safe_load(contents)["site_name"] == "Guerdon"


def test_the_reference_holds_every_public_verifier():
    text = (ROOT / "docs/reference/verify.md").read_text()
    assert set(re.findall(r"^::: guerdon\.verify\.(\w+)$", text, re.MULTILINE)) == set(gd.verify.__all__)


def test_the_expressions_in_the_table_of_combining_score():
    page = (ROOT / "docs/howto/combine.md").read_text()
    scope: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0] + "judge = gd.column('judge')\n", scope)
    table = page.split("| you want | write |")[1].split("\n\n")[0]
    written = [code for code in re.findall(r"`([^`]+)`", table) if code.startswith(("gd.", "right"))]
    assert len(written) == 9
    for code in written:
        exec(f"scores = ({code}).score(rows).scores", scope)
        assert scope["scores"].known.all(), code


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
