"""Routing policies that know all flows: each gives every flow one path.

See ``docs/routing.md`` for what each policy optimises and what is proven of it.
"""

from __future__ import annotations

from libra_planner.flows.annealing import annealing
from libra_planner.flows.bound import Bound
from libra_planner.flows.coloring import edge_coloring
from libra_planner.flows.greedy import greedy
from libra_planner.flows.ilp import min_max_ilp
from libra_planner.flows.two_level import collective_speeds, two_level_max_min

__all__ = [
    "Bound",
    "annealing",
    "collective_speeds",
    "edge_coloring",
    "greedy",
    "min_max_ilp",
    "two_level_max_min",
]
