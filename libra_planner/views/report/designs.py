"""The designs side by side: what each is, how fast, how dear, per what, and the differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal

from libra_planner.evaluation import TimeModel
from libra_planner.procurement.bill import NETWORK, NETWORKS
from libra_planner.procurement.candidate import Candidate
from libra_planner.units import BYTES_PER_GB, gigabytes_per_s
from libra_planner.views import cells
from libra_planner.views.cells import PERCENT, TEXT, Cell, Section, Table, Value, number, usd
from libra_planner.views.plan import equal_bandwidth_text
from libra_planner.views.report.bills import EXTENDED_COLUMN, SOURCE_COLUMN, group_cell
from libra_planner.views.report.comparison import Comparison, time_basis
from libra_planner.workload.operations import ModelStates

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


def scaled(value: float | None, factor: float, digits: int) -> Cell:
    """A number in a larger or smaller unit, if there is one.

    >>> scaled(0.0015, 1000, 3).shown, scaled(None, 1000, 3).shown
    ('1.500', 'n/a')
    """
    return number(None if value is None else value * factor, digits)


def kilowatts(power_w: float, digits: int = 1) -> Cell:
    """A power in kW.

    >>> kilowatts(1234.0).shown
    '1.2'
    """
    return number(power_w / 1000, digits)


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
        ("Workload", lambda one: one.proposal.problem.workload_name),
        ("Topology, innermost first", lambda one: str(one.proposal.problem.topology)),
        ("Tiers", lambda one: ", ".join(one.proposal.problem.topology.tiers)),
        ("NPUs", lambda one: cells.count(one.n_npus)),
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
    return [
        ("Step time by the model, ms", _ms(lambda one: one.evaluation.step_time_s)),
        ("of it exposed communication, ms", _ms(lambda one: one.evaluation.communication_s)),
        (
            "Step time on partial groups' own links, ms",
            _ms(lambda one: one.evaluation.real_link_step_time_s),
        ),
        (
            "Step time on the links, sprayed, ms",
            _ms(lambda one: one.check.spray_step_time_s if one.check else None),
        ),
        (
            "Effective step time under the policy, ms",
            _ms(lambda one: one.step_time_s if one.check else None),
        ),
        ("FIM of the worst dimension under the policy", _fim),
        ("Step time that ranks, ms", _ms(lambda one: one.step_time_by(model))),
        ("Speedup over equal bandwidth", lambda one: number(one.evaluation.speedup_vs_equal, 3)),
        ("Equal bandwidth in every dimension", lambda one: equal_bandwidth_text(one.evaluation)),
        ("Tokens per step", lambda one: cells.count(one.proposal.tokens_per_step)),
        ("Tokens per second", whole_step(_tokens_per_s)),
        (
            "Weights, gradients, optimizer states, GB per NPU",
            _most_GB(lambda states: states.total_bytes),
        ),
        (
            "of them if all is sharded over DP (ZeRO 3), GB",
            _most_GB(lambda states: states.sharded_bytes),
        ),
        ("Memory of the NPU, GB", _most_GB(lambda states: states.npu_memory_bytes)),
        (
            "Rules of the plan that it breaks",
            lambda one: cells.count(len(one.evaluation.violated)),
        ),
    ]


def _ms(time_s: Callable[[Candidate], float | None]) -> Figure:
    return lambda one: scaled(time_s(one), 1000, 3)


def _most_GB(n_bytes: Callable[[ModelStates], float | None]) -> Figure:
    """The most of any workload of the plan."""

    def figure(one: Candidate) -> Value:
        found = [n_bytes(states) for states in one.proposal.problem.step.memories.values()]
        return number(max((b / BYTES_PER_GB for b in found if b is not None), default=None), 1)

    return figure


def _fim(one: Candidate) -> Value:
    fim = None if one.check is None else float(one.check.fim_percent.mean())
    return cells.percent(None if fim is None or math.isnan(fim) else fim / 100)


def _tokens_per_s(one: Candidate) -> Value:
    return number(1 / one.token_time_s if one.token_time_s else None, 0)


def _money_table(comparison: Comparison) -> Table:
    rows: list[tuple[str, Figure]] = [
        ("Price of everything", lambda one: usd(one.bill.total_usd, group_cell(one, "total"))),
        ("of it with assumed prices", _assumed),
        (
            "Training fabric, bill of materials",
            lambda one: usd(one.bill.of(NETWORK).total_usd, group_cell(one, NETWORK)),
        ),
        ("Training fabric, LIBRA's linear model", lambda one: usd(one.evaluation.network_cost_usd)),
        ("of it links in the price of the servers", lambda one: usd(one.linear_in_servers_usd)),
        ("Share of all networks in the price", _networks),
        ("Everything, $ per NPU", lambda one: _per(one, "total", one.n_npus)),
        ("Fabric, $ per NPU", lambda one: _per(one, NETWORK, one.n_npus)),
        ("Fabric, $ per injected Gbit/s", lambda one: _per_gbit(one, one.injected_Bps)),
        ("Fabric, $ per bisection Gbit/s", lambda one: _per_gbit(one, one.bisection_Bps)),
        ("Power of all parts, kW", lambda one: kilowatts(one.bill.power_w)),
        ("Power, W per NPU", lambda one: number(one.bill.power_w / one.n_npus, 1)),
        (
            "of it fabric, W per NPU",
            lambda one: number(one.bill.of(NETWORK).power_w / one.n_npus, 1),
        ),
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
