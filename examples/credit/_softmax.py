"""A softmax policy over a few actions, and a plot of curves: what the examples of credit share."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def softmax(logits: Array) -> Array:
    """Probabilities along the last axis."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def score_functions(policy: Array, actions: npt.NDArray[np.int64]) -> Array:
    """Gradient of the log-probability of each action by the logits, shape ``(n, actions)``."""
    return np.asarray(np.eye(len(policy))[actions] - policy)


def save_curves(curves: Mapping[str, Sequence[float]], x: str, y: str, title: str, default: str) -> Path:
    """Plot curves into the file named on the command line (PNG or SVG by its ending), or ``default``."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise SystemExit("the plot needs matplotlib: pip install matplotlib") from missing
    figure, axes = plt.subplots(figsize=(6, 3.5))
    for name, values in curves.items():
        axes.plot(values, label=name)
    axes.set(xlabel=x, ylabel=y, title=title)
    axes.legend()
    figure.tight_layout()
    path = Path(sys.argv[1] if len(sys.argv) > 1 else default)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path
