"""PAR: the reward model's own probability that the answer beats a reference, and what it was compared with."""

from __future__ import annotations

from typing import Literal

from guerdon import credit, shape
from guerdon.core.reward import Reward
from guerdon.methods._registry import method

Form = Literal[
    "par", "centred", "tanh", "arctan", "shifted", "log-sigmoid", "zscore", "minmax", "running-clip", "ceiling", "raw"
]


@method(
    "par",
    family="shape",
    name="PAR: Preference As Reward, and its relatives",
    source="Fu et al. 2025, arXiv:2502.18770",
    evidence="code-read",
)
def par(
    score: Reward,
    references: Reward,
    length: Reward | None = None,
    *,
    form: Form = "par",
    slope: float = 1.0,
    budget: float = 300.0,
    rate: float = 0.01,
    ceiling: float = 1.0,
    log_ratio: Reward | None = None,
    kl: float = 0.005,
) -> Reward:
    """``R = (1/M) sum_m sigmoid(slope (r - r_ref^m))``: bounded, steepest at the start, flat where the proxy is
    doubtful.

    ``score``: the reward model's, shape ``(rollouts,)``, less ``rate max(0, length - budget)`` if a length is given.
    ``references``: its scores of answers of the starting policy to the same prompt, same template, on an axis under the
    rollout (10; one is enough). They stay raw. No reference: unknown.

    Forms: ``centred`` mean of ``r - ref``; ``tanh``, ``arctan`` of that difference, then the mean; ``shifted``
    sigmoid of ``r - 3 - ref``; ``log-sigmoid`` of ``r`` less the references' 85th percentile, ``mean + 1.0364 (std +
    1e-5)``, population deviation; ``zscore``, ``minmax``, ``running-clip`` with statistics over all batches so far,
    in the session's state; ``ceiling`` ``min(r, ceiling)``; ``raw``.

    ``log_ratio``, ``log(pi / pi_ref)`` of every token: the result is the reward of each token, ``-kl log_ratio_t``, and
    ``R`` besides at the last one, shape ``(tokens,)``; published ``kl`` 0.005.

    Traps: group normalisation undoes every affine form, but not this one; a strong policy saturates it, so refresh the
    references; running statistics make the reward move.

    >>> import guerdon as gd
    >>> rows = [{"r": 2.0, "refs": [1.0, 3.0]}, {"r": 9.0, "refs": [1.0, 3.0]}]
    >>> gd.method("par", gd.column("r"), gd.column("refs", axis="reference")).score(rows).values.round(3).tolist()
    [0.5, 0.999]
    """
    r = score if length is None else score + shape.length_penalty(length, budget=budget, kind="linear", rate=rate)
    high = references.mean() + (shape.ensemble_spread(references, ddof=0) + 1e-5) * 1.0364
    forms = {
        "par": lambda: shape.sigmoid(r - references, slope).mean(),
        "centred": lambda: (r - references).mean(),
        "tanh": lambda: shape.tanh(r - references).mean(),
        "arctan": lambda: shape.arctan(r - references).mean(),
        "shifted": lambda: shape.sigmoid(r - 3.0 - references).mean(),
        "log-sigmoid": lambda: shape.log_sigmoid(r - high),
        "zscore": lambda: shape.running_zscore(r),
        "minmax": lambda: shape.running_minmax(r),
        "running-clip": lambda: shape.running_clip(r),
        "ceiling": lambda: shape.clip(r, high=ceiling),
        "raw": lambda: r,
    }
    if form not in forms:
        raise ValueError(f"form={form!r}: choose one of {', '.join(forms)}")
    shaped = forms[form]()
    return shaped if log_ratio is None else credit.pay_last(log_ratio * -kl, shaped)
