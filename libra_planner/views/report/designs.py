"""The designs side by side, their differences, and the racks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

from libra_planner.costs.prices import SAME_SPEED
from libra_planner.evaluation import Evaluation, TimeModel
from libra_planner.fabric.clos import Array
from libra_planner.fabric.parts import DesignParts
from libra_planner.procurement.bill import FRONTEND, NETWORK, NETWORKS, STORAGE
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison
from libra_planner.step.memory_use import MemoryUse
from libra_planner.units import BYTES_PER_GB, format_time, gigabytes_per_s
from libra_planner.views import cells
from libra_planner.views.cells import Cell, Section, Table, Value, number, round_usd
from libra_planner.views.plan import equal_bandwidth_text
from libra_planner.views.report.bills import (
    EXTENDED_COLUMN,
    SOURCE_COLUMN,
    end_move,
    group_cell,
    rules_of_ports,
    tax_formula,
)
from libra_planner.views.report.strategies import strategy_cell, technology_cell
from libra_planner.views.training.step import COUNTED, work_payload

Figure = Callable[[Candidate], Value]
Rows = list[tuple[str, Figure]]
_BITS = 8
_MOST_CHANGES = 4
"""Designs beside whose figures a page of paper has room for differences."""


def design_columns(comparison: Comparison) -> list[str]:
    """Headings: every design, that to buy first, and its difference from the baseline."""
    letters, base = comparison.letters, comparison.baseline
    if base is None:
        return [letters[i] for i in comparison.order]
    pairs = ((i, (letters[i], f"{letters[i]} vs {letters[base]}")) for i in comparison.order)
    return [heading for i, pair in pairs for heading in pair[: 1 if i == base else 2]]


def design_row(comparison: Comparison, title: str, values: Sequence[Value]) -> list[Value]:
    """A row of a value per design; differences stand beside those that are not the baseline.

    Parameters
    ----------
    values : of the designs, in the order of the command.

    Examples
    --------
    The difference of a number is relative, of shares in percentage points, and a formula in
    spreadsheets.
    """
    row: list[Value] = [title]
    figures, base = [cells.cell(value) for value in values], comparison.baseline
    headings = design_columns(comparison)
    columns = [1 + headings.index(letter) for letter in comparison.letters]
    for i in comparison.order:
        row.append(figures[i])
        if base is not None and i != base:
            row.append(_difference(figures[i], figures[base], columns[i], columns[base]))
    return row


def _difference(one: Cell, base: Cell, column: int, base_column: int) -> Cell:
    if cells.PART_OF_A_STEP in (one.value, base.value):
        return Cell(None)
    if cells.TEXT in (one.kind, base.kind):
        return Cell("same" if one.value == base.value else "differs")
    if one.value == base.value and not (one.expression and base.value):
        return cells.delta(0.0) if one.kind != cells.PERCENT else cells.points(0.0)
    if one.kind == cells.PERCENT and isinstance(one.value, float) and isinstance(base.value, float):
        expression = f"100*([c{column}]-[c{base_column}])"
        return cells.points(100 * (one.value - base.value), expression)
    if not isinstance(one.value, int | float | Decimal) or not base.value or base.is_text:
        return Cell(None)
    # Of the values as they stand in the table, so that a spreadsheet finds the same.
    ratio = float(one.value) / float(base.value) - 1
    return cells.delta(ratio, f"[c{column}]/[c{base_column}]-1")


def figures(comparison: Comparison, key: str, caption: str, rows: Rows, note: str = "") -> Table:
    """A table of figures by design; rows that say nothing of any design are left out."""
    listed = []
    for title, figure in rows:
        values = [cells.cell(figure(one)) for one in comparison.candidates]
        if any(value.value is not None for value in values):
            listed.append(design_row(comparison, title, values))
    headings = design_columns(comparison)
    changes = [x for x in headings if x not in comparison.letters]
    many = tuple(changes) if len(comparison.letters) > _MOST_CHANGES else ()
    return cells.table(key, caption, ["", *headings], listed, note=note, dispensable=many)


def of(names: str, shown: Callable[[Any], Value] = cells.count) -> Figure:
    """A figure of a design by its names, joined with dots; unknown where one of them is.

    Parameters
    ----------
    names : such as ``run.n_steps``.
    shown : the cell of it.
    """

    def figure(one: Candidate) -> Value:
        found: Any = one
        for name in names.split("."):
            found = None if found is None else getattr(found, name)
        return shown(found)

    return figure


def per(divisor: float, digits: int = 1) -> Callable[[float | None], Cell]:
    """How a number is shown in a larger unit, or a smaller one of a divisor below 1.

    >>> per(1000.0)(1234.0).shown, per(60.0, 2)(None).shown
    ('1.2', 'n/a')
    """
    return lambda value: number(None if value is None else value / divisor, digits)


def milliseconds(time_s: float | None) -> Cell:
    """A time in ms.

    >>> milliseconds(0.0015).shown
    '1.500'
    """
    return number(None if time_s is None else time_s * 1000, 3)


KILO = per(1000.0)
"""Watts in kW, or kWh in MWh."""


def whole_step(figure: Figure) -> Figure:
    """The figure, or why there is none where the workload is part of a step."""
    return lambda one: Cell(cells.PART_OF_A_STEP) if one.proposal.is_part else figure(one)


def time_basis(comparison: Comparison) -> str:
    """Which step time there is, and what of the report follows it."""
    per_usd = comparison.ranking.best_per_usd is not None
    known = {
        "the ranking": per_usd and len(comparison.candidates) > 1,
        "tokens per second": any(one.token_time_s for one in comparison.candidates),
        "work per dollar": per_usd,
        "the run": comparison.has_run,
    }
    *most, last = [name for name, is_known in known.items() if is_known] or [""]
    text = f"Step times are {comparison.ranking.ranked_by}"
    if not last:
        return f"{text}."
    verb = "follow" if most or last == "tokens per second" else "follows"
    return f"{text}: {', '.join(most)}{' and ' if most else ''}{last} {verb} them."


def ports_text(comparison: Comparison) -> str:
    """Which designs buy more than their plans ask for, and what that does to the step."""
    found = [text for one in comparison.candidates if (text := _ports_of(one))]
    if not found:
        return ""
    others = (x for i, x in enumerate(comparison.candidates) if i != comparison.chosen)
    broken = "".join(f"{text} " for one in others for text in rules_of_ports(one))
    return (
        f"Ports are sold whole: {'; '.join(found)}. {broken}With prices: bill a plan chooses among "
        "what can be bought."
    )


def faster_text(comparison: Comparison) -> str:
    """Which designs pay for parts that are faster than the ports of their plans."""
    found = ((one.letter, one.bill.faster_text) for one in comparison.candidates)
    said = " ".join(f"The bill of {letter}: {text}." for letter, text in found if text)
    return f"{said} Quote the speed that is sold, and give it as port_speed." if said else ""


def _ports_of(one: Candidate) -> str:
    """What a design buys more than it asks for; empty for nothing."""
    more = [
        f"{gigabytes_per_s(x.bandwidth_Bps):.4g} GB/s per NPU in {x.tier} where "
        f"{gigabytes_per_s(x.asked_Bps):.4g} is asked for"
        for x in one.bought.design.dimensions
        if x.bandwidth_Bps > x.asked_Bps * (1 + SAME_SPEED)
    ]
    if not more:
        return ""
    text = f"{one.letter} has {' and '.join(more)}"
    if one.check is not None:
        return text
    times_s = one.step_time_by(TimeModel.BILLED), one.step_time_by(TimeModel.OWN_LINKS)
    billed, asked = map(format_time, times_s)
    other = f"instead of {asked}" if one.is_faster_as_bought else "either way"
    return f"{text}, and takes a step in {billed} {other}"


def comparison_section(comparison: Comparison) -> Section:
    """All designs side by side."""
    names = (
        f"{one.letter} is {_whole_name(one)}"
        f" ({'the optimum of its plan' if one.proposal.optimized else 'a given vector'})"
        for one in comparison.candidates
    )
    tables = (_design_table(comparison), _money_table(comparison))
    text = "; ".join(names) + "."
    return Section(
        "designs", "The designs side by side", "Comparison", (text,), tables=tables, is_static=True
    )


def _whole_name(one: Candidate) -> str:
    """Its name, and of what plan it is where that is not the name."""
    name, source = one.proposal.name, one.proposal.source
    return name if source in (name, "") else f"{name}, {source}"


def _design_table(comparison: Comparison) -> Table:
    n_dims = max(one.proposal.problem.topology.n_dims for one in comparison.candidates)
    rows: Rows = [
        ("Workload", of("proposal.problem.workload_name", str)),
        ("Topology, innermost first", of("proposal.problem.topology", str)),
        ("Tiers", of("proposal.problem.topology.tiers", ", ".join)),
        ("NPUs", of("n_npus")),
        ("Network that step times are of", technology_cell),
        ("Strategy", strategy_cell),
    ]
    for dim in range(n_dims):
        rows.append((f"dim{dim + 1}, GB/s per NPU", partial(_bandwidth, dim, "asked_Bps")))
        bought = f"dim{dim + 1}, as bought in whole ports, GB/s"
        rows.append((bought, partial(_bandwidth, dim, "bandwidth_Bps")))
    rows += _time_rows(comparison)
    compares = any(one.evaluation.equal.possible for one in comparison.candidates)
    speedup = ", and so is the speedup over equal bandwidth" if compares else ""
    note = f"{time_basis(comparison)} The plan's model is of the bandwidth asked for{speedup}."
    note += " dim1 and on: tiers of links, innermost first."
    if any(one.check is not None for one in comparison.candidates):
        note += _FIM
    return figures(comparison, "designs", "Design and step time", rows, note)


_FIM = " FIM: how far links between switches are from carrying equally many flows, 0% where all do."


def _bandwidth(dim: int, name: str, one: Candidate) -> Value:
    design = one.bought.design.dimensions
    if dim >= len(design) or (name == "bandwidth_Bps" and design[dim].settings is None):
        return Cell(None)
    return number(gigabytes_per_s(getattr(design[dim], name)), 2)


def _equal_text(evaluation: Evaluation) -> Value:
    """Equal bandwidth with its time and cost; unknown where nobody can have it."""
    return equal_bandwidth_text(evaluation) if evaluation.equal.possible else cells.count(None)


def _time_rows(comparison: Comparison) -> Rows:
    model = comparison.ranking.ranked_by
    knows_ports = any(x.is_faster_as_bought for x in comparison.candidates)
    own_links, sprayed = "evaluation.real_link_step_time_s", "check.spray_step_time_s"
    return [
        ("Step time by the model, ms", of("evaluation.step_time_s", milliseconds)),
        ("of it exposed communication, ms", of("evaluation.communication_s", milliseconds)),
        ("Step time on partial groups' own links, ms", of(own_links, milliseconds)),
        (
            "Step time on the whole ports of the bill, ms",
            lambda one: milliseconds(one.step_time_by(TimeModel.BILLED) if knows_ports else None),
        ),
        ("Step time on the links, sprayed, ms", of(sprayed, milliseconds)),
        ("Effective step time under the policy, ms", of("check.effective_step_time_s", _mean_ms)),
        (
            "Imbalance of flows over links (FIM), worst dimension",
            of("check.fim_percent", _mean_percent),
        ),
        ("Step time that ranks, ms", lambda one: milliseconds(one.step_time_by(model))),
        *band_rows("Step time that ranks", "ms", lambda one: one.band_s, milliseconds),
        ("Speedup over equal bandwidth", of("evaluation.speedup_vs_equal", per(1.0, 3))),
        ("Equal bandwidth in every dimension", of("evaluation", _equal_text)),
        ("Tokens per step", of("proposal.tokens_per_step")),
        (
            "Tokens per second",
            whole_step(of("token_time_s", lambda x: number(1 / x if x else None, 0))),
        ),
        *band_rows("Tokens per second", "", tokens_ends, per(1.0, 0)),
        (f"Model FLOP/s utilisation (MFU), {COUNTED}", lambda one: cells.percent(mfu(one), 1)),
        *band_rows("MFU", "", mfu_ends, cells.percent),
        ("Memory that the step needs, GB per NPU", _memory_GB),
        ("Weights, gradients, optimizer states, GB per NPU", partial(_most_GB, "states_bytes")),
        ("of them if all is sharded over DP (ZeRO 3), GB", partial(_most_GB, "sharded_bytes")),
        ("Memory of the NPU, GB", partial(_most_GB, "npu_memory_bytes")),
        ("Rules of the plan that it breaks", lambda x: cells.count(len(x.evaluation.violated))),
    ]


Ends: TypeAlias = tuple[float, float] | None
"""The least and the most that a figure is by an error band (C23)."""


def band_rows(
    title: str, unit: str, ends: Callable[[Candidate], Ends], shown: Callable[[float], Cell]
) -> Rows:
    """Rows of the ends of a figure's band; of designs without one nothing."""
    after = f", {unit}" if unit else ""

    def end(side: int) -> Figure:
        return lambda one: Cell(None) if (both := ends(one)) is None else shown(both[side])

    return [(f"{title}, {word} by its band{after}", end(i)) for i, word in enumerate(SIDES)]


