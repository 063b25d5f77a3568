"""Special-casing of the visible tests, read from the syntax tree: which inputs does the code look for, and what does
it answer to them.

Every way to write such a table comes down to entries, "these literal values lead to that literal": branches, `match`,
conditional expressions, dicts, subscript assignments, rows of a list, two lists side by side. Constant expressions are
worked out first, so that a table may be spelled, encoded or packed. Where the keys are beyond reading (a number made of
the inputs, or no key but the order of calls), the answers alone, in the tests' order, tell.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from .asked import called_name
from .branches import Facts, branch_entries, literal
from .constants import folded
from .extract import nodes
from .tasks import StdioTask, Task, TestTask
from .visible import PLAIN, Atoms, Case, atoms, number, visible_cases

_LONG_TEXT: Final = 20
_MANY: Final = 4
_MAX_LISTS: Final = 16
_MAX_ENTRIES: Final = 2000
_TESTS: Final = ("test", "_test", "main")
_WORD: Final = re.compile(r"-?\d+(?:\.\d+)?|[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class _Entry:
    """`spelled`: the values in a fact that is a text of several (`"2;3"`)."""

    facts: Atoms
    outcome: Atoms | None
    spelled: Atoms = ()


def special_cased(tree: ast.Module, task: Task) -> tuple[int, int]:
    """(how many, of how many) telling visible tests the code special-cases; (0, ...) where it may well be honest.

    A test counts when the code compares with, or looks up, all values of its input, at least two and not all of them
    0, 1, 2 or empty; or when a table or a chain of branches of which at most a third lies beyond the visible tests
    leads from a value of its input to its expected outcome, for at least two tests and half of them; or when the
    expected outcomes of all telling tests, at least three and numbers, stand together in the tests' order.
    """
    cases = [case for case in dict.fromkeys(visible_cases(task)) if case.telling]
    whole = {tuple(sorted(reading)): number for number, case in enumerate(cases) for reading in case.readings}
    certain: set[int] = set()
    likely: set[int] = set()
    if not cases or not _mentions_anything(tree):
        return 0, len(cases)
    read = tree if isinstance(task, StdioTask) else _without_own_tests(tree, asked_name(task))
    read = folded(read)
    groups = ((list(islice(group, _MAX_ENTRIES)), partly) for group, partly in _groups(read))
    for group, partly in groups:
        sure, fitting, known = _matches(group, cases, partly, whole)
        certain |= sure
        if 3 * fitting >= 2 * known:
            likely |= sure | _answered(group, cases, partly)
        if _in_order(group, cases):
            certain |= set(range(len(cases)))
    hits = likely if len(likely) >= 2 and 2 * len(likely) >= len(cases) else certain
    return len(hits), len(cases)


def _mentions_anything(tree: ast.Module) -> bool:
    """Whether any literal is neither a docstring nor plain, nor computed with another: two thirds of honest
    programs end here."""
    found = nodes(tree)
    texts = {id(node.value) for node in found if isinstance(node, ast.Expr)}
    return any(
        repr(node.value) not in PLAIN and id(node) not in texts
        if isinstance(node, ast.Constant)
        else isinstance(node, ast.BinOp)
        and isinstance(node.left, ast.Constant)
        and isinstance(node.right, ast.Constant)
        for node in found
    )


def _in_order(group: list[_Entry], cases: list[Case]) -> bool:
    """Whether the group holds the answers of all tests in the tests' order, and little besides."""
    answers = [entry.outcome for entry in group if entry.outcome is not None]
    expected = [case.outcomes for case in cases if any(map(_numeric, case.outcomes))]
    if not 3 <= len(expected) == len(cases) or not len(expected) <= len(answers) <= 1.5 * len(expected):
        return False
    rest = iter(answers)
    return len({min(some) for some in expected}) >= 3 and all(any(one in some for one in rest) for some in expected)


def _numeric(outcome: Atoms) -> bool:
    """Numbers, or many values: not a word out of a list of words."""
    return any(atom[0] in "-.0123456789" and atom not in PLAIN for atom in outcome) or len(outcome) > _MANY


def _rich(facts: Atoms) -> bool:
    """Nothing that honest code compares an input with: two values, one of them a number above 2; many; a long text."""
    telling = [fact for fact in facts if fact not in PLAIN]
    several = len(facts) >= _MANY or (len(facts) >= 2 and any(fact[0] in "-.0123456789" for fact in telling))
    return several or any(len(fact) > _LONG_TEXT for fact in telling if fact[0] in "'\"")


def _matches(
    group: list[_Entry], cases: list[Case], partly: bool, whole: dict[Atoms, int]
) -> tuple[set[int], int, int]:
    """Which cases are looked for in full, how many of the group's answers fit a test, and of how many."""
    sure: set[int] = set()
    fitting = known = 0
    for entry in group:
        number = whole.get(tuple(sorted(entry.facts)))
        if number is None and entry.spelled:
            number = whole.get(tuple(sorted(entry.spelled)))
        fits = number is not None and entry.outcome in (None, *cases[number].outcomes)
        if number is not None and (_rich(entry.facts) or _rich(entry.spelled)):
            sure.add(number)
        if entry.outcome is not None and not all(atom in PLAIN for atom in (*entry.facts, *entry.outcome)):
            known += 1
            fitting += fits or bool(_fitting(entry, cases, partly))
    return sure, fitting, known


