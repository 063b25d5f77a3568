"""From a reward expression to spec text that reads back as the same expression."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from guerdon.core.errors import GuerdonError, SpecError
from guerdon.core.interval import Interval
from guerdon.core.operators import maximum, minimum, multiply
from guerdon.core.reward import Bounded, Column, Constant, Reward
from guerdon.core.signal import Manner, Signal
from guerdon.core.transform import Apply, Transform
from guerdon.spec._layout import layout
from guerdon.spec._names import CODE, FOLDED, find, names_of
from guerdon.spec._read import MANNER, VERSION, load_spec

DEEPEST = 12
"""Deeper expressions are cut into parts without a name (keys that start with an underscore)."""


def dump_spec(
    reward: Reward, *, data: Mapping[str, str] | None = None, range: tuple[float, float] | Interval | None = None
) -> str:
    """The spec of ``reward`` as YAML. Reading it back gives equal fingerprints, names and manners.

    Shared and deep parts without a name become nodes whose key starts with an underscore, which name nothing.
    Raises `SpecError` for what a spec can't hold: signals without a place to find them (local functions, ``__main__``),
    parameters that are not plain data, two different nodes of one name.

    >>> from guerdon.core.reward import column
    >>> print(dump_spec(column("right", range=(0, 1)).named("right") * 2 - 0.5))
    guerdon: 1
    nodes:
      right: {column: {name: right, range: [0.0, 1.0]}}
    reward: {subtract: [{multiply: [right, 2]}, 0.5]}
    <BLANKLINE>
    """
    writer = _Writer(reward)
    tree: dict[str, Any] = {"guerdon": VERSION}
    if data:
        tree["data"] = dict(data)
    if range is not None:
        bounds = Interval.of(range)
        tree["range"] = [bounds.low, bounds.high]
    top = writer.form(reward)
    if writer.nodes:
        tree["nodes"] = writer.nodes
    tree["reward"] = top
    text = layout(tree)
    _check_round_trip(reward, text, sorted(writer.modules))
    return text + "\n"


def _check_round_trip(reward: Reward, text: str, modules: Sequence[str]) -> None:
    def seen(root: Reward) -> set[tuple[str, str | None, Manner | None]]:
        return {(n.fingerprint, n.name, n.manner if isinstance(n, Signal) else None) for n in root.walk()}

    lost = seen(reward) ^ seen(load_spec(text, allow_code=modules).reward)
    if lost:
        odd = {fingerprint for fingerprint, _, _ in lost}
        node = next((n for n in reward.walk() if n.fingerprint in odd), reward)
        raise SpecError(f"{node.label!r} can't be written as a spec: it would not read back as the same expression")


class _Writer:
    """Forms of nodes, children first, so that depth costs no recursion."""

    def __init__(self, root: Reward) -> None:
        self.nodes: dict[str, Any] = {}
        self.modules: set[str] = set()
        self._forms: dict[tuple[str, str | None], tuple[Any, int]] = {}
        order = list(root.walk())
        uses = Counter((c.fingerprint, c.name) for n in order for c in n.children)
        for node in order:
            self._add(node, uses[node.fingerprint, node.name] > 1)

    def form(self, node: Reward) -> Any:
        """What stands for a node in an expression: its name, a number, or a call."""
        return self._forms[node.fingerprint, node.name][0]

    def _add(self, node: Reward, shared: bool) -> None:
        form = self._call(node)
        depth = 1 + max((self._forms[c.fingerprint, c.name][1] for c in node.children), default=0)
        if node.name is not None:
            if node.name in self.nodes:
                raise SpecError(f"two different nodes are called {node.name!r}")
            if node.name.startswith("_"):
                raise SpecError(f"the node name {node.name!r} starts with an underscore, which in a spec names nothing")
            self.nodes[node.name] = form
            form, depth = node.name, 0
        elif node.children and (shared or depth > DEEPEST):
            name = f"_{len(self.nodes) + 1}"
            self.nodes[name] = form
            form, depth = name, 0
        self._forms[node.fingerprint, node.name] = (form, depth)

    def _call(self, node: Reward) -> Any:
        match node:
            case Constant():
                whole = node.value.is_integer() and abs(node.value) < 2**53 and str(node.value) != "-0.0"
                return int(node.value) if whole else node.value
            case Column():
                return {"column": _column(node)}
            case Bounded():
                return {"within": {"x": self.form(node.children[0]), "range": [node.bounds.low, node.bounds.high]}}
            case Signal():
                return self._signal(node)
            case Apply():
                return self._apply(node)
        raise SpecError(f"{type(node).__name__} is not a kind of node that a spec can hold")

    def _signal(self, node: Signal) -> Any:
        name, base = self._found(node)
        assert isinstance(base, Signal)
        params = {
            k: plain(v, f"{node.label}: {k}") for k, v in node.params.items() if not _same(v, base.params.get(k, _NO))
        }
        manner = _manner(node.manner, base.manner)
        return {name: {**params, **({"manner": manner} if manner else {})}}

    def _found(self, node: Signal | Apply) -> tuple[str, Signal | Transform]:
        """Under which name a spec finds the node's signal or transform."""
        target = node if isinstance(node, Signal) else node.transform
        for name in names_of(target):
            found: Any = None
            if name.startswith(f"{CODE}."):
                module, _, attribute = name.removeprefix(f"{CODE}.").rpartition(".")
                found = _attribute(module, attribute)
                self.modules.add(module)
            else:
                what = find(name)
                found = what.target if what else None
            if isinstance(found, (Signal, Transform)) and found.function is target.function:
                return name, found
        raise SpecError(
            f"{node.label!r} can't be written as a spec: its function is not found by name in a module "
            "(a local function, one of __main__, or a changed signal)"
        )

    def _apply(self, node: Apply) -> Any:
        name = _chosen(node) or self._found(node)[0]
        arguments = node.bound.arguments
        parts = iter([self.form(c) for c in node.children])
        operands = {n: _refilled(arguments[n], parts) for n in node.transform.operands if n in arguments}
        params = {n: plain(v, f"{node.label}: {n}") for n, v in node.params.items()}
        if not params and name in _PLACED and None not in operands.values():
            return {name: _flat(name, list(operands.values()))}
        given = {n: v for n, v in operands.items() if v is not None}
        if not params and len(given) == 1 and self._alone(name, given):
            return {name: next(iter(given.values()))}
        return {name: {**given, **params}}

    def _alone(self, name: str, given: dict[str, Any]) -> bool:
        """Whether the only operand can stand without its parameter's name."""
        what, [(first, form)] = find(name), given.items()
        if what is None or what.positional[:1] != (first,) or isinstance(form, list) or what.several(first):
            return False
        return not isinstance(form, dict) or not (set(form) & {*what.parameters, "manner"})


