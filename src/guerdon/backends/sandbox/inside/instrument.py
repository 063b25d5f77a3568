"""Trusted tests rewritten so that every assertion is counted and its outcome kept, without stopping at the first
failure."""

from __future__ import annotations

import ast
import builtins
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

RECORDER: Final = "__guerdon_record__"


@dataclass
class Site:
    """One assertion in the source: how often it ran, and what went wrong first."""

    text: str
    runs: int = 0
    failure: str | None = None


@dataclass
class Record:
    """The recorder the rewritten tests call."""

    sites: list[Site] = field(default_factory=list)
    executed: int = 0

    def saw(self, site: int, truth: object) -> bool:
        """An assertion that stands on its own: keep its outcome and go on."""
        held = self.note(site, truth)
        if not held:
            self.sites[site].failure = self.sites[site].failure or "assertion failed"
        return held

    def note(self, site: int, truth: object) -> bool:
        """An assertion whose failure the test itself handles: count it."""
        held = bool(truth)
        self.sites[site].runs += 1
        self.executed += 1
        return held

    def broke(self, site: int, error: BaseException) -> None:
        """The expression of an assertion raised instead of giving a truth value."""
        self.sites[site].runs += 1
        self.sites[site].failure = self.sites[site].failure or f"{type(error).__name__}: {error}"[:300]

    def did(self, result: Any) -> Any:
        """An assertion method (`self.assertEqual(...)`) that returned."""
        self.executed += 1
        return result


class _Rewriter(ast.NodeTransformer):
    def __init__(self, record: Record, soft: bool, source: str) -> None:
        self._record = record
        self._lines = source.splitlines()
        self._soft = soft
        self._guards = 0

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
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr.startswith("assert") and not self._soft:
            return ast.copy_location(_call("did", node), node)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        site = len(self._record.sites)
        self._record.sites.append(Site(source_of(node, self._lines)))
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


def _call(method: str, *arguments: ast.expr) -> ast.Call:
    recorder = ast.Name(RECORDER, ast.Load())
    return ast.Call(ast.Attribute(recorder, method, ast.Load()), list(arguments), [])


def source_of(node: ast.stmt, lines: list[str]) -> str:
    """The statement as written, at most 200 characters of it."""
    return "\n".join(lines[node.lineno - 1 : node.end_lineno]).strip()[:200]


def rewrite(source: str, record: Record, *, soft: bool) -> ast.Module:
    """The tests of `source`, reporting to `record` under the name `RECORDER`; soft: go on after a failed assertion."""
    rewritten: ast.Module = _Rewriter(record, soft, source).visit(ast.parse(source))
    return ast.fix_missing_locations(rewritten)


def free_names(*trees: ast.Module) -> list[str]:
    """Names the tests use and nowhere define: those must come from the candidate."""
    used: dict[str, None] = {}
    bound: set[str] = set(dir(builtins))
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    used[node.id] = None
                else:
                    bound.add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                bound.add(node.name)
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                bound.update((item.asname or item.name).partition(".")[0] for item in node.names)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                bound.add(node.name)
    return [name for name in used if name not in bound]
