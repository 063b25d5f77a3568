"""``guerdon spec``: check, draw and describe specs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from guerdon.cli._show import AllowCode, Json, prepare_code, say, say_json

app = typer.Typer(help="Check, draw and describe specs.", no_args_is_help=True, rich_markup_mode=None)
SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help="The spec, a YAML file.")]


@app.command(
    epilog="Example: guerdon spec check reward.yaml\n\nExit code 1 where there are errors (with --strict: any finding)."
)
def check(
    spec: SpecFile,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    allow_code: AllowCode = None,
    json: Json = False,
) -> None:
    """Find faults of a spec before any data: bounds, dead branches, gates a bonus can out-bid, unused nodes."""
    from guerdon.spec import check as findings_of
    from guerdon.spec import load_spec

    loaded = load_spec(spec, allow_code=prepare_code(allow_code))
    findings = findings_of(loaded)
    errors = [f for f in findings if strict or f.level == "error"]
    if json:
        reward = loaded.reward
        say_json(
            {
                "spec": str(spec), "ok": not errors, "fingerprint": reward.fingerprint, "axis": reward.axis,
                "range": [reward.range.low, reward.range.high], "findings": [f.to_dict() for f in findings],
            }
        )  # fmt: skip
    else:
        for f in findings:
            where = f"{spec}:{f.line}" if f.line else str(spec)
            say(f"{where}: {f.level}: {f.message} [{f.code}]")
        verdict = "no findings" if not findings else f"{len(findings)} finding{'s' * (len(findings) != 1)}"
        say(f"{spec}: {verdict}; the reward lies in {loaded.reward.range}")
    raise typer.Exit(1 if errors else 0)


@app.command(epilog="Example: guerdon spec graph reward.yaml --form dot | dot -Tsvg > reward.svg")
def graph(
    spec: SpecFile,
    form: Annotated[Literal["mermaid", "dot"], typer.Option(help="The drawing language.")] = "mermaid",
    allow_code: AllowCode = None,
) -> None:
    """The expression as Mermaid or DOT text; dotted edges are asked only where needed."""
    from guerdon.spec import graph as drawing_of
    from guerdon.spec import load_spec

    say(drawing_of(load_spec(spec, allow_code=prepare_code(allow_code)), form))


@app.command(epilog="Example: guerdon spec schema > guerdon.schema.json")
def schema() -> None:
    """The JSON Schema of specs, for editors: every name with its parameters."""
    from guerdon.spec import schema as schema_of

    say_json(schema_of())


@app.command("format", epilog="Example: guerdon spec format reward.yaml")
def format_(spec: SpecFile, allow_code: AllowCode = None) -> None:
    """Print the spec in normal form: methods as their parts, used nodes only; the same fingerprint."""
    from guerdon.spec import dump_spec, load_spec

    loaded = load_spec(spec, allow_code=prepare_code(allow_code))
    say(dump_spec(loaded.reward, data=loaded.data, range=loaded.range).rstrip("\n"))
