"""The options of a plan with ``prices: bill``: JSON of ``optimize``, and text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from libra_planner.costs.bills import BillTable, FabricOption
from libra_planner.problem import Problem
from libra_planner.units import format_time, format_usd, gigabytes_per_s
from libra_planner.views import cells
from libra_planner.views.cells import Block, Table, attributes, escape
from libra_planner.views.design import bandwidths_GBps
from libra_planner.views.training.step import ON_LINKS, busy_notes

if TYPE_CHECKING:
    from libra_planner.procurement.ranges import BillStudy, Rival

MOST_LISTED, MOST_SHOWN = 100, 8
"""Options in JSON, and in the text's table."""


def bill_payload(problem: Problem, study: BillStudy) -> dict[str, Any]:
    """The key ``bill`` of ``optimize --json`` for a plan with ``prices: bill``."""
    table, design = _table(problem), study.design
    row = design.row
    return {
        "bill": {
            "usd": float(table.usd[row]),
            "usd_low": float(table.low_usd[row]),
            "usd_high": float(table.high_usd[row]),
            "chosen": _option_payload(problem, table.options[row]),
            **attributes(design, "n_combinations"),
            "n_feasible": len(design.ranked),
            "options": [_row_payload(problem, study, i) for i in _places(study, MOST_LISTED)],
            "n_compared_in_ranges": study.n_compared,
            "ranges_change_the_ranking": bool(study.rivals),
            "left_out": [
                {**_option_payload(problem, one), "reason": why} for one, why in table.left_out
            ],
            "lines": [
                {
                    **attributes(line, "group", "tier", "n_bought", part="part.name"),
                    "usd": float(line.extended_usd or 0),
                }
                for line in study.bill.lines
            ],
        }
    }


def _table(problem: Problem) -> BillTable:
    if problem.prices.bills is None:
        raise ValueError("the problem has no bills")
    return problem.prices.bills


def _places(study: BillStudy, most: int) -> range:
    return range(min(most, len(study.design.ranked)))


def _option_payload(problem: Problem, option: FabricOption) -> dict[str, Any]:
    tiers, labels = problem.topology.tiers, problem.topology.labels
    return {
        "text": option.text(tiers),
        **attributes(option, "n_nics", "switch_radix"),
        "nic_GBps": gigabytes_per_s(option.nic_Bps),
        "tapers": {labels[dim]: taper for dim, taper in option.tapers.items()},
    }


def _row_payload(problem: Problem, study: BillStudy, place: int) -> dict[str, Any]:
    table, row = _table(problem), int(study.design.ranked[place])
    return {
        **_option_payload(problem, table.options[row]),
        "bandwidth_GBps": bandwidths_GBps(table.bandwidth_Bps[row]),
        "step_time_s": study.step_times_s[place],
        "usd": float(table.usd[row]),
        "usd_low": float(table.low_usd[row]),
        "usd_high": float(table.high_usd[row]),
        "objective": float(study.design.objectives[place]),
        "can_lead_by_fraction": study.lead(place),
    }


def bill_blocks(problem: Problem, study: BillStudy) -> Iterator[Block]:
    """What to buy, its price, the options beside it, and what ranges of prices do to them."""
    from libra_planner.procurement.bill import NETWORK
    from libra_planner.views.report.costs import lines_text

    table, design = _table(problem), study.design
    row, tiers = design.row, problem.topology.tiers
    money = f"[bold]{format_usd(design.cost_usd)}[/]{_range(table, row)}"
    others = f"the best of {design.n_combinations:,} options, each with its exact bill"
    yield f"Buy {escape(table.options[row].text(tiers))}: {money}; {others}"
    beside = [line for line in study.bill.lines if line.group != NETWORK]
    yield f"In it, beside the training network: {escape(lines_text(beside))}"
    is_busy = any(busy_notes(problem, design.bandwidth_bytes_per_s))
    todo = f"optimize PLAN {ON_LINKS}, as the first note says," if is_busy else "check"
    yield f"Its step time is not checked on its links: run {todo} before you buy"
    yield from ("", _options_table(problem, study), "", _ranges_text(problem, study))
    if names := ", ".join(part.name for part in study.bill.without_range):
        yield f"Assumed, and without a range: the price of {escape(names)}"
    if text := study.bill.faster_text:
        yield escape(f"{text[0].upper()}{text[1:]}")
    if table.left_out:
        n, (option, why) = len(table.left_out), table.left_out[0]
        more = f"; and {n - 1:,} more, see --json" if n > 1 else ""
        yield f"Cannot be bought: {escape(option.text(tiers))} ({escape(why)}){more}"


def _range(table: BillTable, row: int) -> str:
    low, high = table.low_usd[row], table.high_usd[row]
    return f" ({format_usd(low)} to {format_usd(high)} as sources differ)" if low < high else ""


def _options_table(problem: Problem, study: BillStudy) -> Table:
    """The options that meet the rules, best first."""
    table, design = _table(problem), study.design
    rows = [int(row) for row in design.ranked]
    best = design.objectives[0]

    def can_lead(place: int) -> str:
        lead = study.lead(place)
        return "-" if lead is None else f"by {lead:.1%}"

    columns = {
        "option": lambda i: table.options[rows[i]].text(problem.topology.tiers),
        "step time": lambda i: format_time(study.step_times_s[i]),
        "bill": lambda i: format_usd(table.usd[rows[i]]),
        "lowest": lambda i: format_usd(table.low_usd[rows[i]]),
        "highest": lambda i: format_usd(table.high_usd[rows[i]]),
        "vs best": lambda i: f"{design.objectives[i] / best:.3f}x",
        "can lead": can_lead,
    }
    n = len(rows)
    shown = f"the first {MOST_SHOWN} of {n:,}" if n > MOST_SHOWN else f"all {n:,}"
    title = f"Options that meet the rules, best first: {shown}"
    places = _places(study, MOST_SHOWN)
    left, dispensable = ("option",), ("lowest", "highest")
    return cells.table_of(
        title, places, columns, left=left, dispensable=dispensable, is_wrapped=True
    )


def _ranges_text(problem: Problem, study: BillStudy) -> str:
    """Whether prices within their ranges put another option first."""
    n = study.n_compared - 1
    if problem.objective == "performance" and not n:
        return "No price changes which option is first: none is as fast"
    if not study.rivals:
        return (
            f"At all prices within their ranges this option stays first of the {n + 1:,} compared: "
            "what options share moves them together"
        )
    last: Rival = max(study.rivals, key=lambda one: one.lead_fraction)
    option = _table(problem).options[int(study.design.ranked[last.other])]
    return (
        f"Within the ranges of the prices {len(study.rivals):,} of {n:,} others can come first, "
        f"such as {escape(option.text(problem.topology.tiers))}, by up to "
        f"{last.lead_fraction:.1%}: get quotes for what they do not share"
    )
