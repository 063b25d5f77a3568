"""Two exactly solvable decision processes with tabular softmax policies, and policy gradients by full enumeration.

`Fixed`: two steps of two actions each. `Ragged`: one to three items of two kinds, where from the second place on the
policy may also end; a path that is full ends by itself. A group is a tuple of paths; every possible group is one prompt
of the data, weighted by its chance.
"""

from __future__ import annotations

from itertools import pairwise, product
from math import comb

import numpy as np

import guerdon as gd


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


class Process:
    """Paths with their chances, step rewards, and the score function of each action taken."""

    paths: list[tuple[int, ...]]

    def chance(self, path):
        return float(np.prod([self.policy[state, action] for state, action in self.decisions(path)]))

    def score_function(self, path, step):
        """Gradient of the log-probability of one action by all logits."""
        state, action = self.decisions(path)[step]
        out = np.zeros_like(self.policy)
        out[state] = -self.policy[state] * self.allowed[state]
        out[state, action] += 1.0
        return out

    def score(self, path, gamma=1.0):
        return sum(gamma**t * r for t, r in enumerate(self.rewards(path)))

    def gradient(self, value, gamma=1.0):
        """Exact gradient of the expectation of ``value(path)``, discounted inside ``value`` where it is."""
        total = np.zeros_like(self.policy)
        for path in self.paths:
            steps = range(len(self.decisions(path)))
            total += self.chance(path) * value(path) * sum(self.score_function(path, t) for t in steps)
        return total

    def exact(self, gamma=1.0):
        return self.gradient(lambda path: self.score(path, gamma))

    def groups(self, size):
        return [(g, float(np.prod([self.chance(p) for p in g]))) for g in product(self.paths, repeat=size)]

    def expected(self, reward, size=1, gamma=1.0, *, batches=False, every=False, **columns):
        """Expectation over groups of ``size`` paths of the members' mean of ``sum_t gamma^t A_t grad log pi``.

        ``reward`` on the rollout axis credits all of a path's actions alike, on the step axis each its own; unknown
        items, which must not be there unless ``every`` is set, add nothing. With ``batches`` every group is scored in
        a call of its own, for credit that reads the whole batch.
        """
        groups = self.groups(size)
        data = [
            {"prompt": str(g), "s": list(self.rewards(p)), "r": self.score(p), **self.row(p)}
            | {name: table[p] for name, table in columns.items()}
            for g, (group, _) in enumerate(groups)
            for p in group
        ]
        parts = [data[i : i + size] for i in range(0, len(data), size)] if batches else [data]
        credit = [c for part in parts for c in self.credited(reward, part, every)]
        total = np.zeros_like(self.policy)
        for g, (group, weight) in enumerate(groups):
            for i, path in enumerate(group):
                for t, advantage in enumerate(credit[g * size + i]):
                    total += weight / size * gamma**t * advantage * self.score_function(path, t)
        return total

    def credited(self, reward, data, every):
        """The credit of each action, a list for each rollout."""
        scored = reward.score(data).framed
        assert every or scored.known.all()
        values = np.where(scored.known, scored.values, 0.0)
        if scored.axis.name == "rollout":
            return [[v] * len(row["s"]) for v, row in zip(values, data, strict=True)]
        offsets = scored.axis.offsets_over("rollout")
        return [values[a:b].tolist() for a, b in pairwise(offsets)]

    def row(self, path):
        return {}


class Fixed(Process):
    paths = list(product((0, 1), repeat=2))
    policy = softmax(np.array([[0.3, -0.4], [-0.2, 0.5], [0.8, 0.1]]))  # start, after 0, after 1
    allowed = np.ones((3, 2))
    step_reward = {(0, 0): (0.2, 1.0), (0, 1): (0.2, -0.5), (1, 0): (0.7, 0.0), (1, 1): (0.7, 0.4)}
    potential = {(0, 0): (0.9, 0.3), (0, 1): (0.9, -0.6), (1, 0): (-0.7, 0.2), (1, 1): (-0.7, 1.1)}

    def decisions(self, path):
        return [(0, path[0]), (1 + path[0], path[1])]

    def rewards(self, path):
        return self.step_reward[path]

    def success(self, path):
        return float(sum(self.rewards(path)) > 0.8)

    def row(self, path):
        return {"phi": list(self.potential[path]), "ok": self.success(path)}

    def true_values(self):
        """The value before each step."""
        after = [sum(self.policy[1 + a, b] * self.step_reward[a, b][1] for b in (0, 1)) for a in (0, 1)]
        start = sum(self.policy[0, a] * (self.step_reward[a, 0][0] + after[a]) for a in (0, 1))
        return {path: (start, after[path[0]]) for path in self.paths}


END = 2


class Ragged(Process):
    """With ``end_is_step`` ending is a step of its own, worth 0; else the steps are the items alone."""

    limit = 3
    allowed = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    policy = softmax(np.where(allowed > 0, np.array([[0.4, -0.3, 0.0], [0.2, -0.5, 0.6], [-0.4, 0.3, 0.1]]), -np.inf))
    worth = np.array([[1.0, -0.4], [0.3, 0.9], [-0.7, 1.6]])
    paths = [items if len(items) == 3 else (*items, END) for n in (1, 2, 3) for items in product((0, 1), repeat=n)]

    def __init__(self, *, end_is_step):
        self.end_is_step = end_is_step

    def decisions(self, path):
        return list(enumerate(path))

    def rewards(self, path):
        return tuple(float(self.worth[t, a]) if a != END else 0.0 for t, a in enumerate(path))

    def row(self, path):
        items = [r for r, a in zip(self.rewards(path), path, strict=True) if a != END or self.end_is_step]
        return {"s": items, "phi": [0.5 - 0.3 * t + 0.2 * a for t, a in enumerate(path)][: len(items)]}

    def reach(self, place, others):
        """The chances that 0, 1, ... of ``others`` paths take an action at a place."""
        p = sum(self.chance(path) for path in self.paths if len(path) > place)
        return [comb(others, k) * p**k * (1 - p) ** (others - k) for k in range(others + 1)]

    def credited(self, reward, data, every):
        """A pair of rewards is the credit of the items and that of ending; one on the rollout axis credits both."""
        if not isinstance(reward, tuple):
            lists = super().credited(reward, data, every)
            lengths = [len(row["s"]) + (not self.end_is_step and len(row["s"]) < self.limit) for row in data]
            return [c if len(c) == n else [*c, c[0]] for c, n in zip(lists, lengths, strict=True)]
        items, ends = (super(Ragged, self).credited(part, data, every) for part in reward)
        return [[*i, *e[:1]] if len(i) < self.limit else i for i, e in zip(items, ends, strict=True)]


S, PHI, R, OK, V = (
    gd.column("s", "step"),
    gd.column("phi", "step"),
    gd.column("r"),
    gd.column("ok"),
    gd.column("v", "step"),
)


def parallel(a, b):
    """The cosine of the angle between two gradients."""
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
