"""What people compare with: GRPO, Dr. GRPO, RLOO, REINFORCE++, GDPO, DAPO's overlong shaping, Search-R1's outcome
reward, PPO's GAE."""

from __future__ import annotations

from guerdon import credit, verify
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import length_penalty


@method("grpo", family="credit", name="GRPO", source="Shao et al. 2024, arXiv:2402.03300", evidence="code-read")
def grpo(reward: Reward, *, ddof: int = 1, eps: float = 1e-6) -> Reward:
    """Group-relative advantage: ``A_i = (r_i - mean(r)) / (std(r) + eps)`` over the rollouts of a prompt.

    Shape ``(rollouts,)``; every token of a rollout takes its advantage (`credit.spread`). Defaults are verl's: sample
    deviation, 1e-6; TRL adds 1e-4; `credit.group_relative` has the population's and none.

    Traps: a group without spread gives exactly 0; one with fewer than two known members is unknown. The division
    weights prompts by ``1/std`` and turns any bounded bonus into full pressure in all-fail groups
    (`variance-profile-amplifier-audit`).

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (1.0, 0.0, 0.0, 1.0)]
    >>> gd.method("grpo", gd.column("r"), ddof=0, eps=0.0).score(rows).values.tolist()
    [1.0, -1.0, -1.0, 1.0]
    """
    return credit.group_relative(reward, scale="std", ddof=ddof, eps=eps)


@method("dr-grpo", family="credit", name="Dr. GRPO", source="Liu et al. 2025, arXiv:2503.20783", evidence="code-read")
def dr_grpo(reward: Reward) -> Reward:
    """Group-relative advantage without division: ``A_i = r_i - mean(r)``, shape ``(rollouts,)``.

    Expected gradient: ``(n - 1) / n`` times the exact one, so the optimum is kept. The paper also sums token losses
    without dividing by a rollout's length, which is the trainer's part.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (1.0, 0.0, 0.5)]
    >>> gd.method("dr-grpo", gd.column("r")).score(rows).values.tolist()
    [0.5, -0.5, 0.0]
    """
    return credit.group_relative(reward, scale="none")


@method("rloo", family="credit", name="RLOO", source="Ahmadian et al. 2024, arXiv:2402.14740", evidence="code-read")
def rloo(reward: Reward) -> Reward:
    """Leave-one-out: ``A_i = r_i - mean_{j != i} r_j``, shape ``(rollouts,)``; the expected gradient is exact.

    It is ``G / (G - 1)`` times Dr. GRPO's. All equal: exactly 0; one known member: unknown.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "r": r} for r in (1.0, 0.0, 0.5)]
    >>> gd.method("rloo", gd.column("r")).score(rows).values.tolist()
    [0.75, -0.75, 0.0]
    """
    return credit.leave_one_out(reward)


@method(
    "dapo-overlong",
    family="shape",
    name="DAPO's soft overlong punishment",
    source="Yu et al. 2025, arXiv:2503.14476",
    evidence="code-read",
)
def dapo_overlong(reward: Reward, length: Reward, *, limit: int = 20480, buffer: int = 4096) -> Reward:
    """``reward`` plus a penalty for long rollouts: 0 up to ``limit - buffer`` tokens, then linearly to -1 at ``limit``.

    ``length``: tokens of each rollout. Beyond ``limit`` it stays at -1. Published: expected length 16384, buffer 4096.

    >>> import guerdon as gd
    >>> rows = [{"r": 1.0, "n": n} for n in (16384, 18432, 30000)]
    >>> gd.method("dapo-overlong", gd.column("r"), gd.column("n")).score(rows).values.tolist()
    [1.0, 0.5, 0.0]
    """
    return reward + length_penalty(length, budget=limit, buffer=buffer)


@method(
    "search-r1",
    family="verify",
    name="Search-R1's outcome reward",
    source="Jin et al. 2025, arXiv:2503.09516",
    evidence="secondary",
)
def search_r1(*, reference: str = "answer") -> Reward:
    """1 if the last ``<answer>`` equals a reference after SQuAD's normalisation (case, articles, punctuation), else 0.

    Nothing but the outcome: no format or search term. Shape ``(rollouts,)``; unknown without a reference. Traps: no tag
    is 0, as published; only what the policy wrote is read, so an answer quoted by a search tool does not count.

    >>> import guerdon as gd
    >>> rows = [{"completion": c, "answer": "Paris"} for c in ("<answer>The Paris.</answer>", "Paris")]
    >>> gd.method("search-r1")().score(rows).values.tolist()
    [1.0, 0.0]
    """
    return verify.text(extract="<answer>", reference=reference)


method(
    "reinforce-plus-plus", family="credit", name="REINFORCE++", source="Hu 2025, arXiv:2501.03262", evidence="code-read"
)(credit.reinforce_plus_plus)
method(
    "gdpo",
    family="credit",
    name="GDPO: group reward-decoupled normalisation",
    source="arXiv:2601.05242",
    evidence="code-read",
)(credit.gdpo)
method(
    "gae",
    family="credit",
    name="PPO's generalised advantage estimation",
    source="Schulman et al. 2016, arXiv:1506.02438",
    evidence="code-read",
)(credit.gae)
method(
    "passk-training-analytic-advantage",
    family="credit",
    name="Pass@k training with analytic advantage",
    source="Chen et al. 2025, arXiv:2508.10751",
    evidence="code-read",
)(credit.pass_at_k_advantage)
