"""Shadow prices as a terminal table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from libra_planner.report.markup import escape
from libra_planner.units import format_time, format_usd

if TYPE_CHECKING:
    from libra_planner.optimizer.shadow import ShadowPrice


def worth_table(shadow: tuple[ShadowPrice, ...]) -> Table | None:
    """What one unit more is worth, without what is worth nothing; ``None`` if nothing is."""
    table = Table("one more", "of", title="What one more is worth", box=None)
    table.title_justify = "left"
    for name in ("step time", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for price in shadow:
        if price.d_step_time_s or price.d_cost_usd:
            table.add_row(_unit(price), escape(_name(price)), _seconds(price), _dollars(price))
    return table if table.rows else None


def _unit(price: ShadowPrice) -> str:
    unit = {"$": "M$", "s": "ms"}.get(price.unit, price.unit)
    return f"{unit} less" if price.side == "left" else unit


def _name(price: ShadowPrice) -> str:
    line = f" (line {price.line})" if price.line else ""
    if price.subject == "dimension":
        return f"{price.name}, given free"
    if price.subject == "cost":
        return "cost"
    return f"{price.name}{line}"


def _per_unit(price: ShadowPrice) -> float:
    """Shown units over the entry's, with the sign of the side."""
    factor = {"$": 1e6, "s": 1e-3}.get(price.unit, 1.0)
    return -factor if price.side == "left" else factor


def _seconds(price: ShadowPrice) -> str:
    change = price.d_step_time_s * _per_unit(price)
    return f"{'-' if change < 0 else '+'}{format_time(abs(change))}" if change else "-"


def _dollars(price: ShadowPrice) -> str:
    change = price.d_cost_usd * _per_unit(price)
    return f"{'-' if change < 0 else '+'}{format_usd(abs(change))}" if change else "-"
