"""A design together with the problem it answers."""

from __future__ import annotations

from dataclasses import dataclass

from libra_planner.optimizer.design import Design
from libra_planner.problem import Problem


@dataclass(frozen=True)
class Solution:
    """A certified design and the problem it answers.

    Parameters
    ----------
    design : the optimum.
    problem : with a group's own optima and the number of chunks that were found on the way.
    has_neighbors : whether problems nearby have optima of the same kind; not so for a step
        without traffic, a catalogue or a relative group.
    settled : whether it is known to be the one that C9 chooses among equally good designs.
    """

    design: Design
    problem: Problem
    has_neighbors: bool = False
    settled: bool = True
