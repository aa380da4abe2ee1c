"""What stands around the figures of a design: its plan's notes, groups, memory and baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import isfinite
from typing import Any

from libra_planner.evaluation import Evaluation, Violation
from libra_planner.fabric.topology import Topology
from libra_planner.plan.steps.notes import Kind, Note, in_order, lead_of, of_kind, plan_notes
from libra_planner.problem import Problem
from libra_planner.quantities import TAPER
from libra_planner.step.bands import related_bands
from libra_planner.step.collectives.calibrated import Calibrated
from libra_planner.step.expression import Array
from libra_planner.step.model_training import ModelTraining
from libra_planner.step.training import has_partial_groups, has_slow_sends
from libra_planner.units import format_bandwidth, format_time, format_usd
from libra_planner.views.bought.free_ports import free_port_notes
from libra_planner.views.bought.racks import rack_notes
from libra_planner.views.bought.thin import thin_notes
from libra_planner.views.bought.whole_ports import port_notes, spare_notes
from libra_planner.views.bought.wiring import wiring_notes
from libra_planner.views.cells import attributes, escape
from libra_planner.views.training import memory
from libra_planner.views.training.copies import copies_notes
from libra_planner.views.training.step import busy_notes


def plan_head(problem: Problem, *figures: str) -> Iterator[str]:
    """The workload and the fabric of a plan, its figures, and its settings."""
    yield from (plan_title(problem), *figures, *setting_markup(problem))


def plan_title(problem: Problem) -> str:
    """The workload and the fabric of a plan."""
    topology = problem.topology
    where = escape(f"{topology}, {topology.n_npus:,} NPUs")
    return f"[bold]{escape(problem.workload_name)}[/] on {where}"


def setting_markup(problem: Problem) -> list[str]:
    """The settings of a plan, as they stand under its title or under its figures."""
    return [f"[dim]{escape(line)}[/]" for line in setting_lines(problem)]


def setting_lines(problem: Problem) -> list[str]:
    """The settings of a plan, one line that a terminal wraps; none where there are none.

    Examples
    --------
    >>> import libra_planner as lp
    >>> print("\\n".join(setting_lines(lp.load_plan("examples/01_gpt3_4d.yaml"))))
    TP 16 x DP 256, 8,192 sequences per step, loop no_overlap, prices libra-ispass24 ...
    """
    return [", ".join(problem.settings)] if problem.settings else []


def note_lines(notes: Iterable[str]) -> list[str]:
    """Notes below an empty line, if there are any; apart those that may change what is bought."""
    lines: list[str] = []
    for lead, found in groupby(in_order(notes), lead_of):
        mark = f"[bold]{lead}:[/]" if lead != lead_of("") else f"{lead}:"
        lines += ["", *(f"{mark} {escape(note)}" for note in found)]
    return lines


def violations(violated: Iterable[Violation]) -> list[dict[str, Any]]:
    """Broken rules for JSON."""
    return [attributes(one, "rule", "line", "by", "unit") for one in violated]


def taper_payload(
    topology: Topology, bandwidth_bytes_per_s: Sequence[float] | Array
) -> dict[str, Any]:
    """Key ``taper`` of JSON results, by dimension; none without a stack (C13)."""
    if not topology.stacks:
        return {}
    return {"taper": list(topology.tapers(bandwidth_bytes_per_s))}


def taper_texts(topology: Topology, bandwidth_bytes_per_s: Sequence[float] | Array) -> list[str]:
    """Tapers for people, such as 7:1; nothing where there is none.

    >>> from libra_planner.fabric.topology import parse_topology
    >>> taper_texts(parse_topology("[SW(32)_SW(8)]"), [50e9, 20e9])
    ['', '2.5:1']
    """
    tapers = topology.tapers(bandwidth_bytes_per_s)
    return ["" if one is None else TAPER.text(float(f"{one:.3g}")) for one in tapers]


PARTS_OF_THE_STEP = {"compute_time_s": "compute_s", "communication_time_s": "communication_s"}
"""Attributes by the names that JSON has for them."""


def group_payload(problem: Problem, evaluation: Evaluation) -> dict[str, Any]:
    """Keys of a group in JSON results; none for a plan with one workload."""
    if not problem.members:
        return {}
    workloads = [
        {
            **attributes(member, "name", "weight", "step_time_s", **PARTS_OF_THE_STEP),
            **attributes(member, "speedup_vs_equal", "own_optimum_s"),
            "memory": memory.memory_payload(problem.step.memories.get(member.name)),
        }
        for member in evaluation.members
    ]
    return {"group_objective": problem.group_objective, "workloads": workloads}


def objective_notes(problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """Why the objective has no value, if it has none."""
    if evaluation.objective is None:
        yield (
            f"the objective {problem.group_objective} compares each workload with its own optimum, "
            "which only optimize finds: it has no value here"
        )


def built_notes(problem: Problem, bandwidth_bytes_per_s: Array) -> Iterator[str]:
    """What a vector takes for granted: that it is sold so, and what its plan does."""
    yield from of_kind(Kind.STEP, busy_notes(problem, bandwidth_bytes_per_s))
    for notes in (
        *(copies_notes, thin_notes, port_notes, rack_notes, free_port_notes),
        wiring_notes,
    ):
        yield from of_kind(Kind.DECISION, notes(problem, bandwidth_bytes_per_s))
    yield from plan_notes(problem)


def as_checked(problem: Problem) -> Problem:
    """The plan where its links are checked: its collectives run by the algorithms it names."""
    unused = tuple(key for key in problem.text.unused_keys if key != "algorithms")
    return replace(problem, text=replace(problem.text, unused_keys=unused))


def result_notes(
    problem: Problem, evaluation: Evaluation, *, is_routed: bool = False
) -> Iterator[str]:
    """What the figures take for granted, and what partial groups would cost on their own links.

    What may change the design comes first.

    Parameters
    ----------
    is_routed : whether its step on links stands beside it, so that nothing warns of that.
    """
    found = in_order(_result_notes(problem, evaluation))
    yield from without_busy(found, problem, evaluation) if is_routed else found


def without_busy(notes: Iterable[str], problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """Notes without the one on busy links, where a design was chosen on its links."""
    busy = set(busy_notes(problem, evaluation.bandwidth_bytes_per_s))
    yield from (note for note in notes if note not in busy)


def _result_notes(problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    yield from of_kind(Kind.DECISION, objective_notes(problem, evaluation))
    yield from spare_notes(problem, evaluation)
    yield from built_notes(problem, evaluation.bandwidth_bytes_per_s)
    real_s = evaluation.real_link_step_time_s
    if real_s is not None:
        slower = real_s / evaluation.step_time_s - 1
        words = (
            f"{_granted(problem)}. The model grants them all "
            f"of its bandwidth, as LIBRA does; on their own links the step would take "
            f"{format_time(real_s)} ({slower:+.1%})"
        )
        yield Note(words, Kind.DECISION)


def _granted(problem: Problem) -> str:
    """What has fewer links than the model grants."""
    said = []
    if any(map(has_partial_groups, problem.step.trainings)):
        said.append("some parallel groups span only part of a dimension")
    if any(map(has_slow_sends, problem.step.trainings)):
        said.append("some sends take one link or direction of an NPU's in a dimension")
    return ", and ".join(said)


def band_keys(band_s: tuple[float, float] | None) -> dict[str, float | None]:
    """The ends of a step time's error band (C23); null without a measured class."""
    low_s, high_s = band_s or (None, None)
    return {"step_time_low_s": low_s, "step_time_high_s": high_s}


