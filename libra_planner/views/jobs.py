"""Several jobs on one fabric as JSON-ready values and text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from libra_planner.check.degraded import JobReport, SharedFabric
from libra_planner.fabric.clos import Array
from libra_planner.fabric.parts import design_parts
from libra_planner.routing.loads import distribution
from libra_planner.units import format_time, gigabytes_per_s
from libra_planner.views.cells import Block, Table, count, escape, table_of
from libra_planner.views.check import routed_by, routing_keys, time_keys, traffic_keys
from libra_planner.views.links import parts_payload
from libra_planner.views.phases import algorithm_lines, algorithms_payload
from libra_planner.views.plan import memory_markup, memory_payload
from libra_planner.views.spread import figures, two_digits

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
    parts = design_parts(shared.design).dimensions[-1]
    return {
        **routing_keys(jobs[0].alone),
        **traffic_keys(shared.checks[0].traffic),
        "topology": str(shared.design.topology),
        "n_npus": shared.design.topology.n_npus,
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


def jobs_blocks(
    shared: SharedFabric, jobs: Sequence[JobReport], plans: Sequence[str]
) -> Iterator[Block]:
    """Headline, one row per job, what is taken for granted."""
    topology, traffic = shared.design.topology, shared.checks[0].traffic
    yield (
        f"[bold]{len(jobs)} jobs[/] on {topology}, {topology.n_npus:,} NPUs, sharing "
        f"{topology.labels[-1]} ({topology.tiers[-1]})"
    )
    routed = max((job.alone for job in jobs), key=lambda report: report.n_routings)
    yield f"Routed by {routed_by(routed)}; placement {traffic.placement}"
    yield from ("", _table(shared, jobs, plans, routed.n_routings))
    for plan, job, check in zip(plans, jobs, shared.checks, strict=True):
        yield from (escape(f"{plan}: {line}") for line in algorithm_lines(job.alone))
        yield from (f"{escape(plan)}: {text}" for text in memory_markup(check.problem))
    yield from ("", *(f"Note: {note}" for note in JOB_NOTES))


def _table(
    shared: SharedFabric, jobs: Sequence[JobReport], plans: Sequence[str], n_routings: int
) -> Table:
    several = f", means of {n_routings:,} routings" if n_routings > 1 else ""
    return table_of(
        f"Step time of each job{several}",
        zip(plans, jobs, shared.checks, strict=True),
        {
            "plan": lambda row: row[0],
            "workload": lambda row: row[1].name,
            "NPUs": lambda row: count(row[1].n_npus),
            "ideal": lambda row: format_time(row[1].alone.ideal_step_time_s),
            "alone": lambda row: _mean_time(row[1].alone.effective_step_time_s),
            "beside": lambda row: _mean_time(row[1].shared.effective_step_time_s),
            "slowdown": lambda row: f"{row[1].slowdown.mean():.3f}x",
            "GB/s per NPU": lambda row: _vector(row[2].bandwidth_Bps),
            "FIM %": lambda row: two_digits(float(row[1].shared.fim_percent.mean())),
            **({"p95": lambda row: f"{distribution(row[1].slowdown).p95:.3f}x"} if several else {}),
        },
        left=("plan", "workload"),
        dispensable=("GB/s per NPU", "FIM %", "workload", "ideal", "NPUs"),
    )


def _vector(bandwidth_Bps: Array) -> str:
    return ", ".join(f"{gigabytes_per_s(value):,.2f}" for value in bandwidth_Bps)


def _mean_time(samples: Array) -> str:
    return format_time(distribution(samples).mean)
