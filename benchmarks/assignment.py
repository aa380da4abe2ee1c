"""Seconds to route flows by the policies that know all of them, and the largest load they reach.

The plain side of the greedy ratio is a loop in Python over the same counts.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from libra_planner.fabric.clos import Choice, Clos, Flows
from libra_planner.routing.assignment import annealing, edge_coloring, greedy, two_level_max_min
from libra_planner.routing.loads import imbalance

N_RUNS = 5
POLICIES: dict[str, Callable[[Clos, Flows], Choice]] = {
    "greedy": greedy,
    "edge_coloring": edge_coloring,
    "annealing": lambda fabric, flows: annealing(fabric, flows, seed=0),
    "two_level_max_min": two_level_max_min,
}
LINK = {"host_Bps": 50e9, "uplink_Bps": 50e9, "core_Bps": 50e9}
PODS = {"hosts_per_leaf": 32, "n_leaves": 32, "n_pods": 16, "n_cores": 8, "core_parallel": 4}
CASES = [
    ("32 x 32", Clos(hosts_per_leaf=32, n_leaves=32, n_spines=32, **LINK), 8192),
    ("32 x 31", Clos(hosts_per_leaf=32, n_leaves=32, n_spines=31, **LINK), 8192),
    ("16,384 NPUs, three tiers", Clos(n_spines=32, **PODS, **LINK), 131072),
    ("the same with 31 spines", Clos(n_spines=31, **PODS, **LINK), 131072),
]


def random_flows(fabric: Clos, n: int) -> Flows:
    """Flows between random hosts, of random sizes, in collectives of 512."""
    rng = np.random.default_rng(0)
    src = rng.integers(0, fabric.n_hosts, n)
    dst = (src + rng.integers(1, fabric.n_hosts, n)) % fabric.n_hosts
    return Flows(src, dst, rng.random(n) * 1e9, collective=np.arange(n) // 512)


def plain_greedy(fabric: Clos, flows: Flows) -> list[int]:
    """The greedy rule of a leaf-spine fabric, in a loop."""
    up = np.zeros((fabric.n_leaves, fabric.n_spines), dtype=np.int64)
    down, via = up.copy(), [-1] * flows.n_flows
    source, target = fabric.leaf_of(flows.src), fabric.leaf_of(flows.dst)
    for f in np.argsort(-flows.size_bytes, kind="stable"):
        if source[f] != target[f]:
            via[f] = int(np.argmin(np.maximum(up[source[f]], down[target[f]])))
            up[source[f], via[f]] += 1
            down[target[f], via[f]] += 1
    return via


def seconds(call: Callable[[], object]) -> float:
    """Time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    """Print a table row per policy and case."""
    for name, fabric, n_flows in CASES:
        flows = random_flows(fabric, n_flows)
        for policy, route in POLICIES.items():
            if policy in ("annealing", "two_level_max_min") and n_flows > 10_000:
                continue
            choice = route(fabric, flows)  # Compiles.
            times = [seconds(partial(route, fabric, flows)) for _ in range(N_RUNS)]
            most, fim_percent = imbalance(fabric, flows, choice)
            row = f"{min(times):.4f} | {median(times):.4f} | {max(times):.4f}"
            note = f"largest load {most}, FIM {fim_percent:.2f} % over all layers"
            print(f"| {policy}, {n_flows:,} flows on {name} ({note}), s | {row} |", flush=True)
    fabric, flows = CASES[0][1], random_flows(CASES[0][1], CASES[0][2])
    ratios = []
    for _ in range(N_RUNS):
        plain = seconds(lambda: plain_greedy(fabric, flows))
        ratios.append(plain / seconds(lambda: greedy(fabric, flows)))
    row = f"{min(ratios):.1f} | {median(ratios):.1f} | {max(ratios):.1f}"
    print(f"| plain Python loop over greedy, 8,192 flows on 32 x 32 | {row} |")


if __name__ == "__main__":
    main()
