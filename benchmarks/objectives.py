"""Certified optimisation of each objective over one plain cvxpy solve (in pairs).

The plain solve is what a user of cvxpy would write for the least step time of the same
plan: built and solved once, without a proof, exact bandwidths or a choice among ties.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time
from collections.abc import Callable
from statistics import median

import cvxpy as cp
import numpy as np

import libra_planner as lp
from libra_planner.optimizer.optimize import solve
from libra_planner.optimizer.programs.dimensionless import lift
from libra_planner.optimizer.shadow import price_sensitivity, shadow_prices

N_RUNS = 15
OBJECTIVES = {
    "performance": (),
    "performance_per_cost": ("objective=performance_per_cost",),
    "cost": ("objective=cost", 'constraints=["total <= 500 GB/s", "step_time <= 800 ms"]'),
}


def seconds(call: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def plain_solve(problem: lp.Problem) -> float:
    """Least step time by cvxpy alone, bandwidth in GB/s, time in ms."""
    time = problem.step_time
    lifted = lift(time.structure, np.array(time.numbers)[:, None])
    seconds_per_w = lifted.objective[:, 0]
    n_forms = len(lifted.forms)
    b = cp.Variable(problem.topology.n_dims, nonneg=True)
    w = cp.Variable(len(seconds_per_w))
    unit = np.concatenate([np.full(n_forms, 1e-9), np.full(len(seconds_per_w) - n_forms, 1e-3)])
    rows = [lifted.rows[..., 0] * unit / 1e-3 @ w + lifted.offsets[:, 0] <= 0]
    reciprocals = [w[:n_forms] >= cp.inv_pos(lifted.forms @ b)]
    objective = cp.Minimize(seconds_per_w * unit / 1e-3 @ w)
    model = cp.Problem(objective, [*rows, *reciprocals, cp.sum(b) == 500])
    return float(model.solve(solver=cp.CLARABEL))


def with_prices(problem: lp.Problem) -> None:
    """The optimum and all its derivatives."""
    solution = solve(problem)
    shadow_prices(problem, solution)
    price_sensitivity(problem, solution)


def main() -> None:
    """Print table rows."""
    example = lp.example("01_gpt3_4d")
    base = lp.load_plan(example)
    ideal_ms = (lp.optimize(base).objective - base.compute_s) * 1e3
    if abs(plain_solve(base) / ideal_ms - 1) > 1e-6:
        raise SystemExit("the plain solve does not find the optimum")
    for name, settings in OBJECTIVES.items():
        problem = lp.load_plan(example, settings)
        for what, call in (("", lp.optimize), (" with shadow prices", with_prices)):
            call(problem)
            pairs = [
                (seconds(lambda c=call, p=problem: c(p)), seconds(lambda: plain_solve(base)))
                for _ in range(N_RUNS)
            ]
            ratios = [ours / plain for ours, plain in pairs]
            row = f"{min(ratios):.1f} | {median(ratios):.1f} | {max(ratios):.1f}"
            print(f"| certified `{name}`{what} over one plain cvxpy solve | {row} |")
    print(f"| one plain cvxpy solve, ms | | {median(plain for _, plain in pairs) * 1e3:.1f} | |")


if __name__ == "__main__":
    main()
