"""PSPO: process reward as a nonlinear function of accuracy and number of steps."""

from __future__ import annotations

from typing import Literal

import numpy as np

from guerdon.core.axis import PARENTS, FloatArray, IntArray
from guerdon.core.interval import Interval
from guerdon.core.operators import itemwise, reduce_up
from guerdon.core.scores import Scores
from guerdon.core.segments import segment_min, segment_sum
from guerdon.core.transform import transform
from guerdon.methods._registry import method
from guerdon.shape._maps import stable_sigmoid


def ramp(s: FloatArray, t: FloatArray) -> FloatArray:
    """``ff(s, t)`` of the released code, ``s`` in [0, 1], ``t`` > 0 steps: exponential up to 4 steps, then by quality.

    ``s exp(t / 2)`` for ``t <= 4``; beyond, a logistic blend of ``b = s exp(2)`` with ``b exp(0.1 (t - 4))`` if
    ``s > 0.88433``, ``b exp(-0.1 (t - 4))`` if ``0 < s < 0.2``, else ``b exp(0.1 (t - 4) (s - 0.21159) / 0.88433)``.

    >>> ramp(np.array([0.5, 0.9, 0.1]), np.array([6.0, 6.0, 6.0])).round(6).tolist()
    [3.943543, 8.122512, 0.604965]
    """
    late = np.maximum(t - 4.0, 0.0)
    rate = np.where(s > 0.88433, 1.0, np.where((s > 0) & (s < 0.2), -1.0, (s - 0.21159) / 0.88433))
    base = s * np.exp(0.5 * np.minimum(t, 4.0))
    blend = stable_sigmoid(10.0 * late)
    return np.asarray(np.where(t <= 4, base, base * (1.0 - blend) + blend * base * np.exp(0.1 * late * rate)))


def weibull(n: FloatArray, shape: float = 1.5, scale: float = 8.0, height: float = 10.735) -> FloatArray:
    """``C (k / lam) (n / lam)^(k - 1) exp(-(n / lam)^k)``: about 1 near 4 steps, less for fewer and for more."""
    z = n / scale
    return np.asarray(height * shape / scale * z ** (shape - 1.0) * np.exp(-(z**shape)))


@method(
    "pspo-wrs",
    family="shape",
    name="PSPO* / PSPO-WRS: nonlinear process reward with step-count shaping",
    source="Li et al. 2024, arXiv:2411.11681",
    evidence="code-read",
)
@transform(
    "methods.pspo",
    version=1,
    axis=lambda process, **_: PARENTS.get(process, "rollout"),
    range=lambda process, **_: Interval(0.0, float("inf")) if process.unit else Interval(),
)
def pspo(process: Scores, *, form: Literal["released", "weibull"] = "released") -> Scores:
    """``R = m ff(m, n)`` (released code) or ``m h(n)`` (paper), ``m`` the geometric mean of ``n`` step scores in [0,
    1].

    ``ff`` is `ramp`, in which ``m`` enters a second time; ``h`` is `weibull` with k = 1.5, lam = 8, C = 10.735.
    ``process``: probability that each step is right, given the one before, on the step axis; the result is on the
    rollout axis. A chain of one step gets 0; an unknown step, or none, makes it unknown; so does a score outside [0,
    1].

    Traps: the ramp grows with the number of steps, up to ``exp(0.1 n)`` times: normalise before mixing; it jumps at
    m = 0.2 and 0.88433; whoever controls the step splitting controls ``n``.

    >>> import guerdon as gd
    >>> steps = gd.column("p", axis="step")
    >>> gd.method("pspo-wrs", steps).score([{"p": [0.5] * 4}, {"p": [0.9]}]).values.round(6).tolist()
    [1.847264, 0.0]
    """
    if form not in ("released", "weibull"):
        raise ValueError(f'form={form!r}: choose "released" or "weibull"')

    def compute(values: FloatArray, offsets: IntArray, count: IntArray) -> FloatArray:
        n = count.astype(np.float64)
        with np.errstate(divide="ignore"):
            logs = np.where(values > 0, np.log(np.maximum(values, np.finfo(float).tiny)), 0.0)
        m = np.exp(segment_sum(logs, offsets) / np.maximum(n, 1.0))
        m = np.where(segment_min(values, offsets, 1.0) > 0, m, 0.0)
        reward = m * (ramp(m, n) if form == "released" else weibull(np.maximum(n, 1.0)))
        return np.where(n <= 1, 0.0, reward)

    inside = itemwise(lambda p: np.where((p >= 0) & (p <= 1), p, np.nan), process, trouble="not a probability")
    return reduce_up(inside, compute, to=None, missing="unknown")
