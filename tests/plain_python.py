"""Published formulas written out in plain Python, to hold the methods against: rows to draw, statistics, comparison.

A reference takes the rollouts of one prompt and gives one number per rollout, or a list of them for its steps or
tokens; ``None`` is unknown.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, pstdev, stdev
from typing import Any

import pytest

Row = dict[str, Any]
SEEDS = pytest.mark.parametrize("seed", range(12))


class Draw(random.Random):
    """Numbers with many ties and ends of ranges, as rewards have them."""

    def unit(self) -> float:
        return self.choice([0.0, 0.25, 0.5, 1.0, self.random()])

    def bit(self) -> float:
        return float(self.random() < 0.5)

    def log(self) -> float:
        return self.choice([0.0, -0.5, -3.0 * self.random()])

    def many(self, draw: Callable[[], Any], least: int = 0, most: int = 4) -> list[Any]:
        return [draw() for _ in range(self.randint(least, most))]

    def rows(self, make: Callable[[], Row], *, prompts: int = 3, most: int = 5) -> list[Row]:
        """Rollouts of a few prompts, the first of which has one rollout only."""
        sizes = [1, *(self.randint(1, most) for _ in range(prompts - 1))]
        return [{"prompt": f"p{p}", **make()} for p, size in enumerate(sizes) for _ in range(size)]

    def tokened(self, most: int = 3) -> Row:
        """Columns that give a rollout steps of one to three tokens each."""
        return tokened(self.many(lambda: self.randint(1, 3), 1, most))


def tokened(step_tokens: Sequence[int]) -> Row:
    """A rollout with steps of so many tokens each."""
    n = sum(step_tokens)
    return {
        "completion": "x" * n, "steps": ["x"] * len(step_tokens), "step_tokens": list(step_tokens),
        "tokens": list(range(n)), "logprobs": [-1.0] * n,
    }  # fmt: skip


def last_of_steps(row: Row, steps: Sequence[float]) -> list[float]:
    """Each step's number on its last token, 0 on the others."""
    return [x if k == n - 1 else 0.0 for x, n in zip(steps, row["step_tokens"], strict=True) for k in range(n)]


def per_token(row: Row, steps: Sequence[Any]) -> list[Any]:
    """Each step's number on all of its tokens."""
    return [x for x, n in zip(steps, row["step_tokens"], strict=True) for _ in range(n)]


def column(rows: Iterable[Row], name: str) -> list[Any]:
    return [r[name] for r in rows]


def standard(xs: Sequence[float], *, eps: float = 0.0, sample: bool = False) -> list[float | None]:
    """Standard scores of a group; 0 without spread, unknown for a group of one."""
    if len(xs) < 2:
        return [None] * len(xs)
    if min(xs) == max(xs):
        return [0.0] * len(xs)
    spread = stdev(xs) if sample else pstdev(xs)
    return [(x - fmean(xs)) / (spread + eps) for x in xs]


def cut(flat: Sequence[Any], lengths: Iterable[int]) -> list[list[Any]]:
    """A flat list in pieces of these lengths."""
    rest = iter(flat)
    return [list(itertools.islice(rest, n)) for n in lengths]


def flat(nested: Iterable[Any]) -> list[Any]:
    return [x for part in nested for x in (part if isinstance(part, list) else [part])]


def agrees(
    expr: Any, rows: list[Row], reference: Callable[[list[Row]], Iterable[Any]], tolerance: float = 1e-9
) -> None:
    """The scores of ``expr`` are those of ``reference``, prompt by prompt, in order."""
    framed = expr.score(rows).framed
    got = [float(v) if k else None for v, k in zip(framed.values, framed.known, strict=True)]
    groups = [list(g) for _, g in itertools.groupby(rows, key=lambda r: r["prompt"])]
    expected = flat(x for group in groups for x in reference(group))
    assert [x is None for x in got] == [x is None for x in expected]
    known = [x for x in expected if x is not None]
    assert all(math.isfinite(x) for x in known)
    assert [x for x in got if x is not None] == pytest.approx(known, rel=tolerance, abs=tolerance)
