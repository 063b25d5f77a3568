"""Credit: from scores to advantages of rollouts, steps and tokens."""

from guerdon.credit._group import group_relative, leave_one_out

__all__ = ["group_relative", "leave_one_out"]
