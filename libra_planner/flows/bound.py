"""What is proven of the largest load of a link."""

from __future__ import annotations

from dataclasses import dataclass

_EXACT = 1e-6
"""Relative difference of seconds up to which a solver calls them equal."""


@dataclass(frozen=True)
class Bound:
    """What is known about the largest load of a choice on a link between switches.

    The load is a number of flows; where flows differ in size, or links in speed, it is the
    seconds that a link takes for its bytes at full speed.

    Parameters
    ----------
    objective : the choice's own.
    dual_bound : no choice has less.
    gap_fraction : (objective - dual_bound) / objective.
    optimal : whether the two are equal.
    """

    objective: float
    dual_bound: float

    @property
    def gap_fraction(self) -> float:
        """Part of the objective that might be saved."""
        return 0.0 if self.optimal else 1 - self.dual_bound / self.objective

    @property
    def optimal(self) -> bool:
        """Whether no choice has a smaller maximum."""
        return self.objective <= self.dual_bound * (1 + _EXACT)
