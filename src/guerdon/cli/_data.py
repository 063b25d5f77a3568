"""``guerdon answer``, ``guerdon check-answers`` and ``guerdon sandbox check``: the verifiers' own tools."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from guerdon.cli._score import Column, Data, Part, SkipBad
from guerdon.cli._show import Json, note, say, say_json, short, table, working

if TYPE_CHECKING:
    from guerdon.backends.sandbox import Isolation
    from guerdon.data import Source

sandbox = typer.Typer(help="Where untrusted code runs.", no_args_is_help=True, rich_markup_mode=None)
BackEnd = Literal["zygote", "bubblewrap", "gvisor"]
Kind = Annotated[str, typer.Option(help="math, number, choice, text or units.")]
PolicyOption = Annotated[
    list[str] | None,
    typer.Option("--policy", metavar="NAME=VALUE", help="A choice of the comparison policy, such as percent=number."),
]


def add_answers(app: typer.Typer) -> None:
    """Register these commands."""
    app.command("answer", short_help="Compare an answer with the reference.")(answer)
    app.command("check-answers", short_help="Find reference answers that can't be used.")(check_answers)
    app.add_typer(sandbox, name="sandbox")


def answer(gold: str, completion: str, kind: Kind = "math", policy: PolicyOption = None, json: Json = False) -> None:
    """Compare the answer a completion states with the reference, and explain the verdict. Exit code 1 unless equal.

    Example: guerdon answer "1/2" "so the answer is \\boxed{0.5}"
    """
    from guerdon.verify.answers import explain_answer

    try:
        found = explain_answer(gold, completion, kind, **policy_of(policy))
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    if json:
        say_json(found)
    else:
        word = {True: "equal", False: "different", None: "unknown"}[found["equal"]]
        say(f"{word}: {found['reason']}{' - ' + found['detail'] if found['detail'] else ''}")
        rows = [
            (name, short(value, 200)) for name, value in found.items() if name not in _SAID and value not in (None, "")
        ]
        say(table(rows, indent="  "))
    raise typer.Exit(0 if found["equal"] else 1)


_SAID = ("equal", "reason", "detail")


def check_answers(
    data: Data,
    answer: Part = None,
    id: Column = None,
    policy: PolicyOption = None,
    skip_bad: SkipBad = False,
    json: Json = False,
) -> None:
    """Compare each reference answer with itself, to find the unusable ones before training. Exit code 1 if any.

    Example: guerdon check-answers problems.jsonl --answer gold
    """
    from guerdon.data import Columns, read
    from guerdon.verify.answers import check_golds

    completion = answer if answer is not None else None
    source = read(
        data, Columns(answer=answer, id=id if id is not None else "", completion=completion), skip_bad=skip_bad
    )
    try:
        with working("checking the answers"):
            golds, places = distinct_answers(source)
            report = check_golds(golds, **policy_of(policy))
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    bad: list[dict[str, Any]] = [
        {"answer": gold, "verdict": verdict, "reason": reason, "rows": places[gold][:20], "count": len(places[gold])}
        for verdict, found in (("unknown", report.unknown), ("different", report.different))
        for _, gold, reason in found
    ]
    missing = places.get("", [])
    if json:
        say_json(
            {"rows": source.count, "distinct": report.total, "sound": report.equal, "missing": len(missing), "bad": bad}
        )
    else:
        say(f"{source.count:,} rows, {report.total:,} different answers: {report.equal:,} equal themselves")
        if missing:
            say(f"{len(missing):,} rows have no answer, first row {missing[0]}")
        for b in bad[:50]:
            say(f"  {short(repr(b['answer']), 60)} ({b['count']} rows, first {b['rows'][0]}): {b['reason']}")
    raise typer.Exit(0 if not bad and not missing else 1)


def distinct_answers(source: Source) -> tuple[list[str], dict[str, list[int]]]:
    """The different reference answers, and the rows of each; rows without one under the empty text."""
    places: dict[str, list[int]] = {}
    for row, rollout in source.rows():
        given = rollout.answer if isinstance(rollout.answer, list) else [rollout.answer]
        for one in given or [None]:
            places.setdefault("" if one is None else str(one), []).append(row)
    return [gold for gold in places if gold], places


def policy_of(options: list[str] | None) -> dict[str, Any]:
    """A comparison policy from ``NAME=VALUE`` options."""
    import orjson

    policy: dict[str, Any] = {}
    for option in options or []:
        name, mark, text = option.partition("=")
        if not mark:
            raise typer.BadParameter(f"--policy {option}: write NAME=VALUE")
        try:
            policy[name] = orjson.loads(text)
        except orjson.JSONDecodeError:
            policy[name] = text
    return policy


@sandbox.command("check", epilog="Example: guerdon sandbox check --json")
def check(
    attacks: Annotated[bool, typer.Option("--attacks/--no-attacks", help="Run the attack programs too.")] = True,
    fakes: Annotated[bool, typer.Option("--fakes", help="Grade the fake solutions too; a minute or so more.")] = False,
    backend: Annotated[BackEnd, typer.Option(help="Which one the attack programs run against.")] = "zygote",
    json: Json = False,
) -> None:
    """Say what is isolated on this host, and run the attack programs against it; a minute or so.

    Exit code 1 if one gets through, a fake solution passes, or the back end can't isolate untrusted code here at all.
    """
    from guerdon.backends.sandbox import describe_isolation

    isolation = describe_isolation()
    reason = isolation.reason if backend == "zygote" else _sandbox(backend).refusal()
    available = isolation.available if backend == "zygote" else not reason
    defences = _attacked(backend, quiet=json) if available and attacks else []
    judgements = _faked(quiet=json) if isolation.available and fakes else []
    ok = available and all(one["held"] for one in (*defences, *judgements))
    if json:
        found = {**asdict(isolation), "available": available, "reason": reason, "backend": backend}
        say_json({"ok": ok, **found, "attacks": defences, "fakes": judgements})
        raise typer.Exit(0 if ok else 1)
    _say_walls(isolation, backend, reason)
    for what, done in (("attacks held off", defences), ("fake solutions judged rightly", judgements)):
        if done:
            say(f"{sum(one['held'] for one in done)} of {len(done)} {what}")
    for one in (*defences, *judgements):
        if not one["held"]:
            say(f"  BROKEN {one['name']}: {short(one.get('seen') or one.get('reason') or '', 200)}")
    raise typer.Exit(0 if ok else 1)


def _say_walls(isolation: Isolation, backend: str, reason: str) -> None:
    """First what follows from it, then wall by wall."""
    at = "" if backend == "zygote" else f" at {backend}"
    if reason:
        say(f"untrusted code can't be run{at}: {reason}")
        say("none is run: its grade is unknown (state refused). For code that you trust: backend='subprocess'")
    elif isolation.weaker and not at:
        say(f"untrusted code can be run; weaker than it could be in {len(isolation.weaker)} respects")
    else:
        say(f"untrusted code can be run{at}")
    walls = () if at else (("walls", isolation.enabled), ("weaker", isolation.weaker))
    known = (*walls, ("also", isolation.others))
    if rows := [("" if number else title, line) for title, lines in known for number, line in enumerate(lines)]:
        say(table(rows, indent="  "))


def _sandbox(backend: BackEnd) -> Any:
    from guerdon.backends.sandbox import Bubblewrap, isolating_backend

    return Bubblewrap() if backend == "bubblewrap" else isolating_backend(backend)


def _attacked(backend: BackEnd, *, quiet: bool) -> list[dict[str, Any]]:
    from guerdon.backends.sandbox.attacks import attacks, run_attack_suite

    corpus = attacks(backend)
    if not quiet and (left_out := len(attacks()) - len(corpus)):
        note(f"{left_out} attacks are left out: they say nothing at {backend} (its page in the documentation says why)")
    width = max(len(attack.name) for attack in corpus)
    done = []
    for defence in run_attack_suite(_sandbox(backend).run_program, corpus):
        if not quiet:
            word = "held  " if defence.held else "BROKEN"
            note(f"{word}  {defence.name:{width}}  {defence.state:9}  {defence.seconds:.2f} s")
        done.append(asdict(defence))
    return done


def _faked(*, quiet: bool) -> list[dict[str, Any]]:
    from guerdon.verify.programs.attacks import fakes, run_fake_suite

    width = max(len(fake.name) for fake in fakes())
    done = []
    for judged in run_fake_suite():
        word = "held  " if judged.held else "BROKEN"
        if not quiet:
            note(f"{word}  {judged.name:{width}}  {judged.channel:10}  passed: {judged.passed}")
        done.append(asdict(judged))
    return done
