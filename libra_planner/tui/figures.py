"""Figures of a design as tables for the screen: the words and digits that the commands print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from libra_planner.tui.widgets.bandwidths import DimensionRow

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation
    from libra_planner.problem import Problem
    from libra_planner.tui.plans import Optimum

MOST_SHARES = 8
_SHOWN_GAP = 1e-9
"""Digits of smaller gaps are rounding."""


def dimension_rows(problem: Problem, evaluation: Evaluation | None) -> tuple[DimensionRow, ...]:
    """What is said beside the bar of every dimension, with figures where there are any."""
    return tuple(
        DimensionRow(problem.topology.labels[i], dimension.tier, *_beside(i, evaluation))
        for i, dimension in enumerate(problem.topology.dimensions)
    )


def _beside(dim: int, evaluation: Evaluation | None) -> tuple[str, str]:
    """A dimension's part of the cost, and what waits for it."""
    from libra_planner.units import format_time

    if evaluation is None:
        return "", ""
    waits_s = sum(share.seconds for share in evaluation.shares if dim in share.dims)
    cost_share = evaluation.cost_usd_by_dim[dim] / (evaluation.network_cost_usd or 1.0)
    return f"{cost_share:.0%}", format_time(waits_s) if waits_s else ""


def headline(problem: Problem, evaluation: Evaluation) -> Table:
    """Step time, cost, the comparison with equal bandwidth, the verdict of the rules."""
    from libra_planner.units import format_bytes
    from libra_planner.views.plan import brief_verdict

    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row(Text("NPUs", "dim"), _size(problem))
    for name, figure, text in _headline(evaluation):
        table.add_row(Text(name, "dim"), Text(figure, "bold").append(text, "not bold"))
    for states in problem.step.memories.values():
        needed = Text(format_bytes(states.total_bytes), "bold")
        style = "bold red" if states.fits is False else "not bold"
        table.add_row(Text("Memory", "dim"), needed.append(brief_verdict(states), style))
    table.add_row(Text("Rules", "dim"), verdict(problem, evaluation))
    return table


def _size(problem: Problem) -> Text:
    """How many NPUs, and how they are joined."""
    topology = problem.topology
    return Text(f"{topology.n_npus:,}", "bold").append(f" {topology}", "not bold")


def _headline(evaluation: Evaluation) -> Iterator[tuple[str, str, str]]:
    from libra_planner.units import format_time, format_usd

    mean = " (mean)" if evaluation.members else ""
    compute, exposed = format_time(evaluation.compute_s), format_time(evaluation.communication_s)
    yield "Step time", format_time(evaluation.step_time_s), f"{mean}, {compute} compute"
    yield "", "", f"and {exposed} exposed comm."
    fixed = f" network, {format_usd(evaluation.cost_usd)} system"
    text = fixed if evaluation.fixed_cost_usd else " network"
    yield "Cost", format_usd(evaluation.network_cost_usd), text
    equal = evaluation.equal
    yield "Speedup", f"{evaluation.speedup_vs_equal:.3f}x", " vs equal bandwidth"
    per_cost = evaluation.perf_per_cost_vs_equal
    if per_cost:
        yield "Perf/cost", f"{per_cost:.3f}x", " vs equal bandwidth"
    breaks = "" if equal.feasible else ", breaks the rules"
    baseline = f"equal: {format_time(equal.step_time_s)}, {format_usd(equal.cost_usd)}{breaks}"
    yield "", "", baseline
    if evaluation.exact_step_time_s is not None:
        text = f" ({evaluation.model_gap:.3f}x of the model)"
        yield "Exact", format_time(evaluation.exact_step_time_s), text


def verdict(problem: Problem, evaluation: Evaluation) -> Text:
    """Whether the rules are met, which are broken and by how much, and which bind."""
    from libra_planner.views.design import binding_rules, rule_texts
    from libra_planner.views.plan import amount_text, line_text

    broken = {violation.rule for violation in evaluation.violated}
    text = Text()
    if not broken:
        n_rules = len(rule_texts(problem))
        text.append({0: "none", 1: "its only rule met"}.get(n_rules, f"all {n_rules} met"), "bold")
    for one in evaluation.violated:
        text.append(f"{chr(10) if text else ''}BROKEN: {one.rule}{line_text(one.line)}")
        text.append(f" by {amount_text(one)}")
        text.stylize("bold red")
    for rule in binding_rules(problem, evaluation.bandwidth_bytes_per_s):
        if rule["rule"] not in broken:
            where = f"{rule['rule']}{line_text(rule['line'])}"
            text.append(f"{chr(10) if text else ''}binds: {where}", "")
    return text


def waits(problem: Problem, evaluation: Evaluation) -> Table:
    """The operations that the step waits for, longest first, and what each waits on."""
    from libra_planner.views.design import time_table
    from libra_planner.views.renderers.cockpit import panel_table

    return panel_table(time_table(problem, evaluation, most=MOST_SHARES, tied=""))


def members(evaluation: Evaluation) -> Table | None:
    """Each workload of a group; ``None`` for a plan with one."""
    from libra_planner.views.design import workload_table
    from libra_planner.views.renderers.cockpit import panel_table

    if not evaluation.members:
        return None
    names = ("workload", "weight", "step time", "vs equal")
    return panel_table(workload_table(evaluation), {name: name for name in names})


def proof(optimum: Optimum, *, is_shown: bool) -> Text:
    """What optimising proved, seen from the design on screen: the optimum or another one."""
    from libra_planner.units import format_time, format_usd

    design, best = optimum.design, optimum.evaluation
    found = design.optimality_gap
    gap = "gap below 1e-9" if found < _SHOWN_GAP else f"gap {found:.0e}"
    if is_shown:
        ties = "" if design.unique else "; others tie, this is the first of the cheapest"
        return Text(f"Proven optimal for {optimum.problem.objective} ({gap}){ties}", "bold green")
    figures = f"{format_time(best.step_time_s)}, {format_usd(best.cost_usd)}"
    return Text(f"The optimum ({gap}) has {figures}; o goes back to it", "italic")


def worth(optimum: Optimum) -> Table | None:
    """Shadow prices of the optimum, as ``optimize`` prints them."""
    from libra_planner.views.renderers.terminal import rich_table
    from libra_planner.views.worth import worth_table

    found = worth_table(optimum.shadow or ())
    return rich_table(found) if found else None


def note_lines(notes: Iterable[str]) -> Text:
    """Notes as the commands print them, a paragraph each."""
    return Text("\n".join(f"Note: {note}" for note in notes), "dim")


def notes(problem: Problem, evaluation: Evaluation) -> Text:
    """What the figures take for granted."""
    from libra_planner.views.plan import memory_lines, result_notes

    memory = (line.text for line in memory_lines(problem))
    return note_lines([*memory, *result_notes(problem, evaluation)])