def band_lines(problem: Problem, band_s: tuple[float, float] | None) -> Iterator[str]:
    """The same for people, or why there is none."""
    model, trainings = problem.step.model, problem.step.trainings
    if not isinstance(model, Calibrated):
        return
    if band_s is None:
        yield f"No range: {no_class_text(problem)}"
        return
    low, high = map(format_time, band_s)
    if isinstance(trainings[0], ModelTraining):
        yield f"{low} to {high}, as {trainings[0].error_source} are off"
    else:
        yield (
            f"{low} to {high} by the mean error of measured collectives ({model.bands.source}); "
            f"compute is as the plan has it"
        )


def no_class_text(problem: Problem) -> str:
    """Why a step time has no error band (C23)."""
    training = problem.step.trainings[0]
    if not isinstance(problem.step.model, Calibrated):
        return "collectives are not run as measured; fidelity: calibrated has a band"
    if problem.step.is_group:
        return "no errors of a mean of several workloads are published"
    if not isinstance(training, ModelTraining) or training.loop is not None:
        return "no published runs have this loop"
    near = related_bands(*training.step_class)
    others = " and ".join(f"{error:.0%} ({name})" for name, error in near.items())
    said = f"; nine of ten runs of the next kinds are within {others}" if others else ""
    few = f"too few runs of {' '.join(training.step_class)} are published, and of NPUs like it"
    return few + said


def fidelity_payload(problem: Problem, evaluation: Evaluation) -> dict[str, Any]:
    """Keys of ``--json``; null where a plan's fidelity has no such figure."""
    keys = ("step_time_s", "gain", "fixed_order_step_time_s", "aggregate_bound_s")
    figures = attributes(evaluation, "exact_step_time_s", "model_gap")
    figures |= band_keys(evaluation.band_s)
    balanced = attributes(evaluation.balanced, *keys) if evaluation.balanced else None
    return {"chunks": problem.step.model.n_chunks, **figures, "balanced": balanced}


def fidelity_lines(problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """The same for people."""
    exact_s, balanced = evaluation.exact_step_time_s, evaluation.balanced
    yield from band_lines(problem, evaluation.band_s)
    if exact_s is not None:
        yield (
            f"By the exact flow shop of its chunks the step takes [bold]{format_time(exact_s)}[/], "
            f"{evaluation.model_gap:.4f}x the model's time"
        )
    if balanced is not None:
        yield (
            f"Collectives balance over orders of their dimensions: [bold]{balanced.gain:.4f}x[/] "
            f"as fast as in the fixed order with these bandwidths "
            f"({format_time(balanced.fixed_order_step_time_s)}); no order takes less than "
            f"{format_time(balanced.aggregate_bound_s)}"
        )


def equal_bandwidth_text(evaluation: Evaluation) -> str:
    """Its bandwidth, step time and cost, and whether it breaks the rules of the plan."""
    equal = evaluation.equal
    what = " system cost" if evaluation.fixed_cost_usd else ""
    cost = f", {format_usd(equal.cost_usd)}{what}" if isfinite(equal.cost_usd) else ", no bill"
    breaks = "" if equal.feasible else ", breaks the rules"
    return (
        f"{format_bandwidth(equal.bandwidth_bytes_per_s[0])} each: "
        f"{format_time(equal.step_time_s)}{cost}{breaks}"
    )


def option_text(problem: Problem, bandwidth_bytes_per_s: Array) -> str:
    """The option that a vector is, where the plan is priced by its bill; else empty (C22)."""
    bills = problem.prices.bills
    row = -1 if bills is None else int(bills.rows(bandwidth_bytes_per_s))
    return "" if bills is None or row < 0 else bills.options[row].text(problem.topology.tiers)


def line_text(line: int | None) -> str:
    """Where in its plan a rule stands."""
    return f" (line {line})" if line else ""


def amount_text(violation: Violation) -> str:
    """By how much a rule is broken, in its own unit; of a taper what it is."""
    return violation.amount
