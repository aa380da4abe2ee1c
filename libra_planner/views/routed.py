"""The best design that was checked under a routing policy, as JSON-ready values and text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from libra_planner.check.links import CheckReport
from libra_planner.check.rerouted import CheckedDesign, RoutedOptimum
from libra_planner.evaluation import Evaluation, max_violation
from libra_planner.fabric.topology import TrafficSettings
from libra_planner.inputs.routed import RoutedStrategies
from libra_planner.optimizer.catalogue import CatalogueDesign
from libra_planner.problem import Problem
from libra_planner.units import bare_bandwidth, format_time, gigabytes_per_s
from libra_planner.views import design
from libra_planner.views.bought import speeds
from libra_planner.views.cells import Block, Table, attributes, escape, table_of, two_digits
from libra_planner.views.check import routed_by, routing_keys, time_keys
from libra_planner.views.phases import algorithm_lines, algorithms_payload
from libra_planner.views.plan import without_busy
from libra_planner.views.spread import figures, mean_text
from libra_planner.views.training.routed import (
    strategies_blocks,
    strategies_headline,
    strategies_payload,
)

NOTES = (
    "the best of the designs that were checked: no optimality is claimed under a routing policy, "
    "whose efficiency jumps with whole links",
    "no shadow prices: the step time under a routing policy has no slope to take them from",
)
"""What is not known of the best design under a routing policy."""


def routed_payload(
    problem: Problem,
    routed: RoutedOptimum,
    evaluation: Evaluation,
    strategies: RoutedStrategies | None,
    traffic: TrafficSettings,
    *,
    statistics: bool,
) -> dict[str, Any]:
    """What ``optimize --routing --json`` prints.

    The keys of ``optimize`` hold the plan's model at the chosen design, those that prove an
    optimum are null; what the links make of it is under ``routing``.
    """
    figures = design.evaluate_payload(problem, evaluation)
    figures["notes"] = [*without_busy(figures["notes"], problem, evaluation), *NOTES]
    proofs = {
        "status": "checked",
        **dict.fromkeys(("optimality_gap", "lower_bound", "unique")),
        "max_violation": max_violation(problem, evaluation.bandwidth_bytes_per_s),
    }
    bought = bought_options(routed)
    return {
        "objective": figures.pop("objective"),
        **proofs,
        **figures,
        "shadow_prices": None,
        "price_sensitivity": None,
        "routing": _routing(routed, traffic, statistics),
        **strategies_payload(strategies),
        **(speeds.catalogue_payload(problem, bought) if bought is not None else {}),
    }


def bought_options(routed: RoutedOptimum) -> CatalogueDesign | None:
    """What the chosen design buys of a catalogue, without a continuous optimum to compare with."""
    found = routed.best.solution.design
    if not isinstance(found, CatalogueDesign):
        return None
    return replace(found, continuous=None, no_continuous="it was chosen under a routing policy")


def _routing(routed: RoutedOptimum, traffic: TrafficSettings, statistics: bool) -> dict[str, Any]:
    best = routed.best
    # Of each dimension, in lists; the spread of means in lists beside.
    rows = [
        figures("efficiency", x.efficiency, statistics=statistics) for x in best.check.dimensions
    ]
    return {
        **routing_keys(best.check, traffic),
        "converged": routed.converged,
        "stopped": routed.stopped or None,
        "n_rounds": len(routed.rounds),
        **attributes(best, "meets_limits", "objective"),
        **time_keys(best.check, statistics=statistics),
        "algorithms": algorithms_payload(best.check),
        **{name: [row[name] for row in rows] for name in rows[0]},
        "gain_vs_blind": routed.blind.objective / best.objective if best.objective else None,
        "blind": _design(routed.blind, statistics),
        "rounds": [_design(one, statistics) for one in routed.rounds],
    }


def _design(checked: CheckedDesign, statistics: bool) -> dict[str, Any]:
    return {
        "bandwidth_GBps": [gigabytes_per_s(value) for value in checked.bandwidth_Bps],
        **attributes(checked, "cost_usd", "objective", "meets_limits"),
        **time_keys(checked.check, statistics=statistics),
    }


def routed_blocks(
    problem: Problem,
    evaluation: Evaluation,
    routed: RoutedOptimum,
    strategies: RoutedStrategies | None = None,
) -> Iterator[Block]:
    """The chosen design by the plan's model, then what its links make of it."""
    yield from strategies_headline(strategies)
    yield from design.design_blocks(problem, evaluation, on_links=_on_links(routed.best.check))
    bought = bought_options(routed)
    if bought is not None:
        yield from ("", escape(speeds.purchase_text(problem, bought)))
    yield from ("", f"On real links, routed by {routed_by(routed.best.check)}")
    yield ""
    yield from strategies_blocks(strategies)
    has_own = strategies is not None and strategies.best is not strategies.best_in_model
    own = "the strategy's optimum in the model" if has_own else "the plan's own optimum"
    yield from (_comparison(routed, own), "")
    yield from map(escape, algorithm_lines(routed.best.check))
    yield from _lines(problem, routed, own)


