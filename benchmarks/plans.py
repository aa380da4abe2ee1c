"""Structures of a sweep: a plain cvxpy solve over one plan built (in pairs), and the whole sweep.

The structures are topologies of 4,096 NPUs in 2 to 4 dimensions, rings, fully connected groups
and switches, with TP 8 to 128, of the full GPT-3 and of LIBRA's table. Drawn at random, hardly
two have the same traffic; in the order of a sweep, those that differ in their blocks do. Times
are of the processor: plans are built by one thread, and the solver has one too.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import yaml
from objectives import plain_solve

import libra_planner as lp
from libra_planner.errors import SpecError
from libra_planner.plan.problem import build_plan
from libra_planner.sweeps.solver import Solver
from libra_planner.sweeps.spec import Sweep, chunk_between, job_of, load_sweep

N_RUNS, N_PLANS = 5, 200
WORKLOADS = {"gpt3": {"global_batch": 4096}, "gpt3-libra": {}}


def sweep_of(folder: Path, workload: str, **changes: object) -> Sweep:
    """One design of each structure; a switch as a chiplet has no price, so not all are plans."""
    topologies = {"npus": 4096, "dims": "2..4", "blocks": ["RI", "FC", "SW"]}
    sweep = {
        "base": {
            "workload": workload,
            **WORKLOADS[workload],
            "fabric": {"topology": "{shape}"},
            "parallelism": {"tp": "{tp}", "dp": "{4096 // tp}"},
            "cost_model": "libra-ispass24",
            "constraints": ["total == 500 GB/s", "pod <= 50 GB/s"],
        },
        "axes": {
            "tp": [8, 16, 32, 64, 128],
            "shape": {"factorizations": topologies, "tiers": ["chiplet", "package", "node", "pod"]},
        },
    }
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump(sweep | changes))
    return load_sweep(path)


def build_s(sweep: Sweep, first: int) -> float:
    """Mean processor seconds of a plan among consecutive designs."""
    job, chunk = job_of(sweep), chunk_between(sweep, first, first + N_PLANS)
    times = []
    for i in range(chunk.n):
        start = time.process_time()
        try:
            build_plan(job.template.filled(chunk.values(i)), job.template.beside)
        except SpecError:
            continue
        times.append(time.process_time() - start)
    return sum(times) / len(times)


def solve_s(problem: lp.Problem) -> float:
    """Processor seconds of one plain cvxpy solve, the median of a few."""
    times = []
    for _ in range(5):
        start = time.process_time()
        plain_solve(problem)
        times.append(time.process_time() - start)
    return median(times)


def sweep_rate(sweep: Sweep, first: int) -> float:
    """Structures per processor second, each built and its one design solved."""
    solver, chunk = Solver(job_of(sweep)), chunk_between(sweep, first, first + N_PLANS)
    start = time.process_time()
    solver.solved(chunk)
    return chunk.n / (time.process_time() - start)


def row(name: str, values: Sequence[float], digits: int = 1) -> None:
    """One line of the table."""
    cells = (f"{value:,.{digits}f}" for value in (min(values), median(values), max(values)))
    print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    """Print table rows."""
    problem = lp.load_plan(lp.example("01_gpt3_4d"))
    sample = {"sample": {"method": "random", "n": N_RUNS * N_PLANS}, "seed": 1}
    with tempfile.TemporaryDirectory() as name:
        for workload in WORKLOADS:
            orders = {
                "in a sweep's order": sweep_of(Path(name), workload),
                "drawn at random": sweep_of(Path(name), workload, **sample),
            }
            for order, sweep in orders.items():
                starts = [i * (sweep.space.n // N_RUNS) for i in range(N_RUNS)]
                build_s(sweep, starts[-1])  # Loads what is loaded once.
                pairs = [(solve_s(problem), build_s(sweep, first)) for first in starts]
                what = f"{workload} structures {order}"
                row(f"one plain cvxpy solve over one plan: {what}", [a / b for a, b in pairs])
                row("the same, ms per plan", [1e3 * b for _, b in pairs], 2)
                rates = [sweep_rate(sweep, first) for first in starts]
                row("the same, built and solved in a sweep, per second", rates, 0)


if __name__ == "__main__":
    main()