SIDES = ("least", "most")
"""The ends of a band in words."""


def tokens_ends(one: Candidate) -> Ends:
    """Tokens per second by the band of the step."""
    tokens, band_s = one.proposal.tokens_per_step, one.band_s
    return (tokens / band_s[1], tokens / band_s[0]) if tokens and band_s else None


def mfu(one: Candidate) -> float | None:
    """MFU of the step of a whole model at the time that ranks; nothing for others."""
    found = work_payload(one.proposal.problem, one.evaluation.step_time_s).get("mfu")
    return None if found is None else found * one.evaluation.step_time_s / one.step_time_s


def mfu_ends(one: Candidate) -> Ends:
    """The same by the band of the step."""
    found, band_s = mfu(one), one.band_s
    if found is None or band_s is None:
        return None
    low, high = (found * one.step_time_s / end_s for end_s in reversed(band_s))
    return low, high


def _memory_GB(one: Candidate) -> Value:
    """Of the step of a whole model, activations counted; nothing for others."""
    memories = one.proposal.problem.step.memories.values()
    found = (x.total_bytes for x in memories if isinstance(x, MemoryUse))
    return per(BYTES_PER_GB)(max(found, default=None))


def _most_GB(name: str, one: Candidate) -> Value:
    """The most of any workload of the plan."""
    found = [getattr(states, name, None) for states in one.proposal.problem.step.memories.values()]
    return per(BYTES_PER_GB)(max((b for b in found if b is not None), default=None))


