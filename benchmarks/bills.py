"""Options of ``prices: bill`` priced per second and core, and the same with all NPUs' ports listed.

Listing ports is what every bill did before; both sides are measured in turn (process time).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time
from collections.abc import Sequence
from statistics import median

import libra_planner as lp
from libra_planner.costs.bills import FabricOption
from libra_planner.fabric.realization import realize
from libra_planner.inputs.bills import Bills, option_bill
from libra_planner.plan.problem import load_plan
from libra_planner.problem import Problem
from libra_planner.procurement.options import fabric_options

N_RUNS = 7
NICS = "nics: [1 x 200 Gbps, 1 x 400 Gbps, 1 x 800 Gbps], switch_radix: [64, 128]"
PLANS = {
    "08_rails": "tapers: {spine: [1, 2, 4, 7, 8]}",
    "09_pod_16384": "tapers: {spine: [1, 2], core: [1, 2, 4, 7, 8]}",
}


def priced_s(problem: Problem, listed: Sequence[FabricOption], bills: Bills) -> float:
    """Process time of the bills of some options."""
    start = time.process_time()
    for option in listed:
        option_bill(problem, option, bills, None)
    return time.process_time() - start


def ports_s(problem: Problem, listed: Sequence[FabricOption]) -> float:
    """Process time of the host ports of every NPU, for each of some options."""
    designs = [realize(problem.topology, one.bandwidth_Bps, one.realization) for one in listed]
    start = time.process_time()
    for design in designs:
        assert all(one.port_of_npu.size for one in design.networks)
    return time.process_time() - start


def main() -> None:
    """Print two table rows per plan."""
    for plan, tapers in PLANS.items():
        options = f"fabric.bill_options={{{NICS}, {tapers}}}"
        problem, bills = load_plan(lp.example(plan), ["prices=bill", options]), Bills()
        listed = list(fabric_options(problem))
        priced_s(problem, listed, bills)
        pairs = [
            (priced_s(problem, listed, bills), ports_s(problem, listed)) for _ in range(N_RUNS)
        ]
        rows = {
            "bills per second": [len(listed) / priced for priced, _ in pairs],
            "the time with all ports over that": [1 + ports / priced for priced, ports in pairs],
        }
        for name, values in rows.items():
            print(
                f"| {problem.topology.n_npus:,} NPUs: {name} | {min(values):.3g} "
                f"| {median(values):.3g} | {max(values):.3g} |"
            )


if __name__ == "__main__":
    main()
