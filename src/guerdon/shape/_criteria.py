"""Criteria compared over the rollouts of a prompt: which ones tell rollouts apart, and which go with a verdict."""

from __future__ import annotations

import numpy as np

from guerdon.core.axis import FloatArray
from guerdon.core.interval import UNIT, Interval
from guerdon.core.scores import Scores, aligned
from guerdon.core.transform import transform
from guerdon.shape._finite import measured
from guerdon.shape._groups import Groups, labels


@transform("shape.contrasting", version=1, groups=True, range=lambda x, **_: UNIT)
def contrasting(x: Scores, *, top: int | None = None) -> Scores:
    """1 for the criteria of a prompt on which its rollouts differ most, else 0; same shape as ``x``.

    A criterion (an equal label over the prompt's rollouts) with no spread over its known verdicts is out; of the others
    the ``top`` with the largest population deviation stay (default: all). Ties go to the lower label: put the criteria
    that should win first. Always known.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "met": m} for m in ([1, 1, 1], [1, 0, 1], [1, 1, 1], [1, 0, 0])]
    >>> gd.shape.contrasting(gd.column("met", axis="criterion"), top=1).score(rows).scores.values[:3].tolist()
    [0.0, 1.0, 0.0]
    """
    if top is not None and top < 1:
        raise ValueError(f"top={top} keeps no criterion")
    cells = Groups.of(x, across="label")
    spread = np.where(cells.members > 0, cells.std(), 0.0)
    prompt, label = np.zeros(cells.count, dtype=np.int64), np.zeros(cells.count, dtype=np.int64)
    prompt[cells.owner], label[cells.owner] = x.axis.owner_in("prompt"), labels(x.axis)
    order = np.lexsort((label, -_to_12_digits(spread), prompt))
    place = np.empty(cells.count, dtype=np.int64)
    place[order] = np.arange(cells.count)
    first = np.full(x.axis.ancestor("prompt").size, cells.count, dtype=np.int64)
    np.minimum.at(first, prompt, place)
    keep = (spread > 0.0) & (place - first[prompt] < (cells.count if top is None else top))
    return Scores.of(x.axis, cells.at(keep))


@transform("shape.label_correlation", version=1, groups=True, range=lambda x, truth: Interval(-1.0, 1.0))
def label_correlation(x: Scores, truth: Scores) -> Scores:
    """Pearson's correlation of each criterion with a verdict over the rollouts of the prompt; same shape as ``x``.

    ``x`` lies on a criterion axis, ``truth`` on it or above it (one verdict per rollout). Over the rollouts in which
    both are known. Unknown where there are fewer than two of them, or either side is constant.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "met": [m], "ok": ok} for m, ok in ((1, 1), (1, 1), (0, 0), (0, 1))]
    >>> with_ok = gd.shape.label_correlation(gd.column("met", axis="criterion"), gd.column("ok"))
    >>> with_ok.score(rows).scores.values.round(6).tolist()
    [0.57735, 0.57735, 0.57735, 0.57735]
    """
    one, two = aligned(x, truth)
    both = Scores.of(one.axis, one.values, one.known & two.known, (one, two))
    other = Scores.of(one.axis, two.values, both.known, (one, two))
    a, b = Groups.of(both, across="label"), Groups.of(other, across="label")
    usable = (a.members >= 2) & ~a.flat & ~b.flat
    product = np.where(a.known, a.standardised(), 0.0) * np.where(b.known, b.standardised(), 0.0)
    total = np.bincount(a.owner, weights=product, minlength=a.count)
    value = np.clip(total / np.maximum(a.members, 1), -1.0, 1.0)
    return measured(one.axis, a.at(value), a.at(usable).astype(bool), "one side is constant over the group")


def _to_12_digits(x: FloatArray) -> FloatArray:
    """Rounded to 12 significant digits, so that what differs by rounding alone is equal."""
    part, exponent = np.frexp(x)
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(part.round(12), exponent))
