"""Steps of whole models: a plan built, over one whose two layers are listed; vectors evaluated;
rows of sweeps per second.

The plan is Llama 3 405B on 16,384 H100 with tensor, context, data and pipeline parallelism; the
other is LIBRA's table of GPT-3. Times are of the processor, measured in pairs.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

import libra_planner as lp
from libra_planner.plan.problem import load_plan
from libra_planner.sweeps.runner import run_sweep
from libra_planner.sweeps.spec import load_sweep

N_RUNS, N_VECTORS = 20, 1_000_000
PLAN = """\
workload: llama3-405b
parallelism: {tp: 8, cp: 2, pp: 16, dp: 64, interleave: 4}
global_batch: 1024
npu: h100-sxm
fabric:
  topology: SW(8)_[SW(32)_SW(8)_SW(8)]
  tiers: [node, leaf, spine, core]
  scale_up: nvlink4-8
cost_model: clos-2026
constraints: [leaf == 50 GB/s, taper(spine) == 1, taper(core) == 7]
"""


def _seconds(path: Path) -> float:
    start = time.process_time()
    load_plan(path)
    return time.process_time() - start


SWEEPS = {
    "bandwidths": {"nic": {"from": 10, "to": 50, "n": 20}, "taper": {"from": 1, "to": 4, "n": 100}},
    "degrees": {"tp": [2, 4, 8], "pp": [2, 4, 8], "micro": [1, 2], "taper": [1, 2]},
}
"""Axes of two sweeps of Llama 3 70B: one structure, and one for nearly every row."""
_SET = {"constraints": ["leaf <= {nic} GB/s", "taper(spine) == {taper}"]}
_DEGREES = {"tp": "{tp}", "pp": "{pp}", "dp": "{2048 / tp / pp}", "microbatch": "{micro}"}


def rows_per_s(name: str) -> float:
    """Of a sweep, with one process to parquet, in time of the processor."""
    spec = {"base": "0d_llama3_70b", "axes": SWEEPS[name], "set": _SET}
    if name == "degrees":
        rules = ["leaf <= 50 GB/s", "taper(spine) == {taper}"]
        spec["set"] = {"parallelism": _DEGREES, "memory": "ignore", "constraints": rules}
    sweep = load_sweep(spec)
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        run_sweep(sweep, f"{folder}/run")
        return sweep.space.n / (time.process_time() - start)


def main() -> None:
    """Print the figures of README.md."""
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "plan.yaml"
        whole.write_text(PLAN)
        table = lp.example("01_gpt3_4d")
        step = load_plan(whole).step_time
        load_plan(table)
        pairs = [(_seconds(whole), _seconds(table)) for _ in range(N_RUNS)]
    built, ratios = [one for one, _ in pairs], [one / other for one, other in pairs]
    print(f"built: {1e3 * min(built):.1f} ms at best, median {1e3 * median(built):.1f} ms")
    print(f"over LIBRA's table: {min(ratios):.2f} {median(ratios):.2f} {max(ratios):.2f}")
    vectors = np.random.default_rng(0).uniform(1e9, 100e9, (N_VECTORS, 4))
    start = time.process_time()
    step.seconds(vectors)
    rate = N_VECTORS / (time.process_time() - start)
    print(f"vectors evaluated per second: {rate:,.0f}")
    for name in SWEEPS:
        rows_per_s(name)  # What is loaded once does not count.
        found = sorted(rows_per_s(name) for _ in range(3))
        print(f"rows of a sweep over {name} per second: {' '.join(f'{x:,.0f}' for x in found)}")


if __name__ == "__main__":
    main()
