"""Shapes of models in workload files, and published models by name."""
