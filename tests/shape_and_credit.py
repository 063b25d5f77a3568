"""One expression or more for every block of shape and credit, and rollouts to try them on.

A test that runs over `BLOCKS` runs over the whole of both rooms. Numbers of a column are NaN-free; `EXTREME` ones reach
to the ends of the floats.
"""

from __future__ import annotations

import numpy as np

import guerdon as gd
from guerdon import credit, shape

LARGEST = float(np.finfo(np.float64).max)
CALM = (0.0, 0.25, 0.5, 1.0, 0.1 + 0.2, 1 / 3)
EXTREME = (
    (0.0, -0.0, 1.0, -1.0, 0.5, LARGEST, -LARGEST, 1e308, -1e308, 1e200, -1e155, 1e16, 5e-324, 1e-308, -1e-200, 1e-155),
    (LARGEST, 1e308, -1e308, 1.0),
    (5e-324, -5e-324, 1e-308, 2.2250738585072014e-308, 0.0, -0.0, 1e-155, 2e-160),
    CALM,
)
"""Numbers that are drawn from together: ends of both kinds, only large ones, only tiny ones, ordinary ones."""


def blocks(low=-np.inf, high=np.inf):
    """Expressions by name (and what is special, after a colon), on columns that declare these bounds."""
    X, Y = (gd.column(n, range=(low, high)) for n in "xy")
    S, W = (gd.column(n, axis="step", range=(low, high)) for n in "sw")
    B, CHECK = gd.column("b", range=(0, 1)), gd.column("check", axis="criterion", range=(0, 1))
    K, NODE = gd.column("k", axis="step", range=(0, 2)), gd.column("node", axis="step")
    CHILD, PARENT = (gd.column(n, axis="edge") for n in ("child", "parent"))
    BEATS = gd.column("beats", axis="opponent", range=(low, high))
    VECTOR = gd.column("vector", axis="dimension", range=(low, high))
    STRENGTH = gd.column("strength", axis="block", range=(low, high))
    READING = gd.column("reading", axis="reading", range=(low, high))
    OF = gd.column("of", axis="reading")
    return {
        "affine": shape.affine(X, -2, 0.3),
        "anneal": shape.anneal(X, over=0.5, kind="cosine", start=0.3, end=0.1),
        "anneal: linear": shape.anneal(X, over=7.0),
        "anneal: exponential": shape.anneal(X, over=7.0, kind="exponential", start=0.1, end=0.3),
        "arctan": shape.arctan(X),
        "base_bonus": shape.base_bonus(X, Y),
        "batch_whiten": credit.batch_whiten(X),
        "batch_whiten: by items": credit.batch_whiten(X, S, ddof=0, eps=0.0),
        "batch_whiten: mean kept": credit.batch_whiten(S, shift=False),
        "before_error": credit.before_error(S),
        "bradley_terry": shape.bradley_terry(BEATS),
        "calls": shape.calls(X),
        "cap": shape.cap(X, 0.3, unless=B),
        "cap: always": shape.cap(X, Y),
        "centre": shape.centre(X),
        "centre: label": shape.centre(S, across="label"),
        "choose": shape.choose(K, [S, W]),
        "clip": shape.clip(X, 0.2, 0.6),
        "clip: open": shape.clip(X, low=0.1),
        "contrasting": shape.contrasting(S, top=1),
        "copeland": shape.copeland(BEATS),
        "dag_gate": shape.dag_gate(CHECK, parents=[[], [0], [0, 1]]),
        "dag_gate: data": shape.dag_gate(CHECK, CHILD, PARENT, need="any"),
        "delta": shape.delta(S, start=0.25),
        "dominance": shape.dominance([X, Y]),
        "drop": credit.drop(S),
        "drop: before last": credit.drop(S, before_last=True),
        "elo": shape.elo(BEATS, rounds=5),
        "end_advantage": credit.end_advantage(S, B, limit=3, gamma=0.9),
        "ensemble_lower_bound": shape.ensemble_lower_bound(S),
        "ensemble_lower_bound: known": shape.ensemble_lower_bound([X, Y], k=2.0, ddof=0, missing="skip"),
        "ensemble_mean": shape.ensemble_mean([X, Y]),
        "ensemble_mean: known": shape.ensemble_mean(S, missing="skip"),
        "ensemble_min": shape.ensemble_min(S),
        "ensemble_min: known": shape.ensemble_min([X, Y], missing="skip"),
        "ensemble_spread": shape.ensemble_spread([X, Y]),
        "ensemble_spread: known": shape.ensemble_spread(S, ddof=0, missing="skip"),
        "ever_positive": shape.ever_positive(S, X, K, patience=1),
        "exp": shape.exp(X),
        "fallback": shape.fallback(X, Y),
        "first_error": credit.first_error(S),
        "gae": credit.gae(X, S, gamma=0.9, lam=0.5),
        "gae: dense": credit.gae(W, S, gamma=0.9, lam=0.5),
        "gain": shape.gain(S, start=0.1),
        "gate": shape.gate(X, [B, Y >= 0.1], failed=[-1, -0.5]),
        "gated_sum": shape.gated_sum([X, Y, B], [0.1, 0.5]),
        "gaussian": shape.gaussian(X, 0.5),
        "gdpo": credit.gdpo([X, Y]),
        "gdpo: by items": credit.gdpo([X, Y], S, weights=[1.0, -2.0]),
        "geometric_mean": credit.geometric_mean(S),
        "geometric_mean: known": credit.geometric_mean(S, missing="skip"),
        "group_class": shape.group_class(X),
        "group_log_mean": shape.group_log_mean(X),
        "group_relative": credit.group_relative(X, ddof=1, eps=1e-6),
        "group_relative: centred": credit.group_relative(X, scale="none"),
        "group_statistic": shape.group_statistic(X, "std", where=B, ddof=1),
        "group_statistic: mean": shape.group_statistic(X),
        "group_statistic: sum": shape.group_statistic(X, "sum"),
        "group_statistic: empty": shape.group_statistic(X, "var", where=B, empty=0.5),
        "harmonic_mean": credit.harmonic_mean(S),
        "harmonic_mean: known": credit.harmonic_mean(S, missing="skip"),
        "items": shape.items(S),
        "kendall": shape.kendall(S, W),
        "kendall: strict": shape.kendall(S, W, ties="discordant"),
        "known": shape.known(X),
        "label_correlation": shape.label_correlation(S, X),
        "label_statistic": shape.label_statistic(S, "var"),
        "lambda_return": credit.lambda_return(X, S, gamma=0.9, lam=0.5),
        "leave_one_out": credit.leave_one_out(X),
        "left": credit.left(S),
        "length_penalty": shape.length_penalty(X, budget=0.5, buffer=0.2),
        "length_penalty: linear": shape.length_penalty(X, budget=3, kind="linear", rate=0.1, most=0.7),
        "live_rate": shape.live_rate(S, X, K),
        "log": shape.log(X, 1e-6),
        "log: no floor": shape.log(X),
        "log_product": credit.log_product(S),
        "log_sigmoid": shape.log_sigmoid(X),
        "logit_sum": credit.logit_sum(S),
        "mean_over_others": shape.mean_over_others(BEATS),
        "merge_uncertain": shape.merge_uncertain(X, Y),
        "merge_uncertain: mean": shape.merge_uncertain(X, Y, values="mean"),
        "minmax": shape.minmax(X, low=-1, high=3),
        "minmax: within": shape.minmax(X, within=B),
        "mutual_clusters": shape.mutual_clusters(BEATS >= 0.5),
        "n_step": credit.n_step(X, S, n=2, gamma=0.9),
        "n_step: dense": credit.n_step(W, S, n=2, gamma=0.9),
        "node_relative": credit.node_relative(X, NODE),
        "node_relative: std": credit.node_relative(X, NODE, scale="std", prune=0.0),
        "node_relative: centred": credit.node_relative(X, NODE, scale="none"),
        "node_share": credit.node_share(NODE),
        "node_value": credit.node_value(X, NODE),
        "normalised_sum": shape.normalised_sum([X, Y]),
        "normalised_sum: known": shape.normalised_sum({"x": X, "y": Y}, {"x": 2, "y": 1}, missing="renormalise"),
        "only": shape.only(X, where=B),
        "ordinal": shape.ordinal(X),
        "over_best": shape.over_best(X),
        "pace_weights": shape.weighted_sum([X, Y], shape.pace_weights(0.2, (0.0, 1.0), 0.25).tolist()),
        "pareto_front": shape.pareto_front([X, Y]),
        "pass_at_k": credit.pass_at_k(X, k=2),
        "pass_at_k_advantage": credit.pass_at_k_advantage(X, k=2),
        "pass_at_k_advantage: centred": credit.pass_at_k_advantage(X, k=1, scale="none"),
        "pay_last": credit.pay_last(S, X, weight=-0.5),
        "place": credit.place(S),
        "place_leave_one_out": credit.place_leave_one_out(S),
        "place_leave_one_out: labelled": credit.place_leave_one_out(S, K),
        "place_relative": credit.place_relative(S),
        "place_relative: labelled": credit.place_relative(S, K, ddof=1, eps=1e-6, least=1),
        "pooled": shape.pooled(READING, OF, S),
        "pooled: sum": shape.pooled(READING, OF, S, pool="sum"),
        "position_advantage": credit.position_advantage(S, B, limit=3, gamma=0.9),
        "position_mean": credit.position_mean(S),
        "position_mean: known": credit.position_mean(S, growth=1.0, missing="skip"),
        "potential_shaping": credit.potential_shaping(S, X, gamma=0.9),
        "potential_shaping: open": credit.potential_shaping(S, absorb=False),
        "power": shape.power(X, 1.5),
        "prefix_mean": credit.prefix_mean(S),
        "prefix_mean: known": credit.prefix_mean(S, missing="skip"),
        "prefix_min": credit.prefix_min(S),
        "prefix_min: known": credit.prefix_min(S, missing="skip"),
        "prefix_sum": credit.prefix_sum(S),
        "prefix_sum: known": credit.prefix_sum(S, missing="skip"),
        "quantise": shape.quantise(X),
        "rank": shape.rank(X),
        "reinforce_plus_plus": credit.reinforce_plus_plus(X, S),
        "reinforce_plus_plus: discounted": credit.reinforce_plus_plus(X, S, gamma=0.9, group_baseline=True),
        "returns": credit.returns(S, gamma=0.9),
        "returns: known": credit.returns(S, missing="skip"),
        "rollout_relative": credit.rollout_relative(S),
        "rollout_relative: picked": credit.rollout_relative(S, K >= 1.0, ddof=0, eps=0.0),
        "running_clip": shape.running_clip(X),
        "running_mean": shape.running_mean(X),
        "running_minmax": shape.running_minmax(X),
        "running_quantile_scale": shape.running_quantile_scale(X),
        "running_zscore": shape.running_zscore(X),
        "self_paced": shape.self_paced([X, Y]),
        "sigmoid": shape.sigmoid(X, 3, 0.5),
        "skew_preference": shape.skew_preference(VECTOR, STRENGTH),
        "soft_and": shape.soft_and([X, Y]),
        "soft_gate": shape.soft_gate(X, Y),
        "soft_min": credit.soft_min(S),
        "spearman": shape.spearman(S, W),
        "spearman: order": shape.spearman(S),
        "spread": credit.spread(X, S),
        "spread: last": credit.spread(X, S, how="last"),
        "spread: share": credit.spread(X, S, how="share"),
        "spread_weight": shape.spread_weight(X),
        "stratify": shape.stratify(X, by=B),
        "suffix_min": credit.suffix_min(S),
        "suffix_min: known": credit.suffix_min(S, missing="skip"),
        "tanh": shape.tanh(X),
        "tiered": shape.tiered(X, [0.1, 0.5], [0, 1, -1]),
        "token_leave_one_out": credit.token_leave_one_out(S, width=4),
        "token_leave_one_out: longest": credit.token_leave_one_out(S),
        "until": shape.until(S >= 0.5),
        "vote_share": shape.vote_share(X),
        "vote_share: others": shape.vote_share(X, others=True),
        "weighted_items": shape.weighted_items(S, W, classes=K, missing="skip"),
        "weighted_items: whole": shape.weighted_items(S, W),
        "weighted_mean": shape.weighted_mean({"x": X, "y": Y}, {"x": 2, "y": 1}, missing="renormalise"),
        "weighted_sum": shape.weighted_sum([X, Y], [2, -1], missing={"1": 0.5}),
        "win_rate": shape.win_rate(BEATS),
        "window_mean": credit.window_mean(S, width=2, gamma=0.8),
        "zscore": shape.zscore(X, ddof=1, eps=1e-6),
        "zscore: label": shape.zscore(S, across="label"),
    }


