"""``guerdon report``: one self-contained page about a scored file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guerdon.cli._show import say, working


def report(
    scored: Annotated[Path, typer.Argument(help="A scored file.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The page (default: beside the scored file).")] = None,
    label: Annotated[
        str | None, typer.Option(help="Column with the truth (0/1, true/false); shows disagreements.")
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="Column to split by, such as model; may be given more than once.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="A reward from here on counts as a pass (default: 0.5).")
    ] = None,
    rows: Annotated[int, typer.Option(min=0, help="At most so many rollouts are put into the page.")] = 2000,
    title: Annotated[str | None, typer.Option(help="The page's title.")] = None,
) -> None:
    """Write one HTML page: distributions, groups, unknown reasons, disagreements, searchable rollouts. Works offline.

    Example: guerdon report scored.parquet --label is_correct --by model -o report.html
    """
    from guerdon.report import write_report

    path = out or scored.with_name(scored.name.split(".")[0] + ".html")
    with working(f"reading {scored.name}"):
        write_report(scored, path, label=label, by=by or [], threshold=threshold, rows=rows, title=title)
    say(f"written: {path}")
