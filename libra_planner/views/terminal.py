"""Results as terminal tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console, JustifyMethod
from rich.table import Table

from libra_planner.problem import Problem
from libra_planner.step.explanation import COMPUTE
from libra_planner.units import format_bandwidth, format_time, format_usd
from libra_planner.views.cells import escape
from libra_planner.views.design import binding_rules, catalogue_lines
from libra_planner.views.plan import (
    equal_bandwidth_text,
    fidelity_lines,
    memory_markup,
    result_notes,
)

if TYPE_CHECKING:
    from libra_planner.optimizer.shadow import ShadowPrice


def worth_table(shadow: tuple[ShadowPrice, ...]) -> Table | None:
    """What one unit more is worth, without what is worth nothing; ``None`` if nothing is."""
    table = Table("one more", "of", title="What one more is worth", box=None)
    table.title_justify = "left"
    for name in ("step time", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for price in shadow:
        if price.d_step_time_s or price.d_cost_usd:
            table.add_row(_unit(price), escape(_name(price)), _seconds(price), _dollars(price))
    return table if table.rows else None


def _unit(price: ShadowPrice) -> str:
    unit = {"$": "M$", "s": "ms"}.get(price.unit, price.unit)
    return f"{unit} less" if price.side == "left" else unit


def _name(price: ShadowPrice) -> str:
    line = f" (line {price.line})" if price.line else ""
    if price.subject == "dimension":
        return f"{price.name}, given free"
    if price.subject == "cost":
        return "cost"
    return f"{price.name}{line}"


def _per_unit(price: ShadowPrice) -> float:
    """Shown units over the entry's, with the sign of the side."""
    factor = {"$": 1e6, "s": 1e-3}.get(price.unit, 1.0)
    return -factor if price.side == "left" else factor


def _seconds(price: ShadowPrice) -> str:
    change = price.d_step_time_s * _per_unit(price)
    return f"{'-' if change < 0 else '+'}{format_time(abs(change))}" if change else "-"


def _dollars(price: ShadowPrice) -> str:
    change = price.d_cost_usd * _per_unit(price)
    return f"{'-' if change < 0 else '+'}{format_usd(abs(change))}" if change else "-"


if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation, Violation
    from libra_planner.optimizer.catalogue import CatalogueDesign
    from libra_planner.optimizer.design import Design
    from libra_planner.optimizer.shadow import ShadowPrice

_BAR_CELLS, _LEAST_CELLS = 24, 6
"""Longest bar, and the shortest that still says something."""

_EIGHTHS = " ▏▎▍▌▋▊▉"
_SHOWN_GAP = 1e-9
"""Smaller gaps are shown as this: their digits are rounding."""


_BETTER = {
    "performance": "is faster",
    "performance_per_cost": "has a smaller step time x cost",
    "cost": "is cheaper",
}


def print_result(
    console: Console,
    problem: Problem,
    evaluation: Evaluation,
    design: Design | None = None,
    shadow: tuple[ShadowPrice, ...] | None = None,
) -> None:
    """A whole result: headline, bandwidths, time split, rules, what more is worth, notes."""
    topology = problem.topology
    name, fabric = escape(problem.workload_name), f"{topology}, {topology.n_npus:,} NPUs"
    _print_line(console, f"[bold]{name}[/] on {fabric}")
    if problem.settings:
        _print_line(console, f"[dim]{escape(', '.join(problem.settings))}[/]")
    _print_line(console, _headline(evaluation))
    for line in _objective(problem, evaluation):
        _print_line(console, line)
    for line in fidelity_lines(evaluation):
        _print_line(console, line)
    _print_line(console, _against_equal(problem, evaluation))
    for line in memory_markup(problem):
        _print_line(console, line)
    _print_line(console, _verdict(problem, evaluation, design))
    console.print()
    console.print(_bandwidth_table(console, problem, evaluation))
    console.print()
    if evaluation.members:
        console.print(_workload_table(evaluation))
        console.print()
    console.print(_time_table(problem, evaluation))
    _print_rules(console, problem, evaluation)
    worth = worth_table(shadow or ())
    if worth is not None:
        console.print()
        console.print(worth)
    _print_notes(console, problem, evaluation)


def print_catalogue(console: Console, problem: Problem, design: CatalogueDesign) -> None:
    """What to buy, and what is lost against any bandwidth: after :func:`print_result`."""
    console.print()
    for line in catalogue_lines(problem, design):
        _print_line(console, escape(line))


