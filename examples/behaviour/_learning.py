"""What the examples share: a softmax policy that learns by its advantages, and a plot of what came of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from guerdon import Reward

Array = npt.NDArray[np.float64]
Actions = npt.NDArray[np.int64]
Outcome = Callable[[Actions, np.random.Generator], Mapping[str, Any]]
"""From the actions of a group's rollouts to columns, one entry per rollout."""


def softmax(logits: Array) -> Array:
    """Probabilities along the last axis."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def score_functions(policy: Array, actions: Actions) -> Array:
    """Gradient of the log-probability of each action by the logits, shape ``(n, actions)``."""
    return np.asarray(np.eye(policy.shape[-1])[actions] - policy)


def train_bandit(
    advantage: Reward,
    outcome: Outcome,
    start: Array,
    *,
    updates: int,
    rate: float,
    group: int = 16,
    prompts: int = 1,
    seeds: int = 5,
    arrival: Callable[[Actions], Actions] = lambda actions: actions,
) -> Array:
    """Softmax policies before each update and after the last, shape ``(seeds, updates + 1, actions)``.

    Each update adds ``rate`` times the mean of ``A grad log pi`` over ``prompts`` groups. Seeds 0, 1, ... learn side by
    side, each from its own random numbers. ``arrival`` puts the rollouts of a batch in the order they are listed in.
    """
    streams = [np.random.default_rng(seed) for seed in range(seeds)]
    logits, size = np.tile(start, (seeds, 1)), prompts * group
    policies = [softmax(logits)]
    for _ in range(updates):
        taken, rows = [], []
        for seed, (rng, policy) in enumerate(zip(streams, policies[-1], strict=True)):
            actions = arrival(rng.choice(len(policy), size, p=policy))
            columns = {name: np.asarray(column).tolist() for name, column in outcome(actions, rng).items()}
            for i in range(size):
                rows.append({"prompt": f"{seed}.{i // group}", **{name: c[i] for name, c in columns.items()}})
            taken.append(actions)
        scored = advantage.score(rows).values.reshape(seeds, size, 1)
        gradients = scored * score_functions(policies[-1][:, None], np.stack(taken))
        logits = logits + rate * gradients.mean(axis=1)
        policies.append(softmax(logits))
    return np.stack(policies, axis=1)


def save_curves(
    curves: Mapping[str, npt.ArrayLike],
    x: str,
    y: str,
    title: str,
    default: str,
    *,
    dots: Mapping[str, npt.ArrayLike] | None = None,
) -> Path:
    """Plot curves into the file named on the command line (PNG or SVG by its ending), or ``default``.

    A curve of shape ``(seeds, n)`` is drawn as its mean over the seeds in a band from the least to the greatest.
    ``dots``, shape ``(series, n)``, are drawn without a line.
    """
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator
    except ImportError as missing:
        raise SystemExit("the plot needs matplotlib: pip install 'guerdon[plot]'") from missing
    figure, axes = plt.subplots(figsize=(7.5, 4.2))
    for name, values in curves.items():
        seeds = np.atleast_2d(np.asarray(values, dtype=np.float64))
        (line,) = axes.plot(seeds.mean(axis=0), label=name, linewidth=2)
        if len(seeds) > 1:
            at = np.arange(seeds.shape[1])
            axes.fill_between(at, seeds.min(axis=0), seeds.max(axis=0), color=line.get_color(), alpha=0.2, linewidth=0)
    for name, points in (dots or {}).items():
        axes.plot(np.asarray(points).T, "k.")[0].set_label(name)
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)
    path = Path(sys.argv[1] if len(sys.argv) > 1 else default)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return path
