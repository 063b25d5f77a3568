"""Published reward methods, one small module each, keyed as in the catalogue. `guerdon methods list` shows them.

A module holds one builder: a short expression over `shape`, `credit` and the signal rooms, with the published defaults,
and a docstring with source, formula, shapes, and what differs from the released code.
"""

from guerdon.methods._registry import Method, all_methods, find
from guerdon.methods._registry import build as method

__all__ = ["Method", "all_methods", "find", "method"]
