"""What the page says, as plain numbers: distributions, groups, reasons, agreement with a label, kinds of evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from guerdon.core.errors import DataError
from guerdon.core.scores import NOT_ASKED
from guerdon.report.scored_file import ScoredFile, decoded

FEW = 12
"""At most so many different values are shown one by one."""
BINS = 24

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Distribution:
    """How a column of scores lies: bars (label, low, high, count) and the usual summary numbers."""

    name: str
    count: int
    known: int
    not_asked: int
    bars: list[tuple[str, int]]
    each: bool
    """One bar per value, not per range of values."""
    mean: float | None = None
    quantiles: tuple[float, ...] = ()
    """Least, tenth, median, ninetieth, greatest."""


@dataclass(frozen=True)
class Kind:
    """Rollouts whose evidence is of one kind: what is common to them, how many, how many pass, and an example."""

    what: dict[str, Any]
    count: int
    passed: int
    example: int
    evidence: Any


@dataclass
class Verdicts:
    """For every rollout: whether the reward is known, whether it passes, and the label (NaN where there is none)."""

    reward: Floats
    passed: Bools
    known: Bools
    label: Floats | None
    threshold: float

    @property
    def disagree(self) -> Bools:
        """Rollouts whose known reward says another thing than the label."""
        if self.label is None:
            return np.zeros(len(self.reward), dtype=np.bool_)
        told: Bools = self.known & ~np.isnan(self.label) & (self.passed != (self.label == 1.0))
        return told


@dataclass(frozen=True)
class Facts:
    """Everything the page shows besides single rollouts."""

    verdicts: Verdicts
    distributions: list[Distribution]
    groups: dict[str, int]
    group_sizes: tuple[int, float, int]
    reasons: list[tuple[str, str, int]]
    confusion: dict[str, int] = field(default_factory=dict)
    splits: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    kinds: dict[str, list[Kind]] = field(default_factory=dict)


def facts_of(
    scored: ScoredFile, label: str | None = None, by: Sequence[str] = (), threshold: float | None = None
) -> Facts:
    """The facts of a scored file. A reward of at least ``threshold`` (default 0.5) passes."""
    limit = 0.5 if threshold is None else threshold
    reward = scored.numbers("reward")
    known = ~np.isnan(reward)
    passed = known & (np.where(known, reward, 0.0) >= limit)
    labels = None if label is None else np.array([truth(v, scored, label) for v in scored.column(label)])
    verdicts = Verdicts(reward, passed, known, labels, limit)
    names = ["reward", *scored.nodes]
    groups, sizes = _groups(scored.column("group"), verdicts)
    return Facts(
        verdicts,
        [_distribution(n, scored.numbers(n), scored.column(_reason(n))) for n in names],
        groups, sizes,
        [(n, reason, count) for n in names for reason, count in Counter(
            r for r in scored.column(_reason(n)) if r is not None and r != NOT_ASKED).most_common(20)],
        {} if labels is None else confusion(verdicts),
        {column: split_by(scored.column(column), verdicts) for column in by},
        {n: k for n in names if (k := kinds_of(scored, n, verdicts))},
    )  # fmt: skip


def _reason(name: str) -> str:
    return "reason" if name == "reward" else f"{name}_reason"


def truth(value: Any, scored: ScoredFile, column: str) -> float:
    """A label as 1 (right), 0 (wrong) or NaN (none)."""
    if value is None:
        return float("nan")
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _WORDS:
            return _WORDS[word]
    elif value in (0, 1):
        return float(value)
    raise DataError(
        str(scored.path), 0, f"the label column {column!r} holds {value!r:.40}; it may hold 0/1 or true/false"
    )


_WORDS = {"true": 1.0, "yes": 1.0, "1": 1.0, "correct": 1.0, "false": 0.0, "no": 0.0, "0": 0.0, "incorrect": 0.0}


def _distribution(name: str, values: Floats, reasons: Sequence[str | None]) -> Distribution:
    known = values[~np.isnan(values)]
    waiting = sum(r == NOT_ASKED for r in reasons)
    if not len(known):
        return Distribution(name, len(values), 0, waiting, [], True)
    levels, counts = np.unique(known, return_counts=True)
    each = len(levels) <= FEW
    if each:
        bars = [(f"{v:.6g}", int(c)) for v, c in zip(levels, counts, strict=True)]
    else:
        filled, edges = np.histogram(known, bins=BINS)
        bars = [(f"{a:.4g} to {b:.4g}", int(c)) for a, b, c in zip(edges[:-1], edges[1:], filled, strict=True)]
    quantiles = tuple(float(q) for q in np.quantile(known, (0.0, 0.1, 0.5, 0.9, 1.0)))
    return Distribution(name, len(values), len(known), waiting, bars, each, float(known.mean()), quantiles)


def _groups(names: Sequence[str], verdicts: Verdicts) -> tuple[dict[str, int], tuple[int, float, int]]:
    """How many groups pass as a whole, are mixed, fail as a whole, or have nothing known; least, mean, largest size."""
    places = {name: i for i, name in enumerate(dict.fromkeys(names))}
    owner = np.fromiter((places[n] for n in names), np.int64, len(names))
    count = len(places)
    known = np.bincount(owner, weights=verdicts.known, minlength=count)
    passed = np.bincount(owner, weights=verdicts.passed, minlength=count)
    sizes = np.bincount(owner, minlength=count)
    found = {
        "all pass": int(((known > 0) & (passed == known)).sum()),
        "mixed": int(((passed > 0) & (passed < known)).sum()),
        "all fail": int(((known > 0) & (passed == 0)).sum()),
        "all unknown": int((known == 0).sum()),
    }
    return found, (int(sizes.min()), float(sizes.mean()), int(sizes.max())) if count else (0, 0.0, 0)


def confusion(verdicts: Verdicts) -> dict[str, int]:
    """Counts by reward (pass, fail, unknown) and label (right, wrong, none)."""
    assert verdicts.label is not None
    rows = {"pass": verdicts.passed, "fail": verdicts.known & ~verdicts.passed, "unknown": ~verdicts.known}
    columns = {"right": verdicts.label == 1.0, "wrong": verdicts.label == 0.0, "none": np.isnan(verdicts.label)}
    return {f"{r} {c}": int((x & y).sum()) for r, x in rows.items() for c, y in columns.items()}


def split_by(cells: Sequence[Any], verdicts: Verdicts) -> list[dict[str, Any]]:
    """Pass rate, mean and agreement with the label for each value of a column, the most frequent 40."""
    texts = np.array(["none" if c is None else str(c) for c in cells], dtype=object)
    out = []
    for value, count in Counter(texts.tolist()).most_common(40):
        here = texts == value
        known = here & verdicts.known
        row: dict[str, Any] = {
            "value": value, "count": count, "known": int(known.sum()),
            "pass_rate": _share(verdicts.passed & here, known),
            "mean": float(verdicts.reward[known].mean()) if known.any() else None,
        }  # fmt: skip
        if verdicts.label is not None:
            labelled = here & ~np.isnan(verdicts.label)
            row["label_rate"] = _share(labelled & (verdicts.label == 1.0), labelled)
            row["agreement"] = _share(labelled & known & ~verdicts.disagree, labelled & known)
        out.append(row)
    return sorted(out, key=lambda r: -(r["pass_rate"] or 0.0))


def _share(part: Bools, whole: Bools) -> float | None:
    total = int(whole.sum())
    return int(part.sum()) / total if total else None


def kinds_of(scored: ScoredFile, name: str, verdicts: Verdicts) -> list[Kind]:
    """The kinds of evidence of a node: evidence fields with few different values tell kinds apart."""
    column = f"{name}_evidence"
    if column not in scored.names:
        return []
    cells = scored.column(column)
    telling = _telling(cells)
    if not telling:
        return []
    seen: dict[tuple[str | None, ...], list[int]] = {}
    for i, cell in enumerate(cells):
        record = decoded(cell)
        if isinstance(record, Mapping):
            key = tuple(_word(record[k], coarse) if k in record else None for k, coarse in telling.items())
            entry = seen.setdefault(key, [0, 0, i])
            entry[0] += 1
            entry[1] += bool(verdicts.passed[i])
    kinds = [
        Kind({k: v for k, v in zip(telling, key, strict=True) if v is not None}, count, passed, i, decoded(cells[i]))
        for key, (count, passed, i) in seen.items()
    ]
    return sorted(kinds, key=lambda k: -k.count)[:40]


def _telling(cells: Sequence[Any]) -> dict[str, bool]:
    """Evidence fields that tell kinds apart: those that hold one of few words, and (``True``) those that hold something
    or nothing.
    """
    words: dict[str, Counter[str]] = {}
    given: Counter[str] = Counter()
    for cell in cells:
        record = decoded(cell)
        for key, value in record.items() if isinstance(record, Mapping) else ():
            given[key] += 1
            if isinstance(value, (str, bool)) or value is None:
                seen = words.setdefault(key, Counter())
                if len(seen) <= 2 * FEW:
                    seen[_word(value)] += 1
    total = sum(given.values())
    few = [k for k, seen in words.items() if len(seen) <= FEW and (len(seen) <= given[k] / 4 or total < 4 * FEW)]
    chosen: list[str] = []
    kinds = 1
    for key in sorted(few, key=lambda k: len(words[k])):
        if kinds * len(words[key]) <= FEW:
            chosen.append(key)
            kinds *= len(words[key])
    partly = [k for k, seen in words.items() if k not in chosen and 0 < seen.get(NOTHING, 0) < given[k]]
    return {**dict.fromkeys(chosen, False), **dict.fromkeys(partly[:2], True)}


NOTHING = "nothing"


def _word(value: Any, coarse: bool = False) -> str:
    if value is None:
        return NOTHING
    return "something" if coarse else str(value)[:80]
