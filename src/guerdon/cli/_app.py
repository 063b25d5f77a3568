"""The commands of ``guerdon``. A command's module is imported for its signature; what does the work, when it runs."""

from __future__ import annotations

import typer

from guerdon.cli import _compare, _data, _doctor, _explain, _lists, _report, _score, _spec

app = typer.Typer(
    name="guerdon",
    help="Rewards for reinforcement learning of language models: score rollouts, explain, report, compare.",
    epilog="Exit codes: 0 all well, 1 findings or disagreement, 2 wrong usage or bad input, 3 a fault in Guerdon. "
    "--debug anywhere shows the traceback of an error.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _top(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from guerdon import __version__

        typer.echo(f"guerdon {__version__}")
        raise typer.Exit


app.command("score", short_help="Score rollouts with a spec.")(_score.score)
app.command("explain", short_help="Show why one rollout got its reward.")(_explain.explain)
app.command("report", short_help="Write one HTML page about a scored file.")(_report.report)
app.command("compare", short_help="Say what changed between two scored files.")(_compare.compare)
app.add_typer(_spec.app, name="spec")
app.add_typer(_lists.signals, name="signals")
app.add_typer(_lists.methods, name="methods")
app.command("doctor", short_help="Say what is installed and what works here.")(_doctor.doctor)
_data.add_answers(app)
