"""Verifiers: deterministic evidence about a rollout, as signals.

Each is unknown without a reference answer where it needs one, treats nothing empty as equal to anything, grades only
what the policy wrote (``part="final"`` or ``"text"``; never tool output) and says in its evidence what it extracted and
compared, and by which rule.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guerdon.verify._across import distinct, majority, step_repeats
    from guerdon.verify._choice import choice
    from guerdon.verify._format import format, json
    from guerdon.verify._length import length, length_ratio, length_within, repetition
    from guerdon.verify._number import number
    from guerdon.verify._patterns import keywords, regex
    from guerdon.verify._text import exact, text, token_f1
    from guerdon.verify.answer_signals import math, units
    from guerdon.verify.answers import check_answer, equivalent
    from guerdon.verify.programs import check_code
    from guerdon.verify.programs.signals import (
        code,
        code_compiles,
        code_imports,
        code_level,
        code_lint,
        code_memory,
        code_metric,
        code_nanoseconds,
        code_similarity,
        code_time,
        code_untampered,
    )
    from guerdon.verify.queries import check_sql
    from guerdon.verify.queries.signals import sql, sql_ngrams, sql_runs, sql_schema

_HOMES = {
    "_across": ("distinct", "majority", "step_repeats"),
    "_choice": ("choice",),
    "_format": ("format", "json"),
    "_length": ("length", "length_ratio", "length_within", "repetition"),
    "_number": ("number",),
    "_patterns": ("keywords", "regex"),
    "_text": ("exact", "text", "token_f1"),
    "answer_signals": ("math", "units"),
    "answers": ("check_answer", "equivalent"),
    "programs": ("check_code",),
    "programs.signals": (
        "code", "code_compiles", "code_imports", "code_level", "code_lint", "code_memory", "code_metric",
        "code_nanoseconds", "code_similarity", "code_time", "code_untampered",
    ),
    "queries": ("check_sql",),
    "queries.signals": ("sql", "sql_ngrams", "sql_runs", "sql_schema"),
}  # fmt: skip
_HOME_OF = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Verifiers are imported when first used."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})


__all__ = [
    "check_answer", "check_code", "check_sql", "choice", "code", "code_compiles", "code_imports", "code_level",
    "code_lint", "code_memory", "code_metric", "code_nanoseconds", "code_similarity", "code_time",
    "code_untampered", "distinct", "equivalent", "exact", "format", "json", "keywords", "length", "length_ratio",
    "length_within", "majority", "math", "number", "regex", "repetition", "sql", "sql_ngrams", "sql_runs",
    "sql_schema", "step_repeats", "text", "token_f1", "units",
]  # fmt: skip
