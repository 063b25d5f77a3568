"""From a spec's tree to a reward expression."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

from guerdon.core.errors import GuerdonError, SpecError
from guerdon.core.interval import Interval
from guerdon.core.reward import Constant, Reward
from guerdon.core.signal import Failure, Resource, Signal
from guerdon.core.transform import Transform
from guerdon.spec import _names
from guerdon.spec._document import Item, nearest, parse
from guerdon.spec._names import CODE, FOLDED, Callee, callee, find, public
from guerdon.spec._values import value

VERSION = 1
TOP = ("guerdon", "about", "data", "range", "nodes", "reward")
MANNER: Mapping[str, Any] = {
    "needs": Resource, "timeout": float | None, "cache": bool | None, "reads": list[str] | None, "batch_size": int,
    "then": float | str, "retries": int, "alarm": float,
}  # fmt: skip
"""Keys of ``manner:``, how a signal is asked; the last three are its failure policy."""


@dataclass(frozen=True)
class Spec:
    """A reward as a spec describes it.

    ``data`` maps fields of a rollout to columns of the data. ``range`` is where the author says the reward lies.
    ``nodes`` holds every named node, used or not; ``unused`` the names nothing refers to. ``places`` maps a node's
    fingerprint to its line and key.
    """

    reward: Reward
    data: Mapping[str, str] = field(default_factory=dict)
    range: Interval | None = None
    about: str = ""
    source: str = "spec"
    text: str = field(default="", repr=False)
    nodes: Mapping[str, Reward] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    places: Mapping[str, tuple[int, str]] = field(default_factory=dict, repr=False)


def load_spec(path_or_text: str | Path, *, allow_code: Sequence[str] = ()) -> Spec:
    """Read a spec from a file, or from its text (a string with a line break or a ``key: value``).

    Nothing in a spec runs code: names resolve to Guerdon's own signals, functions and methods. ``allow_code`` names
    modules of the user's whose signals may be called as ``code.<module>.<name>``; importing them runs them.
    Raises `SpecError` with file, line, key and the nearest right name.

    >>> load_spec("reward: {add: [{column: right}, 0.5]}").reward.score([{"right": 1.0}]).values.tolist()
    [1.5]
    """
    text, source = _text(path_or_text)
    return replace(_Reader(parse(text, source), tuple(allow_code)).spec(), text=text)


def _text(given: str | Path) -> tuple[str, str]:
    if isinstance(given, str) and ("\n" in given or ": " in given):
        return given, "spec"
    try:
        return Path(given).read_text("utf-8"), str(given)
    except UnicodeDecodeError:
        raise SpecError(f"{given}: a spec is UTF-8 text") from None
    except OSError as error:
        raise SpecError(f"{given}: {error.strerror or error}") from None


class _Reader:
    def __init__(self, root: Item, allow_code: tuple[str, ...]) -> None:
        self.root, self.allow_code = root, allow_code
        self.made: dict[str, Reward] = {}
        self.open: list[str] = []
        self.used: set[str] = set()
        self.places: dict[str, tuple[int, str]] = {}

    def spec(self) -> Spec:
        top = self._mapping(self.root, TOP)
        version = top.get("guerdon")
        if version is not None and version.value != VERSION:
            version.fail(f"this Guerdon reads specs of version {VERSION}, not {version.kind}")
        if "reward" not in top:
            self.root.fail("a spec needs the key reward:, the expression to score")
        self.defined: dict[str, Item] = self._named(top.get("nodes"))
        about = value(top["about"], str) if "about" in top else ""
        data, bounds = self._columns(top.get("data")), self._range(top.get("range"))
        for name in self._order(top["reward"]):
            self._node(name, self.defined[name])
        reward = self.operand(top["reward"])
        unused = tuple(n for n in self.defined if n not in self.used)
        nodes = {n: r for n, r in self.made.items() if not n.startswith("_")}
        return Spec(reward, data, bounds, about, self.root.source, "", nodes, unused, self.places)

    def _mapping(self, item: Item, keys: Sequence[str]) -> dict[str, Item]:
        if not isinstance(item.value, dict):
            item.fail(f"expected a mapping with the keys {', '.join(keys)}, not {item.kind}")
        for key, inner in item.value.items():
            if key not in keys:
                inner.fail(f"unknown key {key!r}{nearest(str(key), keys) or '; known are ' + ', '.join(keys)}")
        return item.value

    def _named(self, item: Item | None) -> dict[str, Item]:
        if item is None or item.value is None:
            return {}
        if not isinstance(item.value, dict):
            item.fail(f"expected a mapping from names to expressions, not {item.kind}")
        for name, inner in item.value.items():
            if not isinstance(name, str) or not name.isidentifier():
                inner.fail(f"{name!r} is not a node name: use letters, digits and underscores")
        return item.value

    def _columns(self, item: Item | None) -> dict[str, str]:
        from guerdon.core.rollout import FIELDS

        if item is None or item.value is None:
            return {}
        known = sorted(FIELDS - {"extra"})
        return {k: value(i, str) for k, i in self._mapping(item, known).items()}

    def _range(self, item: Item | None) -> Interval | None:
        if item is None:
            return None
        low, high = value(item, tuple[float, float])
        if not low <= high:
            item.fail(f"a range is [low, high], not [{low:g}, {high:g}]")
        return Interval(low, high)

    # Named nodes. Dependencies are followed without recursion first, so that long chains of names are no problem.

    def _order(self, reward: Item) -> list[str]:
        """Names so that what a node mentions stands before it, where there is no cycle."""
        mentions = {n: sorted({t for t in _texts(i) if t in self.defined}) for n, i in self.defined.items()}
        order: dict[str, None] = {}
        seen: set[str] = set()
        stack = [(n, False) for n in reversed(self.defined)]
        while stack:
            name, done = stack.pop()
            if done:
                order[name] = None
            elif name not in seen:
                seen.add(name)
                stack.append((name, True))
                stack.extend((m, False) for m in mentions[name] if m not in seen)
        return list(order)

    def _node(self, name: str, item: Item) -> Reward:
        if name not in self.made:
            if name in self.open:
                loop = " -> ".join([*self.open[self.open.index(name) :], name])
                item.fail(f"the node refers to itself: {loop}")
            self.open.append(name)
            node = self.operand(item)
            self.open.pop()
            self.made[name] = node if name.startswith("_") else node.named(name)
        return self.made[name]

    # Expressions.

    def operand(self, item: Item) -> Reward:
        """The reward that an item in operand position describes."""
        found = item.value
        if isinstance(found, bool):
            item.fail(f"expected an expression, not {str(found).lower()}; write 1 or 0")
        if isinstance(found, (int, float)):
            return self._constant(item)
        if isinstance(found, str):
            if found not in self.defined:
                hint = nearest(found, self.defined) or f"; a column of the data is written {{column: {found}}}"
                item.fail(f"there is no node {found!r}{hint}")
            self.used.add(found)
            return self._node(found, self.defined[found])
        if not isinstance(found, dict) or len(found) != 1:
            item.fail(f"expected a number, a node's name, or one call such as {{add: [a, b]}}, not {_shape(item)}")
        [(name, arguments)] = found.items()
        node = self._call(self._callee(str(name), arguments), arguments)
        self.places.setdefault(node.fingerprint, (item.line, item.path))
        return node

    def _constant(self, item: Item) -> Constant:
        try:
            number = float(item.value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            item.fail("a constant is a finite number")
        return Constant(number)

    def _callee(self, name: str, item: Item) -> Callee:
        if name == CODE or name.startswith(f"{CODE}."):
            return self._user_code(name, item)
        try:
            found = find(name)
        except SpecError as error:
            item.fail(str(error))
        if found is None:
            known = [n for n in public() if not n.startswith("method.")]
            item.fail(f"nothing is called {name!r}{nearest(name, known) or '; see: guerdon signals list'}")
        return found

    def _user_code(self, name: str, item: Item) -> Callee:
        module, _, attribute = name.removeprefix(CODE).lstrip(".").rpartition(".")
        if not module:
            item.fail(f"{name!r}: write code.<module>.<name>")
        if module not in self.allow_code:
            item.fail(f"the spec calls code of the module {module!r}; if you trust it: --allow-code {module}")
        try:
            found = importlib.import_module(module)
        except Exception as error:  # noqa: BLE001  # the user's module may raise anything while it is imported
            item.fail(f"can't import {module!r}: {type(error).__name__}: {error}")
        target = getattr(found, attribute, None)
        if not _names.builds(target):
            near = nearest(attribute, [n for n, there in vars(found).items() if _names.builds(there)])
            item.fail(f"{module} has no signal, transform or builder of a reward called {attribute!r}{near}")
        return callee(name, target)

    def _call(self, what: Callee, item: Item) -> Reward:
        arguments = self._arguments(what, item)
        manner = arguments.pop("manner", None) if "manner" not in what.parameters else None
        unknown = [n for n in arguments if n not in what.parameters]
        for name in unknown:
            known = [*what.parameters, "manner"]
            hint = nearest(str(name), known) or f"; it has {', '.join(what.parameters) or 'none'}"
            arguments[name].fail(f"{what.name} has no parameter {name!r}{hint}")
        missing = [n for n in what.required if n not in arguments]
        if missing and not isinstance(what.target, Signal):  # a signal may be left incomplete: `check` reports it
            item.fail(f"{what.name} needs {', '.join(missing)}")
        given = {n: self._argument(what, n, i) for n, i in arguments.items()}
        return self._in_manner(self._built(what, given, item), manner)

    def _arguments(self, what: Callee, item: Item) -> dict[str, Item]:
        """Arguments by name: from a mapping, from a list in order, or from the single first one."""
        found = item.value
        if found is None:
            return {}
        if isinstance(found, dict) and not self._is_operand(what, found):
            return dict(found)
        if isinstance(found, list) and what.positional and not what.several(what.positional[0]):
            return self._in_order(what, item)
        if not what.positional:
            item.fail(f"{what.name} takes named parameters, not {item.kind}")
        return {what.positional[0]: item}

    def _is_operand(self, what: Callee, found: dict[Any, Item]) -> bool:
        """Whether a mapping is the one operand itself, ``{not: {verify.format: {...}}}``, and no arguments."""
        if len(found) != 1 or not what.operands:
            return False
        [key] = found
        return key not in what.parameters and key != "manner" and ("." in str(key) or key in _names.OPERATORS)

    def _in_order(self, what: Callee, item: Item) -> dict[str, Item]:
        names, items = what.positional, item.value
        if what.name in FOLDED and len(items) > 2:
            items = [replace(item, value=items[:-1]), items[-1]]
        if len(items) > len(names):
            item.fail(f"{what.name} takes at most {len(names)} in a list ({', '.join(names)}), not {len(items)}")
        return dict(zip(names, items, strict=False))

    def _argument(self, what: Callee, name: str, item: Item) -> Any:
        if name not in what.operands:
            return value(item, what.hints.get(name))
        if what.name in FOLDED and isinstance(item.value, list):
            parts = [self.operand(i) for i in item.value]
            return reduce(lambda a, b: what.target(a, b), parts)
        if item.value is None:
            return None
        if what.several(name) and isinstance(item.value, list):
            return [self.operand(i) for i in item.value]
        if what.several(name) and isinstance(item.value, dict) and not self._is_operand(what, item.value):
            return {k: self.operand(i) for k, i in item.value.items()}
        return self.operand(item)

    def _built(self, what: Callee, given: dict[str, Any], item: Item) -> Reward:
        target = what.target
        rewards = [v for n, v in given.items() if n in what.operands]
        if isinstance(target, Transform) and not any(isinstance(r, Reward) for r in _leaves(rewards)):
            item.fail(f"{what.name} needs at least one expression")
        try:
            by_place = what.name in _names.OPERATORS and set(given) <= set(what.positional)
            node = target(*[given[n] for n in what.positional if n in given]) if by_place else target(**given)
        except (GuerdonError, ValueError, TypeError) as error:
            item.fail(f"{what.name}: {error}")
        if not isinstance(node, Reward):
            item.fail(f"{what.name} does not build a reward but {type(node).__name__}")
        return node

    def _in_manner(self, node: Reward, item: Item | None) -> Reward:
        if item is None:
            return node
        if not isinstance(node, Signal):
            item.fail("manner: says how a signal is asked; this is no signal")
        chosen = {k: value(i, MANNER[k]) for k, i in self._mapping(item, tuple(MANNER)).items()}
        policy = {k: chosen.pop(k) for k in ("then", "retries", "alarm") if k in chosen}
        try:
            if policy:
                chosen["failure"] = replace(node.manner.failure, **policy)
            if isinstance(chosen.get("reads"), list):
                chosen["reads"] = tuple(chosen["reads"])
            return node.using(**chosen)
        except GuerdonError as error:
            item.fail(str(error))


def _texts(item: Item) -> Iterator[str]:
    """Every text value inside an item."""
    stack = [item]
    while stack:
        found = stack.pop().value
        if isinstance(found, str):
            yield found
        elif isinstance(found, (list, dict)):
            stack.extend(found.values() if isinstance(found, dict) else found)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _shape(item: Item) -> str:
    if isinstance(item.value, dict):
        return f"a mapping with {len(item.value)} keys ({', '.join(map(str, list(item.value)[:4]))})"
    return item.kind


__all__ = ["Failure", "Spec", "load_spec"]
