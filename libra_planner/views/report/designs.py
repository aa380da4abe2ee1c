"""The designs side by side: what each is, how fast, how dear, per what, and the differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from libra_planner.evaluation import TimeModel
from libra_planner.fabric.clos import Array
from libra_planner.procurement.bill import NETWORK, NETWORKS
from libra_planner.procurement.candidate import Candidate
from libra_planner.units import BYTES_PER_GB, gigabytes_per_s
from libra_planner.views import cells
from libra_planner.views.cells import PERCENT, TEXT, Cell, Section, Table, Value, number, usd
from libra_planner.views.plan import equal_bandwidth_text
from libra_planner.views.report.bills import EXTENDED_COLUMN, SOURCE_COLUMN, group_cell
from libra_planner.views.report.comparison import Comparison, time_basis

Figure = Callable[[Candidate], Value]
_BITS = 8


def design_columns(comparison: Comparison) -> list[str]:
    """Headings: every design, and its difference from the baseline."""
    headings, base = [], comparison.baseline
    for i, letter in enumerate(comparison.letters):
        headings.append(letter)
        if base is not None and i != base:
            headings.append(f"{letter} vs {comparison.letters[base]}")
    return headings


def design_row(comparison: Comparison, title: str, values: Sequence[Value]) -> list[Value]:
    """A row of a value per design; differences stand beside those that are not the baseline.

    Examples
    --------
    The difference of a number is relative, of shares in percentage points, and a formula in
    spreadsheets.
    """
    row: list[Value] = [title]
    figures, base = [cells.cell(value) for value in values], comparison.baseline
    headings = design_columns(comparison)
    columns = [1 + headings.index(letter) for letter in comparison.letters]
    for i, one in enumerate(figures):
        row.append(one)
        if base is not None and i != base:
            row.append(_difference(one, figures[base], columns[i], columns[base]))
    return row


def _difference(one: Cell, base: Cell, column: int, base_column: int) -> Cell:
    if cells.PART_OF_A_STEP in (one.value, base.value):
        return Cell(None)
    if TEXT in (one.kind, base.kind):
        return Cell("same" if one.value == base.value else "differs")
    if one.value == base.value and not (one.expression and base.value):
        return cells.delta(0.0) if one.kind != PERCENT else cells.points(0.0)
    if one.kind == PERCENT and isinstance(one.value, float) and isinstance(base.value, float):
        expression = f"100*([c{column}]-[c{base_column}])"
        return cells.points(100 * (one.value - base.value), expression)
    if not isinstance(one.value, int | float | Decimal) or not base.value or base.is_text:
        return Cell(None)
    # Of the values as they stand in the table, so that a spreadsheet finds the same.
    ratio = float(one.value) / float(base.value) - 1
    return cells.delta(ratio, f"[c{column}]/[c{base_column}]-1")


def figures(
    comparison: Comparison,
    key: str,
    caption: str,
    rows: Sequence[tuple[str, Figure]],
    note: str = "",
) -> Table:
    """A table of figures by design; rows that say nothing of any design are left out."""
    listed = []
    for title, figure in rows:
        values = [cells.cell(figure(one)) for one in comparison.candidates]
        if any(value.value is not None for value in values):
            listed.append(design_row(comparison, title, values))
    return cells.table(key, caption, ["", *design_columns(comparison)], listed, note=note)


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
    return lambda one: cells.unavailable() if one.proposal.is_part else figure(one)


def comparison_section(comparison: Comparison) -> Section:
    """All designs side by side."""
    names = (
        f"{one.letter} is {one.proposal.name}"
        f" ({'the optimum of its plan' if one.proposal.optimized else 'a given vector'})"
        for one in comparison.candidates
    )
    tables = (_design_table(comparison), _money_table(comparison))
    text = "; ".join(names) + "."
    return Section("designs", "The designs side by side", "Comparison", (text,), tables=tables)


def _design_table(comparison: Comparison) -> Table:
    n_dims = max(one.proposal.problem.topology.n_dims for one in comparison.candidates)
    rows: list[tuple[str, Figure]] = [
        ("Workload", of("proposal.problem.workload_name", str)),
        ("Topology, innermost first", of("proposal.problem.topology", str)),
        ("Tiers", of("proposal.problem.topology.tiers", ", ".join)),
        ("NPUs", of("n_npus")),
    ]
    for dim in range(n_dims):
        rows.append((f"dim{dim + 1}, GB/s per NPU", _bandwidth(dim, built=False)))
        rows.append((f"dim{dim + 1}, of whole ports, GB/s", _bandwidth(dim, built=True)))
    rows += _time_rows(comparison.ranking.ranked_by)
    note = f"{time_basis(comparison)} Speedup over equal bandwidth is by the plan's model."
    return figures(comparison, "designs", "Design and step time", rows, note)


def _bandwidth(dim: int, *, built: bool) -> Figure:
    def figure(one: Candidate) -> Value:
        design = one.bought.design.dimensions
        if dim >= len(design) or (built and design[dim].settings is None):
            return Cell(None)
        per_npu = design[dim].bandwidth_Bps if built else design[dim].asked_Bps
        return number(gigabytes_per_s(per_npu), 2)

    return figure


def _time_rows(model: TimeModel) -> list[tuple[str, Figure]]:
    own_links, sprayed = "evaluation.real_link_step_time_s", "check.spray_step_time_s"
    return [
        ("Step time by the model, ms", of("evaluation.step_time_s", milliseconds)),
        ("of it exposed communication, ms", of("evaluation.communication_s", milliseconds)),
        ("Step time on partial groups' own links, ms", of(own_links, milliseconds)),
        ("Step time on the links, sprayed, ms", of(sprayed, milliseconds)),
        ("Effective step time under the policy, ms", of("check.effective_step_time_s", _mean_ms)),
        ("FIM of the worst dimension under the policy", of("check.fim_percent", _mean_percent)),
        ("Step time that ranks, ms", lambda one: milliseconds(one.step_time_by(model))),
        ("Speedup over equal bandwidth", of("evaluation.speedup_vs_equal", per(1.0, 3))),
        ("Equal bandwidth in every dimension", of("evaluation", equal_bandwidth_text)),
        ("Tokens per step", of("proposal.tokens_per_step")),
        ("Tokens per second", whole_step(of("token_time_s", _rate))),
        ("Weights, gradients, optimizer states, GB per NPU", _most_GB("total_bytes")),
        ("of them if all is sharded over DP (ZeRO 3), GB", _most_GB("sharded_bytes")),
        ("Memory of the NPU, GB", _most_GB("npu_memory_bytes")),
        ("Rules of the plan that it breaks", of("evaluation.violated", _counted)),
    ]


def _most_GB(name: str) -> Figure:
    """The most of any workload of the plan."""

    def figure(one: Candidate) -> Value:
        found = [getattr(states, name) for states in one.proposal.problem.step.memories.values()]
        return per(BYTES_PER_GB)(max((b for b in found if b is not None), default=None))

    return figure


def _counted(found: Sequence[object]) -> Cell:
    return cells.count(len(found))


def _mean_percent(samples: Array | None) -> Cell:
    mean = math.nan if samples is None else float(samples.mean())
    return cells.percent(None if math.isnan(mean) else mean / 100)


def _mean_ms(samples: Array | None) -> Cell:
    return milliseconds(None if samples is None else float(samples.mean()))


def _rate(time_s: float | None) -> Cell:
    return number(1 / time_s if time_s else None, 0)


def _money_table(comparison: Comparison) -> Table:
    rows: list[tuple[str, Figure]] = [
        ("Price of everything", lambda one: usd(one.bill.total_usd, group_cell(one, "total"))),
        ("of it with assumed prices", _assumed),
        ("Training fabric, bill of materials", _fabric),
        ("Training fabric, LIBRA's linear model", of("evaluation.network_cost_usd", usd)),
        ("of it links in the price of the servers", of("linear_in_servers_usd", usd)),
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


def _assumed(one: Candidate) -> Value:
    bill = f"bill-{one.letter.lower()}"
    marks, amounts = f"[{bill}/r{SOURCE_COLUMN}]", f"[{bill}/r{EXTENDED_COLUMN}]"
    return usd(one.bill.assumed_usd, f'SUMIF({marks},"assumed",{amounts})')


def _fabric(one: Candidate) -> Value:
    return usd(one.bill.of(NETWORK).total_usd, group_cell(one, NETWORK))


def _networks(one: Candidate) -> Value:
    share = one.networks_fraction
    if share is None:
        return cells.percent(None)
    sums = "+".join(group_cell(one, name) for name in NETWORKS)
    return cells.percent(share, 1, f"({sums})/{group_cell(one, 'total')}")


def _per(one: Candidate, group: str, divisor: float) -> Value:
    """Dollars of a group, or of the total, per unit of something."""
    if not divisor:
        return usd(None)
    amount = one.bill.total_usd if group == "total" else one.bill.of(group).total_usd
    # The divisor's shortest form reads back as the same number.
    return usd(float(amount) / divisor, f"{group_cell(one, group)}/{divisor!r}")


def _per_gbit(one: Candidate, bandwidth_Bps: float) -> Value:
    return _per(one, NETWORK, _BITS * gigabytes_per_s(bandwidth_Bps))


def _tokens_per_musd(one: Candidate) -> Value:
    time_s, total = one.token_time_s, float(one.bill.total_usd)
    if not time_s or not total:
        return number(None)
    return number(1e6 / (time_s * total), 1, f"{1e6 / time_s!r}/{group_cell(one, 'total')}")
