"""Agent-RLVR: failed tasks are tried again with guidance, and guided successes become preference pairs without it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.verify.programs.check import check_code
from guerdon.verify.programs.signals import code
from guerdon.verify.programs.tasks import TaskError
from guerdon.verify.programs.verdict import Verdict

Attempt = Callable[[str], str]
"""From a prompt, guidance included, to a completion."""
Guide = Callable[["Trajectory"], str]
"""From a failed trajectory to guidance for the next attempt; an empty text gives up."""


@method(
    "agent-rlvr-guided-retry",
    family="training",
    name="Agent-RLVR: guidance-augmented RLVR for software agents",
    source="Da et al. 2025, arXiv:2506.11425",
    evidence="secondary",
)
def agent_rlvr(passed: Reward | None = None, *, tests: str = "tests", seconds: float = 5.0) -> Reward:
    """``r`` = 1 if all tests pass (those to be fixed and those to be kept), else 0; shape ``(rollouts,)``.

    ``passed``: 0/1 per test, by default live `verify.code`. *Inferred*: a failed test decides whatever is unknown
    beside it; an unknown test and no failed one make ``r`` unknown. The recipe around it: `guided_retry` tries, guides
    and tries again, and yields `Pair`s for `preference_loss`; `lift` is its report.

    Traps: guidance that quotes the gold patch makes pairs trivially off-policy (`leaks`); guided winners longer than
    their losers teach length (`longest_ratio`); a flaky test makes false pairs (``confirm``).

    >>> import guerdon as gd
    >>> rows = [{"tests": t} for t in ([1, 1], [0, None], [1, None])]
    >>> gd.method("agent-rlvr-guided-retry", gd.column("tests", axis="test")).score(rows).values.tolist()
    [1.0, 0.0, nan]
    """
    judged = passed if passed is not None else code(tests=tests, seconds=seconds)
    return when(judged.min(to="rollout", missing="skip") < 1.0, 0.0, judged.min(to="rollout"))


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One attempt. ``prompt`` never holds the guidance; ``reward`` is None where the tests gave no verdict."""

    task: str
    prompt: str
    completion: str
    reward: float | None
    guidance: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """``chosen`` passed and ``rejected`` failed, both as answers to the unguided ``prompt``."""

    task: str
    prompt: str
    chosen: str
    rejected: str
    guided: bool


@dataclass(frozen=True, slots=True)
class Retried:
    """What a round of guided retries gave. ``unsolved`` tasks have no pair; ``refused``: guidance that leaked, why."""

    trajectories: list[Trajectory] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    unsolved: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def guided_retry(
    tasks: Mapping[str, Mapping[str, Any]],
    attempt: Attempt,
    guide: Guide,
    *,
    samples: int = 1,
    retries: int = 1,
    confirm: int = 2,
    largest_leak: float = 0.5,
    longest_ratio: float = math.inf,
    seconds: float = 5.0,
) -> Retried:
    """Try each task ``samples`` times; where none passes, ask for guidance and try again up to ``retries`` times.

    ``tasks``: by name, a coding task (see `verify.check_code`) with a ``prompt`` and, if there is one, its ``gold``
    program. A pass is a reward only if the tests say so ``confirm`` times; otherwise the trajectory is unknown (a flaky
    test). Guidance that `leaks` more than ``largest_leak`` of ``gold`` is refused. ``attempt`` and ``guide`` may raise:
    that is theirs, and ends the round.
    """
    done = Retried()
    for name, task in tasks.items():
        tried = [_tried(name, task, "", attempt, confirm, seconds) for _ in range(samples)]
        for _ in range(retries):
            failed = next((one for one in reversed(tried) if one.reward == 0), None)
            if failed is None or any(one.reward == 1 for one in tried):
                break
            guidance = guide(failed)
            leaked = leaks(guidance, str(task.get("gold", "")))
            if not guidance.strip():
                done.refused.append((name, "empty"))
            elif leaked > largest_leak:
                done.refused.append((name, f"it quotes {leaked:.0%} of the gold program"))
            else:
                tried.append(_tried(name, task, guidance, attempt, confirm, seconds))
        done.trajectories.extend(tried)
        if not any(one.reward == 1 for one in tried):
            done.unsolved.append(name)
    done.pairs.extend(preference_pairs(done.trajectories, longest_ratio=longest_ratio))
    return done