def _mean_percent(samples: Array | None) -> Cell:
    mean = math.nan if samples is None else float(samples.mean())
    return cells.percent(None if math.isnan(mean) else mean / 100)


def _mean_ms(samples: Array | None) -> Cell:
    return milliseconds(None if samples is None else float(samples.mean()))


def _money_table(comparison: Comparison) -> Table:
    rows: Rows = [
        (
            "Price of everything",
            lambda one: round_usd(one.bill.total_usd, group_cell(one, "total")),
        ),
        ("Price of everything, lowest of all sources", partial(_end, comparison, 0)),
        ("Price of everything, highest of all sources", partial(_end, comparison, 1)),
        ("of it with assumed prices", _assumed),
        ("Tax", lambda one: _tax(one, one.bill.tax_usd, with_price=False)),
        ("Price with tax", lambda one: _tax(one, one.bill.with_tax_usd, with_price=True)),
        ("The cost that optimize prints", of("evaluation.cost_usd", round_usd)),
        ("Training fabric, bill of materials", _fabric),
        ("Training fabric, LIBRA's linear model", of("linear_network_usd", round_usd)),
        ("of it links in the price of the servers", of("linear_in_servers_usd", round_usd)),
        ("Share of all networks in the price", _networks),
        ("Everything, $ per NPU", lambda one: _per(one, "total", one.n_npus)),
        ("Fabric, $ per NPU", lambda one: _per(one, NETWORK, one.n_npus)),
        ("Fabric, $ per injected Gbit/s", lambda one: _per_gbit(one, one.injected_Bps)),
        ("Fabric, $ per bisection Gbit/s", lambda one: _per_gbit(one, one.bisection_Bps)),
        ("Power of all parts, kW", of("bill.power_w", KILO)),
        ("Power, W per NPU", lambda one: per(one.n_npus)(one.bill.power_w)),
        ("of it fabric, W per NPU", lambda one: per(one.n_npus)(one.bill.of(NETWORK).power_w)),
        ("Tokens per second and M$", whole_step(_tokens_per_musd)),
    ]
    note = (
        "Injected: all NPUs, whole ports, one direction, over the dimensions that the bill pays "
        "for: links in the price of the servers do not count. Bisection: two halves of the "
        "cluster over the outermost dimension, one direction, if the bill pays for it. Power of "
        "chiplet, package and scale-up links is that of the NPUs and servers."
    )
    if comparison.without:
        note = f"Totals are {comparison.without}. {note}"
    return figures(comparison, "money", "Cost and power", rows, note)


