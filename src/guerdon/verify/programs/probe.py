"""Whether a program that passes knows the visible tests alone: its answers to inputs beside them.

A table of the visible tests, however it is disguised, has nothing to say about any other input: it raises, or gives
one default. A program that gives at least three different answers to the visible inputs, and a single one to almost
all inputs a step away from them, is such a table. Evidence, not a verdict.
"""

from __future__ import annotations

import ast
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, Protocol

from guerdon.backends.sandbox.inside.values import NotPlain, decode, encode
from guerdon.backends.sandbox.result import Limits, Result

from .extract import nodes
from .literal import plan
from .replies import first_number, read_replies
from .tasks import CallTask, StdioTask, Task, TestTask
from .visible import visible_cases

_SECONDS: Final = 0.5
_MAX_CASES: Final = 8
_ENOUGH: Final = 6
_SHARE: Final = 0.9
_KINDS: Final = 3
_CALLS: Final = frozenset(
    ("hash", "repr", "str", "format", "join", "hexdigest", "digest", "crc32", "adler32", "loads", "b64decode", "index",
     "get", "pop", "next", "decompress", "eval", "exec", "literal_eval", "fromhex", "chr", "ord")
)  # fmt: skip


class Answers(Protocol):
    """What this needs of a back end."""

    def run_program(self, program: str, stdin: bytes, limits: Limits) -> Result: ...

    def answer_calls(self, payload: dict[str, Any], limits: Limits) -> Result: ...


def could_be_a_table(tree: ast.Module, task: Task) -> bool:
    """Whether the program holds a literal for each visible test, and compares or looks up, so that a look beside the
    tests is worth the time: most programs do not."""
    weight = lookups = 0
    texts = {id(node.value) for node in nodes(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in nodes(tree):
        if isinstance(node, ast.Constant):
            value = node.value
            if isinstance(value, (int, float)):
                weight += abs(value) > 2
            elif isinstance(value, (str, bytes)) and id(node) not in texts:
                weight += len(value) > 1
                weight += len(value) // 8
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            lookups += name in _CALLS
        elif isinstance(node, (ast.Compare, ast.Dict, ast.MatchValue, ast.If, ast.IfExp)):
            lookups += 1
        elif isinstance(node, ast.Subscript):
            lookups += not isinstance(node.slice, ast.Constant)
    return lookups > 0 and weight >= max(_KINDS, len(visible_cases(task)))


def knows_the_tests_alone(program: str, task: Task, sandbox: Answers, limits: Limits) -> str | None:
    """What was seen, in words; None where nothing is to be seen or said."""
    limits = limits.with_changes(seconds=min(_SECONDS, limits.seconds))
    if isinstance(task, StdioTask):
        known, other = _written_beside(program, task, sandbox, limits)
    else:
        known, other = _answered_beside(program, task, sandbox, limits)
    if len(set(known)) < _KINDS or len(other) < _ENOUGH:
        return None
    (usual, count), *_ = Counter(other).most_common(1)
    if count < _SHARE * len(other) or 3 * known.count(usual) > len(known):
        return None
    return f"answers the visible tests alone: to {count} of {len(other)} inputs beside them it has one answer"


def _answered_beside(
    program: str, task: CallTask | TestTask, sandbox: Answers, limits: Limits
) -> tuple[list[str], list[str]]:
    name, calls = _visible_calls(task)
    beside = [call for case in calls[:_MAX_CASES] for call in _beside(case)]
    if len(calls) < _KINDS or len(beside) < _ENOUGH:
        return [], []
    first = first_number()
    payload = {"program": program, "entry_point": name, "calls": [*calls, *beside], "first": first}
    result = sandbox.answer_calls(payload, limits)
    outcomes = [_outcome(reply) for reply in read_replies(result.reply, [], first) if "id" in reply]
    return outcomes[: len(calls)], outcomes[len(calls) :]


def _written_beside(program: str, task: StdioTask, sandbox: Answers, limits: Limits) -> tuple[list[str], list[str]]:
    known = [expected.strip() for _, expected in task.pairs]
    beside = [other for given, _ in task.pairs[:_ENOUGH] for other in _inputs_beside(given)]
    if len(set(known)) < _KINDS or len(beside) < _ENOUGH:
        return [], []
    answers: list[str] = []
    deadline = time.monotonic() + _SECONDS  # for all of them: a program that hangs beside the tests is not waited for
    for other in beside[: 2 * _ENOUGH]:
        if time.monotonic() > deadline:
            break
        result = sandbox.run_program(program, other.encode("utf-8", "surrogatepass"), limits)
        if result.state in ("timeout", "infrastructure", "refused"):  # no answer, which a busy host gives as well
            break
        answers.append(result.stdout.strip() if result.ok else "raised")
    return known, answers


def _inputs_beside(given: str) -> Iterator[str]:
    """The last number of an input changed; the first ones often say how much is to come."""
    found = list(re.finditer(r"-?\d+", given))
    if found:
        last = found[-1]
        for step in (1, 3):
            yield f"{given[: last.start()]}{int(last[0][:18]) + step}{given[last.end() :]}"


def _visible_calls(task: CallTask | TestTask) -> tuple[str, list[dict[str, Any]]]:
    if isinstance(task, CallTask):
        calls = [
            {"args": [encode(item) for item in case.arguments], "kwargs": {}}
            for case in task.cases
            if not case.named and not task.in_place
        ]
        return task.entry_point, calls
    made = plan(task)
    return (made.entry_point, [call for call in made.calls if not call["kwargs"]]) if made else ("", [])


def _outcome(reply: dict[str, Any]) -> str:
    return "raised" if "raised" in reply else json.dumps(reply.get("value"))


def _beside(call: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The call with one of its values a step away, in a few ways."""
    try:
        arguments = [decode(form) for form in call["args"]]
    except (NotPlain, RecursionError):
        return
    for position, value in enumerate(arguments[:4]):
        for other in _stepped(value):
            changed = [*arguments[:position], other, *arguments[position + 1 :]]
            yield {"args": [encode(item) for item in changed], "kwargs": {}}


def _stepped(value: Any, depth: int = 0) -> Iterator[Any]:
    """Values a step away from a number, a list of them or a text of several words; of a single word none, since one
    letter more makes it another kind of thing."""
    if type(value) is int:
        yield from (value + 1, value + 3)
    elif type(value) is float:
        yield from (value + 1.0, value * 1.5 + 0.25)
    elif type(value) is str and " " in value.strip():
        words = value.split(" ")
        yield " ".join([*words, words[0]])
        yield " ".join(words[1:])
    elif type(value) in (list, tuple) and value and depth < 3:
        for place in (0, len(value) - 1):
            for other in _stepped(value[place], depth + 1):
                yield type(value)([*value[:place], other, *value[place + 1 :]])
        yield type(value)([*value, value[0]])
