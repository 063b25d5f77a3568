"""Guerdon: define and compose rewards for reinforcement learning of language models, give credit, see why.

A reward is an expression over signals; a score is a value or *unknown with a reason*; axes are named and ragged.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guerdon import backends, connect, credit, data, judge, methods, report, shape, spec, testing, verify
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
    from guerdon.core.reward import Reward, column, constant
    from guerdon.core.rollout import Rollout
    from guerdon.core.scored import Explanation, Scored
    from guerdon.core.scores import Score, Scores
    from guerdon.core.session import Session
    from guerdon.core.signal import Failure, Group, Signal, Step, signal
    from guerdon.core.transform import transform
    from guerdon.methods import method
    from guerdon.spec import load_spec

__version__ = "0.1.0"

_ROOMS = (
    "backends", "connect", "credit", "data", "judge", "methods", "report", "shape", "spec", "testing", "verify",
)  # fmt: skip
_HOMES = {
    "core.axis": ("Axis",),
    "core.errors": (
        "AxisError", "DataError", "FailureRateWarning", "GuerdonError", "MissingExtraError", "NonFiniteError",
        "SignalError", "SpecError", "UnknownScoreError",
    ),
    "core.frame": ("Frame",),
    "core.interval": ("Interval",),
    "core.operators": ("maximum", "minimum", "when"),
    "core.reward": ("Reward", "column", "constant"),
    "core.rollout": ("Rollout",),
    "core.scored": ("Explanation", "Scored"),
    "core.scores": ("Score", "Scores"),
    "core.session": ("Session",),
    "core.signal": ("Failure", "Group", "Signal", "Step", "signal"),
    "core.transform": ("transform",),
    "methods": ("method",),
    "spec": ("load_spec",),
}  # fmt: skip
_HOME_OF = {name: f"guerdon.{home}" for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Everything is imported when first used, so that ``import guerdon`` and the command's help start at once."""
    if name in _ROOMS:
        return importlib.import_module(f"guerdon.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'guerdon' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    value = globals()[name] = getattr(importlib.import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS, *_HOME_OF})


__all__ = [
    "Axis", "AxisError", "DataError", "Explanation", "Failure", "FailureRateWarning", "Frame", "Group",
    "GuerdonError", "Interval", "MissingExtraError", "NonFiniteError", "Reward", "Rollout", "Score", "Scored",
    "Scores", "Session", "Signal", "SignalError", "SpecError", "Step", "UnknownScoreError", "backends",
    "column", "connect", "constant", "credit", "data", "judge", "load_spec", "maximum", "method", "methods",
    "minimum", "report", "shape", "signal", "spec", "testing", "transform", "verify", "when",
]  # fmt: skip
