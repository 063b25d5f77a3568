"""DIVER: a right answer earns more if its formulas, or its words, are nobody else's."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np

from guerdon.core.interval import UNIT
from guerdon.core.operators import maximum, minimum, when
from guerdon.core.reward import Reward, as_reward
from guerdon.core.scores import Scores
from guerdon.core.transform import transform
from guerdon.credit._rollouts import whole
from guerdon.methods._registry import method
from guerdon.shape import anneal, group_statistic
from guerdon.shape._groups import TOO_FEW, Groups, cells

READ = 1000
"""Characters of a text that are read."""
WEIGHTS = (0.02, 0.1, 0.15, 0.25, 0.38)
_FORMULA = re.compile(r"\\\[(.*?)\\\]|\\\((.*?)\\\)|\$\$?(.*?)\$\$?", re.DOTALL)


@method(
    "diver-global-diversity-reward",
    family="intrinsic",
    name="DIVER: diversity-incentivised exploration",
    source="Hu et al. 2025, arXiv:2509.26209",
    evidence="code-read",
)
def diver(
    correct: Reward,
    equations: Reward,
    overlap: Reward | None = None,
    step: Reward | float = 0.0,
    *,
    mode: Literal["mix", "eq"] = "mix",
    equation_weight: float = 1.0,
    text_weight: float = 0.0,
    until: float = 100.0,
) -> Reward:
    """``R = r + bonus``: the bonus goes to right rollouts only, is capped, and ends at training ``step`` ``until``.

    ``"mix"``: ``s_eq min(D_eq, 0.42) + s_bl (1 - max(bleu, 0.09))``; ``"eq"``: ``s_eq min(D_eq, 0.68) acc decay``,
    ``acc`` the group's mean ``r``. ``correct``: ``r``, 0/1; ``equations``: ``D_eq``, `unique_share` of the formulas;
    ``overlap``: mean `mutual_bleu` with the others; in [0, 1], one per rollout. Advantage: `credit.group_relative`
    with ``ddof=1, eps=1e-6``. Weights 1 and 0 are those of the released script. The paper presents it as a potential;
    the code adds it before normalising, as here; ``gamma Phi(s') - Phi(s)`` is `credit.potential_shaping`.

    The released decay, ``cos(min(1, (step - 100) / 50) pi / 2)``, starts at -1 and pays for uniformity in the first 50
    steps; here it falls by cosine from 1 to 0. Traps: nonsense formulas raise ``D_eq``, hence the caps and the gate by
    ``r``; texts under five words share no 5-gram, so that BLEU is 0 even between equals; unknown for one alone.
    """
    if mode not in ("mix", "eq"):
        raise ValueError(f'mode={mode!r}: choose "mix" or "eq"')
    now = as_reward(step)
    if mode == "eq":
        capped = minimum(equations, as_reward(0.68)) * equation_weight * group_statistic(correct)
        bonus = capped * anneal(now, over=until, kind="cosine")
    else:
        bonus = minimum(equations, as_reward(0.42)) * equation_weight
        if overlap is not None and text_weight:
            bonus = bonus + (1.0 - maximum(overlap, as_reward(0.09))) * text_weight
    return correct + when(correct, when(now < until, bonus, 0.0), 0.0)


@transform("methods.unique_share", version=1, groups=True, axis=lambda x: "rollout", range=lambda x: UNIT)
def unique_share(x: Scores) -> Scores:
    """Share of a rollout's different items (formulas, as numbers) that no other rollout of its group has; in [0, 1].

    ``x`` lies on an axis of its own; equal numbers are one item, also within a rollout, so repeats change nothing. 0
    without items. A rollout with an unknown item is unknown and takes no part; one alone in its group is unknown.
    """
    rollout, owner = x.axis.ancestor("rollout"), x.axis.owner_in("rollout")
    known, _ = whole(x)
    heard = np.ones(rollout.size, dtype=np.bool_)
    heard[owner[~known]] = False
    at = np.flatnonzero(known)
    own, count, holder = cells(owner[at], x.values[at])
    value = np.zeros(count)
    value[own] = x.values[at]
    prompt = rollout.owner_in("prompt")
    shared, _, _ = cells(prompt[holder], value)
    alone = np.bincount(shared)[shared] == 1 if count else np.zeros(0, dtype=np.bool_)
    total = np.bincount(holder, minlength=rollout.size)
    share = np.bincount(holder, weights=alone, minlength=rollout.size) / np.maximum(total, 1)
    members = Groups(share, heard, prompt, rollout.ancestor("prompt").size)
    enough = members.at(members.members >= 2).astype(bool)
    out = Scores.of(rollout, np.where(heard & enough, share, 0.0), heard & enough, "an item is unknown")
    if out.reasons is not None:
        out.reasons[heard & ~enough] = TOO_FEW
    return out


def formulas(text: str) -> set[str]:
    r"""The formulas between ``\[ \]``, ``\( \)`` or dollars in the first 1000 characters.

    Differs from the released patterns, which miss a formula with a bracket of its own kind inside, ``\(f(x)\)``, and
    read ``$$a$$`` as empty formulas.

    >>> sorted(formulas(r"so $a+b$, \(c\) and again $$a+b$$"))
    ['a+b', 'c']
    """
    found = ("".join(groups).strip() for groups in _FORMULA.findall(text[:READ]))
    return {formula for formula in found if formula}


def formula_numbers(texts: Sequence[str]) -> list[list[float]]:
    """Each text's formulas as numbers that mean the same in all of them: a column for `unique_share`."""
    number: dict[str, float] = {}
    return [[number.setdefault(f, float(len(number))) for f in sorted(formulas(text))] for text in texts]


def mutual_bleu(texts: Sequence[str]) -> list[float | None]:
    """Each text's mean over the others of ``(BLEU5(i, j) + BLEU5(j, i)) / 2``; ``None`` for a text alone.

    Weights `WEIGHTS` (they add up to 0.9), no smoothing, words split at white space, the first 1000 characters.
    """
    words = [text[:READ].split() for text in texts]
    grams = [[Counter(zip(*[w[k:] for k in range(n)], strict=False)) for n in range(1, 6)] for w in words]
    sizes, n = [len(w) for w in words], len(texts)
    if n < 2:
        return [None] * n
    bleu = [[_bleu(grams[i], grams[j], sizes[i], sizes[j]) if i != j else 0.0 for j in range(n)] for i in range(n)]
    return [sum(bleu[i][j] + bleu[j][i] for j in range(n)) / 2.0 / (n - 1) for i in range(n)]


def _bleu(said: list[Counter[tuple[str, ...]]], other: list[Counter[tuple[str, ...]]], mine: int, theirs: int) -> float:
    common = [(a & b).total() for a, b in zip(said, other, strict=True)]
    if not all(common):
        return 0.0
    logs = sum(w * math.log(c / a.total()) for w, c, a in zip(WEIGHTS, common, said, strict=True))
    return math.exp(logs + min(0.0, 1.0 - theirs / mine))
