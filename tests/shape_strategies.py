"""Random ragged input for the tests of shaping: ties, zero spread, single members, unknowns, empty groups."""

from __future__ import annotations

import hypothesis
import numpy as np
from hypothesis import strategies as st

from guerdon.core.axis import Axis
from guerdon.core.scores import Scores

TIED = st.sampled_from([-1.0, -0.5, 0.0, 0.1, 0.5, 1.0])
UNIT = st.one_of(st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.floats(0, 1, allow_subnormal=False))
WIDE = st.one_of(TIED, st.floats(-1e6, 1e6, allow_subnormal=False))
ANY = st.one_of(TIED, st.floats(allow_nan=False, allow_infinity=False))


def groups(values=TIED, max_groups=4, max_size=6):
    """A list of groups, each a list of numbers or None for unknown; empty groups included."""
    maybe = st.one_of(st.none(), values, values, values)
    return st.lists(st.lists(maybe, max_size=max_size), max_size=max_groups)


def scores_of(rows: list[list[float | None]]) -> Scores:
    """Those groups as scores on the rollout axis."""
    axis = Axis.under(Axis("prompt", len(rows)), [len(r) for r in rows], "rollout")
    flat = [x for row in rows for x in row]
    return Scores.of(axis, [0.0 if x is None else x for x in flat], [x is not None for x in flat], "not given")


def listed(scores: Scores) -> list[float | None]:
    """Values, None where unknown."""
    return [float(v) if k else None for v, k in zip(scores.values, scores.known, strict=True)]


def same(one: list[float | None], two: list[float | None], tolerance: float = 1e-9) -> bool:
    """Equal unknowns, and values equal up to rounding."""
    if [x is None for x in one] != [x is None for x in two]:
        return False
    a = np.array([x for x in one if x is not None])
    b = np.array([x for x in two if x is not None])
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance))


def given(*args, examples: int = 30, **named):
    """Hypothesis' ``given`` with a bounded number of examples: the room has many properties."""

    def wrap(test):
        return hypothesis.settings(max_examples=examples, deadline=None)(hypothesis.given(*args, **named)(test))

    return wrap
