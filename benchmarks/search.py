"""Strategies per second, memory and step time both, beside a plain loop over the same ones."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from libra_planner.api.searches import searched_run
from libra_planner.inputs.training.rows import TrainingRun
from libra_planner.search.space import strategy_space
from libra_planner.workload.memory.npu import memory

BATCHES = [15360]
N_LOOP = 100


def main() -> None:
    """Print both rates."""
    run = TrainingRun(model="deepseek-v3", gpus=2048, gpu_type="h100-sxm")
    found = searched_run(run, BATCHES[:1])
    figures, space = found.search.figures, found.search.space
    bandwidth = found.search.fabrics.whole.upper
    start = time.perf_counter()
    topology = found.base.fabric.network.topology
    space = strategy_space(space.model, topology, BATCHES, space.common)
    fresh = replace(figures, space=space)
    rows = np.arange(space.n)
    fresh.memory_bytes(rows)
    fresh.step_time_s(rows, bandwidth)
    seconds = time.perf_counter() - start
    print(f"{space.n:,} strategies, all with memory and time: {space.n / seconds:,.0f} per second")
    start = time.perf_counter()
    for i in np.linspace(0, space.n - 1, N_LOOP).astype(int).tolist():
        strategy = space.strategy(i)
        memory(space.model, strategy)
        found.search.training(strategy).step_time(found.search.fabrics.model).seconds(bandwidth)
    seconds = time.perf_counter() - start
    print(f"plain loop: {N_LOOP / seconds:,.0f} per second")


if __name__ == "__main__":
    main()