_NO = object()
_CHOICES = {"multiply": ("scale", "product"), "minimum": ("minimum",), "maximum": ("maximum",)}
_PLACED = (
    "minimum",
    "maximum",
    "add",
    "subtract",
    "scale",
    "joint",
    "multiply",
    "divide",
    "less",
    "less_equal",
    "equal",
    "and",
    "or",
)


def _chosen(node: Apply) -> str | None:
    """The operator that picks this kind of node by its operands' ranges, if one does."""
    for name, choose in {"multiply": multiply, "minimum": minimum, "maximum": maximum}.items():
        if node.transform.traits.key in _CHOICES[name]:
            rebuilt = choose(*node.children)
            if isinstance(rebuilt, Apply) and rebuilt.transform is node.transform:
                return name
    return None


def _flat(name: str, operands: list[Any]) -> list[Any]:
    first = operands[0]
    if name in FOLDED and isinstance(first, dict) and list(first) == [name] and isinstance(first[name], list):
        return [*first[name], *operands[1:]]
    return operands


def _refilled(argument: Any, parts: Any) -> Any:
    if isinstance(argument, Mapping):
        return {k: _refilled(v, parts) for k, v in argument.items()}
    if isinstance(argument, (list, tuple)):
        return [_refilled(v, parts) for v in argument]
    return None if argument is None else next(parts)


def _column(node: Column) -> Any:
    more: dict[str, Any] = {} if node.axis == "rollout" else {"axis": node.axis}
    if node.range != Interval():
        more["range"] = [node.range.low, node.range.high]
    return {"name": node.source, **more} if more else node.source


def _manner(mine: Manner, base: Manner) -> dict[str, Any]:
    flat = [
        {
            **{k: getattr(m, k) for k in MANNER if hasattr(m, k)},
            **{k: getattr(m.failure, k) for k in ("then", "retries", "alarm")},
        }
        for m in (mine, base)
    ]
    changed = {k: plain(v, f"manner {k}") for k, v in flat[0].items() if not _same(v, flat[1][k])}
    if "timeout" in changed and base.needs == "cpu" and changed.get("needs") == "process":
        del changed["needs"]
    return changed


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


def _attribute(module: str, attribute: str) -> Any:
    import importlib

    try:
        return getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return None


def plain(value: Any, where: str) -> Any:
    """``value`` as YAML can hold it; an error that says where it stands if it can't."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value if type(value) in (bool, int, float, str, type(None)) else plain(_basic(value), where)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), where) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {plain(k, where): plain(v, where) for k, v in value.items()}
    if isinstance(value, AbstractSet):
        return sorted((plain(v, where) for v in value), key=repr)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain(v, where) for v in value]
    raise GuerdonError(f"{where}: {type(value).__name__} can't be written in a spec; it holds plain data only")


def _basic(value: Any) -> Any:
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value
