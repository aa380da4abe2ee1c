"""Results as the JSON objects of the command-line contract (DESIGN section 4)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from libra_planner.fabric.topology import Topology
from libra_planner.problem import Problem
from libra_planner.report.fidelity import fidelity_payload
from libra_planner.report.groups import group_payload, objective_notes
from libra_planner.report.memory import memory_payload
from libra_planner.report.notes import plan_notes
from libra_planner.timing.explanation import COMPUTE, Share
from libra_planner.timing.expression import Array
from libra_planner.units import gigabytes_per_s

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
        "memory": memory_payload(problem.memory),
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