def _tax(one: Candidate, amount: Decimal, *, with_price: bool) -> Value:
    """The tax, or the price with it; nothing where nobody names one."""
    if not one.bill.tax_fraction:
        return round_usd(None)
    total = group_cell(one, "total")
    formula = tax_formula(total)
    return round_usd(amount, f"{total}+{formula}" if with_price else formula)


def _end(comparison: Comparison, side: int, one: Candidate) -> Value:
    """The total at one end of all prices; a price of a reader's own widens its range."""
    total = group_cell(one, "total")
    moves = (end_move(comparison, one, row, side) for row in range(len(one.bill.lines)))
    terms = [total, *filter(None, moves)]
    return round_usd(one.bill.ends_usd[side], "+".join(terms))


def _assumed(one: Candidate) -> Value:
    bill = f"bill-{one.letter.lower()}"
    marks, amounts = f"[{bill}/r{SOURCE_COLUMN}]", f"[{bill}/r{EXTENDED_COLUMN}]"
    return round_usd(one.bill.assumed_usd, f'SUMIF({marks},"assumed",{amounts})')


def _fabric(one: Candidate) -> Value:
    return round_usd(one.bill.of(NETWORK).total_usd, group_cell(one, NETWORK))


def _networks(one: Candidate) -> Value:
    share = one.bill.fraction_of(one.bill.of(*NETWORKS).total_usd)
    sums = "+".join(group_cell(one, name) for name in NETWORKS)
    formula = f"({sums})/{group_cell(one, 'total')}"
    return cells.percent(share, 1, "" if share is None else formula)


