"""A design together with where it was found, for solving neighbors of its problem."""

from __future__ import annotations

from dataclasses import dataclass

from libra_planner.optimizer.design import Design
from libra_planner.optimizer.program import Program
from libra_planner.optimizer.weighted import Optimum
from libra_planner.problem import Problem


@dataclass(frozen=True)
class Basis:
    """The program that was solved and its optimum.

    Parameters
    ----------
    program : its units are used again for neighbors.
    optimum : in those units.
    per_cost : the program is over (B/C, 1/C), see ``per_cost``.
    """

    program: Program
    optimum: Optimum
    per_cost: bool = False


@dataclass(frozen=True)
class Solution:
    """A certified design, the problem it answers and its basis.

    Parameters
    ----------
    design : the optimum.
    problem : with a group's own optima and the number of chunks that were found on the way.
    basis : ``None`` for a step without traffic, a catalogue or a relative group.
    """

    design: Design
    problem: Problem
    basis: Basis | None = None
