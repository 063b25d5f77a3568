"""What constant expressions come to, without running them: tables that are spelled, encoded or packed."""

from __future__ import annotations

import ast
import base64
import binascii
import copy
import json
import operator
import zlib
from collections.abc import Callable
from typing import Any, Final

from .extract import nodes, parsed

MAX_SIZE: Final = 20_000
_MAX_TOTAL: Final = 10 * MAX_SIZE
_MAX_POWER: Final = 64
_BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Pow: operator.pow,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.BitXor: operator.xor,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def _unpacked(data: bytes) -> bytes:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32).decompress(data, MAX_SIZE)


def _literal(text: str) -> Any:
    tree = parsed(text.strip())
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        raise ValueError("no literal")
    return ast.literal_eval(tree.body[0].value)


def _bytes(part: Any, *coding: str) -> bytes:
    if isinstance(part, int):
        raise ValueError("of any size")
    return bytes(part, *coding)


def _rotated(text: Any, coding: str) -> Any:
    if coding in ("rot13", "rot_13"):
        import codecs

        return codecs.decode(text, "rot13")
    return bytes.fromhex(text.decode() if isinstance(text, bytes) else text) if coding == "hex" else text.decode(coding)


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "chr": chr, "ord": ord, "int": int, "str": str, "float": float, "bytes": _bytes, "tuple": tuple, "list": list,
    "dict": dict, "set": set, "frozenset": frozenset, "sorted": sorted, "len": len, "abs": abs, "repr": repr,
    "zip": lambda *parts: list(zip(*parts, strict=False)), "enumerate": lambda *parts: list(enumerate(*parts)),
    "reversed": lambda part: list(reversed(part)), "eval": _literal,
}  # fmt: skip
_METHODS: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    ("json", "loads"): json.loads, ("ast", "literal_eval"): _literal, ("zlib", "decompress"): _unpacked,
    ("gzip", "decompress"): _unpacked, ("binascii", "unhexlify"): binascii.unhexlify,
    ("binascii", "a2b_base64"): binascii.a2b_base64, ("bytes", "fromhex"): bytes.fromhex,
    ("codecs", "decode"): _rotated,
    **{("base64", name): getattr(base64, name)
       for name in ("b64decode", "urlsafe_b64decode", "b32decode", "b16decode", "a85decode", "b85decode")},
}  # fmt: skip
# Methods of constant text whose result is no longer than what goes in.
_TEXT_METHODS: Final = frozenset(
    ("join", "split", "splitlines", "lower", "upper", "strip", "rstrip", "lstrip", "encode", "decode", "removeprefix",
     "removesuffix", "hex", "partition", "replace", "items", "keys", "values")
)  # fmt: skip
_CODINGS: Final = frozenset(("utf-8", "utf8", "ascii", "latin-1", "latin1", "utf-16", "strict"))
_INGREDIENTS: Final = frozenset(
    (*(name for _, name in _METHODS), "chr", "join", "split", "eval", "zip", "dict", "int", "format", "bytes")
)


def folded(tree: ast.Module) -> ast.Module:
    """The tree with its constant expressions written out, names bound once at the top to a constant among them; the
    same tree where there is nothing of the kind."""
    bound = {
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    if not any(isinstance(node, (ast.Call, ast.BinOp)) and _constant(node, bound) for node in nodes(tree)):
        return tree
    assigned = [node.targets[0] for node in nodes(tree) if isinstance(node, ast.Assign)]
    return _Folder([target.id for target in assigned if isinstance(target, ast.Name)]).module(tree)


def _constant(node: ast.AST, bound: set[str]) -> bool:
    """Whether an expression may be constant, by its looks."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Call):
            if isinstance(one.func, ast.Attribute):
                if one.func.attr not in _INGREDIENTS:
                    return False
                if not isinstance(one.func.value, ast.Name):
                    waiting.append(one.func.value)
            elif getattr(one.func, "id", "") not in _FUNCTIONS:
                return False
            if not one.args and isinstance(one.func, ast.Name):
                return False
            waiting += one.args
        elif isinstance(one, ast.BinOp):
            waiting += (one.left, one.right)
        elif isinstance(one, (ast.List, ast.Tuple)):
            waiting += one.elts
        elif isinstance(one, ast.UnaryOp):
            waiting.append(one.operand)
        elif isinstance(one, ast.Name):
            if one.id not in bound:
                return False
        elif not isinstance(one, (ast.Constant, ast.Dict, ast.Set, ast.JoinedStr, ast.Subscript)):
            return False
    return True


class _Folder:
    """Rewrites without changing what it is given: what holds a rewritten part is copied, the rest is shared."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._known: dict[str, Any] = {}
        self._left = _MAX_TOTAL

    def module(self, tree: ast.Module) -> ast.Module:
        """Statement by statement, so that a name bound once to a constant is known from there on."""
        body = []
        for statement in tree.body:
            new = self._fold(statement)
            if isinstance(new, ast.Assign) and isinstance(new.targets[0], ast.Name):
                name, found = new.targets[0].id, _value(new.value, {})
                if found and self._names.count(name) == 1:
                    self._known[name] = found[0]
            body.append(new)
        return ast.Module(body, [])

    def _fold(self, node: Any) -> Any:
        if isinstance(node, (ast.Call, ast.BinOp, ast.JoinedStr, ast.Subscript)) and self._left > 0:
            found = _value(node, self._known)
            written = _written(found[0]) if found else None
            if written is not None:
                self._left -= _weight(found[0]) if found else 0
                return written
        changed: dict[str, Any] = {}
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                parts = [self._fold(part) if isinstance(part, ast.AST) else part for part in value]
                if any(new is not old for new, old in zip(parts, value, strict=True)):
                    changed[name] = parts
            elif isinstance(value, ast.AST) and (new := self._fold(value)) is not value:
                changed[name] = new
        if not changed:
            return node
        copied = copy.copy(node)
        for name, value in changed.items():
            setattr(copied, name, value)
        return copied


def _written(value: Any) -> ast.expr | None:
    tree = parsed(repr(value))
    return tree.body[0].value if tree and len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr) else None


