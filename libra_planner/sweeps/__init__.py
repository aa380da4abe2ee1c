"""Sweeps: a plan under every combination of the values of its axes, solved in chunks."""
