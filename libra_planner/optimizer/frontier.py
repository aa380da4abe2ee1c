"""Designs on the time/cost frontier and lines under it.

Each weighting ``a T + d C`` that is solved with a proven bound e gives a line
``a T + d C >= e`` that every design lies above. The frontier (least T for a given C) is
convex and lies above all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from libra_planner.optimizer.centred import Centred
from libra_planner.optimizer.convex import ConvexPoint
from libra_planner.optimizer.lines import Corner, Line, corners, curve_span
from libra_planner.optimizer.program import Weights, communication
from libra_planner.optimizer.weighted import Optimum, certified, interior

_LINE_GAP = 1e-8
"""Relative distance of a line's bound and design that is enough while searching."""


@dataclass(frozen=True)
class Sample:
    """A design on the frontier."""

    point: ConvexPoint
    weights: Weights
    cost: float
    time: float


@dataclass
class Frontier:
    """Designs and lines found so far.

    Parameters
    ----------
    centred : the program and its compiled form.
    constant, fixed : compute time and fixed cost in the program's units.
    curve : proven bound on communication * network cost, whatever the scale.
    """

    centred: Centred
    constant: float
    fixed: float
    curve: float = 0.0
    lines: list[Line] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def product(self, cost: float, time: float) -> float:
        """Step time * cost, in the program's units."""
        return (self.constant + time) * (self.fixed + cost)

    def sample(self, point: ConvexPoint, weights: Weights) -> Sample:
        """A design and where it lies."""
        program = self.centred.program
        cost, time = float(program.price @ point.b), communication(program, point.b)
        return Sample(point, weights, cost, time)

    def add(self, weights: Weights) -> None:
        """Solve one weighting: a design and a line."""
        program = self.centred.program
        start = interior(program, weights, self.centred.model, polished=False)
        self.certify(start, weights)

    def certify(self, start: ConvexPoint, weights: Weights) -> Optimum:
        """Note the line of a weighting whose optimum is nearly known."""
        optimum = certified(self.centred.program, weights, start.b, good_gap=_LINE_GAP)
        self.lines.append(Line(weights.time, weights.cost, optimum.bound))
        point = ConvexPoint(optimum.b, optimum.form_weights)
        self.samples.append(self.sample(point, weights))
        return optimum

    def worst(self) -> tuple[float, Corner]:
        """The least product over the region above lines and curve, and the corner near it."""
        found = corners(self.lines)
        ends = [found[0].cost, *(corner.cost for corner in found), np.inf]
        products = [self.least_at(c, ends[i], ends[i + 2]) for i, c in enumerate(found)]
        i = int(np.argmin(products))
        return products[i], found[i]

    def least_at(self, corner: Corner, left_end: float, right_end: float) -> float:
        """The least product near a corner: there, or on the curve where that cuts it off.

        The ends are the costs of the neighboring corners.
        """
        if corner.time * corner.cost >= self.curve:
            return self.product(corner.cost, corner.time)
        low, high = curve_span(corner, self.curve, left_end, right_end)
        # (K + m/c)(F + c) is least at c = sqrt(m F / K).
        lowest = np.sqrt(self.curve * self.fixed / self.constant) if self.constant else np.inf
        cost = min(max(lowest, low), high)
        return self.curve if np.isinf(cost) else self.product(cost, self.curve / cost)

    def best(self) -> Sample:
        """The sample with the least product."""
        return min(self.samples, key=lambda s: self.product(s.cost, s.time))
