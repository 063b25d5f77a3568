"""CaRL: progress that can be earned once, times soft penalties, ended by a hard one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from guerdon.core.operators import multiply, when
from guerdon.core.reward import Reward
from guerdon.methods._registry import method
from guerdon.shape import gain, until


@method(
    "carl-simple-reward",
    family="shape",
    name="CaRL: single-term route-completion reward",
    source="Jaeger et al. 2025, arXiv:2504.17838",
    evidence="paper-read",
)
def carl(
    progress: Reward, factors: Sequence[Reward] = (), violation: Reward | None = None, *, penalty: float = 1.0
) -> Reward:
    """``r_t = RC_t prod_i p_(i,t) - T_t`` on the step axis; an episode without violations sums to its progress.

    ``progress``: how much is done at each step, in percent; ``RC_t`` is what exceeds the best so far, from 0, so
    waiting and going back and forth earn nothing. ``factors`` in [0, 1], 1 where nothing was violated. ``violation``
    (0/1): the first one ends the episode; that step still earns its progress less ``penalty``, and the steps after
    it get 0.

    Traps: a factor of 0 that early policies can't avoid kills all signal; without discounting nothing urges; the
    high-water mark is our reading of "monotone".

    >>> import guerdon as gd
    >>> done, crash = gd.column("done", axis="step"), gd.column("crash", axis="step")
    >>> rows = [{"done": [30, 10, 50, 90], "crash": [0, 0, 1, 0]}]
    >>> gd.method("carl-simple-reward", done, violation=crash).score(rows).values.tolist()
    [30.0, 0.0, 19.0, 0.0]
    """
    earned = reduce(multiply, factors, gain(progress))
    if violation is None:
        return earned
    return when(until(violation), earned - violation * penalty, 0.0)
