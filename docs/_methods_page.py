"""Fills the page of published methods from the register, when the site is built."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # hooks are loaded by their path alone
from _doctests import fenced


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace the marker in methods.md by a section for each family: a table, and what each method says of itself."""
    if page.file.src_uri != "methods.md":
        return markdown
    from guerdon.methods import all_methods

    lines: list[str] = []
    methods = all_methods()
    for family in sorted({m.family for m in methods}):
        rows = [m for m in methods if m.family == family]
        lines += ["", f"## {family.capitalize()}", "", "| key | method | source | evidence |", "|---|---|---|---|"]
        lines += [f"| [`{m.key}`](#{m.key}) | {m.name} | {m.source} | {m.evidence} |" for m in rows]
        lines += [line for m in rows for line in _told(m)]
    return markdown.replace("<!-- methods -->", "\n".join(lines))


def _told(method: Any) -> list[str]:
    """A method's own documentation, folded away under its key."""
    parts = f"Made of {', '.join(f'`{p}`' for p in method.parts)}." if method.parts else ""
    body = f"```python\n{method.usage}\n```\n\n{fenced(method.text)}\n\n{parts}"
    folded = [f"    {line}" if line else "" for line in body.split("\n")]
    return ["", f'<a id="{method.key}"></a>', "", f'??? note "{method.key}: {method.name}"', "", *folded]
