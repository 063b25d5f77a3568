"""Fills the page of published methods from the register, when the site is built."""

from __future__ import annotations

from typing import Any


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace the marker in methods.md by a section for each family."""
    if page.file.src_uri != "methods.md":
        return markdown
    from guerdon.methods import all_methods

    lines: list[str] = []
    methods = all_methods()
    for family in sorted({m.family for m in methods}):
        lines += ["", f"## {family.capitalize()}", "", "| key | method | source | evidence |", "|---|---|---|---|"]
        rows = (m for m in methods if m.family == family)
        lines += [f"| `{m.key}` | {m.name} | {m.source} | {m.evidence} |" for m in rows]
    return markdown.replace("<!-- methods -->", "\n".join(lines))
