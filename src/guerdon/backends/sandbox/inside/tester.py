"""The job that holds the trusted tests: it drives the candidate in the other job and reports over a pipe only it has.

The report carries the nonce of this run, which never leaves this process before the tests are over; the supervisor
believes a report only with that nonce, exit status 0 and at least one executed assertion.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from . import dataflow, instrument, pytest_file
from .handles import bind
from .program import FROM_PEER, PAYLOAD, REPLY, TO_PEER, fresh_module, read_all
from .remote import CandidateGone, Link, Unsupported


@dataclass
class Outcome:
    """What the tests showed: one (name, passed, failure) per entry; `problem` = (kind, text) where something ended
    them."""

    entries: list[tuple[str, bool | None, str | None]] = field(default_factory=list)
    problem: tuple[str, str] | None = None


def run(request: dict[str, Any]) -> NoReturn:
    """Role "tester"."""
    task = json.loads(read_all(PAYLOAD))
    withhold = bool(task.get("withhold"))
    link = Link(FROM_PEER, TO_PEER, task.get("first", 0), withhold=withhold)
    record = instrument.Record(lenient=withhold)
    link.capture = any("stdout" in source or "capsys" in source for source in task["tests"])
    outcome = _examine(task, link, record)
    if link.gone:
        outcome.problem = ("candidate", link.gone)
    elif link.lacking and task["form"] != "file":  # the test may have caught what was raised
        outcome.problem = ("unsupported", link.lacking)
    report = {
        "nonce": task["nonce"],
        "entries": outcome.entries,
        "problem": outcome.problem,
        "assertions": record.executed,
        "orders": link.orders,
        "circular": record.circular_failures(),
        "changed_arguments": link.changed_arguments,
        "compared_opaque": link.compared_opaque,
        "exits": link.exits,
    }
    data = json.dumps(report).encode()
    while data:
        data = data[os.write(REPLY, data) :]
    sys.stdout.flush()
    os._exit(0)


def _examine(task: dict[str, Any], link: Link, record: instrument.Record) -> Outcome:
    forms: dict[str, Callable[..., Outcome]] = {"check": _check, "asserts": _asserts, "file": _file}
    try:
        return forms[task["form"]](task, link, record)
    except CandidateGone as error:
        return Outcome(_entries(record), ("candidate", str(error)))
    except Unsupported as error:
        return Outcome(_entries(record), ("unsupported", str(error)))
    except SyntaxError as error:
        return Outcome([], ("test", f"the test does not compile: {error}"))
    except Exception as error:  # noqa: BLE001  # the last resort: what the candidate sent has led to it, if it sent anything
        return Outcome(
            _entries(record), ("candidate" if link.calls else "test", f"{type(error).__name__}: {error}"[:300])
        )


def _entries(record: instrument.Record, *, broken: bool = True) -> list[tuple[str, bool | None, str | None]]:
    """Of tests that came to their end, an assertion that never ran stands in a branch not meant for this answer."""
    return [
        (site.text, None if not site.runs else site.failure is None, site.failure)
        for site in record.sites
        if site.runs or broken
    ]


def _namespace(link: Link, record: instrument.Record, names: list[str], *trees: ast.Module) -> dict[str, Any]:
    """Globals for the tests, with the candidate's names bound; asking for their kinds waits for it to load."""
    space = fresh_module("tests").__dict__
    space[instrument.RECORDER] = record
    for name, module in dataflow.modules_meant(names, *trees).items():
        try:
            space[name] = importlib.import_module(module)
        except ImportError as error:
            raise link.unsupported(f"the test uses {module}, which is not installed for tests") from error
    names = [name for name in names if name not in space]
    for name, kind in zip(names, link.kinds(names), strict=True):
        if kind != "missing":
            space[name] = bind(link, name, kind)
    return space


def _check(task: dict[str, Any], link: Link, record: instrument.Record) -> Outcome:
    """HumanEval's form: the source defines `check(candidate)`; helpers complete in the prompt are the trusted ones."""
    prompt = _helpers(task["prompt"], task["entry_point"])
    tree = instrument.rewrite(task["test"], record, soft=True)
    free = [name for name in dataflow.free_names(prompt, tree) if name != task["entry_point"]]
    space = _namespace(link, record, [*free, task["entry_point"]], prompt, tree)
    if task["entry_point"] not in space:
        return Outcome([], ("candidate", f"{task['entry_point']} is not defined by the program"))
    candidate = space[task["entry_point"]]
    if problem := _execute(prompt, space, "test") or _execute_module(tree, space, link):
        return Outcome(_entries(record), problem)
    if not callable(space.get("check")):
        return Outcome([], ("test", "the test defines no check(candidate)"))
    problem = _guard(lambda: _finish(space["check"](candidate)), "candidate")
    reaches = pytest_file.reached(space["check"])
    if problem is not None and reaches:
        problem = ("unsupported", f"the test reaches for {reaches}, which is another process's")
    return Outcome(_entries(record, broken=problem is not None), problem)


def _finish(result: object) -> None:
    """An async test is run to its end."""
    if inspect.iscoroutine(result):
        asyncio = importlib.import_module("asyncio")
        asyncio.run(result)


