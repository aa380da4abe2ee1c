"""Designs to begin with: equal bandwidth, and the nearest to it that rules with == leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from libra_planner.units import BYTES_PER_S_PER_GBPS, gigabytes_per_s

if TYPE_CHECKING:
    from libra_planner.problem import Problem

_DIGITS = 12
"""Of a solved bandwidth: what rounding errors leave alone."""


def equal_split_GBps(problem: Problem) -> tuple[float, ...]:
    """The plan's total, or 100 GB/s each without one, spread evenly over the dimensions.

    Of a plan that is priced by its bill its first option: nothing else has a bill (C22).
    """
    if problem.prices.bills is not None:
        return tuple(map(gigabytes_per_s, problem.prices.bills.options[0].bandwidth_Bps))
    n_dims, total = problem.topology.n_dims, problem.total_bandwidth_bytes_per_s()
    each = 100.0 if total is None else gigabytes_per_s(total) / n_dims
    return (each,) * n_dims


def starting_GBps(problem: Problem) -> tuple[float, ...]:
    """The design nearest to the equal split that meets every rule with ``==``.

    What rules fix alone or together is at their values; the equal split itself where it meets
    them, where nothing above 0 does, and where the plan is priced by its bill.
    """
    import numpy as np

    from libra_planner.problem import RULE_TOLERANCE

    equal = equal_split_GBps(problem)
    rules = [rule for rule in problem.rules if rule.sense == "==" and any(rule.coefficients)]

    def meets(design_GBps: tuple[float, ...]) -> bool:
        speeds = np.array(design_GBps) * BYTES_PER_S_PER_GBPS
        return all(rule.relative_excess(speeds) <= RULE_TOLERANCE for rule in rules)

    if problem.prices.bills is not None or meets(equal):
        return equal
    rows = np.array([rule.coefficients for rule in rules])
    sizes = np.linalg.norm(rows, axis=1)
    bounds = np.array([rule.bound for rule in rules]) / BYTES_PER_S_PER_GBPS
    missing = (bounds - rows @ equal) / sizes
    change = np.linalg.lstsq(rows / sizes[:, None], missing, rcond=None)[0]
    found = tuple(float(f"{value:.{_DIGITS}g}") for value in (equal + change).tolist())
    return found if min(found) > 0 and meets(found) else equal
