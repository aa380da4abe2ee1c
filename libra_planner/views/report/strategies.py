"""The strategies of designs and those that were searched; the network that their times are of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from libra_planner.plan.steps.strategies import strategy_text
from libra_planner.procurement import candidate
from libra_planner.procurement.bill import NETWORK, NIC, SWITCH
from libra_planner.procurement.ranking import Comparison
from libra_planner.search.best import Candidate
from libra_planner.step.collectives.calibrated import Calibrated
from libra_planner.step.collectives.measured import ETHERNET, INFINIBAND
from libra_planner.step.memory_use import MemoryUse
from libra_planner.units import BYTES_PER_GB, format_time, format_usd
from libra_planner.views import cells
from libra_planner.views.cells import Cell, Section, Value, attributes
from libra_planner.views.training.found import verdict

_DEGREES = ("tp", "cp", "pp", "dp", "ep", "interleave", "microbatch", "zero", "recompute")
_Row = tuple[str, int, Candidate]
_MOST_ROWS = 20
"""Strategies that a page of paper has room for."""


def strategy_cell(one: candidate.Candidate) -> Value:
    """How the model is spread over the NPUs; nothing where the plan lists its collectives."""
    memories = one.proposal.problem.step.memories.values()
    found = {strategy_text(x.strategy) for x in memories if isinstance(x, MemoryUse)}
    return "; ".join(sorted(found)) or Cell(None)


def technology_cell(one: candidate.Candidate) -> Value:
    """Whose network the step time is of, as far as its model knows one."""
    model, name = one.proposal.problem.step.model, _technology(one)
    npu = model.npu if isinstance(model, Calibrated) else ""
    return f"{name}, collectives as NCCL on {npu}" if name else "none: bandwidth alone"


def technology_text(one: candidate.Candidate) -> str:
    """What parts are priced by, and what step times are as on; empty where no part is a switch."""
    has_parts = any(x.part.kind in (NIC, SWITCH) for x in one.bill.of(NETWORK).lines)
    if not has_parts:
        return ""
    name = _technology(one)
    times = f"step times are as on {name}" if name else "step times know neither"
    return f"Parts are priced by ports and speed, not by InfiniBand or Ethernet; {times}."


def technology_notes(one: candidate.Candidate) -> Iterator[str]:
    """Which key of a plan says what network the step times are as on, of plans that have it."""
    name = _technology(one)
    other = next((key for key, its in _NAMES.items() if its != name), "")
    if name and other:
        yield f"step times are as on {name}; interconnect: {other} makes them as on {_NAMES[other]}"


def _technology(one: candidate.Candidate) -> str:
    """The interconnect between servers that a model of collectives was measured on."""
    model = one.proposal.problem.step.model
    if not isinstance(model, Calibrated) or model.port is None:
        return ""
    return _NAMES.get(model.interconnect, model.interconnect)


_NAMES = {INFINIBAND: "InfiniBand", ETHERNET: "Ethernet"}


def strategy_section(comparison: Comparison) -> Section | None:
    """The best few strategies of every design; ``None`` where all plans say their degrees."""
    rows: list[_Row] = []
    paragraphs = [
        "These designs leave their parallelism open. The strategy was searched among all that fit "
        "the NPUs, by the plan's model of a step at the bandwidth of the whole ports that are "
        "bought; the search does not see routing. Rank 1 is the strategy of the design, unless "
        "another is said to be the best on its links."
    ]
    told: list[tuple[str, str]] = []
    for one in comparison.candidates:
        proposal, found = one.proposal, one.proposal.found
        if found is None:
            continue
        rows += [(one.letter, i, best) for i, best in enumerate(found.best, 1)]
        is_joint = proposal.optimized and one.billed is one.evaluation
        by = f"{proposal.problem.objective} per token" if is_joint else "step time"
        said = ". ".join(verdict(found, bold=("", "")))
        told.append((one.letter, f"by {by}: {said}"))
    if not rows:
        return None
    paragraphs += [f"{whose}, {text}" for whose, text in cells.said_once(told)]
    paragraphs += filter(None, [on_links_text(comparison.candidates)])
    tables = (
        cells.table_of(
            "The best strategies",
            rows,
            _columns(),
            key="strategies",
            is_folded=len(rows) > _MOST_ROWS,
        ),
    )
    title = "Strategies that were searched"
    return Section("strategies", title, "Strategies", tuple(paragraphs), tables=tables)


def on_links_text(designs: Sequence[candidate.Candidate]) -> str:
    """Which designs take another strategy on their links than in the model; empty for none."""
    return " ".join(
        f"{one.letter} takes the best strategy on its links, of {found.n_checked} that were "
        f"checked there: {found.words}. The best in the model, {found.model_words}, would take "
        f"{format_time(found.model_s)} there instead of {format_time(one.step_time_s)}."
        for one in designs
        if (found := one.proposal.on_links) and not found.is_best_in_model
    )


def on_links_payload(one: candidate.Candidate) -> dict[str, Any]:
    """The key ``strategy_on_links``; none where it was not searched there."""
    found = one.proposal.on_links
    if found is None:
        return {}
    told = {
        "strategy": found.words,
        "best_in_model": found.is_best_in_model,
        **attributes(found, "n_checked", "n_left"),
        "model_strategy": found.model_words,
        "model_effective_step_time_s": found.model_s,
    }
    return {"strategy_on_links": told}


def _columns() -> dict[str, Callable[[_Row], Value]]:
    columns: dict[str, Callable[[_Row], Value]] = {"Design": lambda row: row[0]}
    columns["Rank"] = lambda row: str(row[1])
    for name in _DEGREES:
        columns[name] = lambda row, name=name: str(row[2].strategy.degrees[name])  # type: ignore[misc]
    columns["Step time"] = lambda row: format_time(row[2].optimum.step_time_s)
    columns["Cost, plan's prices"] = lambda row: _cost(row[2])
    columns["GB per NPU"] = lambda row: cells.number(row[2].memory_bytes / BYTES_PER_GB)
    return columns


def _cost(one: Candidate) -> str:
    """Of the fabric that is best for it; unknown on a given one, the same for all."""
    return format_usd(one.optimum.cost_usd) if one.optimum.cost_usd else cells.UNKNOWN
