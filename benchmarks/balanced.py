"""Certified optimisation of balanced schedules over that of the fixed order (in pairs).

One all-reduce over all dimensions and one over every pair of neighbours: 2^D - 1 linear forms in D
dimensions, beside D of the fixed order. The cap on dim1 leaves the optimum to be chosen among many.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import numpy as np

from libra_planner.fabric.topology import parse_topology
from libra_planner.optimizer.optimize import optimize, optimize_program
from libra_planner.optimizer.programs.plans import BatchProgram
from libra_planner.problem import Prices, Problem, Rule, plain_problem
from libra_planner.step.collectives.algorithms import plain_network
from libra_planner.step.collectives.models import Balanced, CollectiveModel, Ideal
from libra_planner.step.expression import Constant, TimeExpression, add
from libra_planner.workload.operations import Collective, CollectiveKind, Group

N_RUNS, N_DESIGNS = 9, 1000
GB = 1e9


def problem(n_dims: int, model: CollectiveModel, objective: str) -> Problem:
    """500 GB/s in total, at most 100 of them on dim1."""
    topology = parse_topology("_".join(["SW(4)"] * n_dims))
    network, parts = plain_network(topology), [range(n_dims)]
    parts += [range(i, i + 2) for i in range(n_dims - 1)]
    terms = [Constant(0.5)]
    for part in parts:
        group = Group(tuple(4 if i in part else 1 for i in range(n_dims)), (1,) * n_dims)
        terms.append(model.time(Collective(CollectiveKind.ALL_REDUCE, 5e9, "dp"), group, network))
    axes = np.eye(n_dims)
    rules = (
        Rule("total", (1.0,) * n_dims, "==", 500 * GB),
        Rule("dim1", tuple(axes[0]), "<=", 100 * GB),
    )
    prices = Prices(tuple(float(2**i) * 1e-6 for i in range(n_dims)))
    plan = plain_problem(topology, TimeExpression(add(terms), n_dims), prices, rules)
    return replace(plan, objective=objective)


def seconds(call: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def batch(plan: Problem) -> Callable[[], object]:
    """A batch of budgets."""
    program = BatchProgram.repeated(plan, N_DESIGNS)
    bounds = np.array(program.bounds)
    bounds[:, 0] = np.linspace(400, 800, N_DESIGNS) * GB
    return lambda: optimize_program(replace(program, bounds=bounds))


def main() -> None:
    """Print table rows."""
    for n_dims in (3, 4, 5, 6):
        for objective in ("performance", "performance_per_cost"):
            plans = [problem(n_dims, model, objective) for model in (Balanced(), Ideal())]
            calls = [lambda plan=plan: optimize(plan) for plan in plans]
            show(f"{n_dims} dimensions, `{objective}`: one plan", calls, N_RUNS)
            show(f"the same, {N_DESIGNS:,} in a batch", [batch(plan) for plan in plans], 3)


def show(what: str, calls: list[Callable[[], object]], n_runs: int) -> None:
    """One row: least, median and largest ratio, and the time of ours."""
    for call in calls:
        call()
    pairs = [(seconds(calls[0]), seconds(calls[1])) for _ in range(n_runs)]
    ratios = [ours / fixed for ours, fixed in pairs]
    row = f"{min(ratios):.1f} | {median(ratios):.1f} | {max(ratios):.1f}"
    ours_ms = 1e3 * median(ours for ours, _ in pairs)
    print(f"| {what}: balanced over fixed order ({ours_ms:.0f} ms) | {row} |", flush=True)


if __name__ == "__main__":
    main()
