"""Trainers and ecosystems: a reward in the form that each of them calls."""

from guerdon.connect.trl import AsyncTrlReward, TrlReward, for_trl

__all__ = ["AsyncTrlReward", "TrlReward", "for_trl"]
