"""The optimizer: from a :class:`~libra_planner.problem.Problem` to a certified design."""
