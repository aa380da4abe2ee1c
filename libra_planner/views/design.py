"""Results as the JSON objects of the command-line contract (DESIGN section 4)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from libra_planner.costs.options import LinkOption
from libra_planner.fabric.topology import Topology
from libra_planner.problem import Problem
from libra_planner.step.explanation import COMPUTE, Share
from libra_planner.step.expression import Array
from libra_planner.units import format_bandwidth, format_usd, gigabytes_per_s
from libra_planner.views.plan import (
    fidelity_payload,
    group_payload,
    memory_payload,
    objective_notes,
    plan_notes,
)

if TYPE_CHECKING:
    from libra_planner.evaluation import Evaluation
    from libra_planner.optimizer.design import Design
    from libra_planner.optimizer.shadow import ShadowPrice

_BINDING = 1e-6
"""Relative slack below which a rule binds."""


def optimize_payload(problem: Problem, design: Design, evaluation: Evaluation) -> dict[str, Any]:
    """What ``optimize --json`` prints."""
    certificate = {
        "status": "optimal",
        "optimality_gap": design.optimality_gap,
        "lower_bound": design.lower_bound,
        "unique": design.unique,
        "max_violation": design.max_violation,
    }
    figures = _figures(problem, evaluation)
    return {"objective": design.objective, **certificate, **figures}


def worth_payload(
    shadow: tuple[ShadowPrice, ...] | None, prices: tuple[ShadowPrice, ...] | None
) -> dict[str, Any]:
    """Keys ``shadow_prices`` and ``price_sensitivity``; null where there are none to give."""
    return {
        "shadow_prices": shadow and [_worth(price) for price in shadow],
        "price_sensitivity": prices and [_worth(price) for price in prices],
    }


def _worth(price: ShadowPrice) -> dict[str, Any]:
    subject: dict[str, Any] = {price.subject: price.name}
    if price.subject == "rule":
        subject |= {"line": price.line, "bound": price.bound}
    return {
        **subject,
        "unit": price.unit,
        "d_step_time_s": price.d_step_time_s,
        "d_cost_usd": price.d_cost_usd,
        "side": price.side,
    }


def evaluate_payload(problem: Problem, evaluation: Evaluation) -> dict[str, Any]:
    """What ``evaluate --json`` prints: no solver's keys, but the rules that are broken."""
    violated = [
        {"rule": broken.rule, "line": broken.line, "by": broken.by, "unit": broken.unit}
        for broken in evaluation.violated
    ]
    verdict = {"feasible": evaluation.feasible, "violated": violated}
    figures = _figures(problem, evaluation)
    figures["notes"] += objective_notes(problem, evaluation)
    return {"objective": evaluation.objective, **figures, **verdict}


def binding_rules(problem: Problem, bandwidth_bytes_per_s: Array) -> list[dict[str, Any]]:
    """Rules that hold with no room to spare, with their lines."""
    found: dict[tuple[str, int | None], None] = {}
    for rule in problem.rules_at(bandwidth_bytes_per_s):
        terms = np.abs(rule.coefficients) @ bandwidth_bytes_per_s
        slack = abs(float(np.dot(rule.coefficients, bandwidth_bytes_per_s)) - rule.bound)
        if slack <= _BINDING * max(abs(rule.bound), float(terms)):
            found[(rule.text, rule.line)] = None
    step_time_s = float(problem.step_time.seconds(bandwidth_bytes_per_s))
    for limit in problem.step_time_limits:
        if abs(step_time_s - limit.limit_s) <= _BINDING * limit.limit_s:
            found[(limit.text, limit.line)] = None
    return [{"rule": text, "line": line} for text, line in found]


