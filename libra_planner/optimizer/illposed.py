"""Plans whose optimum is not attained by any design, and what to add to them (C8)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from libra_planner.errors import IllPosed
from libra_planner.optimizer.linear import OPTIMAL, solve_lp
from libra_planner.optimizer.program import rule_rows
from libra_planner.optimizer.wellposed import bandwidth_bounds, bandwidth_units
from libra_planner.problem import Problem, Rule
from libra_planner.step.expression import Array, Mask

_NOTHING = 1e-12
"""Least network cost, over the cost at the rules' own sizes, that counts as nothing."""


def check_bounded(problem: Problem, upper: Array) -> None:
    """Performance: every dimension with traffic needs an upper bound.

    Raises
    ------
    IllPosed
        Upward: more bandwidth is always faster.
    """
    endless = _endless(problem, upper)
    if endless.any():
        raise _ill_posed(
            problem,
            f"got no rule that bounds the bandwidth of {_names(problem, endless)}, "
            f"expected one for each dimension with traffic (more is always faster, C8); "
            f"add e.g. 'total <= 500 GB/s' or 'cost <= 20 M$'",
        )


def check_time_limited(problem: Problem) -> None:
    """Cost: a step-time bound is what holds the bandwidth up.

    Raises
    ------
    IllPosed
        Downward: without one less bandwidth is always cheaper.
    """
    if not problem.step_time_limits:
        raise _ill_posed(
            problem,
            "got objective cost without a step-time bound, expected one (less bandwidth is always "
            "cheaper, C8); add e.g. 'step_time <= 900 ms'",
        )


def check_product(problem: Problem, upper: Array) -> None:
    """Performance per cost: the product must not go on falling downward or upward.

    Raises
    ------
    IllPosed
        Upward with a fixed cost, downward without one, or scale-free.
    """
    endless = _endless(problem, upper)
    scale_free = not problem.compute_s and not problem.fixed_cost_usd
    if endless.any() and problem.fixed_cost_usd:
        raise _ill_posed(
            problem,
            f"got a fixed cost but no rule that bounds the bandwidth of "
            f"{_names(problem, endless)}, expected one for each dimension with traffic (upward, "
            f"C8: beside a fixed cost ever more bandwidth can pay); add e.g. 'total <= 500 GB/s'",
        )
    limited = bool(problem.step_time_limits)
    if scale_free and not limited and (endless.any() or _may_be_free(problem)):
        raise _ill_posed(
            problem,
            "got neither compute nor a fixed cost: step time x cost is scale-free, designs of all "
            "sizes tie (C8); fix the size, e.g. with 'total == 500 GB/s'",
        )
    if not problem.fixed_cost_usd and not limited and _may_be_free(problem):
        raise _ill_posed(
            problem,
            "got performance_per_cost under rules that a network of no cost meets, with neither a "
            "fixed cost nor a step-time bound (downward, C8: step time x cost goes on falling as "
            "all bandwidths shrink); add e.g. 'total == 500 GB/s', 'step_time <= 900 ms' or "
            "fixed_cost",
        )


def attains_product(problem: Problem, upper: Array) -> bool:
    """Whether :func:`check_product` has nothing against the problem."""
    try:
        check_product(problem, upper)
    except IllPosed:
        return False
    return True


def affordable(problem: Problem, cost_usd: float) -> tuple[Problem, Array]:
    """The problem with a bound on system cost, and what that makes of bandwidth's bounds.

    Returns
    -------
    The problem with a further rule, and upper bounds in bytes/s, shape (n_dims,).

    Raises
    ------
    IllPosed
        When a dimension with traffic has none: its bandwidth is free and without limit.
    """
    spare = cost_usd - problem.fixed_cost_usd
    cap = Rule("cost", tuple(map(float, problem.price_usd_per_Bps)), "<=", spare, "$", 1.0)
    capped = replace(problem, rules=(*problem.rules, cap))
    _, upper = bandwidth_bounds(capped)
    endless = _endless(problem, upper)
    if endless.any():
        raise _ill_posed(
            problem,
            f"got bandwidth of {_names(problem, endless)} that costs nothing and that no rule "
            f"bounds, expected a price or a bound for each dimension with traffic (C8)",
        )
    return capped, upper


def _endless(problem: Problem, upper: Array) -> Mask:
    return np.isinf(upper) & problem.step_time.dims_with_traffic


def _may_be_free(problem: Problem) -> bool:
    """Whether some vector under the linear rules costs nothing."""
    unit = bandwidth_units(problem.rules, problem.topology.n_dims)
    rows = rule_rows(problem.rules, unit)
    price = problem.price_usd_per_Bps * unit
    price = price / (price.sum() or 1.0)
    solution = solve_lp(price, rows.upper, rows.limit, rows.equal, rows.target)
    return solution.status == OPTIMAL and solution.value <= _NOTHING


def _names(problem: Problem, dims: Mask) -> str:
    return ", ".join(np.array(problem.topology.labels)[dims])


def _ill_posed(problem: Problem, message: str) -> IllPosed:
    return IllPosed(f"{problem.at('constraints')}{message}")
