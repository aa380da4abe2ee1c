"""The least product of step time and cost, with a proof (C8: performance per cost).

T * C is quasi-concave, so over the region above the frontier's lines it is least at a
corner: that corner's product is a proven lower bound, and the next line is put through
it, as steep as the product's own contour there. Several local optima are no obstacle:
the corner with the least product is worked on wherever it is.
"""

from __future__ import annotations

import numpy as np

from libra_planner.errors import IllPosed, SolverFailed
from libra_planner.optimizer.centred import Centred
from libra_planner.optimizer.frontier import Frontier, Sample
from libra_planner.optimizer.linear import OPTIMAL, CutModel
from libra_planner.optimizer.lines import Corner, Line
from libra_planner.optimizer.program import CHEAPEST, FASTEST, Weights
from libra_planner.optimizer.scale_free import least_scale_free_product
from libra_planner.optimizer.weighted import interior, polished

_CLOSED = 2e-7
"""Relative distance of bound and best product at which the search ends: a fifth of C9's."""

_MOST_LINES = 150
_FLAT = 20
"""Lines after which the product is so flat along the frontier that its scale may be free."""

_TOUCHING = 1e-8
_REFINEMENTS = 12
_NEAR = 1e-3
"""Change of the weights (log) within reach of Newton steps from the last design."""

_SETTLED = 1e-9
"""Relative change of the weights at which an optimum counts as found."""

_NOTHING = 1e-9
"""Cost, over a typical design's, that counts as nothing."""

_TIE = 1e-9
_ANOTHER = 1e-2
"""Products within the first and costs apart by the second (relative) are two optima."""


def next_weights(frontier: Frontier, corner: Corner) -> Weights:
    """Along the product's contour at the corner, if that lies between its two lines."""
    time, cost = frontier.constant + corner.time, frontier.fixed + corner.cost
    steep, flat = corner.left.slope, corner.right.slope
    slope = time / cost if time > 0 and cost > 0 else 0.0
    margin = 1e-3 * (min(steep, 1e3 * (slope or 1.0)) - flat)
    if not flat + margin < slope < steep - margin:
        steep = min(steep, 1e4 * max(flat, slope, 1e-8))
        slope = np.sqrt(steep * max(flat, 1e-4 * steep))
    return Weights(1 / (1 + slope), slope / (1 + slope))


def least_product(centred: Centred, constant: float, fixed: float) -> tuple[Frontier, Sample, bool]:
    """Close the gap between the best product and the lines' bound; best sample, and if unique.

    Raises
    ------
    IllPosed
        When nothing but the scale is left to choose.
    SolverFailed
        When the gap does not close.
    """
    frontier = Frontier(centred, constant, fixed)
    frontier.certify(centred.point, centred.weights)
    _add_ends(frontier)
    settled = _settled(frontier, frontier.best())
    for n_lines in range(_MOST_LINES):
        if n_lines == _FLAT:
            frontier.curve = _scale_free_curve(frontier)
        bound, corner = frontier.worst()
        least = frontier.product(settled.cost, settled.time)
        if least - bound <= _CLOSED * least:
            break
        frontier.add(next_weights(frontier, corner))
        found = frontier.best()
        if frontier.product(found.cost, found.time) < least * (1 - _CLOSED):
            settled = _settled(frontier, found)
    else:
        if not constant and not fixed:
            raise IllPosed(
                "got neither compute nor a fixed cost: step time x cost is scale-free, designs of "
                "many sizes tie (C8); fix the size, e.g. with 'total == 500 GB/s'"
            )
        raise SolverFailed("the lines under the time/cost frontier did not close in on it")
    return frontier, *_cheapest_optimum(frontier, settled)


def _add_ends(frontier: Frontier) -> None:
    """Lines for the least cost and the least time."""
    program = frontier.centred.program
    if np.isfinite(program.time_limit):
        frontier.add(CHEAPEST)
        if frontier.fixed + frontier.samples[-1].cost <= _NOTHING:
            raise IllPosed(
                "got a network that costs nothing and meets every rule: step time x cost is zero "
                "(C8); use objective performance, or add prices or fixed_cost"
            )
    else:
        model = CutModel(program, CHEAPEST, np.inf)
        solution = model.minimize(model.cost)
        if solution.status == OPTIMAL:
            model.incumbent = max(solution.value, 0.0) * (1 + 1e-9) + 1e-12
        frontier.lines.append(Line(0.0, 1.0, max(model.lower_bound()[0], 0.0)))
    frontier.add(FASTEST)


def _scale_free_curve(frontier: Frontier) -> float:
    """A curve under the frontier, where a network cannot be free; else none."""
    least_cost = max(line.bound / line.cost for line in frontier.lines if not line.time)
    if least_cost <= _NOTHING:
        return 0.0
    bound = least_scale_free_product(frontier.centred.program, least_cost)
    return bound * (1 - _TOUCHING)  # A line that touches the curve then lies above it.


def _settled(frontier: Frontier, start: Sample) -> Sample:
    """The local optimum near a sample: where the weights are the product's own slope.

    Secant steps on the logarithm of the slope; linearising T * C at a design and solving
    that weighting never makes the product worse, so the step in between is safe.
    """
    program = frontier.centred.program
    best, slopes, errors = start, [], []
    current = start
    for _ in range(_REFINEMENTS):
        wanted = (frontier.constant + current.time) / (frontier.fixed + current.cost)
        used = current.weights.cost / current.weights.time if current.weights.time else np.inf
        slopes.append(np.log(used) if 0 < used < np.inf else np.log(wanted))
        errors.append(np.log(wanted) - slopes[-1])
        if abs(errors[-1]) <= _SETTLED and current is not start:
            break
        slope = float(np.exp(_secant(slopes, errors)))
        weights = Weights(1 / (1 + slope), slope / (1 + slope))
        near = abs(errors[-1]) <= _NEAR
        point = (
            polished(program, weights, current.point)
            if near
            else interior(program, weights, frontier.centred.model, polished=False)
        )
        current = frontier.sample(point, weights)
        if frontier.product(current.cost, current.time) <= frontier.product(best.cost, best.time):
            best = current
    frontier.samples.append(best)
    return best


def _secant(at: list[float], error: list[float]) -> float:
    """Next estimate of the root; the plain step where the last two say nothing."""
    plain = at[-1] + error[-1]
    if len(at) < 2 or error[-1] == error[-2] or at[-1] == at[-2]:
        return plain
    step = -error[-1] * (at[-1] - at[-2]) / (error[-1] - error[-2])
    return at[-1] + step if 0 < step / error[-1] < 30 else plain


def _cheapest_optimum(frontier: Frontier, settled: Sample) -> tuple[Sample, bool]:
    """Of several optima with one product the cheapest, and whether there was only one."""
    least = frontier.product(settled.cost, settled.time)
    unique = True
    for other in list(frontier.samples):
        apart = abs(other.cost - settled.cost) > _ANOTHER * (frontier.fixed + settled.cost)
        near = frontier.product(other.cost, other.time) <= least * (1 + 100 * _CLOSED)
        if not (apart and near):
            continue
        rival = _settled(frontier, other)
        tied = frontier.product(rival.cost, rival.time) <= least * (1 + _TIE)
        if tied and abs(rival.cost - settled.cost) > _ANOTHER * (frontier.fixed + settled.cost):
            unique = False
            settled = min(settled, rival, key=lambda s: s.cost)
    return settled, unique
