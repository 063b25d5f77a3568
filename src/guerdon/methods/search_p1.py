"""Search-P1: the better of following one's own plan and covering the reference's."""

from __future__ import annotations

from guerdon.core.operators import maximum, minimum, when
from guerdon.core.reward import Reward, as_reward
from guerdon.methods._registry import method
from guerdon.shape import weighted_sum


@method(
    "search-p1",
    family="process",
    name="Search-P1: path-centric reward shaping for agentic RAG",
    source="Xia et al. 2026, arXiv:2602.22576",
    evidence="secondary",
)
def search_p1(
    path: Reward,
    correct: Reward,
    accuracy: Reward,
    reasoning: Reward,
    form: Reward,
    *,
    weights: tuple[float, float, float] = (0.3, 0.6, 0.1),
    share: float = 0.8,
    most: float = 1.0,
) -> Reward:
    """``R = 0.3 R_path + 0.6 R_out + 0.1 R_format``, shape ``(rollouts,)``, in [0, 1].

    ``path``: `path_score`. ``R_out`` is 1 if ``correct``, else ``share accuracy + (1 - share) reasoning``, at most
    ``most``: partial correctness in {0, 0.5, 1} and quality of reasoning in {0, 0.5, 0.8, 1}, asked of wrong answers
    only. Unknown where a part that counts is.

    Trap: a wrong answer that a judge calls wholly accurate and well reasoned earns as much as a right one: set ``most``
    below 1.
    """
    soft = minimum(weighted_sum([accuracy, reasoning], [share, 1.0 - share]), as_reward(most))
    total: Reward = weighted_sum([path, when(correct, 1.0, soft), form], list(weights))
    return total


def path_score(
    plan: Reward, executed: Reward, planned: Reward, actions: Reward, covered: Reward, reference: Reward
) -> Reward:
    """``max(S_self, S_ref)``: ``S_self = r_plan (n_exec / n_plan)(n_exec / n_act)``, ``S_ref = (n_cov / n_ref)(n_cov
    / n_act)``.

    ``plan`` in [0, 1] is a judge's view of the plan, the others are counts. A ratio by 0 (no plan, no action, no
    reference) is 0: our reading. Trap: a plan of one step, carried out, gives 1, so ``plan`` must punish it.
    """
    own = plan * _ratio(executed, planned) * _ratio(executed, actions)
    better: Reward = maximum(own, _ratio(covered, reference) * _ratio(covered, actions))
    return better


def _ratio(part: Reward, whole: Reward) -> Reward:
    return when(whole > 0.0, (part / whole).within(0.0, 1.0), 0.0)
