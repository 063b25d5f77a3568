"""FaithRL: rewards from the base model's own rates, so that it starts at 0 and abstaining is worth something."""

from __future__ import annotations

from guerdon.core.operators import when
from guerdon.core.reward import Reward, as_reward
from guerdon.methods._registry import method


@method(
    "faithrl-geometric",
    family="verify",
    name="FaithRL: geometric reward and faithfulness-aware advantage modulation",
    source="Gui et al. 2026, arXiv:2602.03507",
    evidence="code-read",
)
def faithrl(
    correct: Reward,
    abstained: Reward,
    answerable: Reward | float = 1.0,
    *,
    base_correct: float,
    base_wrong: float,
    least: float = 1e-3,
) -> Reward:
    """``+y0`` for a right answer, 0 for "I don't know", ``-x0`` for a wrong one: 0 in expectation for the base model.

    ``x0 = base_correct``, ``y0 = base_wrong``: its rates of right and of hallucinated answers on a first validation,
    kept at least ``least``, since 0 would remove one side. Where ``answerable`` is 0, abstaining is right (``+y0``) and
    anything else wrong. All scores 0/1, shape ``(rollouts,)``. Advantage: `credit.group_relative` with ``ddof=1,
    eps=1e-6``; a group of one is unknown here (released code: mean 0, deviation 1). Then `modulated`, step by step. The
    released code also takes off 0.5 per repeated line and may penalise long answers: not here.

    Traps: "I don't know" found by string matching also hits answers that contain it; a judge's refusal is unknown.

    >>> import guerdon as gd
    >>> outcomes = [gd.column("right"), gd.column("idk")]
    >>> rows = [{"right": 1, "idk": 0}, {"right": 0, "idk": 1}, {"right": 0, "idk": 0}]
    >>> gd.method("faithrl-geometric", *outcomes, base_correct=0.6, base_wrong=0.3).score(rows).values.tolist()
    [0.3, 0.0, -0.6]
    """
    x0, y0 = max(base_correct, least), max(base_wrong, least)
    if not (base_correct >= 0 and base_wrong >= 0 and base_correct + base_wrong <= 1):
        raise ValueError(f"rates of one model add up to at most 1, not {base_correct} and {base_wrong}")
    possible = when(abstained, 0.0, when(correct, y0, -x0))
    return when(as_reward(answerable), possible, when(abstained, y0, as_reward(-x0)))


def modulated(advantage: Reward, supported: Reward, answer: Reward | float = 0.0, *, share: float = 0.75) -> Reward:
    """The advantage times ``share`` on steps that disagree with it: unsupported ones of a good rollout, supported
    ones of a bad one.

    ``supported`` is 0/1 on the step axis; a step that repeats the one before it counts as unsupported (released code:
    similarity of 0.8). Where ``answer`` is 1, the answer itself, the advantage stays whole. ``share = -1`` flips the
    sign.
    """
    return when(as_reward(answer), advantage, when((advantage > 0.0) == supported, advantage, advantage * share))


def truthful_helpfulness(correct: float, wrong: float, *, base_correct: float, base_wrong: float) -> float | None:
    """``(x1 y0 - y1 x0) / y0``: progress of a later model's rates over the base model's; ``None`` for ``y0 = 0``.

    >>> round(truthful_helpfulness(0.65, 0.2, base_correct=0.6, base_wrong=0.3), 6)
    0.25
    """
    return None if base_wrong == 0 else (correct * base_wrong - wrong * base_correct) / base_wrong
