"""Several jobs on one fabric as JSON-ready values and terminal text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from libra_planner.check.jobs import JobReport, SharedFabric
from libra_planner.fabric.parts import design_parts
from libra_planner.units import gigabytes_per_s
from libra_planner.views.check import parts_payload, routing_keys, time_keys
from libra_planner.views.phases import algorithms_payload
from libra_planner.views.plan import memory_payload
from libra_planner.views.spread import figures

JOB_NOTES = (
    "each job is given the worst of the others: while it communicates over the shared dimension, "
    "every other job is in its heaviest round there, without an end",
    "alone: the same place on the same fabric, with the other jobs' NPUs idle",
)
"""What the figures of several jobs take for granted."""


def jobs_payload(
    shared: SharedFabric,
    jobs: Sequence[JobReport],
    plans: Sequence[str],
    *,
    statistics: bool = False,
) -> dict[str, Any]:
    """What ``check --json`` prints for several plans."""
    traffic = shared.checks[0].traffic
    parts = design_parts(shared.design).dimensions[-1]
    return {
        **routing_keys(jobs[0].alone),
        "placement": traffic.placement,
        "queue_pairs": traffic.n_queue_pairs,
        "npus_per_address": traffic.npus_per_address,
        "topology": str(shared.topology),
        "n_npus": shared.topology.n_npus,
        "shared": {"dimension": parts.label, "tier": parts.tier, **parts_payload(parts)},
        "jobs": [
            {
                "plan": plan,
                "workload": job.name,
                "n_npus": job.n_npus,
                "bandwidth_GBps": [gigabytes_per_s(x) for x in check.bandwidth_Bps],
                **figures("slowdown", job.slowdown, statistics=statistics),
                "algorithms": algorithms_payload(job.alone),
                "memory": memory_payload(check.problem.step.memory),
                "alone": time_keys(job.alone, statistics=statistics),
                "shared": time_keys(job.shared, statistics=statistics),
            }
            for plan, job, check in zip(plans, jobs, shared.checks, strict=True)
        ],
        "notes": list(JOB_NOTES),
    }
