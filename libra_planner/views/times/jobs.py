"""Jobs that share a fabric: the JSON object of ``check --json`` for several plans, and text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from libra_planner.check.degraded import JobReport, SharedFabric
from libra_planner.check.links import LinkCheck
from libra_planner.fabric.parts import network_parts
from libra_planner.routing.loads import distribution
from libra_planner.units import format_time, gigabytes_per_s
from libra_planner.views import cells, plan, spread
from libra_planner.views.cells import Block, Table, attributes, escape
from libra_planner.views.check import routed_by, routing_keys, time_keys
from libra_planner.views.links import parts_payload
from libra_planner.views.phases import (
    algorithm_lines,
    algorithms_payload,
)
from libra_planner.views.training import memory

JOB_NOTES = (
    "each job is given the worst of the others: while it communicates over the shared dimension, "
    "every other job is in its heaviest round there, without an end",
    "alone: the same place on the same fabric, with the other jobs' NPUs idle",
)
"""What the figures of several jobs take for granted."""


def jobs_payload(
    shared: SharedFabric, jobs: Sequence[JobReport], plans: Sequence[str], *, statistics: bool
) -> dict[str, Any]:
    """What ``check --json`` prints for several plans."""
    parts = network_parts(shared.design, shared.design.topology.n_dims - 1)
    return {
        **routing_keys(jobs[0].alone, shared.checks[0].traffic),
        "topology": str(shared.design.topology),
        "n_npus": shared.design.topology.n_npus,
        "shared": attributes(parts, dimension="label", tier="tier") | parts_payload(parts),
        "jobs": [
            {
                "plan": name,
                **attributes(job, workload="name", n_npus="n_npus"),
                "bandwidth_GBps": [gigabytes_per_s(x) for x in check.bandwidth_Bps],
                **spread.figures("slowdown", job.slowdown, statistics=statistics),
                "algorithms": algorithms_payload(job.alone),
                "memory": memory.memory_payload(check.problem.step.memory),
                "alone": time_keys(job.alone, statistics=statistics),
                "shared": time_keys(job.shared, statistics=statistics),
            }
            for name, job, check in zip(plans, jobs, shared.checks, strict=True)
        ],
        "notes": list(JOB_NOTES),
    }


def jobs_blocks(
    shared: SharedFabric, jobs: Sequence[JobReport], plans: Sequence[str]
) -> Iterator[Block]:
    """Headline, one row per job, what is taken for granted."""
    topology, traffic = shared.design.topology, shared.checks[0].traffic
    port = topology.ports[-1]
    ends, tiers = (topology.labels[port], topology.labels[-1]), topology.tiers[port:]
    yield (
        f"[bold]{len(jobs)} jobs[/] on {topology}, {topology.n_npus:,} NPUs, sharing "
        f"{' to '.join(dict.fromkeys(ends))} ({', '.join(dict.fromkeys(tiers))})"
    )
    routed = max((job.alone for job in jobs), key=lambda report: report.n_routings)
    yield f"Routed by {routed_by(routed)}; placement {traffic.placement}"
    rows = list(zip(plans, jobs, shared.checks, strict=True))
    yield from ("", _jobs_table(rows, routed.n_routings))
    for name, job, check in rows:
        yield from (escape(f"{name}: {line}") for line in algorithm_lines(job.alone))
        yield from (f"{escape(name)}: {text}" for text in memory.memory_markup(check.problem))
    yield from plan.note_lines(JOB_NOTES)


def _jobs_table(rows: Sequence[tuple[str, JobReport, LinkCheck]], n_routings: int) -> Table:
    several = f", means of {n_routings:,} routings" if n_routings > 1 else ""
    return cells.table_of(
        f"Step time of each job{several}",
        rows,
        {
            "plan": lambda row: row[0],
            "workload": lambda row: row[1].name,
            "NPUs": lambda row: cells.count(row[1].n_npus),
            "ideal": lambda row: format_time(row[1].alone.ideal_step_time_s),
            "alone": lambda row: format_time(row[1].alone.effective_step_time_s.mean()),
            "beside": lambda row: format_time(row[1].shared.effective_step_time_s.mean()),
            "slowdown": lambda row: f"{row[1].slowdown.mean():.3f}x",
            "GB/s per NPU": lambda row: ", ".join(
                f"{gigabytes_per_s(value):,.2f}" for value in row[2].bandwidth_Bps
            ),
            "FIM %": lambda row: cells.two_digits(row[1].shared.fim_percent.mean()),
            **({"p95": lambda row: f"{distribution(row[1].slowdown).p95:.3f}x"} if several else {}),
        },
        left=("plan", "workload"),
        dispensable=("GB/s per NPU", "FIM %", "workload", "ideal", "NPUs"),
    )