def _per(one: Candidate, group: str, divisor: float) -> Value:
    """Dollars of a group, or of the total, per unit of something."""
    if not divisor:
        return round_usd(None)
    amount = one.bill.total_usd if group == "total" else one.bill.of(group).total_usd
    # The divisor's shortest form reads back as the same number.
    return round_usd(float(amount) / divisor, f"{group_cell(one, group)}/{divisor!r}")


def _per_gbit(one: Candidate, bandwidth_Bps: float) -> Value:
    return _per(one, NETWORK, _BITS * gigabytes_per_s(bandwidth_Bps))


def _tokens_per_musd(one: Candidate) -> Value:
    time_s, total = one.token_time_s, float(one.bill.total_usd)
    if not time_s or not total:
        return number(None)
    return number(1e6 / (time_s * total), 1, f"{1e6 / time_s!r}/{group_cell(one, 'total')}")


def facility_section(comparison: Comparison) -> Section:
    """Rack power and space."""
    assumed = comparison.shop.assumptions
    rows: Rows = [
        ("Servers", of("facility.n_servers")),
        ("Power of a server with NPUs and NICs, kW", of("facility.server_w", per(1000.0, 2))),
        ("Servers per rack", of("facility.n_servers_per_rack")),
        ("Server racks", of("facility.n_server_racks")),
        ("Switch racks", of("facility.n_switch_racks")),
        ("Floor, m²", of("facility.n_racks", lambda n: number(n * assumed.floor_m2_per_rack, 0))),
        ("Power of all parts, kW", of("facility.it_w", KILO)),
        ("Power of the facility, kW", lambda one: KILO(one.facility.it_w * assumed.pue)),
        ("Switches, all networks", _units("switch")),
        *((f"of them {name}", _switches_of(group)) for group, name in _NETWORK_NAMES.items()),
        ("Scale-up switches between NPUs", _scale_up_switches),
        ("Optics, all networks", _units("optic")),
        ("Cables, all networks", _units("copper", "active_optical", "fibre")),
    ]
    note = (
        "Optics draw their power in the switch racks, which follow from power and height; leaves "
        "in the racks of their servers are none of them. "
        "check counts the switches of the training network and those between NPUs."
    )
    table = figures(comparison, "facility", "Racks, floor and power", rows, note)
    said = [(one.letter, _verdict(one)) for one in comparison.candidates]
    verdicts = tuple(f"{whose}: {text}" for whose, text in cells.said_once(said))
    return Section("facility", "Rack power and space", "Facility", verdicts, tables=(table,))


def _verdict(one: Candidate) -> str:
    facility, rack_w = one.facility, one.proposal.shop.assumptions.rack.power_limit_w
    if facility.n_own_racks:
        return f"a server draws {facility.server_w / 1000:.1f} kW in a rack of its own."
    holds = f" and holds {facility.n_servers_per_rack} ({facility.limited_by} is the limit)"
    verdict = holds if facility.n_servers_per_rack else ": not even one server fits"
    draws = f"a server draws {facility.server_w / 1000:.1f} kW, a rack gives {rack_w / 1000:g} kW"
    return f"{draws}{verdict}."


_NETWORK_NAMES = {
    NETWORK: "training network",
    FRONTEND: "frontend network",
    STORAGE: "storage network",
}


def _switches_of(group: str) -> Figure:
    return lambda one: cells.count(one.bill.of(group).n_units("switch"))


def _scale_up_switches(one: Candidate) -> Value:
    return cells.count(DesignParts(one.bought.parts).n_scale_up_switches)


def _units(*kinds: str) -> Figure:
    return lambda one: cells.count(one.bill.n_units(*kinds))
