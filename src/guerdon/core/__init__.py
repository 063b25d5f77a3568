"""The kernel: axes, scores, rollouts, expressions and their evaluation."""