BLOCKS, UNIT_BLOCKS = blocks(), blocks(0.0, 1.0)


def random_rollouts(seed, numbers=CALM, *, unknown=True, most=7):
    """Rollouts of up to three prompts, with up to four steps each and a comparison with every member of their group."""
    rng = np.random.default_rng(seed)
    none = [None] if unknown else []

    def some(choices, size):
        return [choices[i] for i in rng.integers(0, len(choices), size)]

    values, verdicts = [*numbers, *none * (len(numbers) // 4 + 1)], [0.0, 1.0, 1.0, *none]
    prompts, rows = some("abc", int(rng.integers(0, most + 1))), []
    for prompt in prompts:
        size, edges, readings = (int(n) for n in rng.integers(0, (5, 3, 4)))
        branches = "".join(some("01", size))
        rows.append({
            "prompt": prompt, "x": some(values, 1)[0], "y": some(values, 1)[0], "b": some(verdicts, 1)[0],
            "s": some(values, size), "w": some(values, size), "k": some([0.0, 1.0, 2.0], size),
            "node": [int("1" + branches[: t + 1], 2) for t in range(size)],  # a binary tree's, by the way to it
            "check": some(verdicts, 3), "child": some([1, 2], edges), "parent": some([0, 1], edges),
            "beats": some(values, prompts.count(prompt)), "vector": some(values, 4), "strength": some(values, 2),
            "reading": some(values, readings), "of": some(range(max(size, 1)), readings),
        })  # fmt: skip
    return rows
