"""The designs side by side, their differences, the run as it will really go, and the racks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from libra_planner.evaluation import TimeModel
from libra_planner.fabric.clos import Array
from libra_planner.procurement.bill import NETWORK, NETWORKS, Assumptions
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import SWING_FRACTION, Comparison, run_swings
from libra_planner.procurement.run import HOUR_S, YEAR_S, Run
from libra_planner.step.memory_use import MemoryUse
from libra_planner.units import BYTES_PER_GB, gigabytes_per_s
from libra_planner.views import cells
from libra_planner.views.cells import Cell, Section, Table, Value, finite, number, usd
from libra_planner.views.plan import equal_bandwidth_text
from libra_planner.views.report.bills import EXTENDED_COLUMN, SOURCE_COLUMN, group_cell
from libra_planner.views.training.step import work_payload

Figure = Callable[[Candidate], Value]
Rows = list[tuple[str, Figure]]
_BITS = 8


def design_columns(comparison: Comparison) -> list[str]:
    """Headings: every design, and its difference from the baseline."""
    letters, base = comparison.letters, comparison.baseline
    if base is None:
        return letters
    pairs = ((letter, f"{letter} vs {letters[base]}") for letter in letters)
    return [heading for i, pair in enumerate(pairs) for heading in pair[: 1 if i == base else 2]]


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
_DAYS, _HOURS, _MINUTES = per(24 * HOUR_S, 3), per(HOUR_S, 2), per(60.0, 2)


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
    checked = comparison.ranking.ranked_by is TimeModel.CHECKED
    if checked and any(one.proposal.problem.step.has_sends for one in comparison.candidates):
        text += ", but sends between pipeline stages are not routed and keep the model's time"
    if not last:
        return f"{text}."
    verb = "follow" if most or last == "tokens per second" else "follows"
    return f"{text}: {', '.join(most)}{' and ' if most else ''}{last} {verb} them."


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
    rows: Rows = [
        ("Workload", of("proposal.problem.workload_name", str)),
        ("Topology, innermost first", of("proposal.problem.topology", str)),
        ("Tiers", of("proposal.problem.topology.tiers", ", ".join)),
        ("NPUs", of("n_npus")),
    ]
    for dim in range(n_dims):
        rows.append((f"dim{dim + 1}, GB/s per NPU", partial(_bandwidth, dim, "asked_Bps")))
        rows.append(
            (f"dim{dim + 1}, of whole ports, GB/s", partial(_bandwidth, dim, "bandwidth_Bps"))
        )
    rows += _time_rows(comparison.ranking.ranked_by)
    note = f"{time_basis(comparison)} Speedup over equal bandwidth is by the plan's model."
    return figures(comparison, "designs", "Design and step time", rows, note)


def _bandwidth(dim: int, name: str, one: Candidate) -> Value:
    design = one.bought.design.dimensions
    if dim >= len(design) or (name == "bandwidth_Bps" and design[dim].settings is None):
        return Cell(None)
    return number(gigabytes_per_s(getattr(design[dim], name)), 2)


def _time_rows(model: TimeModel) -> Rows:
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
        (
            "Tokens per second",
            whole_step(of("token_time_s", lambda x: number(1 / x if x else None, 0))),
        ),
        ("Model FLOP/s utilisation (MFU)", _mfu),
        ("Memory that the step needs, GB per NPU", _memory_GB),
        ("Weights, gradients, optimizer states, GB per NPU", partial(_most_GB, "states_bytes")),
        ("of them if all is sharded over DP (ZeRO 3), GB", partial(_most_GB, "sharded_bytes")),
        ("Memory of the NPU, GB", partial(_most_GB, "npu_memory_bytes")),
        ("Rules of the plan that it breaks", lambda x: cells.count(len(x.evaluation.violated))),
    ]


def _mfu(one: Candidate) -> Cell:
    """Of the step of a whole model; nothing for others."""
    found = work_payload(one.proposal.problem, one.evaluation)
    return cells.percent(found.get("mfu"), 1)


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
        ("Price of everything", lambda one: usd(one.bill.total_usd, group_cell(one, "total"))),
        ("Price of everything, lowest of all sources", lambda one: usd(one.bill.ends_usd[0])),
        ("Price of everything, highest of all sources", lambda one: usd(one.bill.ends_usd[1])),
        ("of it with assumed prices", _assumed),
        ("Training fabric, bill of materials", _fabric),
        ("Training fabric, LIBRA's linear model", of("linear_network_usd", usd)),
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
    share = one.bill.fraction_of(one.bill.of(*NETWORKS).total_usd)
    sums = "+".join(group_cell(one, name) for name in NETWORKS)
    formula = f"({sums})/{group_cell(one, 'total')}"
    return cells.percent(share, 1, "" if share is None else formula)


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


def run_refusal(comparison: Comparison) -> list[str]:
    """Why no run is told of designs whose workload is part of a step, and the fix (C21)."""
    parts = [one for one in comparison.candidates if one.proposal.is_part]
    fixes = "; ".join(dict.fromkeys(one.proposal.problem.step.fix for one in parts))
    text = (
        f"Tokens per second, days and dollars of a run are {cells.PART_OF_A_STEP} "
        f"({', '.join(one.letter for one in parts)}). To have them: {fixes}."
    )
    return [text] if parts else []


def run_section(comparison: Comparison) -> Section:
    """Time, failures and cost of a training run."""
    designs, title, tables = comparison.candidates, "The training run", []
    paragraphs, warnings = [], run_refusal(comparison)
    unknown = [one.letter for one in designs if one.run is None and not one.proposal.is_part]
    if unknown:
        warnings.append(
            f"No run for {', '.join(unknown)}: the tokens of a step are known for workloads that "
            "are generated from a transformer, and for tables that say tokens_per_step, not for "
            "groups."
        )
    if comparison.has_run or any(one.proposal.is_part for one in designs):
        tables.append(_run_table(comparison))
    if comparison.has_run:
        title = f"A run of {_tokens(designs[0].n_tokens)} as it will really go"
        paragraphs.append(_how(comparison.shop.assumptions))
        tables.append(_swing_table(comparison))
    if comparison.has_run and comparison.is_default_tokens:
        default = "The number of tokens is this program's default; give another one with --tokens."
        paragraphs.append(default)
    texts = tuple(paragraphs), tuple(warnings)
    return Section("run", title, "Run", *texts, tables=tuple(tables), is_static=True)


def _tokens(n_tokens: int) -> str:
    """A number of tokens in words.

    >>> _tokens(15 * 10**12), _tokens(2_500_000)
    ('15 trillion tokens', '2,500,000 tokens')
    """
    for factor, name in ((10**12, "trillion"), (10**9, "billion")):
        if n_tokens >= factor:
            return f"{n_tokens / factor:,.6g} {name} tokens"
    return f"{n_tokens:,} tokens"


def _how(assumed: Assumptions) -> str:
    return (
        "One failed part stops the job. With failures of a constant rate 1/M, work W in intervals "
        "of τ, checkpoints of C and restarts of R take M·exp(R/M)·(exp((τ+C)/M)-1)·W/τ in "
        "expectation, and τ is best near √(2CM) (Young, CACM 17, 1974; higher order, used here: "
        f"Daly, FGCS 22, 2006, eq. 37). Assumed: C = {assumed.checkpoint_s:g} s, R = "
        f"{assumed.restart_s:g} s. Failure rates: {assumed.failures.source}. Hardware is "
        f"paid for over {assumed.amortisation_s / YEAR_S:g} years of use, electricity at "
        f"${assumed.electricity.usd_per_kwh:g} per kWh ({assumed.electricity.confidence}: "
        f"{assumed.electricity.source}) and a power usage effectiveness of {assumed.pue:g}."
    )


def _hardware_formula(one: Candidate, run: Run) -> str:
    """The price of everything, by the share of its life that the run takes."""
    share = run.expected_s / one.proposal.shop.assumptions.amortisation_s
    return f"{group_cell(one, 'total')}*{share!r}"


def _of_run(figure: Callable[[Candidate, Run], Value]) -> Figure:
    return lambda one: Cell(None) if one.run is None else figure(one, one.run)


def _run(name: str, shown: Callable[[Any], Value] = cells.count) -> Figure:
    """A figure of the run by its name."""
    return _of_run(lambda _, run: shown(getattr(run, name)))


def _hardware(one: Candidate, run: Run) -> Value:
    return usd(round(run.hardware_usd, 2), f"ROUND({_hardware_formula(one, run)},2)")


def _cost(one: Candidate, run: Run) -> Value:
    energy = round(run.energy_usd, 2)
    formula = f"{float(energy)!r}+ROUND({_hardware_formula(one, run)},2)"
    return usd(energy + round(run.hardware_usd, 2), formula)


def _cost_per(one: Candidate, divisor: float) -> Cell:
    """Cost of the run per unit of something."""
    if one.run is None or not divisor:
        return usd(None)
    formula = f"({one.run.energy_usd!r}+{_hardware_formula(one, one.run)})/{divisor!r}"
    return usd(one.run.cost_usd / divisor, formula)


def _cost_per_million_tokens(one: Candidate) -> Value:
    found = _cost_per(one, one.run.n_tokens / 1e6 if one.run else 0.0)
    return replace(found, kind=cells.NUMBER, digits=4)


def _run_table(comparison: Comparison) -> Table:
    kinds = ("NPUs", "servers and software", "fabric switches", "fabric optics")
    rows: Rows = [
        ("Steps", _run("n_steps")),
        ("Work without failures, days", _run("work_s", _DAYS)),
        ("Mean time between failures, hours", _run("mtbf_s", lambda x: _HOURS(finite(x)))),
        (
            "Best checkpoint interval (Daly), min",
            _run("interval_s", lambda x: _MINUTES(finite(x))),
        ),
        ("to first order (Young), min", _run("young_s", lambda x: _MINUTES(finite(x)))),
        ("Expected time, days", whole_step(_run("expected_s", _DAYS))),
        ("Work over expected time", _run("efficiency_fraction", lambda x: cells.percent(x, 2))),
        ("Expected failures", _run("n_failures", number)),
        *((f"of them {kind}", _failures(i)) for i, kind in enumerate(kinds)),
        ("NPU-hours", _run("npu_hours", per(1.0, 0))),
        ("Electricity, MWh", _run("energy_kwh", KILO)),
        ("Electricity", _run("energy_usd", lambda x: usd(round(x, 2)))),
        ("Hardware, by time", _of_run(_hardware)),
        ("Cost of the run", whole_step(_of_run(_cost))),
        ("per NPU-hour", lambda one: _cost_per(one, one.run.npu_hours if one.run else 0.0)),
        ("per million tokens, $", _cost_per_million_tokens),
    ]
    note = "" if not comparison.without else f"Costs are {comparison.without}."
    return figures(comparison, "run", "Time, failures and cost of the run", rows, note)


def _failures(index: int) -> Figure:
    return _of_run(lambda _, run: number(run.failures_by_kind[index][1], 2))


def _swing_table(comparison: Comparison) -> Table:
    """What each assumption makes of the cost of the run."""
    swings = [(one, run_swings(one)) for one in comparison.candidates]
    rows: list[list[Value]] = [
        [name, *(_moved(one, run) for one, found in swings for run in found[name])]
        for name in swings[0][1]
    ]
    moves = [f"{sign}{SWING_FRACTION:.0%}" for sign in "-+"]
    headings = [f"{letter} at {move}" for letter in comparison.letters for move in moves]
    caption = f"What each assumption by {SWING_FRACTION:.0%} makes of the cost of the run"
    return cells.table("run-moved", caption, ["Assumption", *headings], rows)


def _moved(one: Candidate, then: Run | None) -> Value:
    """What a run under another assumption costs more or less."""
    now, total = one.run, float(one.bill.total_usd)
    if now is None or then is None:
        return cells.delta_usd(None)
    change, formula = then.cost_usd - now.cost_usd, ""
    if total and math.isfinite(change):
        share = (then.hardware_usd - now.hardware_usd) / total
        energy = then.energy_usd - now.energy_usd
        formula = f"ROUND({group_cell(one, 'total')}*{share!r}+{energy!r},2)"
    return cells.delta_usd(round(change, 2), formula)


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
        ("Optics, all networks", _units("optic")),
        ("Cables, all networks", _units("copper", "active_optical", "fibre")),
    ]
    note = "Optics draw their power in the switch racks; switch racks follow from power and height."
    table = figures(comparison, "facility", "Racks, floor and power", rows, note)
    verdicts = tuple(map(_verdict, comparison.candidates))
    return Section("facility", "Rack power and space", "Facility", verdicts, tables=(table,))


def _verdict(one: Candidate) -> str:
    facility, rack_w = one.facility, one.proposal.shop.assumptions.rack.power_limit_w
    if facility.n_own_racks:
        return (
            f"{one.letter}: a server draws {facility.server_w / 1000:.1f} kW in a rack of its own."
        )
    holds = f" and holds {facility.n_servers_per_rack} ({facility.limited_by} is the limit)"
    verdict = holds if facility.n_servers_per_rack else ": not even one server fits"
    draws = f"a server draws {facility.server_w / 1000:.1f} kW, a rack gives {rack_w / 1000:g} kW"
    return f"{one.letter}: {draws}{verdict}."


def _units(*kinds: str) -> Figure:
    return lambda one: cells.count(one.bill.n_units(*kinds))
