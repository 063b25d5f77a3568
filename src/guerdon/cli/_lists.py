"""``guerdon signals`` and ``guerdon methods``: what there is to build with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from guerdon.cli._show import Json, say, say_json, short, table

signals = typer.Typer(help="What a spec can call.", invoke_without_command=True, rich_markup_mode=None)
methods = typer.Typer(
    help="The published methods that are built in.", invoke_without_command=True, rich_markup_mode=None
)
Family = Annotated[str | None, typer.Option(help="Only this family.")]
Room = Annotated[str | None, typer.Option(help="Only this room: verify, judge, shape, credit, operators...")]


@signals.callback(epilog="Example: guerdon signals list --room verify")
def _signals(context: typer.Context, json: Json = False) -> None:
    if context.invoked_subcommand is None:
        signals_list(None, json)


@signals.command("list", epilog="Example: guerdon signals list --room verify")
def signals_list(room: Room = None, json: Json = False) -> None:
    """List signals, shaping and credit functions and operators with what they do."""
    from guerdon.spec._names import public

    named = [(n, c) for n, c in sorted(public().items()) if not n.startswith("method.")]
    _check_choice("room", room, (_room(n) for n, _ in named))
    found = [(n, c) for n, c in named if room in (None, _room(n))]
    if json:
        say_json([_signal(name, what) for name, what in found])
    else:
        say(table(((name, short(what.summary, 90)) for name, what in found), ("name", "what it gives")))


@signals.command("show", epilog="Example: guerdon signals show verify.number")
def signals_show(name: str, json: Json = False) -> None:
    """Show one signal or function: parameters, documentation, how it is asked."""
    import inspect

    from guerdon.core.errors import SpecError
    from guerdon.core.parameters import parameter_text
    from guerdon.spec._document import nearest
    from guerdon.spec._names import find, public

    what = find(name)
    if what is None:
        raise SpecError(f"nothing is called {name!r}{nearest(name, public()) or '; see: guerdon signals list'}")
    if json:
        say_json({**_signal(name, what), "doc": inspect.getdoc(what.documented)})
        return
    say(f"{name}({', '.join(map(parameter_text, what.parameters.values()))})")
    for key, value in _signal(name, what).items():
        if key in ("axis", "needs", "range") and value is not None:
            say(f"{key}: {value}")
    say()
    say(inspect.getdoc(what.documented) or "")


def _check_choice(what: str, chosen: str | None, there: Iterable[str]) -> None:
    choices = sorted(set(there))
    if chosen is not None and chosen not in choices:
        raise typer.BadParameter(f"there is no {what} {chosen!r}; there are {', '.join(choices)}")


def _room(name: str) -> str:
    return name.split(".", 1)[0] if "." in name else "operators"


def _signal(name: str, what: Any) -> dict[str, Any]:
    from guerdon.core.signal import Signal
    from guerdon.spec._values import describe

    target = what.target
    asked = {}
    if isinstance(target, Signal):
        asked = {"axis": target.axis, "needs": target.manner.needs, "range": [target.range.low, target.range.high]}
    parameters = [
        {
            "name": n,
            "operand": n in what.operands,
            "required": n in what.required,
            "default": None if n in what.required else repr(p.default),
            "type": "an expression" if n in what.operands else describe(what.hints.get(n, Any)),
        }
        for n, p in what.parameters.items()
    ]
    kind = "signal" if isinstance(target, Signal) else "function"
    return {"name": name, "kind": kind, "room": _room(name), "summary": what.summary, **asked, "parameters": parameters}


@methods.callback(epilog="Example: guerdon methods --json")
def _methods(context: typer.Context, json: Json = False) -> None:
    if context.invoked_subcommand is None:
        methods_list(None, json)


@methods.command("list", epilog="Example: guerdon methods list --family shape")
def methods_list(family: Family = None, json: Json = False) -> None:
    """List the published methods with family, source and how well their formula is known."""
    from guerdon.methods import all_methods

    every = all_methods()
    _check_choice("family", family, (m.family for m in every))
    found = [m for m in every if family in (None, m.family)]
    if json:
        say_json([m.to_dict() for m in found])
    else:
        say(
            table(
                ((m.key, m.family, m.evidence, short(m.source, 60)) for m in found),
                ("key", "family", "evidence", "source"),
            )
        )


@methods.command("show", epilog="Example: guerdon methods show hero-hybrid-reward")
def methods_show(key: str, json: Json = False) -> None:
    """Show one method: formula, source, usage, the parts it is made of."""
    from guerdon.methods import find

    method = find(key)
    if json:
        say_json({**method.to_dict(), "doc": method.text})
        return
    say(f"{method.name}  [{method.key}, {method.family}]")
    say(f"source: {method.source} ({method.evidence})")
    say(f"usage:  {method.usage}")
    if method.parts:
        say(f"parts:  {', '.join(method.parts)}")
    say()
    say(method.text)
