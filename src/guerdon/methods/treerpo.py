"""TreeRPO: step credit from a tree of continuations, without a critic."""

from __future__ import annotations

from guerdon import credit
from guerdon.core.reward import Reward
from guerdon.methods._registry import method


@method(
    "treerpo-step-group-advantage",
    family="credit",
    name="TreeRPO: Tree Relative Policy Optimization",
    source="Yang et al. 2025, arXiv:2506.05183",
    evidence="secondary",
)
def treerpo(outcome: Reward, node: Reward, *, prune: float = 0.1) -> Reward:
    """Each step against its siblings: ``A_c = (r(c) - mu) / sqrt(mu (1 - mu) + 1e-6)``.

    ``r(v)`` is the mean of the children's. ``outcome``: 0/1 per leaf (rollout); ``node``: the step's node number in
    its prompt's tree, shape ``(steps,)``, as the result. Siblings within ``prune`` of one another (published 0.1), or
    all 0 or all 1, get 0 and train nothing. The Bernoulli normaliser is our reading of the paper's toy example;
    ``credit.node_relative(scale="std")`` is GRPO's.

    Traps: shared prefixes appear in several rollouts: `credit.node_share` weights them once. Early stops give unequal
    fan-out: the mean is over children. Steps of a fixed number of tokens cut sentences; a tree costs ``N^D`` samples.
    Division by the spread trades bias.
    """
    return credit.node_relative(outcome, node, scale="bernoulli", prune=prune)
