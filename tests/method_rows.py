"""Rows for the tests of methods, and scores read back from them."""

from __future__ import annotations

import math
from typing import Any

from plain_python import tokened

Row = dict[str, Any]


def values(expr: Any, rows: list[Row], **more: Any) -> list[float | None]:
    """The scores in the order of the rows, None where unknown."""
    return [None if math.isnan(v) else float(v) for v in expr.score(rows, **more).values]


def group(**columns: Any) -> list[Row]:
    """The rollouts of one prompt."""
    return [{"prompt": "p", **dict(zip(columns, row, strict=True))} for row in zip(*columns.values(), strict=True)]


def one(*steps: Any, **more: Any) -> list[Row]:
    """One rollout with these step scores in column ``s``."""
    return [{"prompt": "p", "s": list(steps), **more}]


def with_tokens(step_tokens: list[int], **more: Any) -> Row:
    """A rollout with steps of so many tokens each."""
    return {"prompt": "p", **tokened(step_tokens), **more}