def _tried(
    name: str, task: Mapping[str, Any], guidance: str, attempt: Attempt, confirm: int, seconds: float
) -> Trajectory:
    prompt = str(task.get("prompt", ""))
    one = Trajectory(name, prompt, attempt(f"{prompt}\n\n{guidance}" if guidance else prompt), None, guidance)
    try:
        verdict = check_code(one.completion, task, seconds=seconds)
        for _ in range(confirm - 1):
            if not verdict.passed:
                break
            verdict = check_code(one.completion, task, seconds=seconds)
            if resolved(verdict) == 0.0:
                return replace(one, reason=f"flaky: {verdict.reason}")
    except TaskError as error:
        return replace(one, reason=str(error))
    return replace(one, reward=resolved(verdict), reason=verdict.reason)


def resolved(verdict: Verdict) -> float | None:
    """1.0 if all tests passed, 0.0 if one failed; None without tests, or with neither a verdict nor a failed test."""
    if any(test.passed is False for test in verdict.tests):
        return 0.0
    return float(verdict.passed) if verdict.passed is not None and verdict.tests else None


def preference_pairs(trajectories: Iterable[Trajectory], *, longest_ratio: float = math.inf) -> list[Pair]:
    """``{(w, l): r(w) = 1, r(l) = 0}`` of each task, its prompt unguided; a pair of equal texts is none.

    ``longest_ratio``: a pair whose longer completion exceeds the shorter by more is left out (in characters).
    Trajectories without a reward are in no pair, nor is a completion that repeats its guidance word for word.
    """
    by_task: dict[str, list[Trajectory]] = {}
    for one in trajectories:
        if not one.guidance or one.guidance.strip() not in one.completion:
            by_task.setdefault(one.task, []).append(one)
    return [
        Pair(name, won.prompt, won.completion, lost.completion, bool(won.guidance))
        for name, tried in by_task.items()
        for won in tried
        for lost in tried
        if won.reward == 1 and lost.reward == 0 and won.completion != lost.completion
        for short, long in [sorted((len(won.completion), len(lost.completion)))]
        if long <= longest_ratio * max(short, 1)
    ]


def leaks(guidance: str, gold: str) -> float:
    """The share of the gold program's telling lines (8 characters or more) that the guidance quotes, in [0, 1].

    >>> leaks("Write `return a + b` there.", "def add(a, b):\\n    return a + b\\n")
    0.5
    """
    lines = [line for line in ("".join(raw.split()) for raw in gold.splitlines()) if len(line) >= 8]
    said = "".join(guidance.split())
    return sum(line in said for line in lines) / len(lines) if lines else 0.0


def preference_loss(
    chosen: float, rejected: float, reference_chosen: float, reference_rejected: float, *, beta: float = 0.1
) -> float:
    """``-log sigmoid(beta ((chosen - reference_chosen) - (rejected - reference_rejected)))``; all log-probabilities.

    They are those of the completions after the *unguided* prompt (context distillation, *inferred*). ``beta``: ours.

    >>> round(preference_loss(-4.0, -6.0, -5.0, -5.0, beta=0.5), 6)
    0.313262
    """
    margin = beta * ((chosen - reference_chosen) - (rejected - reference_rejected))
    return float(np.logaddexp(0.0, -margin))


def lift(
    plain: Sequence[float | None], guided: Sequence[float | None], trained: Sequence[float | None]
) -> Mapping[str, float | None]:
    """Pass rates without guidance, with it, and after training, over what has a reward; None where nothing has.

    >>> lift([0, 0, 1, None], [1, 0, 1], [])
    {'plain': 0.3333333333333333, 'guided': 0.6666666666666666, 'trained': None}
    """
    rounds = {"plain": plain, "guided": guided, "trained": trained}
    known = {name: [reward for reward in rewards if reward is not None] for name, rewards in rounds.items()}
    return {name: sum(rewards) / len(rewards) if rewards else None for name, rewards in known.items()}
