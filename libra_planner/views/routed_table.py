"""The best design that was checked under a routing policy, as terminal text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from libra_planner.check.links import CheckReport
from libra_planner.check.rerouted import CheckedDesign, RoutedOptimum
from libra_planner.evaluation import Evaluation
from libra_planner.optimizer.catalogue import CatalogueDesign
from libra_planner.problem import Problem
from libra_planner.units import format_bandwidth, format_time, format_usd
from libra_planner.views.cells import escape
from libra_planner.views.check_table import routed_by
from libra_planner.views.flows_table import figure_text, plain_table, print_line
from libra_planner.views.phases import algorithm_lines
from libra_planner.views.routed import NO_CLAIM, NO_SHADOW_PRICES, bought_options
from libra_planner.views.spread import mean_text
from libra_planner.views.terminal import print_result


def print_routed(
    console: Console, problem: Problem, evaluation: Evaluation, routed: RoutedOptimum
) -> None:
    """The chosen design by the plan's model, then what its links make of it."""
    print_result(console, problem, evaluation)
    bought = bought_options(routed)
    if bought is not None:
        console.print()
        print_line(console, escape(_purchase(problem, bought)))
    console.print()
    print_line(console, f"On real links, routed by {routed_by(routed.best.check)}")
    console.print()
    console.print(_comparison(console, routed))
    console.print()
    for line in algorithm_lines(routed.best.check):
        print_line(console, escape(line))
    for line in _lines(problem, routed):
        print_line(console, line)


def _purchase(problem: Problem, bought: CatalogueDesign) -> str:
    pairs = zip(problem.topology.labels, bought.options, strict=True)
    parts = [
        f"{label} {option} ({format_usd(option.cost_usd)})" if option else f"{label} any bandwidth"
        for label, option in pairs
    ]
    return f"Buy per NPU: {', '.join(parts)}"


def _comparison(console: Console, routed: RoutedOptimum) -> Table:
    blind, best = routed.blind, routed.best
    rows = [("the plan's own optimum", blind)]
    rows += [("this design", best)] if best is not blind else []
    checks = [one.check for _, one in rows]
    columns = {
        "design": [name for name, _ in rows],
        "ideal": [format_time(check.ideal_step_time_s) for check in checks],
        "on links": [format_time(_mean_s(check)) for check in checks],
        "slowdown": [f"{check.slowdown.mean():.3f}x" for check in checks],
        "FIM %": [figure_text(float(check.fim_percent.mean())) for check in checks],
        "GB/s per NPU": [_vector(one) for _, one in rows],
    }
    n_seeds = best.check.n_routings
    several = f", means of {n_seeds:,} routings" if n_seeds > 1 else ""
    title = f"Step time{several}"
    left = ("design", "GB/s per NPU")
    return plain_table(console, columns, title, left=left, dispensable=("FIM %", "slowdown"))


def _vector(one: CheckedDesign) -> str:
    return ", ".join(format_bandwidth(x).removesuffix(" GB/s") for x in one.bandwidth_Bps)


def _lines(problem: Problem, routed: RoutedOptimum) -> Iterator[str]:
    best, blind, n_designs = routed.best, routed.blind, len(routed.rounds)
    spread = mean_text(best.check.effective_step_time_s[: best.check.n_routings], format_time)
    if spread:
        yield f"Step time of this design on its links: {spread}"
    if best is blind:
        yield "The plan's own optimum is the best design that was checked"
    else:
        yield _gain(problem, best, blind)
    yield (
        f"Derated by what the links deliver and optimised again, {n_designs} "
        f"design{'s' if n_designs > 1 else ''}: {'' if routed.converged else 'not '}converged"
    )
    if routed.stopped:
        yield f"The derated plan has no design that can be checked: {escape(routed.stopped)}"
    if not best.meets_limits:
        yield "[red]No design that was checked meets the plan's step time bounds on its links[/]"
    yield f"Note: {NO_CLAIM}"
    yield f"Note: {NO_SHADOW_PRICES}"


def _gain(problem: Problem, best: CheckedDesign, blind: CheckedDesign) -> str:
    best_s, blind_s = _mean_s(best.check), _mean_s(blind.check)
    text = f"On its links this design takes [bold]{best_s / blind_s - 1:+.2%}[/] step time"
    if problem.objective != "performance":
        what = {"cost": "cost"}.get(problem.objective, "step time x cost")
        text += f", and {best.objective / blind.objective - 1:+.2%} {what}"
    return f"{text} against the plan's own optimum"


def _mean_s(check: CheckReport) -> float:
    return float(check.effective_step_time_s.mean())
