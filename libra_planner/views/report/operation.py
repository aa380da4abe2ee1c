"""The run as it will really go, and the racks that the designs need."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from libra_planner.procurement.bill import Assumptions
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import SWING_FRACTION, run_swings
from libra_planner.procurement.run import HOUR_S, YEAR_S, Run
from libra_planner.views import cells
from libra_planner.views.cells import Cell, Section, Table, Value, delta_usd, number, usd
from libra_planner.views.report.bills import group_cell
from libra_planner.views.report.comparison import Comparison, run_refusal
from libra_planner.views.report.designs import KILO, Figure, figures, of, per, whole_step

_DAYS, _HOURS, _MINUTES = per(24 * HOUR_S, 3), per(HOUR_S, 2), per(60.0, 2)


def run_section(comparison: Comparison) -> Section:
    """Time, failures and cost of a training run."""
    assumed = comparison.candidates[0].proposal.shop.assumptions
    known = comparison.has_run
    parts = any(one.proposal.is_part for one in comparison.candidates)
    tables = [_run_table(comparison)] if known or parts else []
    tables += [_swing_table(comparison)] if known else []
    return Section(
        key="run",
        title=_title(comparison),
        sheet="Run",
        paragraphs=(_how(assumed), *_default(comparison)) if known else (),
        warnings=_unknown(comparison),
        tables=tuple(tables),
        is_static=True,
    )


def _title(comparison: Comparison) -> str:
    if not comparison.has_run:
        return "The training run"
    return f"A run of {_tokens(comparison.n_tokens)} as it will really go"


def _tokens(n_tokens: int) -> str:
    """A number of tokens in words.

    >>> _tokens(15 * 10**12), _tokens(2_500_000)
    ('15 trillion tokens', '2,500,000 tokens')
    """
    for factor, name in ((10**12, "trillion"), (10**9, "billion")):
        if n_tokens >= factor:
            return f"{n_tokens / factor:,.6g} {name} tokens"
    return f"{n_tokens:,} tokens"


def _default(comparison: Comparison) -> tuple[str, ...]:
    text = "The number of tokens is this program's default; give another one with --tokens."
    return (text,) if comparison.is_default_tokens else ()


def _unknown(comparison: Comparison) -> tuple[str, ...]:
    parts = run_refusal(comparison)
    unknown = [one for one in comparison.candidates if one.run is None and not one.proposal.is_part]
    if not unknown:
        return parts
    letters = ", ".join(one.letter for one in unknown)
    return (
        *parts,
        f"No run for {letters}: the tokens of a step are known for workloads that are "
        "generated from a transformer, and for tables that say tokens_per_step, not for groups.",
    )


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
    return usd(_cents(run.hardware_usd), f"ROUND({_hardware_formula(one, run)},2)")


def _cost(one: Candidate, run: Run) -> Value:
    energy, hardware = _cents(run.energy_usd), _cents(run.hardware_usd)
    formula = f"{float(energy)!r}+ROUND({_hardware_formula(one, run)},2)"
    return usd(energy + hardware, formula)


def _cost_per(one: Candidate, divisor: float) -> Cell:
    """Cost of the run per unit of something."""
    if one.run is None or not divisor:
        return usd(None)
    formula = f"({one.run.energy_usd!r}+{_hardware_formula(one, one.run)})/{divisor!r}"
    return usd(one.run.cost_usd / divisor, formula)


def _cost_per_million_tokens(one: Candidate) -> Value:
    found = _cost_per(one, one.run.n_tokens / 1e6 if one.run else 0.0)
    return replace(found, kind=cells.NUMBER, digits=4)


def _if_finite(shown: Callable[[float | None], Cell]) -> Callable[[float | None], Cell]:
    return lambda value: shown(None if value is None or math.isinf(value) else value)


def _run_table(comparison: Comparison) -> Table:
    kinds = ("NPUs", "servers and software", "fabric switches", "fabric optics")
    rows: list[tuple[str, Figure]] = [
        ("Steps", _run("n_steps")),
        ("Work without failures, days", _run("work_s", _DAYS)),
        ("Mean time between failures, hours", _run("mtbf_s", _if_finite(_HOURS))),
        ("Best checkpoint interval (Daly), min", _run("interval_s", _if_finite(_MINUTES))),
        ("to first order (Young), min", _run("young_s", _if_finite(_MINUTES))),
        ("Expected time, days", whole_step(_run("expected_s", _DAYS))),
        ("Work over expected time", _run("efficiency_fraction", lambda x: cells.percent(x, 2))),
        ("Expected failures", _run("n_failures", number)),
        *((f"of them {kind}", _failures(i)) for i, kind in enumerate(kinds)),
        ("NPU-hours", _run("npu_hours", per(1.0, 0))),
        ("Electricity, MWh", _run("energy_kwh", KILO)),
        ("Electricity", _of_run(lambda _, run: usd(_cents(run.energy_usd)))),
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
    headings = ["Assumption"]
    for letter in comparison.letters:
        headings += [f"{letter} at -{SWING_FRACTION:.0%}", f"{letter} at +{SWING_FRACTION:.0%}"]
    caption = f"What each assumption by {SWING_FRACTION:.0%} makes of the cost of the run"
    return cells.table("run-moved", caption, headings, rows)


def _moved(one: Candidate, then: Run | None) -> Value:
    """What a run under another assumption costs more or less."""
    now, total = one.run, float(one.bill.total_usd)
    if now is None or then is None:
        return delta_usd(None)
    change = then.cost_usd - now.cost_usd
    if not total or not math.isfinite(change):
        return delta_usd(_cents(change))
    share = (then.hardware_usd - now.hardware_usd) / total
    energy = then.energy_usd - now.energy_usd
    formula = f"ROUND({group_cell(one, 'total')}*{share!r}+{energy!r},2)"
    return delta_usd(_cents(change), formula)


def _cents(amount: float) -> float:
    return round(amount, 2)


def facility_section(comparison: Comparison) -> Section:
    """Rack power and space."""
    verdicts = tuple(_verdict(candidate) for candidate in comparison.candidates)
    tables = (_facility_table(comparison),)
    return Section("facility", "Rack power and space", "Facility", verdicts, tables=tables)


def _verdict(one: Candidate) -> str:
    facility = one.facility
    given = f"a rack gives {one.proposal.shop.assumptions.rack.power_limit_w / 1000:g} kW"
    draws = f"a server draws {facility.server_w / 1000:.1f} kW, {given}"
    if not facility.fits:
        return f"{one.letter}: {draws}: not even one server fits."
    holds = f"and holds {facility.n_servers_per_rack} ({facility.limited_by} is the limit)"
    return f"{one.letter}: {draws} {holds}."


def _facility_table(comparison: Comparison) -> Table:
    rows: list[tuple[str, Figure]] = [
        ("Servers", of("facility.n_servers")),
        ("Power of a server with NPUs and NICs, kW", of("facility.server_w", per(1000.0, 2))),
        ("Servers per rack", of("facility.n_servers_per_rack")),
        ("Server racks", of("facility.n_server_racks")),
        ("Switch racks", of("facility.n_switch_racks")),
        ("Floor, m²", of("facility.floor_m2", per(1.0, 0))),
        ("Power of all parts, kW", of("facility.it_w", KILO)),
        ("Power of the facility, kW", _facility_kw),
        ("Switches, all networks", _units("switch")),
        ("Optics, all networks", _units("optic")),
        ("Cables, all networks", _units("copper", "active_optical", "fibre")),
    ]
    note = "Optics draw their power in the switch racks; switch racks follow from power and height."
    return figures(comparison, "facility", "Racks, floor and power", rows, note)


def _facility_kw(one: Candidate) -> Value:
    return KILO(one.facility.it_w * one.proposal.shop.assumptions.pue)


def _units(*kinds: str) -> Figure:
    return lambda one: cells.count(one.bill.n_units(*kinds))
