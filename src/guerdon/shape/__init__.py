"""Shaping: pure functions on scores, usable on rewards (they build a node) and on scores (they compute)."""

from guerdon.shape._agreement import kendall
from guerdon.shape._along import delta, gain, until
from guerdon.shape._classes import (
    ALL_FAIL,
    ALL_PASS,
    MIXED,
    group_class,
    group_log_mean,
    group_statistic,
    label_statistic,
    stratify,
)
from guerdon.shape._criteria import contrasting, label_correlation
from guerdon.shape._dag import dag_gate
from guerdon.shape._embedding import skew_preference
from guerdon.shape._ensemble import (
    ensemble_lower_bound,
    ensemble_mean,
    ensemble_min,
    ensemble_spread,
    merge_uncertain,
)
from guerdon.shape._gates import base_bonus, cap, choose, fallback, gate, gated_sum, soft_and, soft_gate
from guerdon.shape._length import length_penalty
from guerdon.shape._live import ever_positive, live_rate
from guerdon.shape._maps import affine, arctan, clip, exp, gaussian, log, log_sigmoid, power, sigmoid, tanh
from guerdon.shape._members import known, only, over_best
from guerdon.shape._normalise import centre, minmax, normalised_sum, ordinal, rank, zscore
from guerdon.shape._pareto import dominance, pareto_front
from guerdon.shape._pool import pooled
from guerdon.shape._running import (
    running_clip,
    running_mean,
    running_minmax,
    running_quantile_scale,
    running_zscore,
    spread_weight,
)
from guerdon.shape._schedule import anneal, calls, pace_weights, self_paced
from guerdon.shape._spearman import spearman
from guerdon.shape._sums import items, weighted_items, weighted_mean, weighted_sum
from guerdon.shape._tiers import quantise, tiered
from guerdon.shape._tournament import bradley_terry, copeland, elo, mean_over_others, win_rate
from guerdon.shape._votes import mutual_clusters, vote_share

__all__ = [
    "ALL_FAIL", "ALL_PASS", "MIXED", "affine", "anneal", "arctan", "base_bonus", "bradley_terry", "calls", "cap",
    "centre", "choose", "clip", "contrasting", "copeland", "dag_gate", "delta", "dominance", "elo",
    "ensemble_lower_bound", "ensemble_mean", "ensemble_min", "ensemble_spread", "ever_positive", "exp", "fallback",
    "gain", "gate", "gated_sum", "gaussian", "group_class", "group_log_mean", "group_statistic", "items", "kendall",
    "known", "label_correlation", "label_statistic", "length_penalty", "live_rate", "log", "log_sigmoid",
    "mean_over_others", "merge_uncertain", "minmax", "mutual_clusters", "normalised_sum", "only", "ordinal",
    "over_best", "pace_weights", "pareto_front", "pooled", "power", "quantise", "rank", "running_clip",
    "running_mean", "running_minmax", "running_quantile_scale", "running_zscore", "self_paced", "sigmoid",
    "skew_preference", "soft_and", "soft_gate", "spearman", "spread_weight", "stratify", "tanh", "tiered", "until",
    "vote_share", "weighted_items", "weighted_mean", "weighted_sum", "win_rate", "zscore",
]  # fmt: skip
