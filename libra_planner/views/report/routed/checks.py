"""The section on routing: links under the policy that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from libra_planner.check.delivered import DimensionReport
from libra_planner.check.links import CheckReport
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison
from libra_planner.units import format_time, gigabytes_per_s
from libra_planner.views import cells
from libra_planner.views.cells import Cell, Section, Value, number, percent
from libra_planner.views.phases import algorithm_lines, send_notes
from libra_planner.views.report.routed.placing import placement_text, placement_times_text
from libra_planner.views.spread import mean_text


def check_section(comparison: Comparison) -> Section | None:
    """The links under the routing policy; ``None`` where nothing was checked."""
    checked = [(one, one.check) for one in comparison.candidates if one.check is not None]
    rows = [(one.letter, dimension) for one, check in checked for dimension in check.dimensions]
    if not rows:
        return None
    policy = checked[-1][1].policy.name
    columns: dict[str, Callable[[tuple[str, DimensionReport]], Value]] = {
        "Dimension": lambda row: f"{row[0]}, {row[1].label} {row[1].tier}",
        "GB/s per NPU": lambda row: number(gigabytes_per_s(row[1].bandwidth_Bps), 2),
        "Efficiency, sprayed": lambda row: _share(row[1].ideal_efficiency),
        f"under {policy}": lambda row: _share(float(row[1].efficiency.mean())),
        "FIM": lambda row: _share(float(row[1].fim_percent.mean()) / 100),
        "Least FIM": lambda row: _share(row[1].fim_floor_percent / 100),
    }
    caption, note = f"Links under {policy}", _above_note(comparison)
    one = cells.table_of(caption, rows, columns, key="check", note=note)
    text = tuple(_paragraphs(comparison, [dimension for _, dimension in rows], policy))
    return Section("check", "Routing over the links", "Routing", text, tables=(one,))


def _paragraphs(
    comparison: Comparison, dimensions: Sequence[DimensionReport], policy: str
) -> Iterator[str]:
    """What the figures are, and what they are of each design."""
    yield (
        f"The collectives of a step routed over the links that are bought, by {policy}. Efficiency "
        "is the share of the links' bandwidth that collectives get; FIM is the imbalance of flows, "
        "0 where all links carry equally many. Where a plan names no algorithm the faster one runs."
    )
    if any(map(_is_uneven_for_free, dimensions)):
        yield (
            "FIM beside an efficiency of 100% costs nothing: it counts idle links, too. Where few "
            "flows cross many links most stay idle, and the others have room for theirs."
        )
    yield from filter(None, [placement_text(comparison), placement_times_text(comparison)])
    said: list[tuple[str, str]] = []
    for one in comparison.candidates:
        if one.check is None:
            continue
        times_s = one.check.effective_step_time_s
        if means := mean_text(times_s, format_time):
            mean = f"{format_time(float(times_s.mean()))}, {means}"
            said.append((one.letter, f"step time under {one.check.policy.name}: {mean}"))
        said += [(one.letter, line) for line in algorithm_lines(one.check)]
    yield from (f"{whose}, {text}." for whose, text in cells.said_once(said))


def _above_note(comparison: Comparison) -> str:
    """Why a share is above 100 %; empty where none is."""
    above = [one for one in comparison.candidates if one.check and _is_above(one.check)]
    if not above:
        return ""
    said = [(one.letter, text) for one in above for text in _send_notes(one)]
    whole = "An efficiency above 100%: flows find uplinks idle that are others' share."
    return " ".join((whole, *(f"{whose}, {text}." for whose, text in cells.said_once(said))))


def _send_notes(one: Candidate) -> Iterator[str]:
    """Which sends find more bandwidth than the model gives them, or less."""
    problem = one.proposal.problem
    if one.check is not None:
        yield from send_notes(problem.topology, problem.step.sends, one.check)


def _is_above(check: CheckReport) -> bool:
    """Whether flows get more than the model gives them, in any dimension."""
    return any(
        share > 1 + _ROUNDING
        for one in check.dimensions
        for share in (one.ideal_efficiency, float(one.efficiency.mean()))
    )


def _is_uneven_for_free(dimension: DimensionReport) -> bool:
    """Whether flows are uneven, and lose no bandwidth by it."""
    uneven = float(dimension.fim_percent.mean()) > _UNEVEN_PERCENT
    return uneven and float(dimension.efficiency.mean()) > 1 - _ROUNDING


_UNEVEN_PERCENT, _ROUNDING = 1.0, 1e-9


def _share(value: float) -> Cell:
    return percent(None if math.isnan(value) else value)  # nan where no flow crosses switches
