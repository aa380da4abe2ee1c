"""The design table: what each design is, how fast, how dear, per what."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal

from libra_planner.evaluation import TimeModel
from libra_planner.procurement.bill import NETWORK, NETWORKS
from libra_planner.procurement.candidate import Candidate
from libra_planner.units import BYTES_PER_GB, gigabytes_per_s
from libra_planner.views.cells import (
    PART_OF_A_STEP,
    PERCENT,
    TEXT,
    Cell,
    Section,
    Table,
    Value,
    cell,
    count,
    delta,
    number,
    percent,
    points,
    table,
    unavailable,
    usd,
)
from libra_planner.views.plan import equal_bandwidth_text
from libra_planner.views.report.bills import EXTENDED_COLUMN, SOURCE_COLUMN, group_cell
from libra_planner.views.report.comparison import Comparison, time_basis
from libra_planner.workload.operations import ModelStates

Figure = Callable[[Candidate], Value]


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
    cells, base = [cell(value) for value in values], comparison.baseline
    columns = _columns(comparison)
    for i, one in enumerate(cells):
        row.append(one)
        if base is not None and i != base:
            row.append(_difference(one, cells[base], columns[i], columns[base]))
    return row


def _columns(comparison: Comparison) -> list[int]:
    """Column of each design."""
    base = comparison.baseline
    columns, at = [], 1
    for i in range(len(comparison.candidates)):
        columns.append(at)
        at += 1 if base is None or i == base else 2
    return columns


def _difference(one: Cell, base: Cell, column: int, base_column: int) -> Cell:
    if PART_OF_A_STEP in (one.value, base.value):
        return Cell(None)
    if TEXT in (one.kind, base.kind):
        same = one.value == base.value
        return Cell("same" if same else "differs")
    if one.value == base.value and not (one.expression and base.value):
        return delta(0.0) if one.kind != PERCENT else points(0.0)
    if one.kind == PERCENT and isinstance(one.value, float) and isinstance(base.value, float):
        return points(100 * (one.value - base.value), f"100*([c{column}]-[c{base_column}])")
    if not isinstance(one.value, int | float | Decimal) or not base.value or base.is_text:
        return Cell(None)
    # Of the values as they stand in the table, so that a spreadsheet finds the same.
    ratio = float(one.value) / float(base.value) - 1
    return delta(ratio, f"[c{column}]/[c{base_column}]-1")


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
        values = [cell(figure(one)) for one in comparison.candidates]
        if any(value.value is not None for value in values):
            listed.append(design_row(comparison, title, values))
    return table(key, caption, ["", *design_columns(comparison)], listed, note=note)


_MS = 1000.0
_BITS = 8
_KW = 1000.0


def comparison_section(comparison: Comparison) -> Section:
    """All designs side by side."""
    return Section(
        key="designs",
        title="The designs side by side",
        sheet="Comparison",
        paragraphs=(_what_is_compared(comparison),),
        tables=(_design_table(comparison), _money_table(comparison)),
    )


def _what_is_compared(comparison: Comparison) -> str:
    names = (
        f"{one.letter} is {one.proposal.name}"
        f" ({'the optimum of its plan' if one.proposal.optimized else 'a given vector'})"
        for one in comparison.candidates
    )
    return "; ".join(names) + "."


def _design_table(comparison: Comparison) -> Table:
    n_dims = max(one.proposal.problem.topology.n_dims for one in comparison.candidates)
    rows: list[tuple[str, Figure]] = [
        ("Workload", lambda one: one.proposal.problem.workload_name),
        ("Topology, innermost first", lambda one: str(one.proposal.problem.topology)),
        ("Tiers", lambda one: ", ".join(one.proposal.problem.topology.tiers)),
        ("NPUs", lambda one: count(one.n_npus)),
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
        ("Step time by the model, ms", lambda one: number(one.evaluation.step_time_s * _MS, 3)),
        ("of it exposed communication, ms", _exposed),
        ("Step time on partial groups' own links, ms", _own_links),
        ("Step time on the links, sprayed, ms", _sprayed),
        ("Effective step time under the policy, ms", _effective),
        ("FIM of the worst dimension under the policy", _fim),
        ("Step time that ranks, ms", lambda one: number(one.step_time_by(model) * _MS, 3)),
        ("Speedup over equal bandwidth", lambda one: number(one.evaluation.speedup_vs_equal, 3)),
        ("Equal bandwidth in every dimension", lambda one: equal_bandwidth_text(one.evaluation)),
        ("Tokens per step", lambda one: count(one.proposal.tokens_per_step)),
        ("Tokens per second", _tokens_per_s),
        ("Weights, gradients, optimizer states, GB per NPU", _memory_need),
        ("of them if all is sharded over DP (ZeRO 3), GB", _memory_sharded),
        ("Memory of the NPU, GB", _npu_memory),
        ("Rules of the plan that it breaks", lambda one: count(len(one.evaluation.violated))),
    ]


def _memory_need(one: Candidate) -> Value:
    return _most_GB(one, lambda states: states.total_bytes)


def _memory_sharded(one: Candidate) -> Value:
    return _most_GB(one, lambda states: states.sharded_bytes)


def _npu_memory(one: Candidate) -> Value:
    return _most_GB(one, lambda states: states.npu_memory_bytes)


def _most_GB(one: Candidate, n_bytes: Callable[[ModelStates], float | None]) -> Value:
    """The most of any workload of the plan."""
    found = [n_bytes(states) for states in one.proposal.problem.step.memories.values()]
    return number(max((b / BYTES_PER_GB for b in found if b is not None), default=None), 1)


def _exposed(one: Candidate) -> Value:
    return number(one.evaluation.communication_s * _MS, 3)


def _own_links(one: Candidate) -> Value:
    time_s = one.evaluation.real_link_step_time_s
    return number(None if time_s is None else time_s * _MS, 3)


def _sprayed(one: Candidate) -> Value:
    return number(one.check.spray_step_time_s * _MS if one.check else None, 3)


def _effective(one: Candidate) -> Value:
    return number(one.step_time_s * _MS if one.check else None, 3)


def _fim(one: Candidate) -> Value:
    fim = None if one.check is None else float(one.check.fim_percent.mean())
    return percent(None if fim is None or math.isnan(fim) else fim / 100)


def _tokens_per_s(one: Candidate) -> Value:
    if one.proposal.is_part:
        return unavailable()
    time_s = one.token_time_s
    return number(1 / time_s if time_s else None, 0)


def _money_table(comparison: Comparison) -> Table:
    rows: list[tuple[str, Figure]] = [
        ("Price of everything", lambda one: usd(one.bill.total_usd, group_cell(one, "total"))),
        ("of it with assumed prices", _assumed),
        ("Training fabric, bill of materials", _fabric),
        ("Training fabric, LIBRA's linear model", lambda one: usd(one.evaluation.network_cost_usd)),
        ("of it links in the price of the servers", lambda one: usd(one.linear_in_servers_usd)),
        ("Share of all networks in the price", _networks),
        ("Everything, $ per NPU", lambda one: _per(one, "total", one.n_npus)),
        ("Fabric, $ per NPU", lambda one: _per(one, NETWORK, one.n_npus)),
        ("Fabric, $ per injected Gbit/s", lambda one: _per(one, NETWORK, _gbits(one.injected_Bps))),
        ("Fabric, $ per bisection Gbit/s", _per_bisection),
        ("Power of all parts, kW", lambda one: number(one.bill.power_w / _KW, 1)),
        ("Power, W per NPU", lambda one: number(one.bill.power_w / one.n_npus, 1)),
        ("of it fabric, W per NPU", _fabric_w),
        ("Tokens per second and M$", _tokens_per_musd),
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


def _fabric_w(one: Candidate) -> Value:
    return number(one.bill.of(NETWORK).power_w / one.n_npus, 1)


def _networks(one: Candidate) -> Value:
    share = one.networks_fraction
    if share is None:
        return percent(None)
    sums = "+".join(group_cell(one, name) for name in NETWORKS)
    return percent(share, 1, f"({sums})/{group_cell(one, 'total')}")


def _per(one: Candidate, group: str, divisor: float) -> Value:
    """Dollars of a group, or of the total, per unit of something."""
    if not divisor:
        return usd(None)
    amount = one.bill.total_usd if group == "total" else one.bill.of(group).total_usd
    # The divisor's shortest form reads back as the same number.
    return usd(float(amount) / divisor, f"{group_cell(one, group)}/{divisor!r}")


def _per_bisection(one: Candidate) -> Value:
    return _per(one, NETWORK, _gbits(one.bisection_Bps))


def _gbits(bandwidth_Bps: float) -> float:
    return _BITS * gigabytes_per_s(bandwidth_Bps)


def _tokens_per_musd(one: Candidate) -> Value:
    if one.proposal.is_part:
        return unavailable()
    time_s, total = one.token_time_s, float(one.bill.total_usd)
    if not time_s or not total:
        return number(None)
    return number(1e6 / (time_s * total), 1, f"{1e6 / time_s!r}/{group_cell(one, 'total')}")
