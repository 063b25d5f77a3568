"""Weighted sums and means of named parts, and of the items under each rollout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np

from guerdon.core.axis import PARENTS, BoolArray, FloatArray, IntArray
from guerdon.core.interval import Interval
from guerdon.core.scores import Evidence, Scores, aligned
from guerdon.core.segments import segment_sum
from guerdon.core.transform import transform
from guerdon.shape._finite import measured
from guerdon.shape._groups import cells

Missing = Literal["unknown", "renormalise"] | Mapping[str, float]
Weights = Mapping[str, float] | Sequence[float] | None


def named(parts: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Parts by name; those of a sequence are called "0", "1", ..."""
    out = dict(parts) if isinstance(parts, Mapping) else {str(i): p for i, p in enumerate(parts)}
    if not out:
        raise ValueError("a sum needs at least one part")
    return out


def weights_for(names: Sequence[str], weights: Weights) -> FloatArray:
    """One finite weight per name, shape ``(len(names),)``; all 1 by default."""
    if weights is None:
        return np.ones(len(names))
    if isinstance(weights, Mapping):
        _same_names(names, list(weights), "weight")
        values = [weights[n] for n in names]
    else:
        values = list(weights)
    if len(values) != len(names):
        raise ValueError(f"{len(values)} weights for {len(names)} parts")
    if not all(math.isfinite(w) for w in values):
        raise ValueError(f"weights must be finite numbers, not {values}")
    return np.array(values, dtype=np.float64)


def _same_names(names: Sequence[str], given: Sequence[str], what: str) -> None:
    for name in given:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}"
            raise ValueError(f"a {what} for {name!r}, which is no part{hint}")
    absent = [n for n in names if n not in given]
    if absent and what == "weight":
        raise ValueError(f"no weight for {', '.join(absent)}")


def _parts_filled(names: Sequence[str], parts: Sequence[Scores], missing: Missing) -> tuple[FloatArray, BoolArray]:
    """Values and known mask, shape ``(parts, n)``, with stated values put in for unknown parts."""
    values = np.stack([np.where(p.known, p.values, 0.0) for p in parts])
    known = np.stack([p.known for p in parts])
    if isinstance(missing, str):
        if missing not in ("unknown", "renormalise"):
            raise ValueError(f'missing={missing!r}: choose "unknown", "renormalise" or a value per part')
        return values, known
    _same_names(names, list(missing), "stand-in value")
    for row, name in enumerate(names):
        if name in missing:
            values[row] = np.where(known[row], values[row], float(missing[name]))
            known[row] = True
    return values, known


def _sum_range(
    parts: Any, weights: Weights = None, *, missing: Missing = "unknown", total: float | None = None
) -> Interval:
    by_name: dict[str, Interval] = named(parts)
    names = list(by_name)
    w = weights_for(names, weights)
    share = _scale(w, total)
    if isinstance(missing, Mapping):
        _same_names(names, list(missing), "stand-in value")
        by_name = {n: x.hull(Interval(missing[n], missing[n])) if n in missing else x for n, x in by_name.items()}
    terms = [Interval(a, a) * x for a, x in zip(w * share, by_name.values(), strict=True)]
    whole = terms[0]
    for term in terms[1:]:
        whole = whole + term
    if missing == "renormalise":
        full = float(np.abs(w).sum()) * share
        signs = [x if a >= 0 else -x for a, x in zip(w, by_name.values(), strict=True) if a != 0]
        for one in signs:
            whole = whole.hull(Interval(full, full) * one)
    return whole


def _scale(w: FloatArray, total: float | None) -> float:
    """What the weights are multiplied by so that they add up to ``total``."""
    if total is None:
        return 1.0
    if not w.sum() > 0:
        raise ValueError(f"weights that add up to {w.sum():g} have no mean")
    if (w < 0).any():
        raise ValueError("a mean needs weights of at least 0")
    return float(total / w.sum())


