"""What a report rests on: risks, assumptions, prices, checks, and how to make it again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from libra_planner.check.links import CheckReport, DimensionReport
from libra_planner.procurement.bill import Assumptions, SideNetwork
from libra_planner.units import format_time, gigabytes_per_s
from libra_planner.views.cells import (
    Cell,
    Section,
    Table,
    Value,
    mark,
    number,
    percent,
    table,
    table_of,
)
from libra_planner.views.phases import algorithm_lines
from libra_planner.views.plan import as_checked, plan_notes
from libra_planner.views.report.bills import price_table
from libra_planner.views.report.comparison import Comparison
from libra_planner.views.spread import mean_text

_BITS = 8


def check_section(comparison: Comparison) -> Section | None:
    """The links under the routing policy; ``None`` where nothing was checked."""
    checked = [(one, one.check) for one in comparison.candidates if one.check is not None]
    rows = [(one.letter, dimension) for one, check in checked for dimension in check.dimensions]
    if not rows:
        return None
    policy = checked[-1][1].policy.name
    columns: dict[str, Callable[[tuple[str, DimensionReport]], Value]] = {
        "Dimension": lambda row: f"{row[0]}, {row[1].label} {row[1].tier}",
        "GB/s per NPU": lambda row: number(gigabytes_per_s(row[1].bandwidth_Bps), 2),
        "Efficiency, sprayed": lambda row: _share(row[1].ideal_efficiency),
        f"under {policy}": lambda row: _share(float(row[1].efficiency.mean())),
        "FIM": lambda row: _share(float(row[1].fim_percent.mean()) / 100),
        "Least FIM": lambda row: _share(row[1].fim_floor_percent / 100),
    }
    text = (
        f"The collectives of a step routed over the links that are bought, by {policy}. Efficiency "
        "is the share of the links' bandwidth that collectives get; FIM is the imbalance of flows "
        "(C10). Where a plan names no algorithm the faster one runs."
    )
    runs = [
        f"{one.letter}, {line}."
        for one, check in checked
        for line in (*_routings(check), *algorithm_lines(check))
    ]
    tables = (table_of(f"Links under {policy}", rows, columns, key="check"),)
    return Section("check", "Routing over the links", "Routing", (text, *runs), tables=tables)


def _routings(check: CheckReport) -> Iterator[str]:
    """How many routings the step time is the mean of, where it is one."""
    means = mean_text(check.effective_step_time_s, format_time)
    if means:
        mean_s = float(check.effective_step_time_s.mean())
        yield f"step time under {check.policy.name}: {format_time(mean_s)}, {means}"


def _share(value: float) -> Cell:
    return percent(None if math.isnan(value) else value)  # nan where no flow crosses switches


def risk_section(comparison: Comparison) -> Section:
    """What could make the figures wrong."""
    risks = [*_price_risks(comparison), *_part_risks(comparison)]
    for one in comparison.candidates:
        problem = one.proposal.problem
        notes = plan_notes(problem if one.check is None else as_checked(problem))
        risks += [f"{one.letter}: {note}." for note in notes]
        preset = f"{one.letter}: preset, where the plan says nothing else"
        risks += [f"{preset}: {note}." for note in one.bought.design.realization.notes]
    if all(one.check is None for one in comparison.candidates):
        risks.append(
            "Step times are not checked: links deliver all they have. Routing by hash takes "
            "longer; --check ecmp measures it."
        )
    risks.append(
        "Not in the bill: storage systems, head nodes, out-of-band network, software, taxes, "
        "freight, building, cooling, staff."
    )
    return Section(
        key="risks",
        title="Risks and assumptions",
        sheet="Assumptions",
        paragraphs=tuple(dict.fromkeys(risks)),
        tables=(_assumption_table(comparison),),
        is_static=True,
    )


def _price_risks(comparison: Comparison) -> list[str]:
    found = []
    for one in comparison.candidates:
        total = one.bill.total_usd
        share = float(one.bill.assumed_usd / total) if total else 0.0
        found.append(f"{one.letter}: {share:.1%} of the price rests on assumed prices.")
    source, as_of = comparison.catalogue_source, comparison.catalogue_as_of
    found.append(f"Parts catalogue of {as_of}: {source}.")
    return found


def _part_risks(comparison: Comparison) -> list[str]:
    powerless = {
        line.part.name: None
        for one in comparison.candidates
        for line in one.bill.lines
        if line.part.kind in ("npu", "server", "nic", "switch", "optic") and not line.part.power_w
    }
    text = f"No power is known for {', '.join(powerless)}: totals of power are without it."
    return [text] if powerless else []


def _assumption_table(comparison: Comparison) -> Table:
    assumed = comparison.candidates[0].proposal.shop.assumptions
    lengths = ", ".join(f"{name} {length:g} m" for name, length in assumed.cable_lengths_m.items())
    rows: list[list[Value]] = [
        ["NPU, where a plan names none", assumed.npu.name, mark("assumed")],
        ["Server", f"{assumed.server.name}, {assumed.server.n_npus} NPUs", mark("assumed")],
        ["Cable lengths", lengths, mark("assumed")],
        *map(_side, assumed.side_networks),
        ["Usable height of a rack", percent(assumed.usable_rack_fraction, 0), mark("assumed")],
        ["Floor per rack, m²", number(assumed.floor_m2_per_rack), mark("assumed")],
        [
            "Electricity, $ per kWh",
            number(assumed.electricity.usd_per_kwh, 4),
            mark(assumed.electricity.confidence),
        ],
        ["Power usage effectiveness", number(assumed.pue, 2), mark("assumed")],
        *(_of_runs(assumed) if comparison.has_run else ()),
    ]
    return table("assumptions", "Assumptions", ["What", "Value", "Confidence"], rows)


def _of_runs(assumed: Assumptions) -> list[list[Value]]:
    return [
        ["Checkpoint, s", f"{assumed.checkpoint_s:g}", mark("assumed")],
        ["Restart, s", f"{assumed.restart_s:g}", mark("assumed")],
    ]


def _side(side: SideNetwork) -> list[Value]:
    speed = _BITS * gigabytes_per_s(side.port_speed_Bps)
    text = (
        f"{side.n_ports_per_server} x {speed:g} Gbit/s per server, {side.switch_radix}-port "
        f"switches, {side.oversubscription:g}:1"
    )
    return [f"{side.name} network", text, mark("assumed")]


def price_section(comparison: Comparison) -> Section:
    """All prices with their sources."""
    text = (
        "Published: a price list or paper anyone can read. Quoted: a vendor's offer. Assumed: an "
        "estimate, to be replaced by a quote before anything is signed. In the workbook, change a "
        "price here and every total moves."
    )
    return Section("prices", "Prices", "Prices", (text,), tables=(price_table(comparison),))


def origin_section(comparison: Comparison) -> Section:
    """How to make the same report again."""
    origin = comparison.origin
    rows: list[list[Value]] = [["command", origin.command, ""]]
    rows += [["version", name, version] for name, version in origin.versions]
    rows += [[role, name, sha256] for role, name, sha256 in origin.files]
    text = "The same files, versions and command give the same bytes."
    headings = ["What", "Name", "Version or SHA-256"]
    one = table("origin", "Inputs and versions", headings, rows)
    return Section("origin", "How to make this report again", "Origin", (text,), tables=(one,))
