"""Sweeps end to end: designs per second to parquet, two workers over one, and memory.

Rates count everything: the chunk's rules, the solver, the proof, the parquet file and its fsync.
`python benchmarks/sweep.py million` also runs 1,000,000 designs on two workers.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

import numpy as np
import psutil
import yaml

from libra_planner.optimizer.optimize import optimize_program
from libra_planner.sweeps.cases import pieces
from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.solver import Solver
from libra_planner.sweeps.spec import Sweep, chunk_of, job_of, load_sweep

N_RUNS = 5
BASE = {
    "workload": "gpt3-libra",
    "fabric": {
        "topology": "RI(4)_FC(8)_RI(4)_SW(32)",
        "tiers": ["chiplet", "package", "node", "pod"],
    },
    "parallelism": {"tp": 16, "dp": 256},
    "cost_model": "libra-ispass24",
    "constraints": ["total == {budget} GB/s", "pod <= {cap} GB/s", "dim1 >= {floor} GB/s"],
}


def sweep_of(folder: Path, n_budgets: int, **changes: object) -> Sweep:
    """n_budgets x 100 designs of GPT-3 4D with three rules."""
    axes = {
        "budget": {"from": 100, "to": 1000, "n": n_budgets},
        "cap": {"from": 5, "to": 50, "n": 10},
        "floor": {"from": 10, "to": 100, "n": 10},
    }
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump({"base": BASE, "axes": axes} | changes))
    return load_sweep(path)


def rate(sweep: Sweep, n_workers: int) -> float:
    """Designs per second of the second half of a run: all workers have started by then."""
    times: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        run_sweep(
            sweep,
            Path(folder) / "run",
            n_workers=n_workers,
            watch=lambda progress: times.append((time.perf_counter(), progress.n_solved)),
        )
    (start, before), (end, after) = times[len(times) // 2], times[-1]
    return (after - before) / (end - start)


def overhead(sweep: Sweep) -> float:
    """Time of a solved and written chunk over that of its optimisation alone."""
    job, chunk = job_of(sweep), chunk_of(sweep, 1)
    solver = Solver(job)
    solver.solved(chunk)
    (rows,) = chunk.alike(job.template.structural)
    (piece,) = pieces(solver.case(chunk, 0), chunk, rows, np.full(chunk.n, "", dtype=object))
    start = time.perf_counter()
    solver.solved(chunk)
    middle = time.perf_counter()
    optimize_program(piece.program)
    return (middle - start) / (time.perf_counter() - middle)


def row(name: str, values: list[float], digits: int = 0) -> None:
    """One line of the table."""
    cells = (f"{value:,.{digits}f}" for value in (min(values), median(values), max(values)))
    print(f"| {name} | {' | '.join(cells)} |")


def million(folder: Path) -> None:
    """1,000,000 designs on two workers: time and the most memory of all processes."""
    sweep = sweep_of(folder, 10_000)
    peak, done = [0.0], threading.Event()

    def look() -> None:
        while not done.wait(0.5):
            own = psutil.Process()
            parts = [own, *own.children(recursive=True)]
            peak[0] = max(peak[0], sum(part.memory_info().rss for part in parts) / 1e9)

    thread = threading.Thread(target=look)
    thread.start()
    start = time.perf_counter()
    run_sweep(sweep, folder / "run", n_workers=2)
    seconds = time.perf_counter() - start
    done.set()
    thread.join()
    print(f"| 1,000,000 designs to parquet on two workers, s | | {seconds:,.0f} | |")
    print(f"| most memory of all processes together, GB | | {peak[0]:.2f} | |")


def main() -> None:
    """Print table rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for objective in ("performance", "performance_per_cost"):
            fixed = {"set": {"fixed_cost": "100 M$"}, "objective": objective}
            sweep = sweep_of(folder, 100, **fixed)
            rates = [rate(sweep, 0) for _ in range(N_RUNS)]
            row(f"designs per second to parquet, one process, `{objective}`", rates)
        sweep = sweep_of(folder, 1000)
        row("solving and writing over solving", [overhead(sweep) for _ in range(N_RUNS)], 2)
        pairs = [(rate(sweep, 1), rate(sweep, 2)) for _ in range(N_RUNS)]
        row("two workers over one", [two / one for one, two in pairs], 2)
        if "million" in sys.argv:
            million(folder)


if __name__ == "__main__":
    main()
