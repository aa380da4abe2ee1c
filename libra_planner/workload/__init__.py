"""Workloads: what one training step computes and communicates, and between whom."""
