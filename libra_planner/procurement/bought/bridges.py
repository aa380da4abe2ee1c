"""From the linear model's cost of every dimension to that of its parts, in steps (C7, C22)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from libra_planner.fabric.clos import Array
from libra_planner.fabric.realization import RealizedDimension
from libra_planner.problem import Problem
from libra_planner.procurement import bill
from libra_planner.procurement.bill import ZERO, Bill, Part
from libra_planner.procurement.lines import Purchase, holds


@dataclass(frozen=True)
class Bridge:
    """From the linear model's cost of a dimension to that of its parts.

    Parameters
    ----------
    built : the dimension, from whole ports.
    linear_usd : C7 at the design's bandwidth.
    rounding_usd : what whole ports carry beyond that, at the linear prices.
    included_usd : what the price of a server holds already, taken off.
    parts_usd : parts at their own prices instead: switches as used, cables, optics.
    free_ports_usd : the share of the switches that no cable is plugged into.
    spares_usd : parts on the shelf.
    bill_usd : all of it: the bill's lines of the dimension.
    n_ports, n_free_ports : of switches that are parts.
    """

    built: RealizedDimension
    linear_usd: Decimal
    rounding_usd: Decimal
    included_usd: Decimal
    parts_usd: Decimal
    free_ports_usd: Decimal
    spares_usd: Decimal
    bill_usd: Decimal
    n_ports: int
    n_free_ports: int

    @property
    def place(self) -> str:
        """Label and tier of the dimension."""
        return f"{self.built.label} {self.built.tier}"

    @property
    def oversubscription(self) -> float:
        """Host over uplink bandwidth; 1 where there is no switch."""
        return self.built.settings.oversubscription if self.built.settings else 1.0


def bridges(
    problem: Problem, bandwidth_Bps: Array, bought: Purchase, whole: Bill, server: Part
) -> tuple[Bridge, ...]:
    """One bridge per dimension, innermost first; its steps add up to the cent.

    Parameters
    ----------
    problem, bandwidth_Bps : the design; its linear cost is that of the problem, options
        of a catalogue included.
    bought, whole : its parts, and their bill.
    server : whose price holds some of them.
    """
    linear = problem.cost_usd_by_dim(bandwidth_Bps)
    return tuple(
        _bridge(built, bill.to_cents(float(usd)), whole, is_included=holds(bought, dim, server))
        for dim, (built, usd) in enumerate(zip(bought.design.dimensions, linear, strict=True))
    )


def _bridge(
    built: RealizedDimension, linear_usd: Decimal, whole: Bill, *, is_included: bool
) -> Bridge:
    own = Bill(tuple(line for line in whole.lines if line.dimension == built.label))
    spares_usd = sum((x.n_spares * (x.part.unit_usd or ZERO) for x in own.lines), ZERO)
    free_usd = sum((line.free_ports_usd for line in own.lines), ZERO)
    ports = built.bandwidth_Bps / built.asked_Bps if built.asked_Bps else 1.0
    rounding_usd = bill.to_cents(float(linear_usd) * (ports - 1))
    off_usd = -(linear_usd + rounding_usd) if is_included else ZERO
    steps_usd = spares_usd + free_usd + off_usd + rounding_usd + linear_usd
    return Bridge(
        built=built,
        linear_usd=linear_usd,
        rounding_usd=rounding_usd,
        included_usd=off_usd,
        parts_usd=own.total_usd - steps_usd,
        free_ports_usd=free_usd,
        spares_usd=spares_usd,
        bill_usd=own.total_usd,
        n_ports=sum(line.n_ports for line in own.lines),
        n_free_ports=sum(line.n_free_ports for line in own.lines),
    )
