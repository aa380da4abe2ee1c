"""A single collective as the JSON object of the command-line contract (DESIGN section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from libra_planner.step.collectives.algorithms import algorithm_used, visits
from libra_planner.units import NS_PER_S, gigabytes_per_s

if TYPE_CHECKING:
    from libra_planner.inputs.collectives import CollectiveCase
    from libra_planner.step.collectives.models import CollectiveTimes
    from libra_planner.step.collectives.scheduling import BalancedSchedule


def collective_payload(
    case: CollectiveCase, times: CollectiveTimes, balanced: BalancedSchedule | None = None
) -> dict[str, Any]:
    """What ``collective --json`` prints."""
    topology = case.network.topology
    dimensions = dimension_rows(case, times)
    payload = {
        "kind": case.collective.kind.value,
        "size_bytes": case.collective.size_bytes,
        "topology": str(topology),
        "n_npus": topology.n_npus,
        "bandwidth_GBps": [gigabytes_per_s(value) for value in case.bandwidth_bytes_per_s],
        "latency_ns": [value * NS_PER_S for value in case.network.latency_s],
        "chunks": times.n_chunks,
        "algorithms": [row["algorithm"] for row in dimensions],
        "in_network": [topology.labels[i] for i in sorted(case.network.in_network)],
        "time_s": times.time_s,
        "ideal_time_s": times.ideal_time_s,
        "continuous_time_s": times.continuous_time_s,
        "model_time_s": times.model_time_s,
        "model_gap": times.model_gap,
        "aggregate_bound_s": times.aggregate_bound_s,
        "bottleneck": max(dimensions, key=lambda row: row["busy_s"])["dimension"],
        "dimensions": dimensions,
    }
    return payload if balanced is None else payload | _balanced(case, balanced)


def dimension_rows(case: CollectiveCase, times: CollectiveTimes) -> list[dict[str, Any]]:
    """What happens in each dimension: algorithm, steps and bytes of one pass, busy time."""
    network = case.network
    steps = [0] * network.topology.n_dims
    for stop in visits(case.collective, case.group, network):
        steps[stop.dim] += stop.n_steps
    return [
        {
            "dimension": network.topology.labels[i],
            "block": str(dimension),
            "algorithm": _algorithm(case, i),
            "steps": steps[i],
            "traffic_bytes": times.traffic_bytes[i],
            "busy_s": times.busy_s[i],
            "busy_fraction": times.busy_s[i] / times.time_s,
        }
        for i, dimension in enumerate(network.topology.dimensions)
    ]


def _algorithm(case: CollectiveCase, dim: int) -> str:
    if dim in case.network.in_network:
        return "in_network"
    return algorithm_used(case.collective, case.group, case.network, dim).value


def _balanced(case: CollectiveCase, balanced: BalancedSchedule) -> dict[str, Any]:
    labels = case.network.topology.labels
    return {
        "balanced_time_s": balanced.time_s,
        "balanced_gain": balanced.gain,
        "orders": [
            {"dimensions": [labels[i] for i in share.order], "fraction": share.fraction}
            for share in balanced.split
        ],
    }
