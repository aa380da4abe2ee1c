"""Results as terminal tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from libra_planner.problem import Problem
from libra_planner.report.payload import binding_rules
from libra_planner.units import format_bandwidth, format_time, format_usd

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation
    from libra_planner.optimizer.performance import Design

_BAR_CELLS = 24
_EIGHTHS = " ▏▎▍▌▋▊▉"
_SHOWN_GAP = 1e-9
"""Smaller gaps are shown as this: their digits are rounding."""


def print_result(
    console: Console, problem: Problem, evaluation: Evaluation, design: Design | None = None
) -> None:
    """A whole result: headline, bandwidths, time split, rules, notes."""
    topology = problem.topology
    console.print(
        f"[bold]{escape(problem.workload_name)}[/] on {topology}, {topology.n_npus:,} NPUs"
    )
    console.print(_headline(evaluation))
    console.print(_against_equal(evaluation))
    if design is not None:
        console.print(_certificate(design))
    console.print()
    console.print(_bandwidth_table(problem, evaluation))
    console.print()
    console.print(_time_table(problem, evaluation))
    _print_rules(console, problem, evaluation)
    _print_notes(console, problem, evaluation)


def _headline(evaluation: Evaluation) -> str:
    return (
        f"Step time [bold]{format_time(evaluation.step_time_s)}[/] "
        f"({format_time(evaluation.compute_s)} compute, "
        f"{format_time(evaluation.communication_s)} exposed communication), "
        f"network cost [bold]{format_usd(evaluation.cost_usd)}[/]"
    )


def _against_equal(evaluation: Evaluation) -> str:
    equal = evaluation.equal
    per_cost = evaluation.perf_per_cost_vs_equal
    shown = f", [bold]{per_cost:.3f}x[/] performance per dollar" if per_cost else ""
    note = "" if equal.feasible else " (equal bandwidth breaks the rules)"
    return (
        f"[bold]{evaluation.speedup_vs_equal:.3f}x[/] as fast as equal bandwidth "
        f"({format_time(equal.step_time_s)}, {format_usd(equal.cost_usd)}){shown}{note}"
    )


def _certificate(design: Design) -> str:
    ties = "" if design.unique else "; other vectors tie, this is the first of the cheapest"
    gap = max(design.optimality_gap, _SHOWN_GAP)
    return f"Proven optimal: no design under these rules is faster by more than {gap:.0e}{ties}"


def _bandwidth_table(problem: Problem, evaluation: Evaluation) -> Table:
    table = Table(
        "dimension", "", "tier", title="Bandwidth per NPU", title_justify="left", box=None
    )
    for name in ("bandwidth", "", "share", "equal", "cost", "share"):
        table.add_column(name, justify="left" if name == "" else "right", no_wrap=True)
    bandwidth = evaluation.bandwidth_bytes_per_s
    total, largest = bandwidth.sum() or 1.0, bandwidth.max() or 1.0
    for i, dimension in enumerate(problem.topology.dimensions):
        cost = evaluation.cost_usd_by_dim[i]
        table.add_row(
            problem.topology.labels[i],
            str(dimension),
            escape(dimension.tier),
            format_bandwidth(bandwidth[i]),
            f"[cyan]{_bar(bandwidth[i] / largest)}[/]",
            f"{bandwidth[i] / total:.1%}",
            format_bandwidth(evaluation.equal.bandwidth_bytes_per_s[i]),
            format_usd(cost),
            f"{cost / (evaluation.cost_usd or 1.0):.1%}",
        )
    return table


def _bar(fraction: float) -> str:
    """A bar of eighths of a cell.

    >>> _bar(0.5).rstrip()
    '████████████'
    """
    eighths = round(fraction * _BAR_CELLS * 8)
    text = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    return text.ljust(_BAR_CELLS)


def _time_table(problem: Problem, evaluation: Evaluation) -> Table:
    table = Table("operation", "waits on", title="Step time", title_justify="left", box=None)
    for name in ("time", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    labels = problem.topology.labels
    for share in evaluation.shares:
        waits_on = " + ".join(labels[i] for i in share.dims) or "NPUs"
        fraction = share.seconds / evaluation.step_time_s
        table.add_row(share.label, waits_on, format_time(share.seconds), f"{fraction:.1%}")
    return table


def _print_rules(console: Console, problem: Problem, evaluation: Evaluation) -> None:
    binding = binding_rules(problem, evaluation.bandwidth_bytes_per_s)
    broken = {violation.rule for violation in evaluation.violated}
    if binding or broken:
        console.print()
    for rule in binding:
        if rule["rule"] not in broken:
            _print_line(console, f"Binds: {escape(rule['rule'])}{_line(rule['line'])}")
    for violation in evaluation.violated:
        by = f"by {violation.by:,.6g} {violation.unit}"
        text = f"[red]Broken:[/] {escape(violation.rule)}{_line(violation.line)}, {by}"
        _print_line(console, text)


def _line(line: int | None) -> str:
    return f" (line {line})" if line else ""


def _print_notes(console: Console, problem: Problem, evaluation: Evaluation) -> None:
    real = evaluation.real_link_step_time_s
    notes = [f"Note: {note}" for note in problem.notes]
    if real is not None:
        slower = real / evaluation.step_time_s - 1
        notes.append(
            f"Note: some parallel groups span only part of a dimension. The model grants them all "
            f"of its bandwidth, as LIBRA does; on their own links the step would take "
            f"{format_time(real)} ({slower:+.1%})"
        )
    if notes:
        console.print()
    for note in notes:
        _print_line(console, escape(note))


def _print_line(console: Console, text: str) -> None:
    """One paragraph: wrapped on a terminal, one line anywhere else."""
    console.print(text, soft_wrap=not console.is_terminal)
