"""A public battery that any reward must pass before it trains a model.

```python
import guerdon as gd

report = gd.testing.check_reward(my_reward)              # raises CheckFailed, which names every failed check

@pytest.mark.parametrize("check", gd.testing.CHECKS, ids=str)   # or one pytest case per check
def test_my_reward(check):
    check(my_reward, my_rollouts)
```
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guerdon.core.errors import GuerdonError
from guerdon.core.reward import Reward
from guerdon.core.rollout import Rollout
from guerdon.testing._checks import ALL, Check, Skipped
from guerdon.testing._examples import example_rollouts
from guerdon.testing._subject import Subject

CHECKS: tuple[Check, ...] = ALL
"""Every check, in the order in which `check_reward` makes them; ``check(reward, rollouts=None)`` runs one."""


@dataclass(frozen=True)
class Result:
    """How one check went: ``outcome`` is ``"passed"``, ``"failed"`` or ``"skipped"``, and ``cause`` says why."""

    check: str
    outcome: str
    cause: str
    seconds: float


@dataclass(frozen=True)
class Report:
    """How a reward did: one `Result` for each check."""

    reward: str
    results: tuple[Result, ...]

    @property
    def failed(self) -> tuple[Result, ...]:
        """The checks that failed."""
        return tuple(r for r in self.results if r.outcome == "failed")

    @property
    def passed(self) -> tuple[str, ...]:
        """The names of the checks that passed."""
        return tuple(r.check for r in self.results if r.outcome == "passed")

    @property
    def skipped(self) -> Mapping[str, str]:
        """The checks that were not made, and why."""
        return {r.check: r.cause for r in self.results if r.outcome == "skipped"}

    def __str__(self) -> str:
        lines = [f"{self.reward}: {len(self.failed)} of {len(self.results)} checks failed"]
        lines += [f"  {r.check}: {r.cause}" for r in self.failed]
        lines += [f"  skipped {name}: {why}" for name, why in self.skipped.items()]
        return "\n".join(lines)


class CheckFailed(GuerdonError, AssertionError):
    """A reward did not pass; the message lists each failed check with its cause, ``report`` holds all results."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def check_reward(
    reward: Reward,
    rollouts: Iterable[Rollout | Mapping[str, Any]] | None = None,
    *,
    skip: Sequence[str] = (),
    deadline: float = 20.0,
) -> Report:
    """Put ``reward`` through every check of `CHECKS`, and raise `CheckFailed` if any fails.

    ``rollouts`` should be of the kind that the reward is for, with references and columns, in at least two groups; by
    default a small mixed set is made, with a number for every column that the reward reads. ``skip`` names checks that
    do not apply, such as ``tool_output`` for a reward that grades tool use. ``deadline``: seconds that one call of
    ``score`` on hostile input may take. A judge or model in the reward is asked many times.

    >>> from guerdon.core.reward import column
    >>> check_reward(column("x", range=(0, 1)) * 2, skip=["fresh_process"]).failed
    ()
    """
    unknown = set(skip) - {check.name for check in CHECKS}
    if unknown:
        names = ", ".join(check.name for check in CHECKS)
        raise ValueError(f"no check {', '.join(sorted(unknown))}; there are {names}")
    subject = Subject.of(reward, rollouts, deadline)
    results = tuple(_result(check, subject, check.name in skip) for check in CHECKS)
    report = Report(reward.label, results)
    if report.failed:
        raise CheckFailed(report)
    return report


def _result(check: Check, subject: Subject, skip: bool) -> Result:
    if skip:
        return Result(check.name, "skipped", "by request", 0.0)
    start = time.perf_counter()
    outcome, cause = "passed", ""
    try:
        check.run(subject)
    except Skipped as why:
        outcome, cause = "skipped", str(why)
    except Exception as error:  # noqa: BLE001  # the verdict on foreign code: whatever it raises fails the check
        outcome = "failed"
        cause = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    return Result(check.name, outcome, cause, time.perf_counter() - start)


__all__ = ["CHECKS", "Check", "CheckFailed", "Report", "Result", "check_reward", "example_rollouts"]
