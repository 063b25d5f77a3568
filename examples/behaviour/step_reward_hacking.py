"""Process rewards summed over steps are hacked by filler; as a minimum they are not.

A policy writes up to five steps before its answer: *reason* (a process model gives 0.1, being unsure), *filler* (0.9,
it looks right), or goes to the answer at once. The answer is right after three reasoning steps (0.8), else wrong
(-0.8). Five fillers and a wrong answer add up to more than honest work.

Measured over 3 seeds, mean of the last 30 of 250 updates of a group of 16: summed, no answer is right and 4.96 of 5
steps are filler; as a minimum, 0.98 of the answers are right with 0.2 to 0.8 filler steps.

    python examples/behaviour/step_reward_hacking.py hacking.png
"""

from __future__ import annotations

import numpy as np
from _learning import Array, save_curves, score_functions, softmax

import guerdon as gd
from guerdon.methods.pure import pure_returns

REASON, FILLER, ANSWER = 0, 1, 2
LONGEST = 5
STEPS = gd.column("s", axis="step")
RETURNS = {"sum": gd.credit.returns(STEPS), "min": pure_returns(STEPS, strict=True)}


def rollout(policy: Array, rng: np.random.Generator) -> tuple[list[int], list[float], bool]:
    """Actions, step scores, and whether the answer is right."""
    actions: list[int] = []
    while len(actions) < LONGEST and (not actions or actions[-1] != ANSWER):
        actions.append(int(rng.choice(3, p=policy[len(actions)])))
    right = actions.count(REASON) >= 3
    written = [a for a in actions if a != ANSWER]
    return actions, [0.1 if a == REASON else 0.9 for a in written] + [0.8 if right else -0.8], right


def train(form: str, *, updates: int = 250, group: int = 16, rate: float = 0.5, seed: int = 0) -> tuple[Array, Array]:
    """Share of right answers and filler steps per rollout at each update, with sum-form or min-form returns."""
    rng = np.random.default_rng(seed)
    logits = np.zeros((LONGEST, 3))
    advantage = gd.credit.place_relative(RETURNS[form], scale="none", least=1)
    accuracy, filler = np.zeros(updates), np.zeros(updates)
    for update in range(updates):
        policy = softmax(logits)
        batch = [rollout(policy, rng) for _ in range(group)]
        scores = advantage.score([{"prompt": "p", "s": s} for _, s, _ in batch]).scores
        starts = scores.axis.offsets_over("rollout")
        gradient = np.zeros_like(logits)
        for i, (actions, _, _) in enumerate(batch):
            for t, action in enumerate(actions):
                # Step t of the row is this action's own step, or, for ANSWER, the answer itself.
                gradient[t] += scores.values[starts[i] + t] * score_functions(policy[t], np.array([action]))[0]
        logits += rate * gradient / group
        accuracy[update] = np.mean([right for _, _, right in batch])
        filler[update] = np.mean([actions.count(FILLER) for actions, _, _ in batch])
    return accuracy, filler


if __name__ == "__main__":
    curves = {}
    for form in RETURNS:
        accuracy, filler = zip(*[train(form, seed=seed) for seed in range(3)], strict=True)
        curves[f"{form}-form: right answers"] = np.array(accuracy)
        curves[f"{form}-form: filler steps / {LONGEST}"] = np.array(filler) / LONGEST
    title = "Summed step rewards get hacked by filler, their minimum does not (3 seeds)"
    print(save_curves(curves, "update", "share", title, "step_reward_hacking.png"))
