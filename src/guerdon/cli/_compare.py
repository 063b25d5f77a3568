"""``guerdon compare``: what changed between two scored files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guerdon.cli._show import Json, say, say_json, short, table, working

if TYPE_CHECKING:
    from guerdon.report.scored_file import ScoredFile

Scored = Annotated[Path, typer.Argument(help="A scored file.")]


def compare(
    a: Scored,
    b: Scored,
    tolerance: Annotated[float, typer.Option(min=0.0, help="Differences up to this are none.")] = 0.0,
    show: Annotated[int, typer.Option(min=0, help="How many changed rollouts to list.")] = 10,
    json: Json = False,
) -> None:
    """Compare two scored files by id: rewards and nodes that changed, became unknown or known. Exit code 1 if any did.

    Example: guerdon compare before.parquet after.parquet
    """
    from guerdon.report.scored_file import ScoredFile

    with working(f"reading {a.name} and {b.name}"):
        found = difference(ScoredFile(a), ScoredFile(b), tolerance, show)
    if json:
        say_json(found)
    else:
        _say(found, a, b)
    raise typer.Exit(0 if found["same"] else 1)


def difference(a: ScoredFile, b: ScoredFile, tolerance: float = 0.0, show: int = 10) -> dict[str, Any]:
    """What differs between two scored files, as plain data."""
    place_a = {key: i for i, key in enumerate(a.column("id"))}
    place_b = {key: i for i, key in enumerate(b.column("id"))}
    shared = [key for key in place_a if key in place_b]
    here, there = [place_a[k] for k in shared], [place_b[k] for k in shared]
    columns = ["reward", *[n for n in a.nodes if n in b.nodes]]
    nodes = {name: _column(a.numbers(name)[here], b.numbers(name)[there], tolerance) for name in columns}
    changed = nodes["reward"].pop("places")
    for other in columns[1:]:
        nodes[other].pop("places")
    ordered = sorted(changed, key=lambda i: -abs(changed[i]))[:show]
    rows_a = list(a.rows([here[i] for i in ordered]))
    rows_b = list(b.rows([there[i] for i in ordered]))
    fields = ["reward", "reason", *[f"{n}{t}" for n in columns[1:] for t in ("", "_evidence")]]
    listed = [
        {"id": x["id"], **{f: [x.get(f), y.get(f)] for f in fields if x.get(f) != y.get(f)}}
        for x, y in zip(rows_a, rows_b, strict=True)
    ]
    only = {"only_a": len(place_a) - len(shared), "only_b": len(place_b) - len(shared)}
    lost = {
        "nodes_only_a": [n for n in a.nodes if n not in b.nodes],
        "nodes_only_b": [n for n in b.nodes if n not in a.nodes],
    }
    same = not any(only.values()) and not any(n["changed"] for n in nodes.values())
    return {"same": same, "shared": len(shared), **only, **lost, "columns": nodes, "rollouts": listed}


def _column(x: Any, y: Any, tolerance: float) -> dict[str, Any]:
    """How two columns of numbers (NaN: unknown) differ."""
    import numpy as np

    known_x, known_y = ~np.isnan(x), ~np.isnan(y)
    both = known_x & known_y
    moved = both & (np.abs(np.where(both, x - y, 0.0)) > tolerance)
    became_unknown, became_known = known_x & ~known_y, ~known_x & known_y
    places = np.flatnonzero(moved | became_unknown | became_known)
    size = {int(i): float(y[i] - x[i]) if both[i] else float("inf") for i in places}
    up = moved & (np.nan_to_num(y - x) > 0)
    return {
        "changed": len(places), "value_changed": int(moved.sum()), "up": int(up.sum()),
        "became_unknown": int(became_unknown.sum()), "became_known": int(became_known.sum()),
        "mean_a": float(x[known_x].mean()) if known_x.any() else None,
        "mean_b": float(y[known_y].mean()) if known_y.any() else None, "places": size,
    }  # fmt: skip


def _say(found: dict[str, Any], a: Path, b: Path) -> None:
    say(f"{found['shared']:,} rollouts in both; {found['only_a']:,} only in {a}, {found['only_b']:,} only in {b}")
    rows = [
        (name, c["changed"], c["up"], c["value_changed"] - c["up"], c["became_unknown"], c["became_known"],
         _mean(c["mean_a"]), _mean(c["mean_b"]))
        for name, c in found["columns"].items()
    ]  # fmt: skip
    say(table(rows, ("column", "changed", "up", "down", "to unknown", "to known", "mean A", "mean B")))
    for side, name in (("nodes_only_a", a), ("nodes_only_b", b)):
        if found[side]:
            say(f"only in {name}: {', '.join(found[side])}")
    for row in found["rollouts"]:
        say(f"{row.pop('id')}")
        for field, (x, y) in row.items():
            say(f"  {field}: {short(_shown(x), 70)} -> {short(_shown(y), 70)}")
    say("no difference" if found["same"] else "they differ")


def _mean(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _shown(value: Any) -> str:
    return "unknown" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
