"""Guerdon: define, compose, measure and serve rewards for reinforcement learning of language models.

A reward is an expression over signals; a score is a value or *unknown with a reason*; axes are named and ragged.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from guerdon.core.axis import Axis
from guerdon.core.errors import (
    AxisError,
    DataError,
    FailureRateWarning,
    GuerdonError,
    MissingExtraError,
    NonFiniteError,
    SignalError,
    SpecError,
    UnknownScoreError,
)
from guerdon.core.frame import Frame
from guerdon.core.interval import Interval
from guerdon.core.operators import maximum, minimum, when
from guerdon.core.reward import Reward, adapters, column, constant
from guerdon.core.rollout import Rollout
from guerdon.core.scored import Explanation, Scored
from guerdon.core.scores import Score, Scores
from guerdon.core.signal import Failure, Group, Signal, Step, signal
from guerdon.core.transform import transform

if TYPE_CHECKING:
    from guerdon import connect, credit, data, judge, methods, shape, testing, verify
    from guerdon.core.session import Session
    from guerdon.methods import method
    from guerdon.spec import load_spec

__version__ = "0.1.0"

_ROOMS = ("backends", "connect", "credit", "data", "judge", "methods", "shape", "spec", "testing", "verify")
_LAZY = {"Session": "guerdon.core.session", "load_spec": "guerdon.spec", "method": "guerdon.methods"}


def __getattr__(name: str) -> Any:
    """Rooms are imported when first used, so that ``import guerdon`` stays fast."""
    if name in _ROOMS:
        return importlib.import_module(f"guerdon.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'guerdon' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS, *_LAZY])


def _for_trl(*args: Any, **settings: Any) -> Any:
    from guerdon.connect.trl import for_trl

    return for_trl(*args, **settings)


adapters["trl"] = _for_trl


__all__ = [
    "Axis", "AxisError", "DataError", "Explanation", "Failure", "FailureRateWarning", "Frame", "Group",
    "GuerdonError", "Interval", "MissingExtraError", "NonFiniteError", "Reward", "Rollout", "Score", "Scored",
    "Scores", "Session", "Signal", "SignalError", "SpecError", "Step", "UnknownScoreError", "column", "connect",
    "constant", "credit", "data", "judge", "load_spec", "maximum", "method", "methods", "minimum", "shape",
    "signal", "testing", "transform", "verify", "when",
]  # fmt: skip