def _headline(evaluation: Evaluation) -> str:
    mean = "Weighted mean step time" if evaluation.members else "Step time"
    return (
        f"{mean} [bold]{format_time(evaluation.step_time_s)}[/] "
        f"({format_time(evaluation.compute_s)} compute, "
        f"{format_time(evaluation.communication_s)} exposed communication), "
        f"{_cost(evaluation)}"
    )


def _cost(evaluation: Evaluation) -> str:
    network = f"network cost [bold]{format_usd(evaluation.network_cost_usd)}[/]"
    if not evaluation.fixed_cost_usd:
        return network
    return f"{network}, system cost [bold]{format_usd(evaluation.cost_usd)}[/]"


def _objective(problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """The value of an objective that the headline does not show."""
    value, relative = evaluation.objective, problem.group_objective != "weighted"
    if value is None:
        yield f"Objective {problem.group_objective}: not known without optimize"
    elif problem.objective == "cost":
        yield f"Objective cost: [bold]{format_usd(value)}[/]"
    elif problem.objective == "performance_per_cost":
        unit, time = ("", f"{problem.group_objective} time") if relative else (" s", "step time")
        amount = f"[bold]{format_usd(value)}{unit}[/]"
        yield f"Objective performance_per_cost: {amount} ({time} x cost)"
    elif relative:
        ratio = "step time over each workload's own optimum"
        yield f"Objective {problem.group_objective}: [bold]{value:.6f}[/] ({ratio})"


def _against_equal(problem: Problem, evaluation: Evaluation) -> str:
    """The comparison of C9, and at equal cost where that baseline breaks the rules."""
    equal = evaluation.equal
    per_cost = evaluation.perf_per_cost_vs_equal
    per_dollar = (
        f" and gives [bold]{per_cost:.3f}x[/] its performance per dollar" if per_cost else ""
    )
    text = (
        f"[bold]{evaluation.speedup_vs_equal:.3f}x[/] as fast as equal bandwidth "
        f"({equal_bandwidth_text(evaluation)}){per_dollar}"
    )
    rate = float(problem.price_usd_per_Bps.sum())
    if equal.feasible or not rate:
        return text
    same_cost = np.full(problem.topology.n_dims, evaluation.network_cost_usd / rate)
    seconds = float(problem.step_time.seconds(same_cost))
    return (
        f"{text}; [bold]{seconds / evaluation.step_time_s:.3f}x[/] as fast as equal bandwidth at "
        f"the same network cost ({format_bandwidth(same_cost[0])} each: {format_time(seconds)})"
    )


def _verdict(problem: Problem, evaluation: Evaluation, design: Design | None) -> str:
    if design is not None:
        ties = "" if design.unique else "; other vectors tie, this is the first of the cheapest"
        digits = int(1e-6 - np.log10(max(design.optimality_gap, _SHOWN_GAP)))
        relative = problem.group_objective != "weighted"
        better = "has a smaller objective" if relative else _BETTER[problem.objective]
        proof = f"no design under these rules {better} by more than one part in 10^{digits}"
        return f"Proven optimal: {proof}{ties}"
    limits = {limit.text for limit in problem.step_time_limits}
    rules = {rule.text for rule in problem.rules} | limits
    broken = {violation.rule for violation in evaluation.violated}
    n_unpurchasable = len(broken - rules)
    speeds = "1 speed" if n_unpurchasable == 1 else f"{n_unpurchasable} speeds"
    buys = f"; [red]{speeds} cannot be bought[/]" if n_unpurchasable else ""
    if broken & rules:
        return f"[red]Breaks {len(broken & rules)} of {len(rules)} rules[/]{buys}"
    if len(rules) == 1:
        return f"Meets its only rule{buys}"
    return (f"Meets all {len(rules)} rules" if rules else "No rules to meet") + buys


def _bandwidth_table(console: Console, problem: Problem, evaluation: Evaluation) -> Table:
    """One row per dimension; narrow terminals lose the bars first, then the baseline."""
    columns = _bandwidth_columns(problem, evaluation)
    room = console.width - sum(max(map(len, cells)) + 2 for cells in columns.values())
    n_cells = min(_BAR_CELLS, room - 2)
    if n_cells >= _LEAST_CELLS:
        values = evaluation.bandwidth_bytes_per_s / (evaluation.bandwidth_bytes_per_s.max() or 1.0)
        plain = console.options.ascii_only
        columns["bar"] = ["", *(_bar(value, n_cells, ascii_only=plain) for value in values)]
    elif room < 0:
        del columns["equal"]
    order = ("dimension", "block", "tier", "bandwidth", "bar", "share", "equal", "cost", "of cost")
    shown = [columns[name] for name in order if name in columns]
    table = Table(title="Bandwidth per NPU, one direction", box=None)
    table.title_justify = "left"
    left = ("dimension", "block", "tier", "bar")
    for name in (name for name in order if name in columns):
        justify: JustifyMethod = "left" if name in left else "right"
        style = "cyan" if name == "bar" else ""
        table.add_column(columns[name][0], justify=justify, style=style, no_wrap=True)
    for cells in zip(*(cells[1:] for cells in shown), strict=True):
        table.add_row(*map(escape, cells))
    return table


def _bandwidth_columns(problem: Problem, evaluation: Evaluation) -> dict[str, list[str]]:
    """Header and cells of every column but the bars."""
    bandwidth, costs = evaluation.bandwidth_bytes_per_s, evaluation.cost_usd_by_dim
    total, cost_usd = bandwidth.sum() or 1.0, evaluation.network_cost_usd or 1.0
    dimensions = problem.topology.dimensions
    equal = evaluation.equal.bandwidth_bytes_per_s
    return {
        "dimension": ["dimension", *problem.topology.labels],
        "block": ["", *map(str, dimensions)],
        "tier": ["tier", *(dimension.tier for dimension in dimensions)],
        "bandwidth": ["bandwidth", *map(format_bandwidth, bandwidth)],
        "share": ["share", *(f"{value / total:.1%}" for value in bandwidth)],
        "equal": ["equal", *map(format_bandwidth, equal)],
        "cost": ["cost", *map(format_usd, costs)],
        "of cost": ["of cost", *(f"{cost / cost_usd:.1%}" for cost in costs)],
    }


def _bar(fraction: float, n_cells: int, *, ascii_only: bool = False) -> str:
    """A bar of eighths of a cell, or of whole cells where there is no Unicode.

    >>> _bar(0.5, 8), _bar(0.5, 8, ascii_only=True)
    ('████    ', '####    ')
    """
    if ascii_only:
        return ("#" * round(fraction * n_cells)).ljust(n_cells)
    eighths = round(fraction * n_cells * 8)
    text = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    return text.ljust(n_cells)


def _workload_table(evaluation: Evaluation) -> Table:
    """One row per workload of a group."""
    table = Table("workload", title="Each workload", box=None)
    table.title_justify = "left"
    for name in ("weight", "step time", "compute", "communication", "vs equal"):
        table.add_column(name, justify="right", no_wrap=True)
    for member in evaluation.members:
        seconds = (member.step_time_s, member.compute_s, member.communication_s)
        times = map(format_time, seconds)
        weight, speedup = f"{member.weight:.3f}", f"{member.speedup_vs_equal:.3f}x"
        table.add_row(escape(member.name), weight, *times, speedup)
    return table


def _time_table(problem: Problem, evaluation: Evaluation) -> Table:
    mean = "Weighted mean step time" if evaluation.members else "Step time"
    table = Table("operation", "waits on", title=f"{mean}, all layers together", box=None)
    table.title_justify = "left"
    for name in ("time", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    labels = problem.topology.labels
    for share in evaluation.shares:
        idle = "NPUs" if share.label == COMPUTE else "latency"
        dims = ", ".join(labels[i] for i in share.dims) or idle
        waits_on = f"{dims} (tied)" if len(share.dims) > 1 else dims
        fraction = share.seconds / evaluation.step_time_s
        table.add_row(escape(share.label), waits_on, format_time(share.seconds), f"{fraction:.1%}")
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
        text = f"{escape(violation.rule)}{_line(violation.line)}, by {_amount(violation)}"
        _print_line(console, f"[red]Broken:[/] {text}")


def _amount(violation: Violation) -> str:
    if violation.unit == "s":
        return format_time(violation.by)
    return format_usd(violation.by) if violation.unit == "$" else f"{violation.by:,.6g} GB/s"


def _line(line: int | None) -> str:
    return f" (line {line})" if line else ""


def _print_notes(console: Console, problem: Problem, evaluation: Evaluation) -> None:
    notes = [f"Note: {note}" for note in result_notes(problem, evaluation)]
    if notes:
        console.print()
    for note in notes:
        _print_line(console, escape(note))


def _print_line(console: Console, text: str) -> None:
    """One paragraph: wrapped on a terminal, one line anywhere else."""
    console.print(text, soft_wrap=not console.is_terminal)
