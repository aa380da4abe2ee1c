"""The run as it will really go: time, failures and cost, and what each assumption makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from libra_planner.procurement.bill import Assumptions
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import SWING_FRACTION, Comparison, run_swings
from libra_planner.procurement.run import HOUR_S, YEAR_S, Run
from libra_planner.views import cells
from libra_planner.views.cells import Cell, Section, Table, Value, finite, number, round_usd
from libra_planner.views.report.bills import group_cell
from libra_planner.views.report.designs import (
    KILO,
    SIDES,
    Ends,
    Figure,
    Rows,
    band_rows,
    figures,
    per,
    whole_step,
)

_DAYS, _HOURS, _MINUTES = per(24 * HOUR_S, 3), per(HOUR_S, 2), per(60.0, 2)


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
        title = f"A run of {tokens_text(designs[0].n_tokens)} as it will really go"
        paragraphs.append(_how(comparison.shop.assumptions))
        tables.append(_swing_table(comparison))
    if comparison.has_run and comparison.is_default_tokens:
        default = "The number of tokens is this program's default; give another one with --tokens."
        paragraphs.append(default)
    texts = tuple(paragraphs), tuple(warnings)
    return Section("run", title, "Run", *texts, tables=tuple(tables), is_static=True)


def tokens_text(n_tokens: int) -> str:
    """A number of tokens in words.

    >>> tokens_text(15 * 10**12), tokens_text(2_500_000)
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


def run_ends(name: str) -> Callable[[Candidate], Ends]:
    """A figure of the run at either end of the step's band, by its name (C23)."""

    def ends(one: Candidate) -> Ends:
        runs = one.run_ends
        return None if runs is None else (getattr(runs[0], name), getattr(runs[1], name))

    return ends


def _of_run(figure: Callable[[Candidate, Run], Value]) -> Figure:
    return lambda one: Cell(None) if one.run is None else figure(one, one.run)


def _run(name: str, shown: Callable[[Any], Value] = cells.count) -> Figure:
    """A figure of the run by its name."""
    return _of_run(lambda _, run: shown(getattr(run, name)))


def _hardware(one: Candidate, run: Run) -> Value:
    return round_usd(round(run.hardware_usd, 2), f"ROUND({_hardware_formula(one, run)},2)")


def _cost(one: Candidate, run: Run) -> Value:
    energy = round(run.energy_usd, 2)
    formula = f"{float(energy)!r}+ROUND({_hardware_formula(one, run)},2)"
    return round_usd(energy + round(run.hardware_usd, 2), formula)


def _cost_end(side: int, one: Candidate) -> Value:
    return Cell(None) if one.run_ends is None else _cost(one, one.run_ends[side])


def _cost_per(one: Candidate, divisor: float) -> Cell:
    """Cost of the run per unit of something."""
    if one.run is None or not divisor:
        return round_usd(None)
    formula = f"({one.run.energy_usd!r}+{_hardware_formula(one, one.run)})/{divisor!r}"
    return round_usd(one.run.cost_usd / divisor, formula)


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
        *band_rows("Expected time", "days", run_ends("expected_s"), _DAYS),
        ("Work over expected time", _run("efficiency_fraction", lambda x: cells.percent(x, 2))),
        ("Expected failures", _run("n_failures", number)),
        *((f"of them {kind}", _failures(i)) for i, kind in enumerate(kinds)),
        ("NPU-hours", _run("npu_hours", per(1.0, 0))),
        ("Electricity, MWh", _run("energy_kwh", KILO)),
        ("Electricity", _run("energy_usd", lambda x: round_usd(round(x, 2)))),
        ("Hardware, by time", _of_run(_hardware)),
        ("Cost of the run", whole_step(_of_run(_cost))),
        *((f"Cost of the run, {SIDES[i]} by its band", partial(_cost_end, i)) for i in (0, 1)),
        ("per NPU-hour", lambda one: _cost_per(one, one.run.npu_hours if one.run else 0.0)),
        ("per million tokens, $", _cost_per_million_tokens),
    ]
    note = "" if not comparison.without else f"Costs are {comparison.without}."
    return figures(comparison, "run", "Time, failures and cost of the run", rows, note)


def _failures(index: int) -> Figure:
    return _of_run(lambda _, run: number(run.failures_by_kind[index][1], 2))


def _swing_table(comparison: Comparison) -> Table:
    """What each assumption makes of the cost of the run."""
    swings = [(one, run_swings(one)) for one in comparison.ordered]
    rows: list[list[Value]] = [
        [name, *(_moved(one, run) for one, found in swings for run in found[name])]
        for name in swings[0][1]
    ]
    moves = [f"{sign}{SWING_FRACTION:.0%}" for sign in "-+"]
    headings = [f"{one.letter} at {move}" for one in comparison.ordered for move in moves]
    caption = f"What each assumption by {SWING_FRACTION:.0%} makes of the cost of the run"
    return cells.table("run-moved", caption, ["Assumption", *headings], rows, is_folded=True)


def _moved(one: Candidate, then: Run | None) -> Value:
    """What a run under another assumption costs more or less."""
    now, total = one.run, float(one.bill.total_usd)
    if now is None or then is None:
        return cells.round_delta_usd(None)
    change, formula = then.cost_usd - now.cost_usd, ""
    if total and math.isfinite(change):
        share = (then.hardware_usd - now.hardware_usd) / total
        energy = then.energy_usd - now.energy_usd
        formula = f"ROUND({group_cell(one, 'total')}*{share!r}+{energy!r},2)"
    return cells.round_delta_usd(round(change, 2), formula)
