"""Trusted tests rewritten so that every assertion is counted and its outcome kept, without stopping at the first
failure."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .dataflow import circular_sides

RECORDER: Final = "__guerdon_record__"


@dataclass
class Site:
    """One assertion in the source: how often it ran, and what went wrong first.

    `circular`: it compares what the candidate returned with what the candidate was given.
    """

    text: str
    runs: int = 0
    failure: str | None = None
    circular: bool = False


@dataclass
class Record:
    """The recorder the rewritten tests call.

    `lenient`: no assertion stops a test, and only circular ones are kept; for a run in which the candidate can't
    change the test's own values.
    """

    sites: list[Site] = field(default_factory=list)
    executed: int = 0
    lenient: bool = False

    def saw(self, site: int, truth: object) -> bool:
        """An assertion that stands on its own: keep its outcome and go on."""
        held = self._count(site, truth)
        if not held:
            self.sites[site].failure = self.sites[site].failure or "assertion failed"
        return held

    def note(self, site: int, truth: object) -> bool:
        """An assertion whose failure the test itself handles: count it."""
        if self.lenient:
            self.saw(site, truth)
            return True
        return self._count(site, truth)

    def _count(self, site: int, truth: object) -> bool:
        held = bool(truth)
        self.sites[site].runs += 1
        self.executed += 1
        return held

    def broke(self, site: int, error: BaseException) -> None:
        """The expression of an assertion raised instead of giving a truth value."""
        self.sites[site].runs += 1
        self.sites[site].failure = self.sites[site].failure or f"{type(error).__name__}: {error}"[:300]

    def did(self, site: int, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """An assertion method (`self.assertEqual(...)`)."""
        try:
            result = method(*arguments, **named)
        except AssertionError:
            if not self.lenient:
                raise
            self.sites[site].failure = "assertion failed"
            return None
        self.executed += 1
        return result

    def circular_failures(self) -> list[str]:
        """The circular assertions that failed."""
        return [site.text for site in self.sites if site.circular and site.failure == "assertion failed"]


class _Rewriter(ast.NodeTransformer):
    def __init__(self, record: Record, soft: bool, source: str, circular: Callable[[Sequence[ast.expr]], bool]) -> None:
        self._record = record
        self._lines = source.splitlines()
        self._soft = soft
        self._guards = 0
        self._circular = circular

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        self._guards += 1
        yield
        self._guards -= 1

    def visit_Try(self, node: ast.Try) -> ast.AST:
        with self._guarded():
            return self.generic_visit(node)

    def visit_With(self, node: ast.With) -> ast.AST:
        with self._guarded():
            return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        asserts = isinstance(node.func, ast.Attribute) and node.func.attr.startswith("assert") and not self._soft
        index = self._site(node, [] if "assertIs" in ast.unparse(node.func) else node.args) if asserts else None
        self.generic_visit(node)
        if index is None:
            return node
        counted = _call("did", ast.Constant(index), node.func, *node.args)
        counted.keywords = node.keywords
        return ast.copy_location(counted, node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        test = node.test
        values = isinstance(test, ast.Compare) and not any(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops)
        sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) and values else []
        site = self._site(node, sides)
        self.generic_visit(node)
        index = ast.Constant(site)
        if not self._soft or self._guards:
            node.test = _call("note", index, node.test)
            return node
        handler = ast.ExceptHandler(
            ast.Name("Exception", ast.Load()),
            "__guerdon_error__",
            [ast.Expr(_call("broke", index, ast.Name("__guerdon_error__", ast.Load())))],
        )
        return ast.copy_location(ast.Try([ast.Expr(_call("saw", index, node.test))], [handler], [], []), node)

    def _site(self, node: ast.stmt | ast.expr, sides: Sequence[ast.expr]) -> int:
        self._record.sites.append(Site(source_of(node, self._lines), circular=self._circular(sides)))
        return len(self._record.sites) - 1


def _call(method: str, *arguments: ast.expr) -> ast.Call:
    recorder = ast.Name(RECORDER, ast.Load())
    return ast.Call(ast.Attribute(recorder, method, ast.Load()), list(arguments), [])


def source_of(node: ast.stmt | ast.expr, lines: list[str]) -> str:
    """The statement as written, at most 200 characters of it."""
    return "\n".join(lines[node.lineno - 1 : node.end_lineno]).strip()[:200]


def rewrite(source: str, record: Record, *, soft: bool) -> ast.Module:
    """The tests of `source`, reporting to `record` under the name `RECORDER`; soft: go on after a failed assertion."""
    tree = ast.parse(source)
    rewritten: ast.Module = _Rewriter(record, soft, source, circular_sides(tree)).visit(tree)
    return ast.fix_missing_locations(rewritten)
