"""The best design that was checked under a routing policy, as JSON-ready values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from libra_planner.check.links import CheckReport
from libra_planner.check.rerouted import CheckedDesign, RoutedOptimum
from libra_planner.check.traffic import TrafficSettings
from libra_planner.evaluation import Evaluation, max_violation
from libra_planner.optimizer.catalogue import CatalogueDesign
from libra_planner.problem import Problem
from libra_planner.units import gigabytes_per_s
from libra_planner.views.check import routing_keys, time_keys
from libra_planner.views.design import catalogue_payload, evaluate_payload
from libra_planner.views.phases import algorithms_payload
from libra_planner.views.spread import figures

NO_CLAIM = (
    "the best of the designs that were checked: no optimality is claimed under a routing policy, "
    "whose efficiency jumps with whole links"
)
NO_SHADOW_PRICES = (
    "no shadow prices: the step time under a routing policy has no slope to take them from"
)


def routed_payload(
    problem: Problem,
    routed: RoutedOptimum,
    evaluation: Evaluation,
    traffic: TrafficSettings,
    *,
    statistics: bool = False,
) -> dict[str, Any]:
    """What ``optimize --routing --json`` prints.

    The keys of ``optimize`` hold the plan's model at the chosen design, those that prove an
    optimum are null; what the links make of it is under ``routing``.
    """
    figures = evaluate_payload(problem, evaluation)
    figures["notes"] = [*figures["notes"], NO_CLAIM, NO_SHADOW_PRICES]
    proofs = {
        "status": "checked",
        "optimality_gap": None,
        "lower_bound": None,
        "unique": None,
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
        **(catalogue_payload(problem, bought) if bought is not None else {}),
    }


def bought_options(routed: RoutedOptimum) -> CatalogueDesign | None:
    """What the chosen design buys of a catalogue, without a continuous optimum to compare with."""
    design = routed.best.solution.design
    if not isinstance(design, CatalogueDesign):
        return None
    return replace(design, continuous=None, no_continuous="it was chosen under a routing policy")


def _routing(routed: RoutedOptimum, traffic: TrafficSettings, statistics: bool) -> dict[str, Any]:
    best = routed.best
    return {
        **routing_keys(best.check),
        "placement": traffic.placement,
        "queue_pairs": traffic.n_queue_pairs,
        "npus_per_address": traffic.npus_per_address,
        "converged": routed.converged,
        "stopped": routed.stopped or None,
        "n_rounds": len(routed.rounds),
        "meets_limits": best.meets_limits,
        "objective": best.objective,
        **time_keys(best.check, statistics=statistics),
        "algorithms": algorithms_payload(best.check),
        **_efficiencies(best.check, statistics),
        "gain_vs_blind": routed.blind.objective / best.objective if best.objective else None,
        "blind": _design(routed.blind, statistics),
        "rounds": [_design(one, statistics) for one in routed.rounds],
    }


def _efficiencies(check: CheckReport, statistics: bool) -> dict[str, list[Any]]:
    """Of each dimension, in lists; the spread of means in lists beside."""
    rows = [
        figures("efficiency", one.efficiency, statistics=statistics) for one in check.dimensions
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _design(checked: CheckedDesign, statistics: bool) -> dict[str, Any]:
    return {
        "bandwidth_GBps": [gigabytes_per_s(value) for value in checked.bandwidth_Bps],
        "cost_usd": checked.cost_usd,
        "objective": checked.objective,
        "meets_limits": checked.meets_limits,
        **time_keys(checked.check, statistics=statistics),
    }
