"""Studies of failures as JSON-ready values and text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from libra_planner.check.degraded import FailureCase, FailureStudy
from libra_planner.routing.loads import distribution
from libra_planner.units import format_time, gigabytes_per_s
from libra_planner.views import spread
from libra_planner.views.cells import (
    Block,
    Table,
    attributes,
    count,
    escape,
    figure_cells,
    table,
    table_of,
)

LEAST_FOR_HISTOGRAM = 10
"""Draws, or seeds, below which a histogram says no more than the percentiles."""

MOST_NAMED = 10
"""Cases that are named."""


def study_payload(study: FailureStudy) -> dict[str, Any]:
    """Statistics of a study, and its first cases."""
    return {
        "n_cases": len(study.cases),
        **attributes(study, "n_disconnected", "whole_step_time_s"),
        "step_time_s": spread.spread(study.step_time_s),
        "slowdown_vs_whole": spread.spread(study.step_time_s / study.whole_step_time_s),
        "fim_percent": spread.spread(study.fim_percent),
        "step_time_histogram": spread.histogram_payload(study.step_time_s),
        "cases": [
            attributes(case, "name", "step_time_s", "fim_percent")
            | {"disconnected": case.disconnected or None}
            for case in study.cases[:MOST_NAMED]
        ],
        "tiers": [
            {"dimension": label, "tier": tier, "whole_GBps": whole, "mean_GBps": mean}
            | {"least_GBps": least}
            for label, tier, whole, mean, least in _tiers(study)
        ],
        **({"parts": [*_parts(study), *_cut_parts(study)]} if study.cut_off else {}),
    }


def _tiers(study: FailureStudy) -> list[tuple[str, str, float, float, float]]:
    """GB/s per NPU that collectives get in every tier: nothing failed, mean and least of cases."""
    rows = []
    got = np.array([case.efficiency for case in study.joined])
    for i, one in enumerate(study.whole.dimensions if len(got) else ()):
        whole_GBps, cases_GBps = (
            gigabytes_per_s(1.0) * one.got_Bps(x) for x in (one.efficiency.mean(), got[:, i])
        )
        if not np.isnan(whole_GBps):
            ends = float(whole_GBps), float(cases_GBps.mean()), float(cases_GBps.min())
            rows.append((one.label, one.tier, *ends))
    return rows


def _parts(study: FailureStudy) -> Iterator[dict[str, Any]]:
    """What the failure of one part costs, by its kind."""
    for part, cases in study.by_part.items():
        slowdown = [case.slowdown for case in cases if not case.disconnected]
        yield {
            "part": part,
            "n_parts": len(cases),
            "n_disconnected": len(cases) - len(slowdown),
            "slowdown_mean": float(np.mean(slowdown)) if slowdown else None,
            "slowdown_max": max(slowdown, default=None),
            "worst": cases[0].name,
            "n_ports_cut_off": 0,
        }


def _cut_parts(study: FailureStudy) -> Iterator[dict[str, Any]]:
    """The parts whose failure leaves ports of NICs without any path."""
    for one in study.cut_off:
        stopped = {"n_disconnected": one.n_parts, "slowdown_mean": None, "slowdown_max": None}
        ports = {"worst": None, "n_ports_cut_off": one.n_ports}
        yield attributes(one, "part", "n_parts") | stopped | ports


def failures_blocks(
    studies: dict[str, FailureStudy], failed: str, *, n_worst: int
) -> Iterator[Block]:
    """Studies of failures, after those of the check; ``failed`` says what in each draw.

    Of an N-1 study the worst cases are listed.
    """
    for name, study in studies.items():
        is_drawn, n = name == "failures", study.n_disconnected
        what = f"{failed} failed" if is_drawn else f"any one {_singles(study)} failed (N-1)"
        yield from ("", escape(f"With {what}, {_times(study)}"))
        for cut in [case for case in study.cases if case.disconnected][:1]:
            cases = "1 case cuts" if n == 1 else f"{n:,} cases cut"
            rest = f"left out of the times; {cut.name}: {cut.disconnected}"
            yield escape(f"  {cases} hosts off, {rest}")
        if not is_drawn:
            yield from (escape(_cases_text(x, study)) for x in _alike(study)[:n_worst])
            yield from ("", _part_table(study), CUT_OFF)
        if rows := _tiers(study):
            yield from ("", _tier_table(rows))
        if is_drawn and len(study.step_time_s) >= LEAST_FOR_HISTOGRAM:
            yield spread.timed_histogram("Draws by step time,", study.step_time_s)


CUT_OFF = "A NIC has one cable to one leaf: without them no path is left, and a job there stops"
"""Why leaves and cables of NICs have no time."""


def _singles(study: FailureStudy) -> str:
    """The kinds of parts that fail alone, in words."""
    switches = {part.partition(": ")[2] for part in study.by_part if " - " not in part}
    return "cable, spine or core" if "core" in switches else "cable or spine"


def _part_table(study: FailureStudy) -> Table:
    """What one failure costs, by the kind of what fails."""

    columns = {
        "one fails": lambda row: row["part"],
        "of": lambda row: count(row["n_parts"]),
        "step time": lambda row: _over(row["slowdown_mean"], row["n_disconnected"]),
        "worst": lambda row: _over(row["slowdown_max"]),
        "NIC ports off": lambda row: count(row["n_ports_cut_off"]),
        "worst of them": lambda row: (row["worst"] or "any").rpartition(": ")[2],
    }
    title = "What one failure costs, by what fails; against the same routing of all links"
    rows = [*_parts(study), *_cut_parts(study)]
    left, dispensable = ("one fails", "worst of them"), ("worst of them",)
    return table_of(title, rows, columns, left=left, dispensable=dispensable)


def _over(slowdown: float | None, n_stopped: int = 0) -> str:
    """What a failure adds to the step; ``stops`` where no case goes on."""
    if slowdown is None:
        return "stops"
    return f"{slowdown - 1 + 0.0:+.2%}" + f", {n_stopped:,} stop" * bool(n_stopped)


def _tier_table(rows: list[tuple[str, str, float, float, float]]) -> Table:
    """What is left of every tier's bandwidth."""
    headings = ("dim", "tier", "nothing failed", "mean of cases", "worst case")
    cells = (figure_cells(*row) for row in rows)
    title = "GB/s per NPU that collectives get in every tier"
    return table("", title, headings, cells, left=("dim", "tier"))


