"""The best of 20^4 purchasable designs, vectorised, and over a plain Python loop (in pairs)."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import itertools
import time
from dataclasses import replace
from statistics import median

import libra_planner as lp
from libra_planner.costs.prices import LinkOption
from libra_planner.evaluation import max_violation
from libra_planner.optimizer.catalogue import best_purchasable
from libra_planner.problem import Problem

N_OPTIONS = 20
N_LOOP = 500
N_RUNS = 11
FASTEST_BYTES_PER_S = (500e9, 200e9, 100e9, 50e9)


def plan() -> Problem:
    """GPT-3 4D with 20 speeds per dimension, 10 % dearer by the port, under two rules."""
    problem = lp.load_plan(
        lp.example("01_gpt3_4d"), ['constraints=["total <= 500 GB/s", "cost <= 20 M$"]']
    )
    prices = problem.price_usd_per_Bps
    options = [
        [LinkOption(b * k / N_OPTIONS, 1, 1.1 * p * b * k / N_OPTIONS) for k in range(1, 21)]
        for b, p in zip(FASTEST_BYTES_PER_S, prices, strict=True)
    ]
    prices = replace(problem.prices, options=tuple(map(tuple, options)))
    return replace(problem, prices=prices)


def loop_seconds(problem: Problem) -> float:
    """Seconds of a loop over all designs, from a sample of them."""
    speeds = [[o.bandwidth_bytes_per_s for o in options or ()] for options in problem.options]
    sample = itertools.islice(itertools.product(*speeds), 0, None, N_OPTIONS**4 // N_LOOP)
    start = time.perf_counter()
    n_done = 0
    for design in sample:
        if max_violation(problem, design) <= 1e-9:
            problem.step_time.seconds(design)
            problem.cost_usd(design)
        n_done += 1
    return (time.perf_counter() - start) * N_OPTIONS**4 / n_done


def main() -> None:
    """Print two table rows."""
    problem = plan()
    best_purchasable(problem)
    seconds, ratios = [], []
    for _ in range(N_RUNS):
        start = time.perf_counter()
        best_purchasable(problem)
        seconds.append(time.perf_counter() - start)
        ratios.append(loop_seconds(problem) / seconds[-1])
    for name, values in (
        ("seconds for the best of 20^4 purchasable designs", seconds),
        ("a plain Python loop over that", ratios),
    ):
        print(f"| {name} | {min(values):.3g} | {median(values):.3g} | {max(values):.3g} |")


if __name__ == "__main__":
    main()
