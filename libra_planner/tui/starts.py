"""Designs to begin with: equal bandwidth, and the nearest to it that the rules leave."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

from libra_planner.units import BYTES_PER_S_PER_GBPS, format_bandwidth, gigabytes_per_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from libra_planner.evaluation import Evaluation
    from libra_planner.problem import Problem, Rule

_DIGITS = 12
"""Of a solved bandwidth: what rounding errors leave alone."""
_LEAST = 1e-3
"""Of equal bandwidth: a design to begin with starves no dimension."""
_NOTHING = 1e-12
"""A residual that is rounding: no design meets the rules."""


def equal_split_GBps(problem: Problem, design_GBps: Sequence[float] = ()) -> tuple[float, ...]:
    """The total of the plan, else of a design, else 100 GB/s each, spread evenly.

    It is what figures "vs equal bandwidth" compare that design to. Of a plan that is priced by its
    bill its first option: nothing else has a bill (C22).
    """
    if problem.prices.bills is not None:
        return tuple(map(gigabytes_per_s, problem.prices.bills.options[0].bandwidth_Bps))
    n_dims, total = problem.topology.n_dims, problem.total_bandwidth_bytes_per_s()
    of_design = fsum(design_GBps) / n_dims if len(design_GBps) == n_dims else 100.0
    each = of_design if total is None else gigabytes_per_s(total) / n_dims
    return (each,) * n_dims


def equal_words(problem: Problem, equal: Sequence[float]) -> str:
    """What was spread."""
    if problem.prices.bills is not None:
        return "the first option of prices: bill; nothing else has a bill"
    each = f"{equal[0]:,.6g} GB/s in each dimension, whatever the rules say"
    return f"{fsum(equal):,.6g} GB/s spread evenly: {each}"


def equals_note(evaluations: Sequence[Evaluation]) -> str:
    """What "vs equal" means where it is not the same for all designs; else empty."""
    each = [one.equal.bandwidth_bytes_per_s[0] for one in evaluations if one.equal.possible]
    if len(set(each)) < 2:
        return ""
    span = f"{format_bandwidth(min(each))} to {format_bandwidth(max(each))} each"
    return f"vs equal: each design's own total, spread evenly ({span})"


def starting_GBps(problem: Problem) -> tuple[float, ...]:
    """The design nearest to the equal split that meets the rules.

    The equal split itself where it meets them, where nothing above 0 does, and where the plan is
    priced by its bill.
    """
    import numpy as np

    from libra_planner.problem import RULE_TOLERANCE

    equal = equal_split_GBps(problem)
    rules = [rule for rule in problem.rules if any(rule.coefficients)]

    def meets(design_GBps: tuple[float, ...]) -> bool:
        speeds = np.array(design_GBps) * BYTES_PER_S_PER_GBPS
        return all(rule.relative_excess(speeds) <= RULE_TOLERANCE for rule in rules)

    if problem.prices.bills is not None or meets(equal):
        return equal
    found = _nearest(rules, equal)
    return found if meets(found) else equal


def _nearest(rules: Sequence[Rule], equal: tuple[float, ...]) -> tuple[float, ...]:
    """The design with the least sum of squared changes that meets rules, if there is one.

    The least z with G z >= h, by the residual of nonnegative least squares (Lawson and Hanson,
    Solving Least Squares Problems, 1974, chapter 23, least distance programming).
    """
    import numpy as np
    from scipy.optimize import nnls

    rows = np.array([rule.coefficients for rule in rules])
    sizes = np.linalg.norm(rows, axis=1)
    bounds = np.array([rule.bound for rule in rules]) / BYTES_PER_S_PER_GBPS
    rows, missing = rows / sizes[:, None], (bounds - rows @ equal) / sizes / equal[0]
    above, below = (np.array([rule.sense != sense for rule in rules]) for sense in ("<=", ">="))
    some = np.eye(len(equal))  # Of every dimension.
    system = np.concatenate([rows[above], -rows[below], some])
    needs = np.concatenate([missing[above], -missing[below], np.full(len(equal), _LEAST - 1)])
    unknowns = np.vstack([system.T, needs])
    weights, _ = nnls(unknowns, np.eye(len(unknowns))[-1])
    residual = unknowns @ weights - np.eye(len(unknowns))[-1]
    if abs(residual[-1]) < _NOTHING:
        return equal
    found = (1 - residual[:-1] / residual[-1]) * equal
    return tuple(float(f"{value:.{_DIGITS}g}") for value in found.tolist())
