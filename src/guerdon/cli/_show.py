"""How commands speak: JSON for programs, aligned text for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
AllowCode = Annotated[
    list[str] | None,
    typer.Option("--allow-code", metavar="MODULE", help="A module whose signals the spec may call; importing runs it."),
]


def say(text: str = "") -> None:
    """A line on standard output."""
    sys.stdout.write(f"{text}\n")


def note(text: str) -> None:
    """A line on standard error: progress and remarks, never results."""
    sys.stderr.write(f"{text}\n")


@contextmanager
def working(text: str) -> Iterator[None]:
    """Say on a terminal that something takes its time, until it is done."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


def say_json(value: Any) -> None:
    """Indented JSON on standard output."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    sys.stdout.write(orjson.dumps(value, option=options, default=str).decode() + "\n")


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = (), indent: str = "") -> str:
    """Aligned columns; numbers to the right, the last column ragged.

    >>> print(table([("a", 1), ("bcd", 20)], ("name", "n")))
    name   n
    a      1
    bcd   20
    """
    cells = [[str(c) for c in row] for row in ([head] if head else [])]
    body = [list(row) for row in rows]
    cells += [[str(c) for c in row] for row in body]
    if not cells:
        return ""
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    right = [bool(body) and all(isinstance(row[i], (int, float)) for row in body) for i in range(len(widths))]
    lines = (
        "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)) for row in cells
    )
    return "\n".join(indent + line.rstrip() for line in lines)


def short(text: object, length: int = 80) -> str:
    """One line of at most ``length`` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= length else line[: length - 1] + "…"


def prepare_code(allow_code: Sequence[str] | None) -> tuple[str, ...]:
    """The modules a spec may call; a module in the working directory is found too."""
    if allow_code and "" not in sys.path:
        sys.path.insert(0, "")
    return tuple(allow_code or ())
