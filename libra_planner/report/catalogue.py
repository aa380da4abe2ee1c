"""A purchasable design in words and as JSON: what to buy, and what the catalogue costs in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from libra_planner.costs.options import LinkOption
from libra_planner.problem import Problem
from libra_planner.units import format_bandwidth, format_usd, gigabytes_per_s

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
