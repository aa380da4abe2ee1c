"""Designs of one structure optimised at once, over cvxpy design by design (in rounds).

GPT-3 on the 4D fabric at budgets from 100 to 1000 GB/s. The batch is certified and free of
ties (C9); cvxpy solves the same scaled program, without a proof, (a) built anew for every
design, (b) compiled once with the budget as a parameter.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

import cvxpy as cp
import numpy as np

import libra_planner as lp
from libra_planner.optimizer.optimize import BatchResult, optimize_program
from libra_planner.optimizer.programs.dimensionless import Program
from libra_planner.optimizer.programs.plans import (
    BatchProgram,
    Plans,
    per_cost_plans,
    program_near,
)

N_BATCH, N_REBUILT, N_COMPILED, N_ROUNDS = 10_000, 10, 40, 9
_SOLVERS_OWN = 1e-5
"""Relative error that the solver's default tolerances leave."""

TYPICAL = np.full(4, 1.25e11)


@dataclass(frozen=True)
class Model:
    """cvxpy's problem with the budget over that of a typical design as a parameter."""

    problem: cp.Problem
    budget: cp.Parameter
    unit: float

    def objective(self, total_bytes_per_s: float) -> float:
        """The optimum at a budget, as the solver reports it."""
        self.budget.value = total_bytes_per_s / TYPICAL.sum()
        return float(self.problem.solve(solver=cp.CLARABEL)) * self.unit


def model(problem: lp.Problem) -> Model:
    """The dimensionless program in cvxpy's words."""
    per_cost = problem.objective == "performance_per_cost"
    plans = Plans.of(BatchProgram.of([problem]))
    plans = per_cost_plans(plans) if per_cost else plans
    typical = np.append(TYPICAL, 1.0) / problem.cost_usd(TYPICAL) if per_cost else TYPICAL
    program = program_near(plans, typical[:, None])
    b = cp.Variable(len(typical), nonneg=True)
    w = cp.Variable(len(program.time), nonneg=True)
    budget = cp.Parameter(nonneg=True, value=1.0)
    share = TYPICAL / TYPICAL.sum()
    rules = [share @ b[:4] == (budget * b[4] if per_cost else budget)]
    if per_cost:
        rules.append(program.equal[-1:, :, 0] @ b == program.target[-1:, 0])
    unit = float(program.time_unit_s[0])
    objective = cp.Minimize(program.time[:, 0] @ w + float(program.constant_s[0]) / unit)
    rows = [*_time_rows(program, b, w), *rules]
    return Model(cp.Problem(objective, rows), budget, unit)


def _time_rows(program: Program, b: cp.Variable, w: cp.Variable) -> list[cp.Constraint]:
    reciprocals = w[: program.n_forms] >= cp.inv_pos(program.forms[..., 0] @ b)
    return [reciprocals, program.rows[..., 0] @ w + program.offsets[:, 0] <= 0]


def seconds_each(call: Callable[[], object], n_designs: int) -> float:
    """Wall time of a call per design."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) / n_designs


def sweep(problem: lp.Problem, n: int) -> BatchProgram:
    """The problem at n budgets."""
    bounds = np.linspace(1e11, 1e12, n)[:, None]
    return replace(BatchProgram.repeated(problem, n), bounds=bounds)


def check(result: BatchResult, program: BatchProgram, compiled: Model) -> None:
    """Stop unless all designs are certified, without help, and cvxpy agrees."""
    if result.n_resolved or (result.status != "optimal").any():
        raise SystemExit(f"{result.n_resolved} designs needed the reference")
    for i in range(0, program.n, program.n // 20):
        theirs = compiled.objective(float(program.bounds[i, 0]))
        if abs(result.objective[i] / theirs - 1) > _SOLVERS_OWN:
            raise SystemExit(f"design {i}: {result.objective[i]} here, {theirs} by cvxpy")


def figures(problem: lp.Problem) -> tuple[list[float], list[float], list[float]]:
    """Designs per second, and ratios to cvxpy rebuilt and compiled, of every round."""
    program, compiled = sweep(problem, N_BATCH), model(problem)
    check(optimize_program(program), program, compiled)
    budgets = np.linspace(1e11, 1e12, N_COMPILED)
    few = budgets[:: N_COMPILED // N_REBUILT]
    rates, rebuilt_ratios, compiled_ratios = [], [], []
    for _ in range(N_ROUNDS):
        ours = seconds_each(lambda: optimize_program(program), N_BATCH)
        built = seconds_each(lambda: [model(problem).objective(x) for x in few], len(few))
        again = seconds_each(lambda: [compiled.objective(x) for x in budgets], N_COMPILED)
        rates.append(1 / ours)
        rebuilt_ratios.append(built / ours)
        compiled_ratios.append(again / ours)
    return rates, rebuilt_ratios, compiled_ratios


def main() -> None:
    """Print table rows."""
    for objective in ("performance", "performance_per_cost"):
        problem = lp.load_plan(lp.example("01_gpt3_4d"), [f"objective={objective}"])
        rows = (
            f"certified `{objective}` designs per second in a batch",
            "that over cvxpy built anew for every design",
            "that over cvxpy compiled once",
        )
        for row, values in zip(rows, figures(problem), strict=True):
            print(f"| {row} | {min(values):.0f} | {median(values):.0f} | {max(values):.0f} |")


if __name__ == "__main__":
    main()
