"""What the columns of an input hold, so that a file of scored rollouts can have columns of the same kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Kind = Literal["bool", "int", "float", "text", "json"]
"""``"json"`` is everything nested, and integers beyond 64 bits."""

_BY_TYPE: dict[type, Kind] = {str: "text", bool: "bool", float: "float"}


class ColumnKinds:
    """Collects the kinds of values in each column; nulls are of no kind.

    >>> kinds = ColumnKinds()
    >>> kinds.add({"a": 1, "b": "x", "c": None})
    >>> kinds.add({"a": 0.5, "b": [1]})
    >>> kinds.joint()
    {'a': 'float', 'b': 'json'}
    """

    def __init__(self) -> None:
        self._found: dict[str, set[Kind]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """See one row."""
        found = self._found
        for name, value in row.items():
            if value is not None:
                kind = _BY_TYPE.get(type(value)) or kind_of(value)
                if name in found:
                    found[name].add(kind)
                else:
                    found[name] = {kind}

    def joint(self) -> dict[str, Kind]:
        """The kind that holds all values of each column: mixed ones are ``"json"``, but whole and other numbers."""
        return {name: _joint(kinds) for name, kinds in self._found.items()}


def kind_of(value: object) -> Kind:
    """What a value that is not null is.

    >>> kind_of(True), kind_of(2**70), kind_of({"a": 1})
    ('bool', 'json', 'json')
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return "int" if -(2**63) <= value < 2**63 else "json"
    return next((kind for type_, kind in _BY_TYPE.items() if isinstance(value, type_)), "json")


def _joint(kinds: set[Kind]) -> Kind:
    if len(kinds) == 1:
        return next(iter(kinds))
    return "float" if kinds == {"int", "float"} else "json"