def _alike(study: FailureStudy) -> list[list[FailureCase]]:
    """Cases worst first, those of one kind whose step times are printed alike together."""
    found: dict[tuple[str, str], list[FailureCase]] = {}
    for case in study.joined:
        if not case.like:
            found.setdefault((case.part, format_time(case.step_time_s)), []).append(case)
    return list(found.values())


def _cases_text(cases: list[FailureCase], study: FailureStudy) -> str:
    """Cases that are alike, by the first of them, and how many they are of their kind."""
    first, names = cases[0], {case.name for case in cases}
    fims = dict.fromkeys(f"{case.fim_percent:.2f}" for case in cases)
    fim = "" if np.isnan(first.fim_percent) else f", FIM {_ends(list(fims))} %"
    n_like = sum(one.like in names for one in study.cases)
    same = f"; by symmetry the same of {n_like:,} more of its leaf" if n_like else ""
    if len(cases) > 1:
        n_all = len(study.by_part[first.part])
        same = f"; {len(cases) + n_like:,} of {n_all:,} alike"
    slower = _slower(first.step_time_s, study)
    return f"  {first.name}: {format_time(first.step_time_s)} ({slower}{fim}){same}"


def _ends(texts: list[str]) -> str:
    """The only one of some numbers, or the least and the most."""
    least, most = min(texts, key=float), max(texts, key=float)
    return least if least == most else f"{least} to {most}"


def _times(study: FailureStudy) -> str:
    n_cases = f"{len(study.cases):,} case{'s' if len(study.cases) > 1 else ''}"
    times = study.step_time_s
    if not len(times):
        return f"{n_cases}: all cut hosts off"
    found, whole = distribution(times), format_time(study.whole_step_time_s)
    return (
        f"{n_cases}: step time {format_time(found.mean)} on average "
        f"({_slower(found.mean, study)}: {whole} with nothing failed), "
        f"p95 {format_time(found.p95)}, worst {format_time(times.max())} "
        f"({_slower(times.max(), study)})"
    )


def _slower(step_time_s: float, study: FailureStudy) -> str:
    """A time over that of nothing failed, where it is beyond what routings differ by."""
    if step_time_s <= study.most_whole_step_time_s:
        return "within the spread of routings"
    return f"{step_time_s / study.whole_step_time_s:.3f}x"