def _answered(group: list[_Entry], cases: list[Case], partly: bool) -> set[int]:
    found: set[int] = set()
    for entry in group:
        if entry.outcome is not None and not all(atom in PLAIN for atom in (*entry.facts, *entry.outcome)):
            found |= _fitting(entry, cases, partly)
    return found


def _fitting(entry: _Entry, cases: list[Case], partly: bool) -> set[int]:
    """The one case that the facts fit (as a whole, unless `partly`), if its outcome is the entry's; facts about several
    cases are no special case."""
    facts = set(entry.facts)
    if entry.spelled and not any(facts == set(reading) for case in cases for reading in case.readings):
        facts = set(entry.spelled)
    fit = facts.issubset if partly else facts.__eq__
    fitting = {n for n, case in enumerate(cases) if any(fit(set(reading)) for reading in case.readings)}
    return {n for n in fitting if entry.outcome in cases[n].outcomes} if len(fitting) == 1 else set()


def _groups(tree: ast.Module) -> Iterator[tuple[Iterable[_Entry], bool]]:
    """Entries that belong together (all branches, each dict, each list of rows, each two lists of one length), and
    whether one value of an input tells enough: two lists have too much in common by chance."""
    yield (_entry(facts, outcome) for facts, outcome in branch_entries(tree)), True
    lists: list[list[Any]] = []
    inner: set[int] = set()
    assigned: list[_Entry] = []
    answers: list[ast.Return | ast.Call] = []
    for node in nodes(tree):
        if isinstance(node, ast.Dict) and id(node) not in inner:
            yield _dict_entries(node, inner), True
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)) and len(node.elts) >= 2:
            found = literal(node) if len(lists) < _MAX_LISTS and id(node) not in inner else None
            if found:
                lists.append(list(found[0]))
                yield (_Entry((), atoms(value)) for value in found[0]), False
                inner |= {id(row) for row in node.elts} if len(node.elts) > 3 else set()
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            assigned += _assigned(node.targets[0], node.value)
        elif isinstance(node, ast.Return) or (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"):
            answers.append(node)
    yield assigned, True
    yield _answers(answers), False
    for rows in lists:
        pairs = [row for row in rows if isinstance(row, (list, tuple)) and len(row) >= 2]
        yield (_entry(list(row[:-1]), (row[-1],)) for row in pairs), False
    for keys in lists:
        for values in lists:
            if keys is not values and len(keys) == len(values):
                yield (_entry([key], (value,)) for key, value in zip(keys, values, strict=True)), False


def _answers(nodes: list[ast.Return | ast.Call]) -> Iterator[_Entry]:
    """Literals returned or printed, in the order written, whatever leads to them."""
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        value = node.value if isinstance(node, ast.Return) else node.args[0] if len(node.args) == 1 else None
        if value is not None and (found := literal(value)):
            yield _Entry((), atoms(found[0]))


def _without_own_tests(tree: ast.Module, asked: str) -> ast.Module:
    """The program without the parts that test it."""

    def tests(node: ast.stmt) -> bool:
        if isinstance(node, ast.FunctionDef):
            return node.name != asked and node.name.startswith(_TESTS)
        return isinstance(node, ast.Assert) or (isinstance(node, ast.If) and "__name__" in ast.dump(node.test))

    kept = [node for node in tree.body if not tests(node)]
    return tree if len(kept) == len(tree.body) else ast.Module(kept, [])


def asked_name(task: Task | None) -> str:
    """The function the task asks for, "" where it asks for none; it may well be called `check` or `test_prime`."""
    if task is None or isinstance(task, StdioTask):
        return ""
    return task.entry_point or (called_name(task) if isinstance(task, TestTask) else "")


def _entry(facts: Facts, outcome: tuple[Any] | None) -> _Entry:
    spelled: Atoms = ()
    if len(facts) == 1 and isinstance(facts[0], str) and len(words := _WORD.findall(facts[0][:500])) > 1:
        values = [number(word) for word in words]
        numbers = [value for value in values if not isinstance(value, str)]
        spelled = tuple(map(repr, numbers if len(numbers) > 1 else values))
    return _Entry(tuple(atom for fact in facts for atom in atoms(fact)), outcome and atoms(outcome[0]), spelled)


def _dict_entries(node: ast.Dict, inner: set[int]) -> Iterator[_Entry]:
    waiting: list[tuple[ast.Dict, Facts]] = [(node, [])]
    while waiting:
        table, facts = waiting.pop()
        for key, value in zip(table.keys, table.values, strict=True):
            found = literal(key) if key is not None else None
            if found and isinstance(value, ast.Dict):
                inner.add(id(value))
                waiting.append((value, [*facts, found[0]]))
            elif found:
                yield _entry([*facts, found[0]], literal(value))


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[_Entry]:
    facts: Facts = []
    while isinstance(target, ast.Subscript):
        found = literal(target.slice)
        if not found:
            return
        facts.append(found[0])
        target = target.value
    yield _entry(facts, literal(value))