def _on_links(check: CheckReport) -> str:
    """The step on links beside that of the model, whose figures stand around it."""
    time, name = format_time(_mean_s(check)), check.policy.name
    slower = f"{check.slowdown.mean():.3f}x"
    return f"On links, by {name}: [bold]{time}[/] ({slower}); what follows is of the model"


def _comparison(routed: RoutedOptimum, own: str) -> Table:
    blind, best = routed.blind, routed.best
    rows = [(own, blind)]
    rows += [("this design", best)] if best is not blind else []
    n_seeds = best.check.n_routings
    several = f", means of {n_seeds:,} routings" if n_seeds > 1 else ""
    return table_of(
        f"Step time{several}",
        rows,
        {
            "design": lambda row: row[0],
            "ideal": lambda row: format_time(row[1].check.ideal_step_time_s),
            "on links": lambda row: format_time(_mean_s(row[1].check)),
            "slowdown": lambda row: f"{row[1].check.slowdown.mean():.3f}x",
            "FIM %": lambda row: two_digits(row[1].check.fim_percent.mean()),
            "GB/s per NPU": lambda row: ", ".join(map(bare_bandwidth, row[1].bandwidth_Bps)),
        },
        left=("design", "GB/s per NPU"),
        dispensable=("FIM %", "slowdown"),
    )


def _lines(problem: Problem, routed: RoutedOptimum, own: str) -> Iterator[str]:
    best, blind, n_designs = routed.best, routed.blind, len(routed.rounds)
    spread = mean_text(best.check.effective_step_time_s[: best.check.n_routings], format_time)
    if spread:
        yield f"Step time of this design on its links: {spread}"
    is_best = f"{own[0].upper()}{own[1:]} is the best design that was checked"
    yield is_best if best is blind else f"{_gain(problem, best, blind)} against {own}"
    yield (
        f"Derated by what the links deliver and optimised again, {n_designs} "
        f"design{'s' if n_designs > 1 else ''}: {'' if routed.converged else 'not '}converged"
    )
    if routed.stopped:
        yield f"The derated plan has no design that can be checked: {escape(routed.stopped)}"
    if not best.meets_limits:
        yield "[red]No design that was checked meets the plan's step time bounds on its links[/]"
    yield from (f"Note: {note}" for note in NOTES)


def _gain(problem: Problem, best: CheckedDesign, blind: CheckedDesign) -> str:
    best_s, blind_s = _mean_s(best.check), _mean_s(blind.check)
    text = f"On its links this design takes [bold]{best_s / blind_s - 1:+.2%}[/] step time"
    if problem.objective != "performance":
        what = {"cost": "cost"}.get(problem.objective, "step time x cost")
        text += f", and {best.objective / blind.objective - 1:+.2%} {what}"
    return text


def _mean_s(check: CheckReport) -> float:
    return float(check.effective_step_time_s.mean())
