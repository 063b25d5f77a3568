"""What a test's source says about where its values come from."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterator, Sequence

_BUILT_IN = frozenset(dir(builtins))


def circular_sides(tree: ast.Module) -> Callable[[Sequence[ast.expr]], bool]:
    """Whether the sides of a comparison set a result of the candidate against what the candidate was given, and could
    have changed: `ordered(xs) == sorted(xs)`."""
    given: set[str] = set()
    results: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _foreign(node):
            given.update(name for part in _arguments(node) if (name := root_name(part)))
        elif isinstance(node, ast.Assign) and any(map(_is_foreign_call, ast.walk(node.value))):
            results.update(name for part in node.targets for name in _names(part))

    def result(side: ast.expr) -> bool:
        return any(_is_foreign_call(node) for node in ast.walk(side)) or not results.isdisjoint(_names(side))

    def circular(sides: Sequence[ast.expr]) -> bool:
        about = [result(side) for side in sides]
        return any(about) and any(
            not own and not given.isdisjoint(_names(side)) for side, own in zip(sides, about, strict=True)
        )

    return circular


def _is_foreign_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _foreign(node)


def _foreign(node: ast.Call) -> bool:
    """A call of what is neither built in nor of the standard library nor an assertion."""
    root = root_name(node.func)
    if isinstance(node.func, ast.Name):
        return root not in _BUILT_IN
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return not method.startswith("assert") and root not in sys.stdlib_module_names


def _arguments(node: ast.Call) -> Iterator[ast.expr]:
    for part in (*node.args, *(keyword.value for keyword in node.keywords)):
        yield part.value if isinstance(part, ast.Starred) else part


def root_name(node: ast.expr) -> str:
    """`a` for `a`, `a.b` and `a[0].c`; "" for what is not the path to an object."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def free_names(*trees: ast.Module) -> list[str]:
    """Names the tests use and nowhere define: those must come from the candidate."""
    used: dict[str, None] = {}
    bound: set[str] = set(_BUILT_IN)
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


_ALIASES = {"np": "numpy", "pd": "pandas", "nx": "networkx", "plt": "matplotlib.pyplot"}
_PACKAGES = ("numpy", "pandas", "scipy", "sympy", "torch", "networkx", "sklearn", "matplotlib")


def modules_meant(names: list[str], *trees: ast.Module) -> dict[str, str]:
    """Those free names that can only be meant as modules (`math.isclose(...)` without an import), and which: the tests
    must not take a module, which judges, from the candidate, which is judged."""
    bases = {id(node.value) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    loads = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)]
    elsewhere = {node.id for node in loads if id(node) not in bases}
    return {
        name: _ALIASES.get(name, name)
        for name in names
        if name not in elsewhere and (name in sys.stdlib_module_names or name in _ALIASES or name in _PACKAGES)
    }


def classes_named(tree: ast.Module, names: list[str]) -> tuple[set[str], set[str]]:
    """(names that the test uses as classes, names that are only written like one), of those it takes from the
    candidate."""
    written = {name for name in names if name[:1].isupper() and not name.isupper() and "_" not in name}
    made_of = {
        root_name(target): root_name(node.value.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and root_name(node.value.func) in written
        for target in node.targets
    }
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = root_name(node.value.func if isinstance(node.value, ast.Call) else node.value)
            used.add(made_of.get(name, name))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            used.update(_names(node.args[-1]) if node.args else ())
    return written & used, written - used
