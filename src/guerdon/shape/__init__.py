"""Shaping: pure functions on scores, usable on rewards (they build a node) and on scores (they compute)."""

from guerdon.shape._classes import (
    ALL_FAIL,
    ALL_PASS,
    MIXED,
    group_class,
    group_statistic,
    label_statistic,
    stratify,
)
from guerdon.shape._gates import base_bonus, cap, choose, gate, gated_sum, soft_and, soft_gate
from guerdon.shape._length import length_penalty
from guerdon.shape._maps import affine, arctan, clip, exp, gaussian, log, log_sigmoid, power, sigmoid, tanh
from guerdon.shape._normalise import centre, minmax, normalised_sum, ordinal, rank, whiten, zscore
from guerdon.shape._sums import weighted_items, weighted_mean, weighted_sum

__all__ = [
    "ALL_FAIL", "ALL_PASS", "MIXED", "affine", "arctan", "base_bonus", "cap", "centre", "choose", "clip", "exp", "gate",
    "gated_sum", "gaussian", "group_class", "group_statistic", "label_statistic", "length_penalty", "log",
    "log_sigmoid", "minmax", "normalised_sum", "ordinal", "power", "rank", "sigmoid", "soft_and", "soft_gate",
    "stratify", "tanh", "weighted_items", "weighted_mean", "weighted_sum", "whiten", "zscore",
]  # fmt: skip
