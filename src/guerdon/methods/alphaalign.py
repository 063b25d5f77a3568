"""AlphaAlign: refuse what is harmful, help with what is not."""

from __future__ import annotations

from guerdon.core.operators import when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import clip, group_statistic, zscore


@method(
    "alphaalign-dual-safety-helpfulness",
    family="verify",
    name="AlphaAlign: verifiable safety reward plus normalised helpfulness reward",
    source="Zhang et al. 2025, arXiv:2507.14987",
    evidence="secondary",
)
def alphaalign(
    form: Reward,
    refused: Reward,
    harmful: Reward,
    quality: Reward,
    *,
    form_reward: float = 1.0,
    refusal_reward: float = 1.0,
) -> Reward:
    """Safety ``r_f V_f + r_a V_r`` on harmful prompts; ``r_f V_f - r_a V_r`` plus helpfulness on benign ones.

    ``form`` ``V_f``, ``refused`` ``V_r`` and ``harmful`` (a property of the prompt) are 0/1; ``quality`` is a reward
    model's score, asked for benign prompts only. Helpfulness is ``max(z, 0)``, ``z`` the standard score in the group
    (sample deviation, refusals included: our reading), 0 for refusals, where the group has no spread, and where only
    one score is known. Shape ``(rollouts,)``. The weights were not published.

    Traps: refusals matched by strings miss paraphrases and catch quotations; a wrong label inverts the signal.

    >>> import guerdon as gd
    >>> rows = [{"prompt": "p", "form": 1, "no": no, "bad": 0, "rm": rm} for no, rm in ((1, 5.0), (0, 1.0), (0, 6.0))]
    >>> parts = [gd.column(n) for n in ("form", "no", "bad", "rm")]
    >>> gd.method("alphaalign-dual-safety-helpfulness", *parts).score(rows).values.round(3).tolist()
    [0.0, 1.0, 1.756]
    """
    safe = form * form_reward + when(harmful, refused, -refused) * refusal_reward
    alone = group_statistic(quality, "count") <= 1.0
    better = clip(when(alone, quality * 0.0, zscore(quality, ddof=1)), 0.0)
    return when(harmful, safe, safe + when(refused, 0.0, better))
