"""Constants that were fitted to a user's cluster, and what they miss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from libra_planner.plan.systems import Origin
from libra_planner.step.collectives.fitting import CONSTANTS, Calibration, n_too_fast
from libra_planner.step.collectives.measured import PUBLISHED, RANGES
from libra_planner.units import format_bytes
from libra_planner.views.cells import Block, Table, count, escape, percent, table_of

_US = 1e6


def calibration_payload(
    origin: Origin, fitted: Calibration, notes: Sequence[str], path: str
) -> dict[str, Any]:
    """What ``calibrate --json`` prints."""
    fit = fitted.fit
    return {
        "system": path,
        **asdict(origin),
        "n_runs": len(fitted.runs),
        "constants": {
            name: {
                "value": fit.values[name],
                "published": getattr(PUBLISHED, name),
                "fitted": name in fit.unsure,
                "standard_error_fraction": fit.unsure.get(name),
                "at_limit": name in fit.at_limit,
                "range": RANGES[name],
            }
            for name in CONSTANTS
        },
        "errors": [asdict(row) for row in fitted.rows()],
        "notes": [*notes, *_warnings(fitted)],
    }


def calibration_blocks(
    origin: Origin, fitted: Calibration, notes: Sequence[str], path: str
) -> Iterator[Block]:
    """Constants before and after, errors before and after, what to know, and the file."""
    runs = fitted.runs
    sizes, ranks = [run.size_bytes for run in runs], [run.ranks.n for run in runs]
    least, most = format_bytes(min(sizes)), format_bytes(max(sizes))
    yield (
        f"[bold]{escape(origin.name)}[/]: {len(runs):,} runs of {origin.npu}, {least} to {most}, "
        f"{_span(min(ranks), max(ranks))} NPUs"
    )
    yield from ("", _constants(fitted), "", _errors(fitted), "")
    for note in (*notes, *_warnings(fitted)):
        yield f"Note: {escape(note)}"
    yield f"Wrote {escape(path)}: 'system: {escape(path)}' in a plan with fidelity: calibrated"


def _span(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _constants(fitted: Calibration) -> Table:
    fit = fitted.fit

    def unsure(name: str) -> str:
        if name not in fit.unsure:
            return "no run tells" if name in fit.silent else "too little"
        return f"± {fit.unsure[name]:.0%}" + " at its limit" * (name in fit.at_limit)

    return table_of(
        "Constants",
        CONSTANTS,
        {
            "constant": lambda name: name,
            "published": lambda name: _shown(name, getattr(PUBLISHED, name)),
            "yours": lambda name: _shown(name, fit.values[name]) if name in fit.unsure else "stays",
            "known to": unsure,
            "range": _range,
        },
        left=("constant", "known to"),
        dispensable=("range",),
    )


def _shown(name: str, value: float) -> str:
    return f"{_US * value:.3g} us" if name.endswith("_s") else f"{value:.3g}"


def _range(name: str) -> str:
    low, high = RANGES[name]
    return f"{_US * low:g} to {_US * high:g} us" if name.endswith("_s") else f"{low:g} to {high:g}"


def _errors(fitted: Calibration) -> Table:
    return table_of(
        "Mean absolute error",
        fitted.rows(),
        {
            "runs": lambda row: row.runs,
            "n": lambda row: count(row.n),
            "before": lambda row: percent(row.before),
            "after": lambda row: percent(row.after),
            "held out": lambda row: percent(row.held_out),
        },
        left=("runs",),
    )


def _warnings(fitted: Calibration) -> Iterator[str]:
    """What makes a calibration weaker than its errors look."""
    total, fit = fitted.total, fitted.fit
    if total.held_out is None:
        yield "runs are too few to hold half of them out: the error of other runs is not known"
    else:
        what = "curves" if fitted.by_curve else "sizes"
        yield f"held out: half of the {what} under constants of the other half, three times"
        if total.held_out > total.before:
            yield "held out the published constants are better: measure more kinds, sizes and nodes"
    for name in fit.at_limit:
        yield (
            f"{name} ended at a limit of its range, {_range(name)}: the law misses something, "
            "or NPU, NICs or nodes are not what was said"
        )
    if n_fast := n_too_fast(fitted.runs):
        yield f"faster than line rates allow: {n_fast:,} of the runs; check --nics"
