"""What to buy of a catalogue, and what one more of anything is worth, as JSON and in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from libra_planner.problem import Problem
from libra_planner.quantities import quantity_in
from libra_planner.units import format_bandwidth, format_time, format_usd, gigabytes_per_s
from libra_planner.views.cells import Table, attributes, table_of
from libra_planner.views.plan import line_text

if TYPE_CHECKING:
    from libra_planner.optimizer.catalogue import CatalogueDesign
    from libra_planner.optimizer.shadow import ShadowPrice

_OBJECTIVES = {
    "performance": "Step time",
    "performance_per_cost": "Step time x cost",
    "cost": "Cost",
}


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
        subject |= attributes(price, "line", "bound")
    return subject | attributes(price, "unit", "d_step_time_s", "d_cost_usd", "side")


def worth_table(shadow: tuple[ShadowPrice, ...]) -> Table | None:
    """What one unit more is worth, without what is worth nothing; ``None`` if nothing is."""
    worth = [price for price in shadow if price.d_step_time_s or price.d_cost_usd]
    columns: dict[str, Callable[[ShadowPrice], str]] = {
        "one more": lambda price: _coarse_unit(price)[0] + " less" * (price.side == "left"),
        "of": _name,
        "step time": lambda price: _change(price, price.d_step_time_s, format_time),
        "cost": lambda price: _change(price, price.d_cost_usd, format_usd),
    }
    title, left = "What one more is worth", ("one more", "of")
    return table_of(title, worth, columns, left=left, is_wrapped=True) if worth else None


def _name(price: ShadowPrice) -> str:
    if price.subject == "dimension":
        return f"{price.name}, given free"
    return "cost" if price.subject == "cost" else f"{price.name}{line_text(price.line)}"


def _coarse_unit(price: ShadowPrice) -> tuple[str, float]:
    """The unit of which one more is told, and its size in units of the entry."""
    if price.subject == "price":  # Money per bandwidth.
        return price.unit, 1.0
    quantity = quantity_in(price.unit)
    unit = quantity.coarse_unit or quantity.unit
    return unit, quantity.units[unit] / quantity.unit_factor


def _change(price: ShadowPrice, per_unit: float, text: Callable[[float], str]) -> str:
    """What one shown unit changes, with the sign of the side."""
    change = per_unit * _coarse_unit(price)[1] * (-1 if price.side == "left" else 1)
    return f"{'-' if change < 0 else '+'}{text(abs(change))}" if change else "-"


def catalogue_payload(problem: Problem, design: CatalogueDesign) -> dict[str, Any]:
    """The key ``catalogue`` of ``optimize --json`` for a plan with ``link_options``."""
    labels, free = problem.topology.labels, design.continuous
    continuous = free and {
        "bandwidth_GBps": [gigabytes_per_s(value) for value in free.bandwidth_bytes_per_s],
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
    loss = f"{_OBJECTIVES[problem.objective]} {design.loss_vs_continuous:+.2%}"
    rules = "of the same rules at the price book's linear prices"
    return [bought, f"{loss} against the continuous optimum {rules} ({vector})"]


def purchase_text(problem: Problem, design: CatalogueDesign) -> str:
    """What to buy in every dimension."""
    bought = (
        f"{label} {option} ({format_usd(option.cost_usd)})" if option else f"{label} any bandwidth"
        for label, option in zip(problem.topology.labels, design.options, strict=True)
    )
    return f"Buy per NPU: {', '.join(bought)}"