@transform("shape.weighted_sum", version=1, range=_sum_range)
def weighted_sum(
    parts: Mapping[str, Scores] | Sequence[Scores],
    weights: Weights = None,
    *,
    missing: Missing = "unknown",
    total: float | None = None,
) -> Scores:
    """``sum_k w_k x_k`` over named parts (or a sequence of them), on the finest axis among them.

    ``weights`` are by name, in order, or all 1; ``total`` rescales them (none negative) to add up to it. An unknown
    part makes the sum unknown, or, by ``missing``:

    * ``"renormalise"``: the known parts stand for all: their sum times ``sum_k |w_k|`` over the known ``|w_k|``. The
      known share of the weight is evidence. Unknown if no part with weight is known.
    * ``{name: value}``: that value stands in for that part.

    The result's range follows from the parts' ranges.

    >>> import guerdon as gd
    >>> parts = {"right": gd.column("right", range=(0, 1)), "style": gd.column("style", range=(0, 1))}
    >>> rows = [{"right": 1.0, "style": 0.5}, {"right": 1.0}]
    >>> gd.shape.weighted_sum(parts, {"right": 0.8, "style": 0.2}, missing="renormalise").score(rows).values.tolist()
    [0.9, 1.0]
    """
    by_name = named(parts)
    names, scores = list(by_name), aligned(*by_name.values())
    w = weights_for(names, weights)
    w = w * _scale(w, total)
    values, known = _parts_filled(names, scores, missing)
    axis = scores[0].axis
    if missing != "renormalise":
        return measured(axis, _weighted(w, values), np.asarray(known.all(axis=0)), scores)
    size = np.abs(w)
    have = size @ known
    full = known[size > 0].all(axis=0)
    share = np.where(full, 1.0, have / max(size.sum(), np.finfo(float).tiny))
    result = _weighted(w, np.where(known, values, 0.0)) / np.where(have > 0, share, 1.0)
    signed = np.sign(w)[:, None] * values * size.sum()
    heavy = known & (size > 0)[:, None]
    low = np.where(heavy, signed, np.inf).min(axis=0)
    high = np.where(heavy, signed, -np.inf).max(axis=0)
    result = np.where(full | (have <= 0), result, np.clip(result, low, np.maximum(low, high)))
    proof = Evidence(
        lambda i: (
            None
            if known[:, i].all()
            else {
                "known_weight": float(share[i]),
                "missing": [n for n, k in zip(names, known[:, i], strict=True) if not k],
            }
        )
    )
    return measured(axis, result, have > 0, scores, proof)


def _weighted(w: FloatArray, values: FloatArray) -> FloatArray:
    """``w @ values`` added up in order, so that rounding never leaves the declared range."""
    with np.errstate(over="ignore", invalid="ignore"):
        out = w[0] * values[0]
        for weight, row in zip(w[1:], values[1:], strict=True):
            out = out + weight * row
    return np.asarray(out)


def _mean_range(parts: Any, weights: Weights = None, *, missing: Missing = "unknown") -> Interval:
    return _sum_range(parts, weights, missing=missing, total=1.0)


@transform("shape.weighted_mean", version=1, range=_mean_range)
def weighted_mean(
    parts: Mapping[str, Scores] | Sequence[Scores], weights: Weights = None, *, missing: Missing = "unknown"
) -> Scores:
    """``sum_k w_k x_k / sum_k w_k``: `weighted_sum`, its ``missing`` included, with weights that add up to 1.

    Weights must be at least 0, and one above it.

    >>> import guerdon as gd
    >>> parts = [gd.column("a"), gd.column("b")]
    >>> gd.shape.weighted_mean(parts, [2, 1]).score([{"a": 0.8, "b": 0.5}]).values.round(6).tolist()
    [0.7]
    """
    out: Scores = weighted_sum.function(parts, weights, missing=missing, total=1.0)
    return out


