"""A file of quotes to fill in, beside a first plan."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from libra_planner.costs.quotes import TAX, TIER_PARTS
from libra_planner.inputs.first.plan import PRICES, FirstPlan
from libra_planner.inputs.parts import load_parts
from libra_planner.plan.npus import catalogue
from libra_planner.plan.prices import load_price_book
from libra_planner.plan.quotes import CHOSEN, OFFERED, OPTIONAL, PER_GBPS, PERCENT, REQUIRED


def quotes_text(plan: FirstPlan) -> str:
    """A CSV file of quotes to fill in: of the NPU, parts of every network, the tiers, and tax."""
    names = [*REQUIRED[:2], *OPTIONAL[:3], *REQUIRED[2:], "valid_until", *OFFERED, CHOSEN, "note"]
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_rows(plan))
    return file.getvalue()


def _lengths(plan: FirstPlan) -> str:
    """Which lengths a price of a fibre is for, all of them the same one."""
    joined = ("host-leaf",) if plan.n_groups == 1 else ("host-leaf", "leaf-spine")
    lengths_m = load_parts().assumptions.cable_lengths_m
    return f"one price for {' and '.join(f'{lengths_m[name]:g} m' for name in joined)}"


def _rows(plan: FirstPlan) -> Iterable[dict[str, str]]:
    catalogue_of_parts = load_parts()
    parts, sides = catalogue_of_parts.parts.by_name, catalogue_of_parts.assumptions.side_networks
    speeds = {plan.nic_Bps, *(side.port_speed_Bps for side in sides)}
    vendor_name = catalogue().npus[plan.npu].vendor_name
    yield {"item": plan.npu, "unit": "each", "note": vendor_name}
    for name, part in parts.items():
        is_own = name == plan.domain.server or part.kind in ("fibre", "rack")
        if is_own or (part.kind != "server" and part.port_speed_Bps in speeds):
            lengths = f"; {_lengths(plan)}" if part.kind == "fibre" else ""
            yield {"item": name, "unit": "each", "note": f"{part.description}{lengths}"}
    tiers = load_price_book(PRICES).tiers
    used: Sequence[str] = ("leaf",) if plan.n_groups == 1 else ("leaf", "spine")
    for tier in used:
        for kind in TIER_PARTS:
            if getattr(tiers[tier], f"{kind}_usd_per_GBps"):
                yield {"item": f"{tier}.{kind}", "unit": PER_GBPS, "note": f"{kind} of the {tier}"}
    yield {"item": TAX, "unit": PERCENT, "note": "over the price of everything"}