def _figures(problem: Problem, evaluation: Evaluation) -> dict[str, Any]:
    equal = evaluation.equal
    return {
        "objective_kind": problem.objective,
        **group_payload(problem, evaluation),
        "workload": problem.workload_name,
        "covers": problem.covers,
        "topology": str(problem.topology),
        "tiers": list(problem.topology.tiers),
        "n_npus": problem.topology.n_npus,
        "bandwidth_GBps": _vector(evaluation.bandwidth_bytes_per_s),
        "step_time_s": evaluation.step_time_s,
        "compute_time_s": evaluation.compute_s,
        "communication_time_s": evaluation.communication_s,
        "cost_usd": evaluation.cost_usd,
        "network_cost_usd": evaluation.network_cost_usd,
        "fixed_cost_usd": evaluation.fixed_cost_usd,
        "cost_usd_by_dimension": [float(cost) for cost in evaluation.cost_usd_by_dim],
        "equal_bandwidth": {
            "bandwidth_GBps": _vector(equal.bandwidth_bytes_per_s),
            "step_time_s": _finite(equal.step_time_s),
            "cost_usd": equal.cost_usd,
            "feasible": equal.feasible,
        },
        "speedup_vs_equal": _finite(evaluation.speedup_vs_equal),
        "perf_per_cost_vs_equal": _finite(evaluation.perf_per_cost_vs_equal),
        "bottlenecks": [
            _bottleneck(problem.topology, share, evaluation.step_time_s)
            for share in evaluation.shares
            if share.label != COMPUTE
        ],
        "binding": binding_rules(problem, evaluation.bandwidth_bytes_per_s),
        "real_link_step_time_s": evaluation.real_link_step_time_s,
        "memory": memory_payload(problem.step.memory),
        **fidelity_payload(problem, evaluation),
        "settings": list(problem.settings),
        "notes": list(plan_notes(problem)),
    }


def _bottleneck(topology: Topology, share: Share, step_time_s: float) -> dict[str, Any]:
    return {
        "operation": share.label,
        "dimensions": [topology.labels[i] for i in share.dims],
        "time_s": share.seconds,
        "step_time_fraction": share.seconds / step_time_s,
    }


def _vector(bandwidth_bytes_per_s: Array) -> list[float]:
    return [gigabytes_per_s(value) for value in bandwidth_bytes_per_s]


def _finite(value: float | None) -> float | None:
    """``None`` for what JSON cannot hold (a baseline that starves a dimension)."""
    return value if value is not None and math.isfinite(value) else None


if TYPE_CHECKING:
    from libra_planner.optimizer.catalogue import CatalogueDesign

_OBJECTIVES = {
    "performance": "Step time",
    "performance_per_cost": "Step time x cost",
    "cost": "Cost",
}


def catalogue_payload(problem: Problem, design: CatalogueDesign) -> dict[str, Any]:
    """The key ``catalogue`` of ``optimize --json`` for a plan with ``link_options``."""
    labels, free = problem.topology.labels, design.continuous
    continuous = free and {
        "bandwidth_GBps": [gigabytes_per_s(value) for value in free.bandwidth_bytes_per_s],
        "objective": free.objective,
    }
    figures = {
        "options": [
            option and _option(label, option)
            for label, option in zip(labels, design.options, strict=True)
        ],
        "n_combinations": design.n_combinations,
        "continuous": continuous,
        "no_continuous": design.no_continuous or None,
        "loss_vs_continuous": design.loss_vs_continuous,
    }
    return {"catalogue": figures}


def _option(label: str, option: LinkOption) -> dict[str, Any]:
    return {
        "dimension": label,
        "bandwidth_GBps": gigabytes_per_s(option.bandwidth_bytes_per_s),
        "speed_GBps": gigabytes_per_s(option.speed_bytes_per_s),
        "n_ports": option.n_ports,
        "cost_usd": option.cost_usd,
        "name": option.name or None,
    }


def catalogue_lines(problem: Problem, design: CatalogueDesign) -> list[str]:
    """Plain lines that say what to buy and what is lost against any bandwidth."""
    bought = [
        f"{label} {option} ({format_usd(option.cost_usd)})" if option else f"{label} any bandwidth"
        for label, option in zip(problem.topology.labels, design.options, strict=True)
    ]
    scope = f"the best of {design.n_combinations:,} purchasable combinations"
    return [f"Buy per NPU: {', '.join(bought)}: {scope}", _loss(problem, design)]


def _loss(problem: Problem, design: CatalogueDesign) -> str:
    free, loss = design.continuous, design.loss_vs_continuous
    if free is None or loss is None:
        reason = design.no_continuous or "its objective is zero"
        return f"No continuous optimum to compare with: {reason}"
    vector = ", ".join(format_bandwidth(value) for value in free.bandwidth_bytes_per_s)
    return (
        f"{_OBJECTIVES[problem.objective]} {loss:+.2%} against the continuous optimum of the "
        f"same rules at the price book's linear prices ({vector})"
    )