@transform(
    "shape.weighted_items",
    version=1,
    axis=lambda x, weights, **_: PARENTS.get(x, "rollout"),
    range=lambda x, weights, **_: x,
)
def weighted_items(
    x: Scores, weights: Scores, *, classes: Scores | None = None, missing: Literal["unknown", "skip"] = "unknown"
) -> Scores:
    """Weighted mean of each rollout's items (criteria, tests, steps): ``sum_j w_j x_j / sum_j w_j``, on the axis above.

    ``weights`` (at least 0; a negative one counts as unknown) lie on the axis of ``x`` or above it. With ``classes``,
    equal values of that score form a class, each class is averaged by itself, and the classes count equally. Unknown
    if any item is, or, with ``missing="skip"``, only if nothing with weight is known; the known share is evidence.

    >>> import guerdon as gd
    >>> x, w = gd.column("met", axis="criterion"), gd.column("weight", axis="criterion")
    >>> gd.shape.weighted_items(x, w).score([{"met": [1, 0], "weight": [3, 1]}]).values.tolist()
    [0.75]
    """
    if missing not in ("unknown", "skip"):
        raise ValueError(f'missing={missing!r}: choose "unknown" or "skip"')
    parts = aligned(*[p for p in (x, weights, classes) if p is not None])
    axis = parts[0].axis
    if axis.parent is None or axis.offsets is None:
        raise ValueError(f"there is no axis above '{axis.name}'")
    usable = np.logical_and.reduce([p.known for p in parts]) & (parts[1].values >= 0)
    w = np.where(usable, parts[1].values, 0.0)
    items = np.where(usable, parts[0].values, 0.0)
    if classes is None:
        values, weighed = averages(items, w, axis.owner, axis.parent.size)
    else:
        cell, count, owner = cells(axis.owner, parts[2].values)
        each, weighed = averages(items, w, cell, count)
        values, weighed = averages(each, weighed.astype(np.float64), owner, axis.parent.size)
    have, size = segment_sum(usable * 1.0, axis.offsets), np.diff(axis.offsets)
    known = weighed & ((missing == "skip") | (have == size))
    reasons = np.full(len(known), None, dtype=object)
    reasons[~known] = f"no {axis.name} with weight is known"
    reasons[(have < size) & ~known] = f"a {axis.name} or its weight is unknown"
    reasons[size == 0] = f"it has no {axis.name}s"
    proof = Evidence(lambda i: {"known_items": int(have[i]), "items": int(size[i])} if have[i] < size[i] else None)
    return measured(axis.parent, values, known, reasons, proof)


@transform(
    "shape.items",
    version=1,
    axis=lambda x, *, to=None: to or PARENTS.get(x, "rollout"),
    range=lambda x, **_: Interval(0.0, math.inf),
)
def items(x: Scores, *, to: str | None = None) -> Scores:
    """How many items ``x`` has under each rollout (or under ``to``), known or not. Always known; 0 where there are
    none.

    >>> import guerdon as gd
    >>> gd.shape.items(gd.column("s", axis="step")).score([{"s": [0.5, None]}, {"s": []}]).values.tolist()
    [2.0, 0.0]
    """
    target = x.axis.ancestor(to) if to else x.axis.parent
    if target is None:
        raise ValueError(f"there is no axis above '{x.axis.name}'")
    return Scores.of(target, np.diff(x.axis.offsets_over(target.name)).astype(np.float64))


def averages(x: FloatArray, w: FloatArray, owner: IntArray, count: int) -> tuple[FloatArray, BoolArray]:
    """Weighted mean of each owner's items, and whether it has any weight; 0 without.

    Never leaves the range of the items. Weights are finite and at least 0; only their proportions matter.
    """
    # By powers of two, which round nothing, so that an owner's weights add up to at most 1 and no sum overflows.
    most = np.zeros(count)
    np.maximum.at(most, owner, w)
    bits = int(np.bincount(owner, minlength=1).max()).bit_length()
    w = np.ldexp(w, -(np.frexp(most)[1] + bits)[owner])
    total = np.bincount(owner, weights=w * x, minlength=count)
    weight = np.bincount(owner, weights=w, minlength=count)
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, owner[w > 0], x[w > 0])
    np.maximum.at(high, owner[w > 0], x[w > 0])
    some = weight > 0
    mean = np.where(some, total, 0.0) / np.where(some, weight, 1.0)
    return np.clip(mean, np.where(some, low, 0.0), np.where(some, high, 0.0)), some
