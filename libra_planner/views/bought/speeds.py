"""What a plan with ``link_options`` buys: JSON of ``optimize``, and text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from libra_planner.problem import Problem
from libra_planner.units import format_bandwidth, format_usd, gigabytes_per_s
from libra_planner.views.cells import attributes
from libra_planner.views.design import OBJECTIVES, bandwidths_GBps

if TYPE_CHECKING:
    from libra_planner.optimizer.catalogue import CatalogueDesign


def catalogue_payload(problem: Problem, design: CatalogueDesign) -> dict[str, Any]:
    """The key ``catalogue`` of ``optimize --json`` for a plan with ``link_options``."""
    labels, free = problem.topology.labels, design.continuous
    continuous = free and {
        "bandwidth_GBps": bandwidths_GBps(free.bandwidth_bytes_per_s),
        "objective": free.objective,
    }
    options = [
        option
        and {
            "dimension": label,
            "bandwidth_GBps": gigabytes_per_s(option.bandwidth_bytes_per_s),
            "speed_GBps": gigabytes_per_s(option.speed_bytes_per_s),
            **attributes(option, "n_ports", "cost_usd"),
            "name": option.name or None,
        }
        for label, option in zip(labels, design.options, strict=True)
    ]
    figures = {
        "options": options,
        "n_combinations": design.n_combinations,
        "continuous": continuous,
        "no_continuous": design.no_continuous or None,
        **attributes(design, "loss_vs_continuous"),
    }
    return {"catalogue": figures}


def catalogue_lines(problem: Problem, design: CatalogueDesign) -> list[str]:
    """Plain lines that say what to buy and what is lost against any bandwidth."""
    scope = f"the best of {design.n_combinations:,} purchasable combinations"
    bought, free = f"{purchase_text(problem, design)}: {scope}", design.continuous
    if free is None or design.loss_vs_continuous is None:
        reason = design.no_continuous or "its objective is zero"
        return [bought, f"No continuous optimum to compare with: {reason}"]
    vector = ", ".join(format_bandwidth(value) for value in free.bandwidth_bytes_per_s)
    loss = f"{OBJECTIVES[problem.objective]} {design.loss_vs_continuous:+.2%}"
    rules = "of the same rules at the price book's linear prices"
    return [bought, f"{loss} against the continuous optimum {rules} ({vector})"]


def purchase_text(problem: Problem, design: CatalogueDesign) -> str:
    """What to buy in every dimension."""
    bought = (
        f"{label} {option} ({format_usd(option.cost_usd)})" if option else f"{label} any bandwidth"
        for label, option in zip(problem.topology.labels, design.options, strict=True)
    )
    return f"Buy per NPU: {', '.join(bought)}"
