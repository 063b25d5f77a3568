"""What a score run says at its end, kept as plain data so that an interrupted run continues it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from guerdon.core.reward import Reward
from guerdon.core.scored import Scored
from guerdon.core.segments import segment_count, segment_max, segment_min
from guerdon.core.session import Tally
from guerdon.core.signal import Signal

MOST_REASONS = 1000
"""Distinct reasons counted one by one; further ones are counted together."""


@dataclass
class Summary:
    """Counts over all rollouts scored so far. A group *passes* or *fails* as a whole where all its known rewards are
    the greatest or the least reward seen in the run; it is *mixed* where they differ.
    """

    rows: int = 0
    known: int = 0
    total: float = 0.0
    low: float | None = None
    high: float | None = None
    unknown: Counter[str] = field(default_factory=Counter)
    groups: int = 0
    flat_at: Counter[str] = field(default_factory=Counter)
    mixed: int = 0
    group_unknown: int = 0
    out_of_range: int = 0
    seconds: float = 0.0
    tallies: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Summary:
        """A summary from its plain data."""
        fresh = {**data, "unknown": Counter(data["unknown"]), "flat_at": Counter(data["flat_at"])}
        return cls(**fresh)

    def plain(self) -> dict[str, Any]:
        """Plain data, for the journal."""
        return {**asdict(self), "unknown": dict(self.unknown), "flat_at": dict(self.flat_at)}

    def add(self, scored: Scored, declared: Any = None) -> None:
        """Count one scored batch."""
        scores = (
            scored.framed if scored.framed.axis.name == "rollout" else scored.framed.broadcast(scored.frame.rollout)
        )
        values = scores.values[scores.known]
        self.rows += len(scores)
        self.known += len(values)
        if len(values):
            self.total += float(values.sum())
            self.low = float(min(values.min(), self.low if self.low is not None else np.inf))
            self.high = float(max(values.max(), self.high if self.high is not None else -np.inf))
            if declared is not None:
                self.out_of_range += int(((values < declared.low) | (values > declared.high)).sum())
        for reason, count in scores.unknown_reasons().items():
            key = reason if reason in self.unknown or len(self.unknown) < MOST_REASONS else "other reasons"
            self.unknown[key] += count
        ends = scores.axis.offsets_over("prompt")
        have = segment_count(scores.known, ends) > 0
        low = segment_min(np.where(scores.known, scores.values, np.inf), ends, np.inf)
        high = segment_max(np.where(scores.known, scores.values, -np.inf), ends, -np.inf)
        self.groups += len(have)
        self.group_unknown += int((~have).sum())
        flat = have & (low == high)
        self.mixed += int((have & ~flat).sum())
        levels, counts = np.unique(low[flat], return_counts=True)
        for level, count in zip(levels.tolist(), counts.tolist(), strict=True):
            key = f"{level:.6g}"
            key = key if key in self.flat_at or len(self.flat_at) < MOST_REASONS else "other"
            self.flat_at[key] += count

    def add_tallies(self, tallies: Mapping[str, Tally], before: Mapping[str, Mapping[str, float]]) -> None:
        """The session's tallies, on top of what earlier runs of the same output counted."""
        merged = {k: dict(v) for k, v in before.items()}
        for name, tally in tallies.items():
            mine = merged.setdefault(name, {"asked": 0, "cached": 0, "failed": 0, "seconds": 0.0})
            for key in mine:
                mine[key] += getattr(tally, key)
        self.tallies = merged

    @property
    def all_pass(self) -> int:
        """Groups whose known rewards all stand at the greatest reward seen."""
        return self.flat_at.get(f"{self.high:.6g}", 0) if self.high is not None and self.high != self.low else 0

    @property
    def all_fail(self) -> int:
        """Groups whose known rewards all stand at the least reward seen."""
        return self.flat_at.get(f"{self.low:.6g}", 0) if self.low is not None and self.high != self.low else 0

    def alarms(self, reward: Reward) -> list[str]:
        """A line for each signal that failed more often than its policy allows."""
        lines = []
        for node in reward.walk():
            tally = self.tallies.get(node.label) if isinstance(node, Signal) else None
            if isinstance(node, Signal) and tally and tally["asked"] >= 20:
                limit = node.manner.failure.alarm
                if tally["failed"] > limit * tally["asked"]:
                    share = f"{int(tally['failed'])} of {int(tally['asked'])} items"
                    lines.append(f"{node.label} failed on {share} (alarm at {limit:.0%})")
        return list(dict.fromkeys(lines))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON: as `plain`, with the mean and the kinds of groups."""
        flat = sum(self.flat_at.values()) - self.all_pass - self.all_fail
        return {
            "rows": self.rows, "known": self.known, "unknown": self.rows - self.known, "reasons": dict(self.unknown),
            "mean": self.total / self.known if self.known else None, "low": self.low, "high": self.high,
            "groups": {
                "all": self.groups, "all_pass": self.all_pass, "mixed": self.mixed, "all_fail": self.all_fail,
                "flat_between": flat, "all_unknown": self.group_unknown,
            },
            "seconds": round(self.seconds, 3), "rollouts_per_second": round(self.rows / max(self.seconds, 1e-9)),
            "signals": self.tallies, "out_of_range": self.out_of_range,
        }  # fmt: skip


def lines_of(summary: Mapping[str, Any]) -> list[str]:
    """The summary for people."""
    from guerdon.cli._show import short, table

    groups = summary["groups"]
    mean = (
        "" if summary["mean"] is None else f", mean {summary['mean']:.4f} in [{summary['low']:g}, {summary['high']:g}]"
    )
    lines = [
        f"{summary['rows']:,} rollouts: {summary['known']:,} known{mean}, {summary['unknown']:,} unknown",
        f"{groups['all']:,} groups: {groups['all_pass']:,} all pass, {groups['mixed']:,} mixed, "
        f"{groups['all_fail']:,} all fail, {groups['flat_between']:,} flat in between, "
        f"{groups['all_unknown']:,} all unknown",
    ]
    reasons = sorted(summary["reasons"].items(), key=lambda pair: -pair[1])
    lines += [f"  unknown {count:,}: {short(reason, 90)}" for reason, count in reasons[:8]]
    if summary["signals"]:
        rows = [
            (name, int(t["asked"]), int(t["cached"]), int(t["failed"]), f"{t['seconds']:.2f} s")
            for name, t in sorted(summary["signals"].items())
        ]
        lines.append(table(rows, ("signal", "asked", "cached", "failed", "time"), "  "))
    lines += [f"warning: {alarm}" for alarm in summary.get("alarms", ())]
    if summary["out_of_range"]:
        lines.append(f"warning: {summary['out_of_range']:,} rewards lie outside the range that the spec declares")
    lines.append(f"{summary['seconds']:.2f} s, {summary['rollouts_per_second']:,} rollouts/s")
    return lines
