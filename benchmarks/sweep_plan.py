"""What `sweep plan` says of a sweep's time over what its run takes, both in processor time.

One, two and three whole models over fabrics and budgets, with and without a rule on cost.
`python benchmarks/sweep_plan.py large` also runs 100,002 designs (two minutes).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import sys
import tempfile
from pathlib import Path
from time import process_time

import yaml

from libra_planner.sweeps.effort.estimate import estimate
from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.spec import Sweep, load_sweep

MODELS = ("llama3-8b", "llama2-7b", "llama2-13b")
ON_COST = "cost <= 25 M$"
BASE = {
    "workload": "{model}",
    "parallelism": {"tp": 4, "pp": 2, "dp": 64},
    "global_batch": 512,
    "npu": "h100-sxm",
    "fidelity": "calibrated",
    "fabric": {"topology": "{shape}"},
    "cost_model": "clos-2026",
    "fixed_cost": {"npu": "h100-sxm", "per_npu": "6 k$"},
}
SHAPES = {
    "topologies": ["SW(8)_SW(64)", "SW(8)_[SW(16)_SW(4)]", "SW(8)_[SW(32)_SW(2)]"],
    "tiers": {2: ["node", "leaf"], 3: ["node", "leaf", "spine"]},
}
RULES = ["leaf >= 0 GB/s", *(f"taper(spine) == {taper}" for taper in (1, 2, 4))]


def sweep_of(folder: Path, n_models: int, n_budgets: int, *, on_cost: bool) -> Sweep:
    """Seven rules and fabrics of each model and budget."""
    rules = ["total == {budget} GB/s", "{rule}", *([ON_COST] if on_cost else [])]
    axes = {
        "model": list(MODELS[:n_models]),
        "shape": SHAPES,
        "rule": RULES,
        "budget": {"from": 100, "to": 1000, "n": n_budgets},
    }
    where = f"(n_dims(shape) == 2) == (rule == {RULES[0]!r})"
    path = folder / "sweep.yaml"
    base = BASE | {"constraints": rules}
    path.write_text(yaml.safe_dump({"base": base, "axes": axes, "where": where}))
    return load_sweep(path)


def compare(n_models: int, n_budgets: int, *, on_cost: bool) -> None:
    """One line of the table."""
    with tempfile.TemporaryDirectory() as name:
        sweep = sweep_of(Path(name), n_models, n_budgets, on_cost=on_cost)
        said_s = estimate(sweep).core_s
        start = process_time()
        run_sweep(sweep, Path(name) / "run")
        seconds = process_time() - start
    what = f"{n_models} models, {sweep.space.n:,} designs{', cost' if on_cost else ''}"
    print(f"| sweep plan over run: {what} | {said_s / seconds:.2f} |", flush=True)


def main() -> None:
    """Print table rows."""
    for n_models in (1, 2, 3):
        for on_cost in (True, False):
            for n_budgets in (10, 451):
                compare(n_models, n_budgets, on_cost=on_cost)
    if "large" in sys.argv:
        compare(2, 7143, on_cost=True)


if __name__ == "__main__":
    main()