def _helpers(prompt: str, entry_point: str) -> ast.Module:
    """The imports and finished functions of a prompt, without the function to be written."""
    try:
        body = ast.parse(prompt).body
    except SyntaxError:
        return ast.Module([], [])
    kept = [node for node in body if getattr(node, "name", None) != entry_point and not isinstance(node, ast.Expr)]
    return ast.Module(kept, [])


def _asserts(task: dict[str, Any], link: Link, record: instrument.Record) -> Outcome:
    """MBPP's form: setup code, then separate assert statements, one entry each."""
    setup = ast.parse(task["setup"])
    units: list[tuple[str, ast.Module, int]] = []
    for source in task["tests"]:
        tree = instrument.rewrite(source, record, soft=True)
        units.append((source, tree, len(record.sites)))
    trees = [setup, *(tree for _, tree, _ in units)]
    names = dataflow.free_names(*trees)
    names += [task["entry_point"]] if task["entry_point"] and task["entry_point"] not in names else []
    space = _namespace(link, record, names, *trees)
    if problem := _execute(setup, space, "test"):
        return Outcome([], problem)
    entries: list[tuple[str, bool | None, str | None]] = []
    first = 0
    for source, tree, last in units:
        problem = _execute(tree, space, "candidate")
        sites = record.sites[first:last]
        failure = (problem and problem[1]) or next((site.failure for site in sites if site.failure), None)
        passed = failure is None and any(site.runs for site in sites)
        entries.append((source.strip()[:200], passed, failure if failure or passed else "no assertion ran"))
        first = last
    return Outcome(entries)


def _file(task: dict[str, Any], link: Link, record: instrument.Record) -> Outcome:
    """A pytest or unittest file that imports the candidate from `task["module"]`."""
    tree = instrument.rewrite(task["test"], record, soft=False)
    imported = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == task["module"]
        for alias in node.names
    ]
    imported = [name for name in imported if name != "*"]
    link.classes, link.perhaps_classes = map(frozenset, dataflow.classes_named(tree, imported))
    free = [name for name in dataflow.free_names(tree) if name not in imported]
    space = _namespace(link, record, [*dict.fromkeys(imported), *free], tree)
    sys.modules[task["module"]] = _CandidateModule(task["module"], link)
    pytest_file.install(link.unsupported)
    if problem := _execute_module(tree, space, link):
        lacking = [name for name in imported if name not in space]
        return Outcome([], ("candidate", f"the program does not define {lacking[0]}") if lacking else problem)
    entries: list[tuple[str, bool | None, str | None]] = []
    for test in pytest_file.collect(space):
        entry = _run_test(test, link, record)
        entries += [entry] if entry else []
    return Outcome(entries, None if entries else ("test", "the file holds no test"))


def _run_test(
    test: pytest_file.Test, link: Link, record: instrument.Record
) -> tuple[str, bool | None, str | None] | None:
    """One entry; None for a test that skipped itself. A test without any assertion passes by calling the candidate
    without an error."""
    asserted, ordered = record.executed, link.orders
    link.forgive()
    try:
        problem = _guard(test.call, "candidate")
    except pytest_file.Skipped:
        return None
    except Unsupported:
        problem = None
    if link.lacking is not None:
        return test.name, None, link.lacking
    if problem and test.reaches:
        return test.name, None, f"the test reaches for {test.reaches}, which is another process's: {problem[1]}"
    if problem or record.executed > asserted or (not test.asserts and link.orders > ordered):
        return test.name, problem is None, problem and problem[1]
    return test.name, False, "no assertion ran"


class _CandidateModule(types.ModuleType):
    """`import solution`: names are asked for when they are used, and set over there."""

    def __init__(self, name: str, link: Link) -> None:
        super().__init__(name)
        self.__dict__["_link"] = link

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        link = self.__dict__["_link"]
        (kind,) = link.kinds([name])
        if kind == "missing":
            error = AttributeError(f"the program does not define {name}")
            error.__dict__["from_candidate"] = True
            raise error
        value = bind(link, name, kind)
        if kind != "value":
            self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            self.__dict__.pop(name, None)
            self.__dict__["_link"].ask("bind", name, value)


def _execute(tree: ast.Module, space: dict[str, Any], blame: str) -> tuple[str, str] | None:
    return _guard(lambda: exec(compile(tree, "tests.py", "exec", dont_inherit=True), space), blame)  # noqa: S102  # the task's own tests


def _execute_module(tree: ast.Module, space: dict[str, Any], link: Link) -> tuple[str, str] | None:
    """The body of a test module: once it has called the candidate, what goes wrong may be the candidate's doing."""
    calls = link.calls
    problem = _execute(tree, space, "test")
    return ("candidate", problem[1]) if problem and link.calls > calls else problem


def _guard(action: Callable[[], object], blame: str) -> tuple[str, str] | None:
    """None, or (whose fault, what) when the action raised; what the candidate raised is always the candidate's."""
    try:
        action()
    except Exception as error:  # a test may raise anything; it becomes a recorded failure
        if isinstance(error, pytest_file.Skipped):
            raise
        fault = "candidate" if getattr(error, "from_candidate", False) or isinstance(error, AssertionError) else blame
        return fault, f"{type(error).__name__}: {error}"[:300]
    except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        return "test", f"the test ended the process: {type(error).__name__}"
    return None
