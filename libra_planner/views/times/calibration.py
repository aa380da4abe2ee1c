"""Constants that were fitted to a user's cluster, and what they miss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from libra_planner.fits import Refit
from libra_planner.plan.systems import Origin, Refits
from libra_planner.step.collectives.fitting import Calibration, n_too_fast
from libra_planner.units import format_bytes
from libra_planner.views.cells import Block, Table, count, escape, percent, table_of

_US = 1e6


def calibration_payload(
    origin: Origin,
    found: Refits,
    notes: Sequence[str],
    path: str,
) -> dict[str, Any]:
    """What ``calibrate --json`` prints; null for what was not fitted."""
    parts = {key: _part(part) for key, part in found.parts.items()}
    return {
        "system": path,
        **asdict(origin),
        **(parts.get("collectives") or dict.fromkeys(("n_runs", "constants", "errors"))),
        "kernels": parts.get("kernels"),
        "steps": parts.get("steps"),
        "notes": [*notes, *_warnings(found)],
    }


def _part(part: Refit) -> dict[str, Any]:
    told = part.told
    constants = {
        name: {
            "value": told.values[name],
            "published": part.published[name],
            "fitted": name in told.unsure,
            "standard_error_fraction": told.unsure.get(name),
            "at_limit": name in told.at_limit,
            "range": part.ranges[name],
        }
        for name in part.published
    }
    errors = [asdict(row) for row in part.rows]
    bands = {"bands": dict(part.bands)} if part.bands else {}
    return {"n_runs": part.rows[0].n, "constants": constants, "errors": errors, **bands}


def calibration_blocks(
    origin: Origin,
    found: Refits,
    notes: Sequence[str],
    path: str,
) -> Iterator[Block]:
    """Constants before and after, errors before and after, what to know, and the file."""
    yield f"[bold]{escape(origin.name)}[/], {origin.npu}: {escape(origin.source)}"
    fitted = found.collectives
    for key, part in found.parts.items():
        yield _runs(fitted) if fitted and key == "collectives" else _n_of(key, part)
        yield from ("", _constants(part), "", _errors(part), "")
    for note in (*notes, *_warnings(found)):
        yield f"Note: {escape(note)}"
    yield f"Wrote {escape(path)}; use: 'system: FILE' with fidelity: calibrated, train --system"


def _n_of(key: str, part: Refit) -> str:
    what = f"{key.capitalize()}: {part.rows[0].n:,}"
    bands = [f"{kind} ± {band:.0%}" for kind, band in part.bands.items()]
    return f"{what}; nine of ten held out are within: {', '.join(bands)}" if bands else what


def _runs(fitted: Calibration) -> str:
    sizes = [run.size_bytes for run in fitted.runs]
    ranks = [run.ranks.n for run in fitted.runs]
    least, most = format_bytes(min(sizes)), format_bytes(max(sizes))
    return (
        f"Collectives: {len(sizes):,} runs, {least} to {most}, {_span(min(ranks), max(ranks))} NPUs"
    )


def _span(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _constants(part: Refit) -> Table:
    told = part.told

    def unsure(name: str) -> str:
        if name not in told.unsure:
            return "no run tells" if name in told.silent else "too little"
        return f"± {told.unsure[name]:.0%}" + " at its limit" * (name in told.at_limit)

    return table_of(
        "Constants",
        part.published,
        {
            "constant": lambda name: name,
            "published": lambda name: _shown(name, part.published[name]),
            "yours": lambda name: (
                _shown(name, told.values[name]) if name in told.unsure else "stays"
            ),
            "known to": unsure,
            "range": lambda name: _range(name, part),
        },
        left=("constant", "known to"),
        dispensable=("range",),
    )


def _shown(name: str, value: float) -> str:
    return f"{_US * value:.3g} us" if name.endswith("_s") else f"{value:.3g}"


def _range(name: str, part: Refit) -> str:
    low, high = part.ranges[name]
    return f"{_US * low:g} to {_US * high:g} us" if name.endswith("_s") else f"{low:g} to {high:g}"


def _errors(part: Refit) -> Table:
    return table_of(
        "Mean absolute error",
        part.rows,
        {
            "runs": lambda row: row.runs,
            "n": lambda row: count(row.n),
            "before": lambda row: percent(row.before),
            "after": lambda row: percent(row.after),
            "held out": lambda row: percent(row.held_out),
        },
        left=("runs",),
    )


def _warnings(found: Refits) -> Iterator[str]:
    """What makes a calibration weaker than its errors look."""
    fitted = found.collectives
    for key, part in found.parts.items():
        sizes = "curves" if fitted and fitted.by_curve else "sizes"
        yield from _weak(part, {"collectives": sizes, "steps": "runs"}.get(key, key))
    if fitted is not None and (n_fast := n_too_fast(fitted.runs)):
        yield f"faster than line rates allow: {n_fast:,} of the runs; check --nics"
    if found.steps is not None and len(found.parts) > 1:
        yield "steps are predicted with the constants above, before and after"


def _weak(part: Refit, what: str) -> Iterator[str]:
    total = part.rows[0]
    if total.held_out is None:
        yield f"{what} are too few to hold half of them out: the error of others is not known"
    else:
        yield f"held out: half of the {what} under constants of the other half, three times"
        if total.held_out > total.before:
            yield f"held out the published constants are better: measure more {what}"
    for name in part.told.at_limit:
        yield (
            f"{name} ended at a limit of its range, {_range(name, part)}: the law misses "
            "something, or what was measured is not what was said"
        )
