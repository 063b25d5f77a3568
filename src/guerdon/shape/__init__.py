"""Shaping: pure functions on scores, usable on rewards (they build a node) and on scores (they compute)."""

from guerdon.shape._normalise import centre, minmax, rank, zscore

__all__ = ["centre", "minmax", "rank", "zscore"]
