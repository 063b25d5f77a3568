"""Statistics over the whole batch: whitening, REINFORCE++ and GDPO.

Where every token of a rollout holds the same number, moments over tokens are moments over rollouts weighted by length:
no token array is made before the result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from guerdon.core.axis import FloatArray
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.credit._kernels import chunks, suffix_discounted
from guerdon.credit._rollouts import settled
from guerdon.credit._spread import at_last, repeated_verdict
from guerdon.shape._normalise import centre, normalised_sum


@transform("credit.batch_whiten", version=1, groups="batch")
def batch_whiten(
    x: Scores, like: Scores | None = None, *, shift: bool = True, ddof: int = 1, eps: float = 1e-8
) -> Scores:
    """Standardise over the whole batch: ``(x - mean) / sqrt(var + eps)``, over all known items.

    With ``like``, a finer axis, every item counts as often as it has items there (rollouts weigh by their tokens), and
    the result is on that axis. ``ddof`` 1 is the sample variance (as in verl, TRL), 0 the population's. ``shift=False``
    keeps the mean. Where all known items are equal the result is exactly 0 (or ``x`` with ``shift=False``); with fewer
    than two it is unknown. A batch is what one ``score`` call gets. Its mean and deviation hold the item itself: a
    bias that falls as the batch grows.

    >>> import guerdon as gd
    >>> rows = [{"r": 1.0}, {"r": 3.0}]
    >>> gd.credit.batch_whiten(gd.column("r"), ddof=0, eps=0.0).score(rows).values.tolist()
    [-1.0, 1.0]
    """
    if like is None:
        return _whitened(x, None, shift, ddof, eps)
    lengths = np.diff(like.axis.offsets_over(x.axis.name))
    return _whitened(x, lengths.astype(np.float64), shift, ddof, eps).broadcast(like.axis)


def _whitened(
    x: Scores, weights: FloatArray | None, shift: bool, ddof: int, eps: float, *, reuse: bool = False
) -> Scores:
    """See `batch_whiten`; writes into the values of ``x`` with ``reuse``."""
    live = x.known if weights is None else x.known & (weights > 0)
    values = x.values if x.reasons is None and weights is None else x.values[live]
    count = float(len(values)) if weights is None else float(weights[live].sum())
    if count < 2:
        reasons = np.full(len(x), "fewer than two known items in the batch", dtype=object)
        if x.reasons is not None:
            reasons[~x.known] = x.reasons[~x.known]
        return Scores.of(x.axis, np.zeros(len(x)), np.zeros(len(x), dtype=np.bool_), reasons)
    if _all_equal(values):
        return Scores(x.axis, np.zeros(len(x)) if shift else x.values, x.known, x.reasons)
    share = None if weights is None else weights[live] / count
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(values.mean() if share is None else values @ share)
    spread = _deviation(values, mean, share) * math.sqrt(count / max(count - ddof, 1.0))
    # A mean or deviation that overflows says nothing of any item: all become unknown, none silently 0.
    factor = 1.0 / math.hypot(spread, math.sqrt(eps)) if math.isfinite(spread + mean) else math.nan
    out = x.values if reuse else np.empty_like(x.values)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in chunks(len(out)):
            np.subtract(x.values[part], mean, out=out[part])
            out[part] *= factor
            if not shift:
                out[part] += mean
    if shift and x.reasons is None and math.isfinite(factor):
        return Scores(x.axis, out, x.known)  # |out| <= sqrt(count), as no square overflowed
    return settled(x.axis, out, x.known, x.reasons)


def _all_equal(values: FloatArray) -> bool:
    """Whether ``max == min``; mostly decided by a few of them."""
    some = values[:: len(values) // 64 + 1]
    return bool((some == values[0]).all() and values.min() == values.max())


@transform("credit.reinforce_plus_plus", version=1, groups="batch", axis=lambda reward, like, **_: like)
def reinforce_plus_plus(
    reward: Scores, like: Scores, *, gamma: float = 1.0, group_baseline: bool = False, eps: float = 1e-8
) -> Scores:
    """REINFORCE++: the reward-to-go at every token, whitened over all tokens of the batch.

    ``G_t = gamma^(T - t) R``, ``A = (G - mean) / sqrt(var + eps)`` with the sample variance. ``reward``: one per
    rollout; ``like``: any score on the token axis (its values play no part). ``group_baseline`` first subtracts the
    group's mean (the variant for several rollouts per prompt). Unknown rollouts take no part. Biased: the mean over
    tokens lets long rollouts weigh more, and it holds the rollout itself.

    Source: Hu 2025, arXiv:2501.03262.

    >>> import guerdon as gd
    >>> rows = [{"r": 1.0, "logprobs": [-1.0]}, {"r": 0.0, "logprobs": [-1.0]}]
    >>> a = gd.credit.reinforce_plus_plus(gd.column("r"), gd.column("logprobs", axis="token"), eps=0.0)
    >>> a.score(rows).scores.values.round(6).tolist()
    [0.707107, -0.707107]
    """
    paid: Scores = centre.function(reward) if group_baseline else reward
    if gamma == 1.0:
        out: Scores = batch_whiten.function(paid, like, eps=eps)
        return out
    returns = suffix_discounted(at_last(paid, like.axis), like.axis.offsets_over("rollout"), gamma, reuse=True)
    known, reasons = repeated_verdict(paid, like.axis)
    return _whitened(Scores(like.axis, returns, known, reasons), None, True, 1, eps, reuse=True)


@transform("credit.gdpo", version=1, groups="batch")
def gdpo(
    parts: Sequence[Scores],
    like: Scores | None = None,
    *,
    weights: Sequence[float] | None = None,
    ddof: int = 1,
    eps: float = 1e-6,
    whiten_eps: float = 1e-8,
) -> Scores:
    """GDPO: each reward standardised in its group, summed with weights, and the sum whitened over the batch.

    ``A = batch_whiten(sum_k w_k (r_k - mean(r_k)) / (std(r_k) + eps))``. ``parts``: rewards per rollout; a part without
    spread in a group gives 0 there. ``like``: a score on the token axis; then moments run over tokens (as in verl)
    and the result is on tokens, else over rollouts (as in TRL). A rollout with an unknown part is unknown. Both
    divisions trade bias.

    Source: GDPO, arXiv:2601.05242, with the conventions released in verl.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "a": 1.0, "b": 0.0}, {"prompt": "p", "a": 0.0, "b": 0.0}]
    >>> gd.credit.gdpo([gd.column("a"), gd.column("b")], whiten_eps=0.0).score(rows).values.round(6).tolist()
    [0.707107, -0.707107]
    """
    total: Scores = normalised_sum.function(parts, weights, ddof=ddof, eps=eps)
    out: Scores = batch_whiten.function(total, like, eps=whiten_eps)
    return out


def _deviation(values: FloatArray, mean: float, share: FloatArray | None, unit: float = 1.0) -> float:
    """Root of the mean square of ``values - mean``, measured in a ``unit`` where squares would over- or underflow."""
    square = largest = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for part in chunks(len(values)):
            off = values[part] - mean
            if unit != 1.0:
                off /= unit
            # Not `off @ off`: threads of a linear algebra library cost more here than they save.
            square += float(np.square(off).sum() if share is None else (np.square(off) * share[part]).sum())
            if not 1e-250 < square < math.inf:
                largest = max(largest, float(np.abs(off).max()))
    if unit != 1.0 or 1e-250 < square < math.inf:
        return unit * math.sqrt(square if share is not None else square / len(values))
    if not math.isfinite(largest):
        return largest
    return _deviation(values, mean, share, largest) if largest > 0.0 else 0.0
