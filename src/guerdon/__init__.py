"""Guerdon: the reward side of reinforcement learning."""