def _weight(value: Any) -> int:
    """How much is written where the value is: what it holds twice counts twice. Counts no further than it must."""
    total, waiting = 0, [value]
    while waiting and total <= MAX_SIZE:
        one = waiting.pop()
        total += 1
        if isinstance(one, (str, bytes)):
            total += len(one)
        elif isinstance(one, int):
            total += one.bit_length() // 8
        elif isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting += one
    return total


def _value(node: ast.AST, known: dict[str, Any], depth: int = 0) -> tuple[Any] | None:
    """The value of a constant expression in a tuple of its own; None for any other, and for what is too large."""
    if depth > 40:
        return None
    try:
        return (_checked(_evaluate(node, known, depth)),)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, SyntaxError, RecursionError):
        return None
    except (MemoryError, zlib.error):
        return None


def _checked(value: Any) -> Any:
    if _weight(value) > MAX_SIZE:
        raise ValueError("too large")
    return value


def _evaluate(node: ast.AST, known: dict[str, Any], depth: int) -> Any:
    def value(part: ast.AST) -> Any:
        found = _value(part, known, depth + 1)
        if found is None:
            raise ValueError("not constant")
        return found[0]

    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)](map(value, node.elts))
    if isinstance(node, ast.Dict):
        return {value(key): value(item) for key, item in zip(node.keys, node.values, strict=True) if key is not None}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value(node.operand)
    if isinstance(node, ast.BinOp):
        return _computed(node.op, value(node.left), value(node.right))
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(value(part.value) if isinstance(part, ast.FormattedValue) else value(part)) for part in node.values
        )
    if isinstance(node, ast.Subscript):
        where = node.slice
        if isinstance(where, ast.Slice):
            return value(node.value)[slice(*(part and value(part) for part in (where.lower, where.upper, where.step)))]
        return value(node.value)[value(where)]
    if isinstance(node, ast.Call) and not node.keywords:
        return _called(node, value)
    raise ValueError("not constant")


def _computed(operation: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(operation, (ast.Pow, ast.LShift)) and not (isinstance(right, int) and 0 <= right <= _MAX_POWER):
        raise ValueError("too large")
    if isinstance(operation, ast.Mult):
        for part, times in ((left, right), (right, left)):
            if hasattr(part, "__len__") and isinstance(times, int) and _weight(part) * abs(times) > MAX_SIZE:
                raise ValueError("too large")
    if isinstance(operation, ast.Mod) and isinstance(left, (str, bytes)):
        raise ValueError("a width of any size")
    return _BINARY[type(operation)](left, right)


def _called(node: ast.Call, value: Callable[[ast.AST], Any]) -> Any:
    if isinstance(node.func, ast.Name):
        return _FUNCTIONS[node.func.id](*map(value, node.args))
    if not isinstance(node.func, ast.Attribute):
        raise ValueError("not constant")
    owner = node.func.value
    if isinstance(owner, ast.Name) and (owner.id, node.func.attr) in _METHODS:
        return _METHODS[owner.id, node.func.attr](*map(value, node.args))
    holder = value(owner)
    if node.func.attr not in _TEXT_METHODS or type(holder) not in (str, bytes, dict, list):
        raise ValueError("not constant")
    given = [value(part) for part in node.args]
    name = node.func.attr
    if name in ("encode", "decode") and not _CODINGS.issuperset(given):
        raise ValueError("a coding of any kind")
    if name == "join" and sum(len(part) + len(holder) for part in given[0]) > MAX_SIZE:
        raise ValueError("too large")
    if name == "replace" and len(holder) * max(1, len(given[1])) > MAX_SIZE:
        raise ValueError("too large")
    result = getattr(holder, name)(*given)
    return list(result) if isinstance(holder, dict) else result
