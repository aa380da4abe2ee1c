"""Several jobs on one fabric as terminal text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from libra_planner.check.jobs import JobReport, SharedFabric
from libra_planner.fabric.clos import Array
from libra_planner.routing.imbalance import distribution
from libra_planner.units import format_time, gigabytes_per_s
from libra_planner.views.check_table import routed_by
from libra_planner.views.flows_table import figure_text, plain_table, print_line
from libra_planner.views.jobs import JOB_NOTES
from libra_planner.views.phases import algorithm_lines
from libra_planner.views.plan import memory_markup


def print_jobs(
    console: Console, shared: SharedFabric, jobs: Sequence[JobReport], plans: Sequence[str]
) -> None:
    """Headline, one row per job, what is taken for granted."""
    topology, traffic = shared.topology, shared.checks[0].traffic
    print_line(
        console,
        f"[bold]{len(jobs)} jobs[/] on {topology}, {topology.n_npus:,} NPUs, sharing "
        f"{topology.labels[-1]} ({topology.tiers[-1]})",
    )
    routed = max((job.alone for job in jobs), key=lambda report: report.n_routings)
    print_line(console, f"Routed by {routed_by(routed)}; placement {traffic.placement}")
    console.print()
    columns = {
        "plan": list(plans),
        "workload": [job.name for job in jobs],
        "NPUs": [f"{job.n_npus:,}" for job in jobs],
        "ideal": [format_time(job.alone.ideal_step_time_s) for job in jobs],
        "alone": [_mean_time(job.alone.effective_step_time_s) for job in jobs],
        "beside": [_mean_time(job.shared.effective_step_time_s) for job in jobs],
        "slowdown": [f"{job.slowdown.mean():.3f}x" for job in jobs],
        "GB/s per NPU": [_vector(check.bandwidth_Bps) for check in shared.checks],
        "FIM %": [figure_text(float(job.shared.fim_percent.mean())) for job in jobs],
    }
    n_routings = routed.n_routings
    several = n_routings > 1
    if several:
        columns["p95"] = [f"{distribution(job.slowdown).p95:.3f}x" for job in jobs]
    several_text = f", means of {n_routings:,} routings" if several else ""
    title = f"Step time of each job{several_text}"
    dispensable = ("GB/s per NPU", "FIM %", "workload", "ideal", "NPUs")
    console.print(
        plain_table(console, columns, title, left=("plan", "workload"), dispensable=dispensable)
    )
    for plan, job, check in zip(plans, jobs, shared.checks, strict=True):
        for line in algorithm_lines(job.alone):
            print_line(console, escape(f"{plan}: {line}"))
        for markup in memory_markup(check.problem):
            print_line(console, f"{escape(plan)}: {markup}")
    console.print()
    for note in JOB_NOTES:
        print_line(console, f"Note: {note}")


def _vector(bandwidth_Bps: Array) -> str:
    return ", ".join(f"{gigabytes_per_s(value):,.2f}" for value in bandwidth_Bps)


def _mean_time(samples: Array) -> str:
    return format_time(distribution(samples).mean)
