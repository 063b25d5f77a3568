"""Credit: from scores to advantages of rollouts, steps and tokens.

Group comparison (`group_relative`, `leave_one_out`, `place_relative`...), running forms (`prefix_min`, `returns`...),
temporal differences (`gae`, `n_step`...), reducers of step scores, spreading to tokens, and statistics of a batch.
"""

from guerdon.credit._batch import batch_whiten, gdpo, reinforce_plus_plus
from guerdon.credit._cumulative import drop, left, place, prefix_mean, prefix_min, prefix_sum, returns, suffix_min
from guerdon.credit._first_error import before_error, first_error
from guerdon.credit._group import group_relative, leave_one_out, token_leave_one_out
from guerdon.credit._minimum import soft_min
from guerdon.credit._passk import pass_at_k, pass_at_k_advantage
from guerdon.credit._places import end_advantage, place_leave_one_out, place_relative, position_advantage
from guerdon.credit._reduce import geometric_mean, harmonic_mean, log_product, logit_sum, position_mean
from guerdon.credit._returns import gae, lambda_return, n_step, potential_shaping, window_mean
from guerdon.credit._spread import pay_last, spread
from guerdon.credit._tree import node_relative, node_share, node_value
from guerdon.credit._within import rollout_relative

__all__ = [
    "batch_whiten", "before_error", "drop", "end_advantage", "first_error", "gae", "gdpo", "geometric_mean",
    "group_relative", "harmonic_mean", "lambda_return", "leave_one_out", "left", "log_product", "logit_sum",
    "n_step", "node_relative", "node_share", "node_value", "pass_at_k", "pass_at_k_advantage", "pay_last", "place",
    "place_leave_one_out", "place_relative", "position_advantage", "position_mean", "potential_shaping",
    "prefix_mean", "prefix_min", "prefix_sum", "reinforce_plus_plus", "returns", "rollout_relative", "soft_min",
    "spread", "suffix_min", "token_leave_one_out", "window_mean",
]  # fmt: skip
