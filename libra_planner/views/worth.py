"""What to buy of a catalogue, and what one more of anything is worth, as JSON and in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from libra_planner.problem import Problem
from libra_planner.quantities import quantity_in
from libra_planner.units import format_bandwidth, format_time, format_usd, gigabytes_per_s
from libra_planner.views.cells import Table, attributes, table
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
    rows = map(_worth_row, worth)
    headings, left = ("one more", "of", "step time", "cost"), ("one more", "of")
    title = "What one more is worth"
    return table("", title, headings, rows, left=left, is_wrapped=True) if worth else None


def _worth_row(price: ShadowPrice) -> tuple[str, ...]:
    """One more of what it is, and what that changes, with the sign of the side."""
    unit, size = price.unit, 1.0
    if price.subject != "price":  # Which is money per bandwidth.
        quantity = quantity_in(price.unit)
        unit = quantity.coarse_unit or quantity.unit
        size = quantity.units[unit] / quantity.unit_factor
    less, sign = (" less", -1) if price.side == "left" else ("", 1)
    own = f"{price.name}{line_text(price.line)}"
    name = {"dimension": f"{price.name}, given free", "cost": "cost"}.get(price.subject, own)
    seconds, dollars = (sign * x * size for x in (price.d_step_time_s, price.d_cost_usd))
    return unit + less, name, _signed(seconds, format_time), _signed(dollars, format_usd)


def _signed(change: float, text: Callable[[float], str]) -> str:
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
